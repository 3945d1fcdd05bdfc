"""All constraint rows of a state, and how many there are."""

import jax.numpy as jnp

from jaxsim.enums import ConeType, ConstraintType, DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.select import total
from jaxsim.physics.constraint.contact import contact_rows
from jaxsim.physics.constraint.equality import connects, joint_couplings, tendon_couplings, welds
from jaxsim.physics.constraint.joint import ball_limits, dof_friction, scalar_joint_limits
from jaxsim.physics.constraint.rows import Rows
from jaxsim.physics.constraint.tendon import tendon_friction, tendon_limits

DOF_ROWS = (dof_friction, scalar_joint_limits)
DENSE_ROWS = (
    connects,
    welds,
    joint_couplings,
    tendon_couplings,
    tendon_friction,
    ball_limits,
    tendon_limits,
)
# counter in Data of each kind of row
COUNT = {
    ConstraintType.EQUALITY: "ne",
    ConstraintType.FRICTION_DOF: "nf",
    ConstraintType.FRICTION_TENDON: "nf",
    ConstraintType.LIMIT_JOINT: "nl",
    ConstraintType.LIMIT_TENDON: "nl",
}


def make_constraint(m: Model, d: Data) -> Data:
    """Builds the rows of equalities, friction loss, limits and contacts at the present state.

    Needs the motion axes, the velocities, the tendons and the contacts of `d`.
    """
    if m.opt.disableflags & DisableBit.CONSTRAINT:
        return _count(m, d.replace(rows=Rows()))
    dof = tuple(r for build in DOF_ROWS if (r := build(m, d)) is not None)
    dense = tuple(q for build in DENSE_ROWS if (q := build(m, d)) is not None)
    contact = () if d.found is None else (contact_rows(m, d, d.found),)
    return _count(m, d.replace(rows=Rows(dof, dense, contact)))


def _count(m: Model, d: Data) -> Data:
    """ne, nf, nl, nefc: rows that are active, by kind."""
    zero = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
    n = dict.fromkeys(COUNT.values(), zero)
    rows = d.rows
    for block in (*rows.dof, *rows.dense):
        n[COUNT[block.type]] += _active(block.D)
    nc = zero
    for block in rows.contact:
        if block.cone == ConeType.ELLIPTIC:
            nc = nc + sum(_active(D) for D in block.Dt)
        else:
            if len(block.J) == 1:
                nc = nc + _active(block.D)
            elif block.flat is not None:
                nc = nc + _active(jnp.where(block.flat, block.D, 0))
            nc = nc + sum(2 * _active(jnp.where(mu > 0, block.D, 0)) for mu in block.mu[1:])
    return d.replace(**n, nefc=sum(n.values(), nc))


def _active(D):
    """Rows with a regularization, `[1, *W]`; a float sum, exact below 2^24 rows."""
    return total((D > 0).astype(D.dtype)).astype(jnp.int32)
