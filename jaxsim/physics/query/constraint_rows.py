"""The constraint rows of a state as one list, in MuJoCo's order and form, for inspection.

The solver keeps rows by structure; here they are written out under the names of mjData, edges of
friction pyramids included. What is not active stays in its place, marked so.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConstraintType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.products import apply, apply_transpose
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided
from jaxsim.physics.constraint.rows import ContactRows, SingleRows
from jaxsim.physics.forward import (
    fwd_acceleration,
    fwd_actuation,
    fwd_constraint,
    fwd_position,
    fwd_velocity,
)
from jaxsim.physics.solver.constraint_force import row_forces
from jaxsim.physics.stage import stage


class ConstraintRows(NamedTuple):
    """All rows a state could have; MuJoCo lists those that are `active`.

    Attributes:
      active: whether the row takes part, (n,) bool.
      efc_type: ConstraintType, (n,).
      efc_id: equality, dof, tendon, joint or contact that the row is of, (n,).
      efc_J: Jacobian, (n, nv).
      efc_D: inverse regularization, (n,).
      efc_aref: reference acceleration, (n,).
      efc_frictionloss: bound of a row of dry friction, else 0, (n,).
      efc_force: constraint force at `qacc`, (n,); with no-slip iterations, that of `forward`.
    """

    active: jax.Array
    efc_type: jax.Array
    efc_id: jax.Array
    efc_J: jax.Array
    efc_D: jax.Array
    efc_aref: jax.Array
    efc_frictionloss: jax.Array
    efc_force: jax.Array


@stage(
    reads=(
        "qpos qvel act qacc_warmstart ctrl qfrc_applied xfrc_applied eq_active mocap_pos "
        "mocap_quat qacc"
    )
)
def constraint_rows(m: Model, d: Data) -> ConstraintRows:
    """The constraint rows at the state of `d`, with the forces that belong to `d.qacc`.

    What no-slip iterations make of the forces does not follow from `d.qacc`: a model that has them
    gets the forces that `forward` finds at the state and inputs of `d`.

    They are ordered by type, within a type by object, within an object as MuJoCo orders them, so
    that `rows.efc_J[rows.active]` is the matrix that MuJoCo has.
    """
    d = fwd_position(m, d)
    d = fwd_velocity(m, d)
    if m.opt.noslip_iterations > 0:
        for part in (fwd_actuation, fwd_acceleration, fwd_constraint):
            d = part(m, d)
    return _listed(d)


def mul_jac_vec(m: Model, d: Data, vec: Array) -> Array:
    """The constraint Jacobian times a velocity or acceleration, (nv,).

    Returns:
      (n,): one number for each of the rows that `constraint_rows` has; 0 where one is not active.
    """
    rows = _rows(m, d)
    return jnp.where(rows.active, apply(rows.efc_J, vec), 0)


def mul_jac_t_vec(m: Model, d: Data, efc_vec: Array) -> Array:
    """The transpose of the constraint Jacobian times numbers of its rows: a generalized force.

    Args:
      m: model.
      d: data, of which the state counts.
      efc_vec: a number for each of the rows that `constraint_rows` has, (n,); that of one that is
        not active does not count.

    Returns:
      (nv,) [N or N m].

    Raises:
      ValueError: there is not a number for each row.
    """
    rows = _rows(m, d)
    if efc_vec.shape[0] != rows.active.shape[0]:
        raise ValueError(
            f"mul_jac_t_vec: efc_vec: expected shape ({rows.active.shape[0]},), that of the rows "
            f"of constraint_rows, got ({efc_vec.shape[0]},)"
        )
    return apply_transpose(rows.efc_J, jnp.where(rows.active, efc_vec, 0))


def _rows(m: Model, d: Data) -> ConstraintRows:
    """The rows at the state, whose Jacobian does not depend on the acceleration."""
    return constraint_rows(m, d.replace(qacc=jnp.zeros_like(d.qvel)))


def _listed(d: Data) -> ConstraintRows:
    """The list of the rows, with their forces."""
    rows, forces = d.rows, row_forces(d)
    single = (_one(block, force, d.qacc) for block, force in forces[: len(rows.single)])
    listed = _join([_none(d.qacc), *single], d.qacc)
    listed = [take(f, np.lexsort(_keys(rows.single))) for f in listed]
    if rows.contact is None or d.found is None:
        return ConstraintRows(*listed)
    number = jnp.cumsum(d.found.contacts.exists, axis=0, dtype=jnp.int32) - 1
    contacts = _by_contact(OF_CONTACTS[type(rows.contact.cost)](d, forces[-1][1], number), d.qacc)
    return ConstraintRows(*_join([listed, contacts], d.qacc))


def _none(qacc: Array) -> list:
    """The fields of ConstraintRows for no rows at all."""
    real = jnp.zeros((0, *qacc.shape[1:]), qacc.dtype)
    whole = real.astype(jnp.int32)
    return [whole > 0, whole, whole, real[:, None] * qacc[None], real, real, real, real]


def _keys(blocks: tuple[SingleRows, ...]) -> tuple[np.ndarray, ...]:
    """Sorting keys of the rows that are not of contacts, the last the most important."""
    none = np.zeros(0, int)
    kind = np.concatenate([none, *(np.full(len(b.id), b.type) for b in blocks)])
    owner = np.concatenate([none, *(b.ids for b in blocks)])
    return np.arange(len(kind)), owner, kind


def _one(block: SingleRows, force: Array, qacc: Array) -> list:
    """The fields of ConstraintRows for a block that has one row in each of its places."""
    cost, kind = block.cost, column(np.full(len(block.id), block.type, np.int32), qacc)
    floss = cost.floss if isinstance(cost, Huber) else jnp.zeros_like(cost.D)
    owner = column(block.ids.astype(np.int32), qacc)
    J = block.J.dense(len(qacc))
    return [cost.D > 0, kind, owner, J, cost.D, block.aref, floss, force]


def _pyramid(d: Data, force: list, number: Array) -> list:
    """Edges +1, -1, +2, -2, ... of each contact."""
    block = d.rows.contact
    cost, basis = block.cost, block.J.basis
    edges = [(k, sign) for k in range(1, len(basis)) for sign in (1, -1)] or [(0, 1)]
    rows = []
    for place, (k, sign) in enumerate(edges):
        slope = sign * cost.mu[k]
        J = basis[0] + slope[:, None] * basis[k]
        aref = block.aref[0] + slope * block.aref[k]
        edge = cost.edges(k)
        # a frictionless contact, whose slopes are zero, has one row: its normal
        if place == 0 and cost.normal is not None:
            edge = OneSided(edge.D + cost.normal.D)
        if d.forces is None or d.forces.reach is None:
            push = edge.at(apply(J, d.qacc) - aref).force
        else:
            push = _edge_force(cost, force, d.forces.reach, k, sign)
        rows.append(_contact(block, number, J, edge.D, aref, push))
    return rows


def _edge_force(cost: Pyramid, force: list, reach: list, k: int, sign: int) -> Array:
    """Force of an edge, from those over the basis: mu (up + down) = reach, mu (up - down) = f."""
    mu = cost.mu[k]
    push = (reach[k - 1] + sign * force[k]) / jnp.where(mu > 0, 2 * mu, 1.0)
    if cost.flat is None or (k, sign) != (1, 1):
        return push
    return jnp.where(cost.flat, force[0], push)


def _cone(d: Data, force: list, number: Array) -> list:
    """Normal, tangents, spin and roll of each contact."""
    block = d.rows.contact
    fields = zip(block.J.basis, block.cost.D, block.aref, force, strict=True)
    return [_contact(block, number, *f) for f in fields]


def _contact(
    block: ContactRows, number: Array, J: Array, D: Array, aref: Array, force: Array
) -> list:
    """The fields of ConstraintRows for one row of every contact; `number` is the contact's."""
    flat = np.int32(ConstraintType.CONTACT_FRICTIONLESS)
    kind = jnp.where(_frictionless(block.cost), flat, np.int32(block.type))
    return [D > 0, jnp.broadcast_to(kind, D.shape), number, J, D, aref, jnp.zeros_like(D), force]


def _frictionless(cost: Pyramid | Elliptic) -> Array | bool:
    """Contacts of one row: all, or those that say so."""
    return len(cost.mu) == 1 if cost.flat is None else cost.flat


def _by_contact(rows: list, qacc: Array) -> list:
    """Row after row of each contact, from all contacts row by row."""
    count, n = len(rows), rows[0][0].shape[0]
    order = np.arange(count * n).reshape(count, n).T.ravel()
    return [take(f, order) for f in _join(rows, qacc)]


def _join(blocks: list, like: Array) -> list:
    """Rows of several blocks one after another, field by field, with all the worlds of `like`."""
    worlds = like.shape[1:]

    def spread(a):
        return jnp.broadcast_to(a, (*a.shape[: a.ndim - len(worlds)], *worlds))

    return [jnp.concatenate([spread(a) for a in f]) for f in zip(*blocks, strict=True)]


OF_CONTACTS: dict[type, Callable] = {Pyramid: _pyramid, Elliptic: _cone}
