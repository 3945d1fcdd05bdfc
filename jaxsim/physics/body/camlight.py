"""Poses of cameras and lights in the world: fixed to a body, tracking it, or aimed at another.

MuJoCo's documentation, XML reference: body/camera/mode, body/light/mode.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import CamLight
from jaxsim.math import Rot, Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model


def camlight(m: Model, d: Data) -> Data:
    """Compute positions of cameras and lights, camera orientations and light directions.

      fixed          as attached to the body
      track          orientation of qpos0, offset from the body of qpos0
      trackcom       orientation of qpos0, offset from the center of mass of the body's subtree
      targetbody     position as attached to the body, aimed at the target body
      targetbodycom  as targetbody, aimed at the center of mass of the target's subtree

    Cameras look along -z, with y up. Corresponds to `mj_camlight` in MuJoCo.
    """
    return _lights(m, _cameras(m, d))


class _Mounts(NamedTuple):
    """Attachment of cameras or lights: constants `[n]`, and offsets at qpos0."""

    body: np.ndarray
    mode: np.ndarray
    target: np.ndarray
    pos0: Vec
    poscom0: Vec

    @property
    def follows(self) -> np.ndarray:
        """Return those that keep the orientation of qpos0."""
        return np.isin(self.mode, (CamLight.TRACK, CamLight.TRACKCOM))

    def positions(self, d: Data, fixed: Vec) -> Vec:
        """Return the positions; `fixed` are those in the frames of the bodies."""
        pos = gather_static(d.xpos, self.body) + gather_static(d.xquat, self.body).rotate(fixed)
        for kind, origin, offset in (
            (CamLight.TRACK, d.xpos, self.pos0),
            (CamLight.TRACKCOM, d.subtree_com, self.poscom0),
        ):
            pos = select_where(
                column(self.mode == kind, pos), gather_static(origin, self.body) + offset, pos
            )
        return pos

    def goals(self, d: Data) -> Iterator[tuple[np.ndarray, Vec]]:
        """Yield masks of those that are aimed, with the target points."""
        for kind, goal in (
            (CamLight.TARGETBODY, d.xpos),
            (CamLight.TARGETBODYCOM, d.subtree_com),
        ):
            here = (self.mode == kind) & (self.target >= 0)
            if here.any():
                yield here, gather_static(goal, np.maximum(self.target, 0))


def _cameras(m: Model, d: Data) -> Data:
    if not m.ncam:
        return d.replace(cam_xpos=d.xpos[:0], cam_xmat=d.xquat[:0].matrix())
    # Fixed attachment, then replace the modes that follow qpos0.
    mounts = _Mounts(m.cam_bodyid, m.cam_mode, m.cam_targetbodyid, m.cam_pos0, m.cam_poscom0)
    pos = mounts.positions(d, m.cam_pos)
    mat = (gather_static(d.xquat, m.cam_bodyid) * m.cam_quat).matrix()
    mat = select_where(column(mounts.follows, pos), m.cam_mat0, mat)
    # Aim at targets: the camera's z axis points away from the target.
    for here, goal in mounts.goals(d):
        mat = select_where(column(here, pos), _aim_camera(pos - goal), mat)
    return d.replace(cam_xpos=pos, cam_xmat=mat)


def _lights(m: Model, d: Data) -> Data:
    """Compute the lights of a Data that keeps them; no other stage uses them."""
    if d.light_xpos is None and d.light_xdir is None:
        return d
    if not m.nlight:
        return d.replace(light_xpos=d.xpos[:0], light_xdir=d.xpos[:0])
    mounts = _Mounts(
        m.light_bodyid, m.light_mode, m.light_targetbodyid, m.light_pos0, m.light_poscom0
    )
    pos = mounts.positions(d, m.light_pos)
    # Light direction by mode, like the camera orientations.
    way = gather_static(d.xquat, m.light_bodyid).rotate(m.light_dir)
    way = select_where(column(mounts.follows, pos), m.light_dir0, way)
    for here, goal in mounts.goals(d):
        way = select_where(column(here, pos), goal - pos, way)
    return d.replace(light_xpos=pos, light_xdir=way.normalize())


def _aim_camera(back: Vec) -> Rot:
    """Return the axes of a camera whose z axis is along `back`, with a horizontal x axis."""
    z = back.normalize()
    x = Vec(-z.y, z.x, 0 * z.z).normalize()  # cross product of the vertical and z
    return Rot.from_cols(x, z.cross(x), z)
