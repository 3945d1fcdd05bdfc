"""Stiffness, damping and impedance of the listed constraint rows, MuJoCo's `efc_KBIP`.

MuJoCo's documentation, Computation: Constraint model (Parameters, Impedance, Reference). The
solver needs what follows from these numbers only; they are computed again for a Data that keeps
them, from the parameters of the objects, in the order of the list (row_list.py).
"""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import ConstraintType, EqType
from jaxsim.math import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cone import Pyramid
from jaxsim.physics.constraint.contact.rows import contact_law
from jaxsim.physics.constraint.impedance import (
    ReferenceLaw,
    impedance,
    reference_law,
    split_columns,
)
from jaxsim.physics.constraint.rows import SingleRows

# Fields with solref and solimp of the object of a row, by row type.
_ROW_PARAMETERS = {
    ConstraintType.EQUALITY: ("eq_solref", "eq_solimp"),
    ConstraintType.FRICTION_DOF: ("dof_solref", "dof_solimp"),
    ConstraintType.FRICTION_TENDON: ("tendon_solref_fri", "tendon_solimp_fri"),
    ConstraintType.LIMIT_JOINT: ("jnt_solref", "jnt_solimp"),
    ConstraintType.LIMIT_TENDON: ("tendon_solref_lim", "tendon_solimp_lim"),
}
_DRY_FRICTION_TYPES = (ConstraintType.FRICTION_DOF, ConstraintType.FRICTION_TENDON)
_LIMIT_TYPES = (ConstraintType.LIMIT_JOINT, ConstraintType.LIMIT_TENDON)
# Rows per constraint whose impedance is that of the norm of all their residuals.
_EQUALITY_ROWS = {EqType.CONNECT: 3, EqType.WELD: 6}


def efc_kbip(m: Model, d: Data) -> Array:
    """Return K, B, imp and the derivative of imp by the position, of each listed row.

    Args:
      m: model.
      d: data with rows, and the contacts that they are of.

    Returns:
      `[n, 4, *W]`: [1/s^2], [1/s], without unit, [1/m or 1/rad]; in the order of
      `ConstraintRows` (row_list.py).
    """
    like = d.qvel
    empty = jnp.zeros((0, 4, *like.shape[1:]), like.dtype)
    blocks = [_stack_columns(_block_law(m, block), like) for block in d.rows.single]
    single = gather_static(jnp.concatenate([empty, *blocks]), d.rows.order)
    if d.rows.contact is None or d.found is None:
        return single
    rows = jnp.stack([_stack_columns(row, like) for row in _contact_law(m, d)], axis=1)
    return jnp.concatenate([single, rows.reshape(-1, *rows.shape[2:])])


def _block_law(m: Model, block: SingleRows) -> list[Array]:
    """Return the four numbers of rows that are not of contacts, `[n, *W]` each."""
    solref, solimp = (
        split_columns(gather_static(getattr(m, n), block.ids)) for n in _ROW_PARAMETERS[block.type]
    )
    imp, slope = _impedance_and_slope(solimp, _position_minus_margin(m, block))
    found = reference_law(m, solref, solimp[1], imp, one_sided=block.type in _LIMIT_TYPES)
    stiffness = jnp.zeros_like(imp) if block.type in _DRY_FRICTION_TYPES else found.stiffness
    return [stiffness, found.damping, imp, slope]


def _position_minus_margin(m: Model, block: SingleRows) -> Array:
    """Return the argument of the impedance, `[n, *W]`: the position minus the margin.

    For connects and welds it is the norm of all residuals of the constraint, in each of its rows.
    """
    if block.pos is None:
        return jnp.zeros_like(block.soft)
    if block.type != ConstraintType.EQUALITY:
        return block.pos if block.margin is None else block.pos - block.margin
    count = _EQUALITY_ROWS.get(EqType(m.eq_type[block.id[0]]), 1)
    if count == 1:
        return block.pos
    rows = block.pos.reshape(count, -1, *block.pos.shape[1:])
    return jnp.concatenate([safe_sqrt(jnp.sum(rows * rows, axis=0))] * count)


def _impedance_and_slope(solimp: tuple[Array, ...], violation: Array) -> tuple[Array, Array]:
    """Return the impedance at a violation, and its derivative."""
    ones = (jnp.ones_like(violation),)
    return jax.jvp(lambda r: impedance(solimp, r), (violation,), ones)


def _contact_law(m: Model, d: Data) -> list[list[Array]]:
    """Return the four numbers of contact rows; all rows of a contact share the impedance."""
    c, cost = d.found.contacts, d.rows.contact.cost

    def laws(dist: Array) -> tuple[Array, tuple[ReferenceLaw, ReferenceLaw]]:
        normal, friction = contact_law(m, c._replace(dist=dist))
        return normal.imp, (normal, friction)

    _, slope, (normal, friction) = jax.jvp(laws, (c.dist,), (jnp.ones_like(c.dist),), has_aux=True)
    if isinstance(cost, Pyramid):
        return [[*normal, slope]] * len(cost.rows)
    return [[*normal, slope], *[[*friction, slope]] * (len(cost.mu) - 1)]


def _stack_columns(columns: list[Array], like: Array) -> Array:
    """Stack four columns `[n, *W]` to `[n, 4, *W]`, broadcast to the worlds of `like`."""
    worlds = like.shape[1:]
    return jnp.stack([jnp.broadcast_to(a, (len(columns[0]), *worlds)) for a in columns], axis=1)
