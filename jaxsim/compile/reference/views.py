"""Poses of cameras and lights at `qpos0`, for those that track a body.

    *_pos0     position relative to the body, in the world frame
    *_poscom0  position relative to the center of mass of the body's subtree, or its target's
    cam_mat0, light_dir0   orientation

They are taken as fixed to their bodies, for every tracking mode.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.reference.pose import Reference
from jaxsim.math import quaternion


def views(reference: Reference) -> dict[str, np.ndarray]:
    """Return the derived fields of cameras and lights by name."""
    f = reference.fields
    found: dict[str, np.ndarray] = {}
    for kind in ("cam", "light"):
        body = f[f"{kind}_bodyid"]
        place = reference.world_position(body, f[f"{kind}_pos"])
        found[f"{kind}_pos0"] = place - reference.xpos[body]
        target = f[f"{kind}_targetbodyid"]
        found[f"{kind}_poscom0"] = (
            place - reference.subtree_com[np.where(target >= 0, target, body)]
        )
    frames = reference.world_rotation(f["cam_bodyid"], f["cam_quat"])
    found["cam_mat0"] = quaternion.quat_to_matrix(frames).reshape(-1, 9)
    found["light_dir0"] = quaternion.quat_rotate(reference.xquat[f["light_bodyid"]], f["light_dir"])
    return found
