"""Align free bodies: the frame of a free body without children becomes its inertial frame.

Requested by `<freejoint align>` or `<compiler alignfree>`; the block of M of such a body is
diagonal.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import IDENTITY
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.step import declare_pass
from jaxsim.enums import JointType
from jaxsim.math.quaternion import quat_rotate


@declare_pass(
    needs="read_settings bodies geoms joints sites cameras lights masses",
    gives="body cam geom light qpos qpos0 site",
)
def align_free(c: Compilation) -> None:
    """Move the frames of aligned bodies, and keep the poses of their geoms, sites and other
    children."""
    f = c.fields
    for joint in np.flatnonzero(f["jnt_type"] == JointType.FREE):
        body = int(f["jnt_bodyid"][joint])
        wanted = c.elements["joint"][joint].own("align") or "auto"
        align = (
            c.settings_of(c.elements["joint"][joint]).alignfree
            if wanted == "auto"
            else wanted == "true"
        )
        if align and not c.bodies[body].bodies:
            _align(c, body, int(f["jnt_qposadr"][joint]))


def _align(c: Compilation, body: int, qposadr: int) -> None:
    f = c.fields
    inertial = FramePose(f["body_ipos"][body].copy(), f["body_iquat"][body].copy())
    placed = FramePose(f["body_pos"][body], f["body_quat"][body]).apply(inertial)
    f["body_pos"][body], f["body_quat"][body] = placed
    f["body_ipos"][body], f["body_iquat"][body] = np.zeros(3), IDENTITY
    for name in ("qpos0", "qpos_spring"):
        f[name][qposadr : qposadr + 7] = np.concatenate(placed)
    back = inertial.inverse()
    for kind in ("geom", "site", "cam"):
        for i in np.flatnonzero(f[f"{kind}_bodyid"] == body):
            moved = back.apply(FramePose(f[f"{kind}_pos"][i], f[f"{kind}_quat"][i]))
            f[f"{kind}_pos"][i], f[f"{kind}_quat"][i] = moved
    for i in np.flatnonzero(f["light_bodyid"] == body):
        f["light_pos"][i] = back.point(f["light_pos"][i])
        f["light_dir"][i] = quat_rotate(back.quat, f["light_dir"][i])
