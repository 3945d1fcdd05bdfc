"""Constraint rows of joints: dry friction of dofs and joint limits.

Correspond to `mj_instantiateFriction` and `mj_instantiateLimit` in MuJoCo.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import ConstraintType, DisableBit, JointType
from jaxsim.math import Quat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.constraint.dry_friction import friction_terms
from jaxsim.physics.constraint.impedance import split_columns
from jaxsim.physics.constraint.jacobian import DenseJacobian, DofJacobian
from jaxsim.physics.constraint.limit import limit_sides, limit_terms, signed_limit_distance
from jaxsim.physics.constraint.rows import SingleRows, make_row_block


def dof_friction(m: Model, d: Data) -> SingleRows | None:
    """Build the rows of dofs with friction loss (compiled friction loss positive)."""
    dof = np.flatnonzero(m.dof_hasfriction)
    if not len(dof) or m.opt.disableflags & DisableBit.FRICTIONLOSS:
        return None
    floss = gather_static(m.dof_frictionloss, dof)
    solref, solimp = (
        split_columns(gather_static(m.dof_solref, dof)),
        split_columns(gather_static(m.dof_solimp, dof)),
    )
    qvel = gather_static(d.qvel, dof)
    J = DofJacobian(tuple(dof.tolist()), jnp.ones_like(qvel))
    weight = gather_static(m.dof_invweight0, dof)
    terms = friction_terms(m, solref, solimp, floss, qvel, weight)
    return make_row_block(ConstraintType.FRICTION_DOF, dof, J, terms)


@cache_by_structure
def scalar_limits(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return limited slide and hinge joints, once per row, and the side of each row."""
    scalar = np.isin(s.jnt_type, (JointType.SLIDE, JointType.HINGE))
    return limit_sides(np.flatnonzero(s.jnt_limited.astype(bool) & scalar), s.jnt_hasmargin)


def scalar_joint_limits(m: Model, d: Data) -> SingleRows | None:
    """Build limit rows of slides and hinges; the position is the distance to a side."""
    joint, side = scalar_limits(m)
    if not len(joint) or m.opt.disableflags & DisableBit.LIMIT:
        return None
    # Distance and sign of the active side.
    value, span = gather_static(d.qpos, m.jnt_qposadr[joint]), gather_static(m.jnt_range, joint)
    dist, sign = signed_limit_distance(value, span, side)
    dof = m.jnt_dofadr[joint]
    margin, speed = gather_static(m.jnt_margin, joint), sign * gather_static(d.qvel, dof)
    J = DofJacobian(tuple(dof.tolist()), sign)
    return _limit(m, joint, J, dist, margin, speed, gather_static(m.dof_invweight0, dof))


def ball_limits(m: Model, d: Data) -> SingleRows | None:
    """Build limit rows of ball joints: the rotation angle is bounded by the larger limit."""
    joint = np.flatnonzero(m.jnt_limited.astype(bool) & (m.jnt_type == JointType.BALL))
    if not len(joint) or m.opt.disableflags & DisableBit.LIMIT:
        return None
    # Rotation angle and axis; the Jacobian is minus the axis on the joint's dofs.
    quat = Quat(*(gather_static(d.qpos, m.jnt_qposadr[joint] + k) for k in range(4))).normalize()
    turn = quat.rotation_vector()
    angle = turn.norm()
    axis = turn.normalize()
    span = gather_static(m.jnt_range, joint)
    dist = jnp.maximum(span[:, 0], span[:, 1]) - angle
    # Rows are dense in the three dofs of the joint.
    J = jnp.zeros((len(joint), m.nv, *dist.shape[1:]), dist.dtype)
    speed = jnp.zeros_like(dist)
    dof = m.jnt_dofadr[joint]
    for k in range(3):
        here = column(np.eye(m.nv)[dof + k], J[0])
        J = J - here * axis.parts[k][:, None]
        speed = speed - axis.parts[k] * gather_static(d.qvel, dof + k)
    margin = gather_static(m.jnt_margin, joint)
    return _limit(
        m, joint, DenseJacobian(J), dist, margin, speed, gather_static(m.dof_invweight0, dof)
    )


def _limit(
    m: Model,
    joint: np.ndarray,
    J: DofJacobian | DenseJacobian,
    dist: Array,
    margin: Array,
    speed: Array,
    invweight: Array,
) -> SingleRows:
    """Build limit rows of joints."""
    solref, solimp = (
        split_columns(gather_static(m.jnt_solref, joint)),
        split_columns(gather_static(m.jnt_solimp, joint)),
    )
    terms = limit_terms(m, solref, solimp, dist, margin, speed, invweight)
    return make_row_block(ConstraintType.LIMIT_JOINT, joint, J, terms)
