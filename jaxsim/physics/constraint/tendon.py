"""Constraint rows of tendons: dry friction and length limits."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import ConstraintType, DisableBit
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.constraint.dry_friction import friction_terms
from jaxsim.physics.constraint.impedance import split_columns
from jaxsim.physics.constraint.jacobian import DenseJacobian
from jaxsim.physics.constraint.limit import limit_sides, limit_terms, signed_limit_distance
from jaxsim.physics.constraint.rows import SingleRows, make_row_block
from jaxsim.physics.tendon.path import tendon_pattern


def tendon_friction(m: Model, d: Data) -> SingleRows | None:
    """Build the rows of tendons with `tendon_hasfriction`: a nonzero friction loss at load time, or
    one that was declared free."""
    tendon = np.flatnonzero(m.tendon_hasfriction & _movable_tendons(m))
    if not len(tendon) or m.opt.disableflags & DisableBit.FRICTIONLOSS:
        return None
    floss = gather_static(m.tendon_frictionloss, tendon)
    solref = split_columns(gather_static(m.tendon_solref_fri, tendon))
    solimp = split_columns(gather_static(m.tendon_solimp_fri, tendon))
    speed, weight = (
        gather_static(d.ten_velocity, tendon),
        gather_static(m.tendon_invweight0, tendon),
    )
    J = gather_static(d.ten_J, tendon)  # the Jacobian of fixed tendons has no batch axis
    J = DenseJacobian(jnp.broadcast_to(J, (*J.shape[:2], *d.qvel.shape[1:])))
    terms = friction_terms(m, solref, solimp, floss, speed, weight)
    return make_row_block(ConstraintType.FRICTION_TENDON, tendon, J, terms)


def tendon_limits(m: Model, d: Data) -> SingleRows | None:
    """Build limit rows of tendon lengths; the position is the distance to a side."""
    tendon = limited_tendons(m)[0]
    if not len(tendon) or m.opt.disableflags & DisableBit.LIMIT:
        return None
    # The Jacobian has the sign of the active side.
    dist, sign = limit_distance(m, d)
    speed = sign * gather_static(d.ten_velocity, tendon)
    solref = split_columns(gather_static(m.tendon_solref_lim, tendon))
    solimp = split_columns(gather_static(m.tendon_solimp_lim, tendon))
    margin, weight = (
        gather_static(m.tendon_margin, tendon),
        gather_static(m.tendon_invweight0, tendon),
    )
    J = DenseJacobian(sign[:, None] * gather_static(d.ten_J, tendon))
    terms = limit_terms(m, solref, solimp, dist, margin, speed, weight)
    return make_row_block(ConstraintType.LIMIT_TENDON, tendon, J, terms)


def limit_distance(m: Model, d: Data) -> tuple[Array, Array]:
    """Return distance to the limit and sign of the Jacobian for each row of `tendon_limits`."""
    tendon, side = limited_tendons(m)
    return signed_limit_distance(
        gather_static(d.ten_length, tendon), gather_static(m.tendon_range, tendon), side
    )


@cache_by_structure
def limited_tendons(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the limited tendons, once per row, and the side of each row."""
    limited = np.flatnonzero(s.tendon_limited.astype(bool) & _movable_tendons(s))
    return limit_sides(limited, s.tendon_hasmargin)


@cache_by_structure
def _movable_tendons(s: Structure) -> np.ndarray:
    """Return the tendons whose length some dof changes; others have no rows, as in MuJoCo."""
    return np.isin(np.arange(s.ntendon), tendon_pattern(s).row)
