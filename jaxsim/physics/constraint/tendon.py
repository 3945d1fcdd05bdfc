"""Constraint rows of tendons: dry friction and length limits."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintType, DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import take
from jaxsim.physics.constraint.dry_friction import friction_terms
from jaxsim.physics.constraint.impedance import columns
from jaxsim.physics.constraint.jacobian import DenseJacobian
from jaxsim.physics.constraint.limit import distance, limit_terms, sides
from jaxsim.physics.constraint.rows import SingleRows, block
from jaxsim.physics.tendon.path import tendon_pattern


def tendon_friction(m: Model, d: Data) -> SingleRows | None:
    """Build the rows of tendons with friction loss (compiled friction loss positive)."""
    tendon = np.flatnonzero(m.tendon_hasfriction & _moves(m))
    if not len(tendon) or m.opt.disableflags & DisableBit.FRICTIONLOSS:
        return None
    floss = take(m.tendon_frictionloss, tendon)
    solref = columns(take(m.tendon_solref_fri, tendon))
    solimp = columns(take(m.tendon_solimp_fri, tendon))
    speed, weight = take(d.ten_velocity, tendon), take(m.tendon_invweight0, tendon)
    J = take(d.ten_J, tendon)  # the Jacobian of fixed tendons has no batch axis
    J = DenseJacobian(jnp.broadcast_to(J, (*J.shape[:2], *d.qvel.shape[1:])))
    terms = friction_terms(m, solref, solimp, floss, speed, weight)
    return block(ConstraintType.FRICTION_TENDON, tendon, J, terms)


def tendon_limits(m: Model, d: Data) -> SingleRows | None:
    """Build limit rows of tendon lengths; the position is the distance to a side."""
    tendon = limited(m)[0]
    if not len(tendon) or m.opt.disableflags & DisableBit.LIMIT:
        return None
    # The Jacobian has the sign of the active side.
    dist, sign = limit_distance(m, d)
    speed = sign * take(d.ten_velocity, tendon)
    solref = columns(take(m.tendon_solref_lim, tendon))
    solimp = columns(take(m.tendon_solimp_lim, tendon))
    margin, weight = take(m.tendon_margin, tendon), take(m.tendon_invweight0, tendon)
    J = DenseJacobian(sign[:, None] * take(d.ten_J, tendon))
    terms = limit_terms(m, solref, solimp, dist, margin, speed, weight)
    return block(ConstraintType.LIMIT_TENDON, tendon, J, terms)


def limit_distance(m: Model, d: Data) -> tuple[Array, Array]:
    """Return distance to the limit and sign of the Jacobian for each row of `tendon_limits`."""
    tendon, side = limited(m)
    return distance(take(d.ten_length, tendon), take(m.tendon_range, tendon), side)


@derived
def limited(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the limited tendons, once per row, and the side of each row."""
    limited = np.flatnonzero(s.tendon_limited.astype(bool) & _moves(s))
    return sides(limited, s.tendon_hasmargin)


@derived
def _moves(s: Structure) -> np.ndarray:
    """Return the tendons whose length some dof changes; others have no rows, as in MuJoCo."""
    return np.isin(np.arange(s.ntendon), tendon_pattern(s).row)
