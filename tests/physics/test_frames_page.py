"""The page on frames: its code runs and holds, and MuJoCo's conventions are the same."""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.io.bridge import put_data, put_model

PAGE = Path(__file__).resolve().parents[2] / "docs/physics/frames.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.slow
def test_the_statements_of_the_page_hold():
    names: dict = {}
    for code in blocks():
        exec(compile(code, str(PAGE), "exec"), names)
    assert names["m"].nv == 6
    sections = PAGE.read_text().split("\n## ")[1:]
    assert all("assert " in section for section in sections)  # none without its proof


def test_the_conventions_are_mujocos():
    """One step of the page's body, turned, moving, pushed and held."""
    xml = re.search(r'load_model\("""(.*?)"""', blocks()[0], re.DOTALL)[1]
    mj = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(mj)
    d.qpos[3:] = 0.5**0.5, 0, 0.5**0.5, 0
    d.qvel[:] = 1, 2, 3, 0.4, 0.5, 0.6
    d.xfrc_applied[1] = 1, -2, 3, 0.1, 0.2, -0.3
    d.qfrc_applied[:] = -1, 0.5, 0.2, 0.3, -0.1, 0.2
    m, ours = put_model(mj), put_data(mj, d)
    ours = jaxsim.step(m, ours)
    mujoco.mj_step(mj, d)
    for name in ("qpos", "qvel", "cvel", "xmat", "xquat"):
        theirs = getattr(d, name)
        np.testing.assert_allclose(
            np.reshape(getattr(ours, name), theirs.shape), theirs, atol=1e-10
        )
    velocity = np.zeros(6)
    mujoco.mj_forward(mj, d)
    for local in (0, 1):
        mujoco.mj_objectVelocity(mj, d, mujoco.mjtObj.mjOBJ_XBODY, 1, velocity, local)
        mine = jaxsim.support.object_velocity(m, ours, "xbody", "drone", flg_local=bool(local))
        np.testing.assert_allclose(mine, velocity, atol=1e-9)
