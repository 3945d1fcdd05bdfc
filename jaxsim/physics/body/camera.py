"""Poses of cameras in the world: fixed to a body, following it, or aimed at another.

MuJoCo's documentation, XML reference: body/camera/mode.
"""

import numpy as np

from jaxsim.enums import CamLight
from jaxsim.math import Rot, Vec, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.stage import stage


@stage(reads="xpos xquat subtree_com ", writes="cam_xpos cam_xmat")
def camera(m: Model, d: Data) -> Data:
    """Positions and orientations of cameras; they look along -z, with y up.

    fixed          as they are fixed to the body
    track          orientation of qpos0, offset from the body of qpos0
    trackcom       the same from the center of mass of the body's subtree
    targetbody     at their place in the body, aimed at the target body
    targetbodycom  the same, aimed at the center of mass of the target's subtree
    """
    if not m.ncam:
        return d.replace(cam_xpos=d.xpos[:0], cam_xmat=d.xmat[:0])
    body, mode = m.cam_bodyid, m.cam_mode
    quat = take(d.xquat, body)
    pos = take(d.xpos, body) + quat.rotate(m.cam_pos)
    mat = (quat * m.cam_quat).matrix()
    for kind, origin, offset in (
        (CamLight.TRACK, d.xpos, m.cam_pos0),
        (CamLight.TRACKCOM, d.subtree_com, m.cam_poscom0),
    ):
        here = column(mode == kind, pos)
        pos = select(here, take(origin, body) + offset, pos)
        mat = select(here, m.cam_mat0, mat)
    target = np.maximum(m.cam_targetbodyid, 0)
    for kind, goal in (
        (CamLight.TARGETBODY, d.xpos),
        (CamLight.TARGETBODYCOM, d.subtree_com),
    ):
        here = (mode == kind) & (m.cam_targetbodyid >= 0)
        if here.any():
            mat = select(column(here, pos), _aimed(pos - take(goal, target)), mat)
    return d.replace(cam_xpos=pos, cam_xmat=mat)


def _aimed(back: Vec) -> Rot:
    """Axes of a camera whose z axis points backwards, level with the horizon."""
    z = back.normalize()
    x = Vec(-z.y, z.x, 0 * z.z).normalize()  # the vertical times z
    return Rot.from_cols(x, z.cross(x), z)
