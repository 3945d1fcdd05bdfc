"""The rows of a state as one list in MuJoCo's order and form, for inspection.

The solver keeps rows by structure; here they are written out under the names of mjData, edges of
friction pyramids included. What is not active stays in its place, marked so.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import ConeType, ConstraintType
from jaxsim.physics.constraint.rows import ContactRows, DenseRows, DofRows, Rows
from jaxsim.physics.products import apply
from jaxsim.physics.solver.cost import evaluate
from jaxsim.physics.tree import column, take


class ConstraintRows(NamedTuple):
    """All rows a state could have: `[n, *W]` each; MuJoCo lists those that are `active`.

    Attributes:
      active: whether the row takes part.
      efc_type: ConstraintType.
      efc_id: equality, dof, tendon, joint or contact the row is of.
      efc_J: Jacobian `[n, nv, *W]`.
      efc_D: inverse regularization.
      efc_aref: reference acceleration.
      efc_frictionloss: bound of a row of dry friction, else 0.
      efc_force: constraint force.
    """

    active: jax.Array
    efc_type: jax.Array
    efc_id: jax.Array
    efc_J: jax.Array
    efc_D: jax.Array
    efc_aref: jax.Array
    efc_frictionloss: jax.Array
    efc_force: jax.Array


def list_rows(rows: Rows, qacc) -> ConstraintRows:
    """Rows in the order of their types, of the objects within a type, and within an object.

    Args:
      rows: rows of a state, as `make_constraint` leaves them.
      qacc: acceleration `[nv, *W]` the forces are for.
    """
    blocks = [_one(block, qacc) for block in (*rows.dof, *rows.dense)]
    order = np.lexsort(_keys((*rows.dof, *rows.dense)))
    listed = [_spread(f, qacc) for f in zip(*blocks, strict=True)]
    listed = [take(f, order) for f in listed]
    contacts = [_pyramid(c, qacc) if _is_pyramid(c) else _cone(c, qacc) for c in rows.contact]
    parts = [listed, *contacts] if listed else contacts
    return ConstraintRows(*(_spread(f, qacc) for f in zip(*parts, strict=True)))


def _keys(blocks: tuple) -> tuple[np.ndarray, ...]:
    """Sorting keys of the rows that are not of contacts, the last the most important."""
    kind = np.concatenate([np.full(len(b.id), b.type) for b in blocks] or [np.zeros(0, int)])
    owner = np.concatenate([b.id for b in blocks] or [np.zeros(0, int)])
    return np.arange(len(kind)), owner, kind


def _one(block: DofRows | DenseRows, qacc) -> list:
    """The fields of ConstraintRows for a block that has one row in each of its places."""
    like, n = qacc, len(block.id)
    if isinstance(block, DofRows):
        J = column(np.eye(qacc.shape[0])[block.dof], like) * block.sign[:, None]
    else:
        J = block.J
    force = evaluate(block, apply(J, qacc) - block.aref).force
    floss = jnp.zeros_like(block.D) if block.floss is None else block.floss
    kind = column(np.full(n, block.type, np.int32), like)
    return [block.D > 0, kind, column(block.id.astype(np.int32), like), J, block.D, block.aref,
            floss, force]  # fmt: skip


def _is_pyramid(block: ContactRows) -> bool:
    return block.cone == ConeType.PYRAMIDAL


def _pyramid(block: ContactRows, qacc) -> list:
    """Edges +1, -1, +2, -2, ... of each contact; the first is the normal of a frictionless one."""
    edges = []
    for k in range(1, len(block.J)):
        mu = block.mu[k]
        D = jnp.where(mu > 0, block.D, 0)
        for side in (mu, -mu):
            J = block.J[0] + side[:, None] * block.J[k]
            edges.append([J, D, block.aref[0] + side * block.aref[k]])
    flat = [block.J[0], jnp.where(block.flat, block.D, 0), block.aref[0]]
    if edges:
        alone = block.flat
        J, D, aref = edges[0]
        edges[0] = [
            jnp.where(alone[:, None], flat[0], J),
            jnp.where(alone, flat[1], D),
            jnp.where(alone, flat[2], aref),
        ]
    else:
        edges = [flat]
    out = []
    for J, D, aref in edges:
        r = apply(J, qacc) - aref
        out.append(_contact(block, J, D, aref, jnp.where(r < 0, -D * r, 0)))
    return _by_contact(out, qacc)


def _cone(block: ContactRows, qacc) -> list:
    """Normal, tangents, spin and roll of each contact."""
    r = [apply(J, qacc) - aref for J, aref in zip(block.J, block.aref, strict=True)]
    force = evaluate(block, r).force
    fields = zip(block.J, block.Dt, block.aref, force, strict=True)
    return _by_contact([_contact(block, *f) for f in fields], qacc)


def _contact(block: ContactRows, J, D, aref, force) -> list:
    """The fields of ConstraintRows for one row of every contact."""
    kinds = {
        ConeType.PYRAMIDAL: ConstraintType.CONTACT_PYRAMIDAL,
        ConeType.ELLIPTIC: ConstraintType.CONTACT_ELLIPTIC,
    }
    flat = np.int32(ConstraintType.CONTACT_FRICTIONLESS)
    kind = jnp.where(block.flat, flat, np.int32(kinds[ConeType(block.cone)]))
    index = column(np.arange(len(D), dtype=np.int32), D)
    return [D > 0, kind, index, J, D, aref, jnp.zeros_like(D), force]


def _by_contact(rows: list, qacc) -> list:
    """Row after row of each contact, from all contacts row by row."""
    count, n = len(rows), rows[0][0].shape[0]
    order = np.arange(count * n).reshape(count, n).T.ravel()
    return [take(_spread(f, qacc), order) for f in zip(*rows, strict=True)]


def _spread(parts, like):
    """Parts one after another, each with all the worlds of `like`."""
    worlds = like.shape[1:]
    items = len(parts[0].shape) - len(worlds)
    full = [jnp.broadcast_to(p, (*p.shape[:items], *worlds)) for p in parts]
    return jnp.concatenate(full)
