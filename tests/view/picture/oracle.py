"""Pictures of MuJoCo's renderer, drawn by software OpenGL in a process of its own.

How MuJoCo makes its context is decided when it is imported, and other tests import it otherwise.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

AGAIN = "from view.picture.oracle import draw; draw()"


class Drawn(NamedTuple):
    """A picture: colors (h, w, 3) from 0 to 255, depth [m], and geoms (h, w), -1: none.

    `number` and `type` are those of MuJoCo's segmentation.
    """

    rgb: np.ndarray
    depth: np.ndarray
    number: np.ndarray
    type: np.ndarray


def pictures(cases: list[dict]) -> list[Drawn]:
    """Draws some pictures; skips the test where there is no OpenGL.

    Args:
      cases: each with xml, width, height, and of a free camera azimuth, elevation, distance,
        lookat, or the name of a `camera`; optionally `images`, a file of all pixels of textures,
        and `qpos`, and whether there is `fog`.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        given = json.dumps({"cases": cases, "out": str(out)})
        root = Path(__file__).resolve().parents[2]
        env = {**os.environ, "MUJOCO_GL": "egl", "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", AGAIN], input=given, env=env, text=True, capture_output=True
        )
        if run.returncode:
            pytest.skip(f"no OpenGL without a screen: {run.stderr.strip()[-200:]}")
        with np.load(out) as found:
            return [Drawn(*(found[f"{f}{k}"] for f in Drawn._fields)) for k in range(len(cases))]


def draw() -> None:
    """Draw in the other process."""
    import mujoco

    given, found = json.load(sys.stdin), {}
    for k, case in enumerate(given["cases"]):
        m = mujoco.MjModel.from_xml_string(case["xml"])
        if "images" in case:
            m.tex_data[:] = np.load(case["images"])
        d = mujoco.MjData(m)
        if "qpos" in case:
            d.qpos[:] = case["qpos"]
        mujoco.mj_forward(m, d)
        camera = mujoco.MjvCamera()
        mujoco.mjv_defaultFreeCamera(m, camera)
        if "camera" in case:
            camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            camera.fixedcamid = m.camera(case["camera"]).id
        for name in ("azimuth", "elevation", "distance"):
            setattr(camera, name, case.get(name, getattr(camera, name)))
        camera.lookat[:] = case.get("lookat", camera.lookat)
        with mujoco.Renderer(m, case["height"], case["width"]) as renderer:
            renderer.update_scene(d, camera)
            renderer.scene.flags[mujoco.mjtRndFlag.mjRND_FOG] = case.get("fog", False)
            found[f"rgb{k}"] = renderer.render().astype(float)
            renderer.enable_depth_rendering()
            found[f"depth{k}"] = renderer.render().copy()
            renderer.disable_depth_rendering()
            renderer.enable_segmentation_rendering()
            found[f"number{k}"], found[f"type{k}"] = np.moveaxis(renderer.render().copy(), -1, 0)
    np.savez(given["out"], **found)


def inside(number: np.ndarray) -> np.ndarray:
    """Return pixels whose eight neighbors show the same object, (h, w)."""
    padded = np.pad(number, 1, mode="edge")
    h, w = number.shape
    near = [padded[y : y + h, x : x + w] == number for y in range(3) for x in range(3)]
    return np.all(near, axis=0)
