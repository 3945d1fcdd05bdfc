"""State, force and cost of listed constraint rows at given residuals.

MuJoCo's documentation, Computation: Constraint model, Primal problem; corresponds to
`mj_constraintUpdate`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import ConstraintState, ConstraintType
from jaxsim.physics.constraint.cone import Elliptic

_DRY_FRICTION_TYPES = (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)


def single_row_states(rows: Any, jar: Array) -> tuple[Array, Array, Array]:
    """Evaluate state, force and cost of scalar rows at residuals `jar`, `[n, *W]`.

    Args:
      rows: the ConstraintRows.
      jar: J a - aref.
    """
    # Thresholds of dry friction, and rows that are not active on one side.
    D, floss = rows.efc_D, rows.efc_frictionloss
    kind = rows.efc_type
    dry = (kind == _DRY_FRICTION_TYPES[0]) | (kind == _DRY_FRICTION_TYPES[1])
    bound = floss / jnp.where(rows.active, D, 1)
    pulls, pushes = dry & (jar <= -bound), dry & (jar >= bound)
    free = ~dry & (kind != ConstraintType.EQUALITY) & (jar >= 0)
    # States, then forces and costs by state.
    state = jnp.full(jar.shape, ConstraintState.QUADRATIC, jnp.int32)
    for where, named in (
        (free, ConstraintState.SATISFIED),
        (pulls, ConstraintState.LINEARNEG),
        (pushes, ConstraintState.LINEARPOS),
    ):
        state = jnp.where(where, np.int32(named), state)
    force = jnp.where(free, 0, jnp.where(pulls, floss, jnp.where(pushes, -floss, -D * jar)))
    beyond = floss * (jnp.abs(jar) - 0.5 * bound)
    cost = jnp.where(pulls | pushes, beyond, jnp.where(free, 0, 0.5 * D * jar * jar))
    return state, force, cost


def cone_row_states(
    of: Elliptic, rows: Any, jar: Array, state: Array, force: Array, cost: Array
) -> tuple[Array, Array, Array, Array]:
    """Replace the values of elliptic contacts' rows, which are last, and return their Hessians."""
    # Split the last rows by contact and basis direction.
    size = len(of.D)
    contacts = of.D[0].shape[0]
    first = len(jar) - size * contacts

    def split_contacts(a: Array) -> list:
        a = jnp.broadcast_to(a, (len(jar), *rows.efc_D.shape[1:]))[first:]
        return [a.reshape(contacts, size, *a.shape[1:])[:, k] for k in range(size)]

    def join_contacts(a: Array, parts: list) -> Array:
        new = jnp.stack(parts, axis=1)
        return jnp.concatenate([a[:first], new.reshape(size * contacts, *new.shape[2:])])

    r = split_contacts(jar)
    piece = of.at(r)
    free, below = of.zones(r)
    # Zone of each contact.
    quadratic, satisfied = ConstraintState.QUADRATIC, ConstraintState.SATISFIED
    zone = jnp.where(below, np.int32(quadratic), np.int32(ConstraintState.CONE))
    zone = jnp.where(free, np.int32(satisfied), zone)
    none = jnp.zeros_like(piece.cost)
    bends = (of.D[0] > 0) & ~free & ~below
    # The cone Hessian is reported in the middle zone only.
    hessian = jnp.stack(
        [jnp.stack([jnp.where(bends, a, 0) for a in row], axis=1) for row in piece.curvature],
        axis=1,
    )
    return (
        join_contacts(state, [zone] * size),
        join_contacts(force, piece.force),
        join_contacts(cost, [piece.cost, *[none] * (size - 1)]),
        hessian,
    )
