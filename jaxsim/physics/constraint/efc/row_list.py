"""Constraint rows as one list, in MuJoCo's order and layout (`efc_*`).

The solver stores rows by structure; here they are expanded to the fields of mjData, including the
edges of friction pyramids. In a Data that keeps some of `efc_*`, active rows come first.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import column, gather_static, running_sum
from jaxsim.enums import ConstraintState, ConstraintType
from jaxsim.model.data import ROW_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Bool, Float, Int
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.collision.contact_list import gather_world_items
from jaxsim.physics.constraint.cone import Edge, Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided
from jaxsim.physics.constraint.efc.row_parameters import efc_kbip
from jaxsim.physics.constraint.efc.row_state import cone_row_states, single_row_states
from jaxsim.physics.constraint.rows import ContactRows, SingleRows
from jaxsim.physics.solver.constraint_force import list_cone_hessians, row_forces


class ConstraintRows(NamedTuple):
    """All rows that a state could have; MuJoCo lists those that are `active`.

    Attributes:
      active: True for active rows, (n,) bool.
      efc_type: ConstraintType, (n,).
      efc_id: id of the equality, dof, tendon, joint or contact of the row, (n,).
      efc_J: Jacobian, (n, nv).
      efc_pos: position of the constraint: distance, or violation, (n,) [m or rad].
      efc_margin: position at which it becomes active, (n,) [m or rad].
      efc_D: inverse regularization, (n,).
      efc_aref: reference acceleration, (n,).
      efc_frictionloss: bound of a row of dry friction, else 0, (n,).
      efc_force: constraint force at `qacc`, (n,); with PGS, no-slip iterations, the discrete
        integrator or the flag diagexact, that of `forward`.
      efc_diagA: diagonal of J M^-1 J', approximated, which scales the regularization, (n,).
    """

    active: Bool[Array, "rows"]
    efc_type: Int[Array, "rows"]
    efc_id: Int[Array, "rows"]
    efc_J: Float[Array, "rows nv"]
    efc_pos: Float[Array, "rows"]
    efc_margin: Float[Array, "rows"]
    efc_D: Float[Array, "rows"]
    efc_aref: Float[Array, "rows"]
    efc_frictionloss: Float[Array, "rows"]
    efc_force: Float[Array, "rows"]
    efc_diagA: Float[Array, "rows"]


def list_rows(m: Model, d: Data) -> Data:
    """Fill those fields of the rows that `d` keeps, `efc_J` and related ones, and `contact.H`.

    As in MuJoCo the active rows come first, `nefc` of them. Entries past them are 0, or -1 for
    `efc_type`, `efc_id` and `efc_state`. Requires the rows of `d`, and its `qacc`.
    """
    d = list_cone_hessians(d)
    kept = [name for name in ROW_FIELDS if getattr(d, name) is not None]
    if not kept:
        return d
    if d.rows.empty:
        return d.replace(**{name: _empty_field(getattr(d, name)) for name in kept})
    rows, capacity = list_state_rows(d), m.structure.sizes["nrow"]
    count = len(rows.active)
    # Compact the active rows, and pad to the capacity `nrow`.
    index, number = compact_true(rows.active, np.arange(count), count)
    filled = column(np.arange(count, dtype=np.int32), number) < number

    def packed(a: Array) -> Array:
        none = _empty_value(a)
        real = filled.reshape(count, *(1,) * (a.ndim - filled.ndim), *filled.shape[1:])
        a = jnp.where(real, gather_world_items(a, index), none)
        rest = ((0, capacity - count), *((0, 0),) * (a.ndim - 1))
        return jnp.pad(a, rest, constant_values=none)

    made = {
        n: DERIVED_ROW_FIELDS[n](m, d, rows) if n in DERIVED_ROW_FIELDS else getattr(rows, n)
        for n in kept
    }
    return d.replace(**{name: packed(a) for name, a in made.items()})


def _empty_value(a: Array) -> np.ndarray:
    """Return the value of entries without a row."""
    return np.asarray(-1 if jnp.issubdtype(a.dtype, jnp.integer) else 0, a.dtype)


def _empty_field(like: Array) -> Array:
    """Return a field without any row."""
    return jnp.full_like(like, _empty_value(like))


def list_state_rows(d: Data) -> ConstraintRows:
    """Return the rows of `d`, with the forces at `d.qacc` or those stored in `d.forces`."""
    # Scalar rows in MuJoCo's order, then contacts.
    rows, forces = d.rows, row_forces(d)
    single = (_single_rows(block, force, d.qacc) for block, force in forces[: len(rows.single)])
    listed = _concatenate_blocks([_no_rows(d.qacc), *single], d.qacc)
    listed = [gather_static(f, rows.order) for f in listed]
    if rows.contact is None or d.found is None:
        return ConstraintRows(*listed)
    # Contact ids count the existing contacts.
    number = running_sum(d.found.contacts.exists.astype(jnp.int32)) - 1
    contacts = _order_by_contact(
        _CONTACT_ROW_LISTS[type(rows.contact.cost)](d, forces[-1][1], number), d.qacc
    )
    return ConstraintRows(*_concatenate_blocks([listed, contacts], d.qacc))


def _no_rows(qacc: Array) -> list:
    """Return the fields of ConstraintRows for zero rows."""
    real = jnp.zeros((0, *qacc.shape[1:]), qacc.dtype)
    whole = real.astype(jnp.int32)
    return [whole > 0, whole, whole, real[:, None] * qacc[None], *[real] * 7]


def _single_rows(block: SingleRows, force: Array, qacc: Array) -> list:
    """Return the fields of ConstraintRows for a block with one row per object."""
    cost, kind = block.cost, column(np.full(len(block.id), block.type, np.int32), qacc)
    floss = cost.floss if isinstance(cost, Huber) else jnp.zeros_like(cost.D)
    owner = column(block.ids.astype(np.int32), qacc)
    J, none = block.J.dense(len(qacc)), jnp.zeros_like(cost.D)
    pos, margin = (none if a is None else a + none for a in (block.pos, block.margin))
    return [
        cost.D > 0,
        kind,
        owner,
        J,
        pos,
        margin,
        cost.D,
        block.aref,
        floss,
        force,
        _diagonal(cost.D, block.soft),
    ]


def _pyramid(d: Data, force: list, number: Array) -> list:
    """Return the rows of pyramids: the edges of each contact."""
    block, rows = d.rows.contact, []
    for edge in block.cost.rows:
        J, aref = edge.jacobian(block.J.basis), edge.evaluate(block.aref)
        if edge.k == 0 and d.forces is not None:
            push = force[0]
        elif d.forces is None or d.forces.reach is None:
            push = OneSided(edge.D).at(apply(J, d.qacc) - aref).force
        else:
            push = _edge_force(block.cost, force, d.forces.reach, edge)
        rows.append(_contact(block, number, J, _contact_pos_margin(d), edge.D, aref, push))
    return rows


def _edge_force(cost: Pyramid, force: list, reach: list, edge: Edge) -> Array:
    """Compute an edge's force from the basis: mu (up + down) = reach, mu (up - down) = f."""
    k, sign, mu = edge.k, edge.sign, cost.mu[edge.k]
    push = (reach[k - 1] + sign * force[k]) / jnp.where(mu > 0, 2 * mu, 1.0)
    if cost.flat is None or (k, sign) != (1, 1):
        return push
    return jnp.where(cost.flat, force[0], push)


