"""Assemble the items of the dual problem in MuJoCo's row order, and scatter forces to blocks."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.linalg.inverse_blocks import InverseBlocks
from jaxsim.physics.solver.dual.items import Items, flatten_items, friction
from jaxsim.physics.solver.dual.row_items import ITEM_FORMS, pad_items, row_items
from jaxsim.physics.solver.islands import Islands
from jaxsim.physics.solver.problem import ConstraintProblem, RowForces
from jaxsim.physics.solver.trust_region import is_invertible


def dual_items(p: ConstraintProblem, inverse: InverseBlocks, islands: Islands) -> Items:
    """Assemble the items of a problem.

    Args:
      p: the problem, with rows.
      inverse: blocks of M^-1.
      islands: islands of the problem.
    """
    # Items of the scalar rows, block by block, then of the contacts.
    parts = [
        row_items(b, k, len(p.smooth)) for b, k in zip(p.rows.single, islands.number, strict=False)
    ]
    order = p.rows.order
    worlds = p.smooth.shape[1:]
    # Contacts follow the other rows.
    if p.rows.contact is not None:
        form = ITEM_FORMS[type(p.rows.contact.cost)]
        parts.append(form.parts(p.rows.contact, islands.number[-1], worlds))
        order = np.concatenate([order, np.arange(len(order), len(order) + len(parts[-1].D))])
    # Pad all items to the same number of rows, and reorder them.
    size = max(part.J.shape[1] for part in parts)
    all_parts = jax.tree.map(
        lambda *a: gather_static(jnp.concatenate(a), order),
        *(pad_items(q, size, worlds) for q in parts),
    )
    J, aref, D, mu, low, high, island = all_parts
    # Diagonal blocks of the dual Hessian, A = J M^-1 J' + R.
    push = inverse.responses(flatten_items(J)).reshape(J.shape)
    exists = D > 0
    # D = 0 marks rows that do not exist; their diagonal of A is 1.
    R = jnp.where(exists, 1 / jnp.where(exists, D, 1.0), 0)
    A = jnp.sum(J[:, :, None] * push[:, None], axis=3)
    unit = np.eye(size, dtype=A.dtype).reshape(1, size, size, *(1,) * len(worlds))
    A = A + unit * jnp.where(exists, R, 1.0)[:, :, None]
    # Find the contacts whose friction block is invertible.
    dim = jnp.sum(exists, axis=1, dtype=jnp.int32)
    solved = dim > 1
    if size > 1:
        solved = solved & is_invertible(
            friction(jnp.moveaxis(A, 0, 2), jnp.moveaxis(mu, 0, 1)), dim
        )
    return Items(J, push, aref, R, A, low, high, mu, dim > 1, solved, exists[:, 0], island)


def warm_forces(p: ConstraintProblem, of: Items, x: Array) -> Array:
    """Compute the forces `[n, size, *W]` that belong to an acceleration `[nv, *W]`."""
    r = of.residual(x)
    # Scalar rows: clipped forces of the residual.
    D = jnp.where(of.R > 0, 1 / jnp.where(of.R > 0, of.R, 1.0), 0)
    alone = jnp.clip(-D[:, 0] * r[:, 0], of.low, of.high)
    contact = p.rows.contact
    if of.R.shape[1] == 1 or contact is None:
        return alone[:, None]
    first = len(p.rows.order)
    # Contacts: the force of the primal cost at the residual.
    piece = contact.cost.at([r[first:, k] for k in range(r.shape[1])])
    single = jnp.zeros_like(r[:first]).at[:, 0].set(alone[:first])
    return jnp.concatenate([single, jnp.stack(piece.force, axis=1)])


def item_row_forces(p: ConstraintProblem, f: Array) -> RowForces:
    """Scatter the forces `[n, size, *W]` of items to the blocks of rows."""
    # Undo MuJoCo's row order, then split by block.
    order = p.rows.order
    single = gather_static(f[: len(order), 0], np.argsort(order))
    forces: list = []
    for block in p.rows.single:
        forces.append(single[: len(block.id)])
        single = single[len(block.id) :]
    contact, reach = p.rows.contact, None
    if contact is not None:
        of_contacts, reach = ITEM_FORMS[type(contact.cost)].forces(contact.cost, f[len(order) :])
        forces.append(of_contacts)
    return RowForces(forces, reach)
