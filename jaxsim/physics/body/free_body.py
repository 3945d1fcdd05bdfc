"""Standalone free bodies: bodies with a free joint and no joints below them.

MuJoCo's documentation, Computation: Gyroscopic derivatives for free bodies. Such a body shares no
entry of the mass matrix with the rest: its six dofs are a small system of their own.
"""

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take
from jaxsim.enums import JointType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.topology import descendants, joints_of


@cache_by_structure
def free_body_dofs(s: Structure) -> np.ndarray:
    """Return the dofs of the standalone free bodies, one body per column, [6, k]."""
    joint = joints_of(s, JointType.FREE)
    body = s.jnt_bodyid[joint]
    # A free body is standalone if its subtree has six dofs.
    dofs_on_it = descendants(s)[body] @ s.body_dofnum
    return s.jnt_dofadr[joint[dofs_on_it == 6]] + np.arange(6)[:, None]


def free_body_blocks(matrix: Array, dofs: np.ndarray) -> Array:
    """Gather the blocks `[6, 6, k, *W]` of a matrix `[nv, nv, *W]`, one per column of `dofs`."""
    return take(matrix, dofs[:, None], dofs[None])