def _cone(d: Data, force: list, number: Array) -> list:
    """Return the rows of elliptic cones: normal, tangents, spin and rolls of each contact."""
    block = d.rows.contact
    places = [_contact_pos_margin(d), *[[jnp.zeros_like(block.aref[0])] * 2] * (len(force) - 1)]
    fields = zip(block.J.basis, places, block.cost.D, block.aref, force, strict=True)
    return [_contact(block, number, *f) for f in fields]


def _contact_pos_margin(d: Data) -> list:
    """Return position and margin of the contacts; the friction rows of cones have none."""
    return [d.found.contacts.dist, d.found.contacts.includemargin]


def _contact(
    block: ContactRows, number: Array, J: Array, place: list, D: Array, aref: Array, force: Array
) -> list:
    """Return the fields of ConstraintRows for one row of every contact; `number` is its id."""
    flat = np.int32(ConstraintType.CONTACT_FRICTIONLESS)
    # Frictionless contacts have a type of their own.
    kind = jnp.where(_frictionless(block.cost), flat, np.int32(block.type))
    kind, floss = jnp.broadcast_to(kind, D.shape), jnp.zeros_like(D)
    diagonal = _diagonal(D, block.soft)
    return [D > 0, kind, number, J, *place, D, aref, floss, force, diagonal]


