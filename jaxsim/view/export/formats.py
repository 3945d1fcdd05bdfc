"""Formats of exported motions, and the function that writes a motion in one of them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jaxsim.atomic_write import target_of, whole_file
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.browser.motion import Recorded
from jaxsim.view.export.clip import Clip, clip_of
from jaxsim.view.export.gltf import GLTF_MODULES, write_gltf
from jaxsim.view.export.mcap import MCAP_MODULES, write_mcap
from jaxsim.view.export.rerun import RERUN_MODULES, write_rerun
from jaxsim.view.export.usd import USD_MODULES, write_usd


class Format(NamedTuple):
    """A file format.

    Attributes:
      suffixes: endings of its files, the default first.
      modules: modules of the extra `export` that write it.
      write: function that writes a clip to a path, and returns descriptions of what it leaves out.
    """

    suffixes: tuple[str, ...]
    modules: tuple[str, ...]
    write: Callable[[Clip, Path], list[str]]


FORMATS = {
    "rerun": Format((".rrd",), RERUN_MODULES, write_rerun),
    "usd": Format((".usdz", ".usd", ".usdc", ".usda"), USD_MODULES, write_usd),
    "mcap": Format((".mcap",), MCAP_MODULES, write_mcap),
    "gltf": Format((".glb",), GLTF_MODULES, write_gltf),
}
_GEOMETRY_MODULES = ("trimesh.creation",)  # makes the triangles of primitives


class Exported(NamedTuple):
    """Result of an export.

    Attributes:
      frames: number of frames.
      bodies: number of bodies of a world.
      left_out: descriptions of what the file does not contain.
    """

    frames: int
    bodies: int
    left_out: list[str]


def export_motion(
    m: Model,
    motion: Recorded,
    path: str | os.PathLike[str],
    *,
    to: str,
    worlds: int = 1,
    fps: float | None = None,
) -> Exported:
    """Write a motion in the file format of another program.

    Bodies are nodes with a transform in each frame, from the recorded positions by forward
    kinematics; geoms and sites are the triangles and materials of the browser viewer. docs/view.md
    lists what each format carries. Lengths are in meters, and z is up.

    Args:
      m: the model.
      motion: a trajectory, its file, or arrays by name: qpos (records, nq) or (records, worlds,
        nq), as `rollout` returns them, and optionally time, mocap_pos and mocap_quat. Other arrays
        become curves, if the format has them.
      path: the file; it is written atomically.
      to: format, "rerun", "usd", "mcap" or "gltf".
      worlds: number of worlds, side by side.
      fps: frames per second; records between them are skipped. None: those of the motion, at most
        60.

    Returns:
      What was written.

    Raises:
      ValueError: the format is unknown, the file has another ending, or this is no motion of the
        model.
      OSError: the file cannot be written.
      MissingExtra: the extra `export` is not installed.
    """
    check_format(to, path)
    target = target_of(path)
    clip = clip_of(m, motion, worlds=worlds, fps=fps)
    with whole_file(target) as part:
        left_out = FORMATS[to].write(clip, part)
    return Exported(len(clip.time), len(clip.bodies), [*clip.left_out, *left_out])


def check_format(to: str, path: str | os.PathLike[str]) -> None:
    """Check that a format exists, fits the name of a file, and can be written.

    Raises:
      ValueError: the format is unknown, or the file has another ending.
      MissingExtra: the extra `export` is not installed.
    """
    if to not in FORMATS:
        raise ValueError(f"to: there is no format '{to}'; choose one of {', '.join(FORMATS)}")
    suffixes = FORMATS[to].suffixes
    if Path(path).suffix not in suffixes:
        raise ValueError(f"'{path}' ends in none of {', '.join(suffixes)}, the endings of {to}")
    for name in (*_GEOMETRY_MODULES, *FORMATS[to].modules):
        require(name, "export")
