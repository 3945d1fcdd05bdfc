"""The constraint rows of a state as one list, in MuJoCo's order and form, for inspection.

The solver keeps rows by structure; here they are written out under the names of mjData, edges of
friction pyramids included. What is not active stays in its place, marked so.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConeType, ConstraintType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.products import apply
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.constraint.rows import ContactRows, DenseRows, DofRows, Rows
from jaxsim.physics.forward import fwd_position, fwd_velocity
from jaxsim.physics.solver.cost import evaluate


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
      efc_force: constraint force at `qacc`, (n,).
    """

    active: jax.Array
    efc_type: jax.Array
    efc_id: jax.Array
    efc_J: jax.Array
    efc_D: jax.Array
    efc_aref: jax.Array
    efc_frictionloss: jax.Array
    efc_force: jax.Array


def constraint_rows(m: Model, d: Data) -> ConstraintRows:
    """The constraint rows at the state of `d`, with the forces that belong to `d.qacc`.

    They are ordered by type, within a type by object, within an object as MuJoCo orders them, so
    that `rows.efc_J[rows.active]` is the matrix that MuJoCo has.
    """
    d = fwd_position(m, d)
    d = fwd_velocity(m, d)
    return _listed(d.rows, d.qacc, None if d.found is None else d.found.exists)


def _listed(rows: Rows, qacc, exists) -> ConstraintRows:
    """The list of some rows; `exists` says which places for contacts have one."""
    single: tuple[DofRows | DenseRows, ...] = (*rows.dof, *rows.dense)
    listed = _join([_none(qacc), *(_one(block, qacc) for block in single)], qacc)
    listed = [take(f, np.lexsort(_keys(single))) for f in listed]
    number = None if exists is None else jnp.cumsum(exists, axis=0, dtype=jnp.int32) - 1
    contacts = [CONES[ConeType(c.cone)](c, number, qacc) for c in rows.contact]
    return ConstraintRows(*_join([listed, *contacts], qacc))


def _none(qacc) -> list:
    """The fields of ConstraintRows for no rows at all."""
    real = jnp.zeros((0, *qacc.shape[1:]), qacc.dtype)
    whole = real.astype(jnp.int32)
    return [whole > 0, whole, whole, real[:, None] * qacc[None], real, real, real, real]


def _keys(blocks: tuple) -> tuple[np.ndarray, ...]:
    """Sorting keys of the rows that are not of contacts, the last the most important."""
    none = np.zeros(0, int)
    kind = np.concatenate([none, *(np.full(len(b.id), b.type) for b in blocks)])
    owner = np.concatenate([none, *(b.id for b in blocks)])
    return np.arange(len(kind)), owner, kind


def _one(block: DofRows | DenseRows, qacc) -> list:
    """The fields of ConstraintRows for a block that has one row in each of its places."""
    like, n = qacc, len(block.id)
    J: jax.Array | np.ndarray
    if isinstance(block, DofRows):
        J = column(np.eye(qacc.shape[0])[block.dof], like) * block.sign[:, None]
    else:
        J = block.J
    force = evaluate(block, apply(J, qacc) - block.aref).force
    floss = jnp.zeros_like(block.D) if block.floss is None else block.floss
    kind = column(np.full(n, block.type, np.int32), like)
    return [block.D > 0, kind, column(block.id.astype(np.int32), like), J, block.D, block.aref,
            floss, force]  # fmt: skip


def _pyramid(block: ContactRows, number, qacc) -> list:
    """Edges +1, -1, +2, -2, ... of each contact."""
    edges = [(k, sign) for k in range(1, len(block.J)) for sign in (1, -1)] or [(0, 1)]
    rows = []
    for place, (k, sign) in enumerate(edges):
        slope = sign * block.mu[k]
        J = block.J[0] + slope[:, None] * block.J[k]
        aref = block.aref[0] + slope * block.aref[k]
        # a frictionless contact, whose slopes are zero, has one row: its normal
        used = block.mu[k] > 0
        if place == 0:
            used = used | _frictionless(block)
        D = jnp.where(used, block.D, 0)
        r = apply(J, qacc) - aref
        rows.append(_contact(block, number, J, D, aref, jnp.where(r < 0, -D * r, 0)))
    return _by_contact(rows, qacc)


def _cone(block: ContactRows, number, qacc) -> list:
    """Normal, tangents, spin and roll of each contact."""
    r = [apply(J, qacc) - aref for J, aref in zip(block.J, block.aref, strict=True)]
    force = evaluate(block, r).force
    assert block.Dt is not None  # only pyramids have none
    fields = zip(block.J, block.Dt, block.aref, force, strict=True)
    return _by_contact([_contact(block, number, *f) for f in fields], qacc)


def _contact(block: ContactRows, number, J, D, aref, force) -> list:
    """The fields of ConstraintRows for one row of every contact; `number` is the contact's."""
    flat = np.int32(ConstraintType.CONTACT_FRICTIONLESS)
    frictional = np.int32(KINDS[ConeType(block.cone)])
    kind = jnp.where(_frictionless(block), flat, frictional)
    return [D > 0, kind, number, J, D, aref, jnp.zeros_like(D), force]


def _frictionless(block: ContactRows):
    """Contacts of one row `[ncon, *W]`."""
    return jnp.full(block.D.shape, len(block.J) == 1) if block.flat is None else block.flat


def _by_contact(rows: list, qacc) -> list:
    """Row after row of each contact, from all contacts row by row."""
    count, n = len(rows), rows[0][0].shape[0]
    order = np.arange(count * n).reshape(count, n).T.ravel()
    return [take(f, order) for f in _join(rows, qacc)]


def _join(blocks: list, like) -> list:
    """Rows of several blocks one after another, field by field, with all the worlds of `like`."""
    worlds = like.shape[1:]

    def spread(a):
        return jnp.broadcast_to(a, (*a.shape[: a.ndim - len(worlds)], *worlds))

    return [jnp.concatenate([spread(a) for a in f]) for f in zip(*blocks, strict=True)]


KINDS = {
    ConeType.PYRAMIDAL: ConstraintType.CONTACT_PYRAMIDAL,
    ConeType.ELLIPTIC: ConstraintType.CONTACT_ELLIPTIC,
}
CONES = {ConeType.PYRAMIDAL: _pyramid, ConeType.ELLIPTIC: _cone}