def _diagonal(D: Array, soft: Array) -> Array:
    """Recover the inverse inertia A from the regularization R = soft A; 0 for inactive rows.

    For contacts with friction it is the one that belongs to the regularization of the other rows.
    """
    product = D * soft
    return jnp.where(product > 0, 1 / jnp.where(product > 0, product, 1.0), 0)


def _inverse_of_active(rows: ConstraintRows) -> Array:
    return jnp.where(rows.active, 1 / jnp.where(rows.active, rows.efc_D, 1.0), 0)


def _state(m: Model, d: Data, rows: ConstraintRows) -> Array:
    """Return the ConstraintState of the rows at `d.qacc`."""
    del m
    # Scalar rows first, then the zones of elliptic contacts.
    jar = apply(rows.efc_J, d.qacc) - rows.efc_aref
    state, force, cost = single_row_states(rows, jar)
    contact = d.rows.contact
    if contact is not None and d.found is not None and isinstance(contact.cost, Elliptic):
        state, *_ = cone_row_states(contact.cost, rows, jar, state, force, cost)
    return jnp.where(rows.active, state, np.int32(ConstraintState.SATISFIED))


def _smooth_row_acceleration(d: Data, rows: ConstraintRows) -> Array:
    """Return the unconstrained acceleration along the rows; 0 if unknown, as in `inverse`."""
    acc = jnp.zeros_like(d.qvel) if d.qacc_smooth is None else d.qacc_smooth
    return apply(rows.efc_J, acc)


def _velocity(m: Model, d: Data, rows: ConstraintRows) -> Array:
    """Return the velocity of the rows: J qvel, plus the surface velocity of contacts."""
    del m
    velocity, block = apply(rows.efc_J, d.qvel), d.rows.contact
    driven = None if block is None or d.found is None else d.found.contacts.surfacevel
    if driven is None:
        return velocity
    rest = [jnp.zeros_like(driven[0])] * (len(block.aref) - 1 - len(driven))
    basis = [jnp.zeros_like(driven[0]), *driven, *rest][: len(block.aref)]
    cost = block.cost
    of_rows = [e.evaluate(basis) for e in cost.rows] if isinstance(cost, Pyramid) else basis
    surface = jnp.stack(of_rows, axis=1)
    surface = surface.reshape(-1, *surface.shape[2:])
    first = len(velocity) - len(surface)
    return jnp.concatenate([velocity[:first], velocity[first:] + surface])


# Fields of rows that are derived from others.
DERIVED_ROW_FIELDS: dict[str, Callable[[Model, Data, ConstraintRows], Array]] = {
    "efc_KBIP": lambda m, d, rows: efc_kbip(m, d),
    "efc_vel": _velocity,
    "efc_R": lambda m, d, rows: _inverse_of_active(rows),
    "efc_b": lambda m, d, rows: _smooth_row_acceleration(d, rows) - rows.efc_aref,
    "efc_state": _state,
}


def _frictionless(cost: Pyramid | Elliptic) -> Array | bool:
    """Return the contacts with one row: all, or a mask."""
    return len(cost.mu) == 1 if cost.flat is None else cost.flat


def _order_by_contact(rows: list, qacc: Array) -> list:
    """Reorder rows from all contacts row by row to contact after contact."""
    count, n = len(rows), rows[0][0].shape[0]
    order = np.arange(count * n).reshape(count, n).T.ravel()
    return [gather_static(f, order) for f in _concatenate_blocks(rows, qacc)]


def _concatenate_blocks(blocks: list, like: Array) -> list:
    """Concatenate rows of several blocks field by field, broadcast to the worlds of `like`."""
    worlds = like.shape[1:]

    def spread(a):
        return jnp.broadcast_to(a, (*a.shape[: a.ndim - len(worlds)], *worlds))

    return [jnp.concatenate([spread(a) for a in f]) for f in zip(*blocks, strict=True)]


_CONTACT_ROW_LISTS: dict[type, Callable] = {Pyramid: _pyramid, Elliptic: _cone}
