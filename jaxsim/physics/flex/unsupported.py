"""Features of flexes that are not supported with any options."""

import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.model import Model
from jaxsim.physics.unsupported import Refusal, describe_object, make_refusal


def unsupported_flexes(m: Model) -> list[Refusal]:
    """Return the flexes whose motion cannot be simulated."""
    return [
        make_refusal(m, "flex", f, what)
        for f in range(m.nflex)
        if (what := _origin_node_error(m, f))
    ]


def _origin_node_error(m: Model, f: int) -> str:
    """Return an error message if a node at the origin of a jointed body lacks three slides.

    MuJoCo takes the joints of such a body for three slides.
    """
    if m.flex_rigid[f] or not m.flex_interp[f]:
        return ""
    # Nodes on bodies with joints.
    node = m.flex_nodeadr[f] + np.arange(m.flex_nodenum[f])
    body = m.flex_nodebodyid[node]
    place = np.asarray(m.flex_node).reshape(-1, 3)[node]
    odd = (m.body_dofnum[body] > 0) & ~np.isin(body, m.jnt_bodyid[_three_slide_joints(m)])
    odd &= (place == 0).all(axis=1)
    if not odd.any():
        return ""
    where = describe_object(m, "body", int(body[odd][0]))
    return f"a node at the origin of {where} needs that body to have three slide joints; move it"


def _three_slide_joints(m: Model) -> np.ndarray:
    """Return the joints of bodies that have three slides and no other joint."""
    slides = np.bincount(m.jnt_bodyid[m.jnt_type == JointType.SLIDE], minlength=m.nbody)
    good = (slides == 3) & (m.body_dofnum == 3)
    return np.flatnonzero(good[m.jnt_bodyid])
