"""Contact Jacobian, in the storage that suits the model."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.linalg.contact_blocks import gather_group
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.constraint.contact.basis import basis_jacobian
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian
from jaxsim.physics.constraint.contact.groups import Groups, contact_groups
from jaxsim.physics.constraint.jacobian import BasisJacobian
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform


def contact_jacobian(m: Model, d: Data, c: Contacts, size: int) -> BasisJacobian | GroupJacobian:
    """Compute Jacobians of the first `size` basis vectors of contacts, by group or full.

    Requires what `basis_jacobian` requires. Full rows are used under differentiation, in programs
    that process all contacts at once, where gathering groups costs more than it saves, and in our
    own kernels.
    """
    # Grouped rows need chunked loops, and no derivative.
    by_chunks = platform().chunks and not platform().kernels
    whole = c.item is not None or is_differentiated() or not by_chunks
    groups = None if whole else contact_groups(m)
    if groups is None:
        return BasisJacobian(materialize(basis_jacobian(m, d, c, size), d.qvel), None)
    return _group_jacobian(m, d, c, size, groups)


def _group_jacobian(m: Model, d: Data, c: Contacts, size: int, groups: Groups) -> GroupJacobian:
    # The groups of both bodies; slots are in descending order, without duplicates.
    bodies = [body.values(groups.of_body.astype(np.int32), c.dist) for body in c.body]
    first, second = (jnp.broadcast_to(group, c.dist.shape) for group in bodies)
    moves = [body.bits(groups.moves, c.dist) for body in c.body]
    group = [jnp.maximum(first, second), jnp.minimum(first, second)][: groups.slots]
    if len(group) == 2:
        group[1] = jnp.where(first == second, -1, group[1])
    slots = [_rows_of_group(m, d, c, size, groups, g, (first, second), moves) for g in group]
    own = [jnp.concatenate(rows, axis=1) for rows in zip(*slots, strict=True)]
    dofs = tuple(tuple(row) for row in groups.dofs.tolist())
    return GroupJacobian(dofs, jnp.stack(materialize(own, d.qvel)), tuple(group), None)


def _rows_of_group(
    m: Model,
    d: Data,
    c: Contacts,
    size: int,
    groups: Groups,
    group: Array,
    bodies: tuple[Array, Array],
    moves: Sequence[Array | np.ndarray],
) -> list[Array]:
    """Compute the rows of each contact for the dofs of one group, `[ncon, k, *W]` each.

    Args:
      group: group of each contact, -1 for none.
      bodies: groups of its two bodies.
      moves: where the dofs of these groups move the bodies, `[ncon, k, *W]`.
    """
    # Entries of the first and of the second body in this group.
    one, other = (
        jnp.where(((body == group) & (group >= 0))[:, None], moved, 0)
        for body, moved in zip(bodies, moves, strict=True)
    )
    sign = other - one
    # One origin per group if all its dofs are in one tree.
    table, dofs = groups.dofs, groups.dofs.ravel()
    root = m.body_rootid[m.dof_bodyid[table]]
    if (root == root[:, :1]).all():
        root = root[:, :1]

    def own(a: Array, width: int) -> Array:
        return gather_group(a.reshape(groups.number, width, *a.shape[1:]), group)

    # Gather origins and motion axes of the group, then project the point velocities.
    origin = gather_static(d.subtree_com, root.ravel()).map(lambda a: own(a, root.shape[1]))
    axes = gather_static(d.cdof, dofs).map(lambda a: own(a, table.shape[1]))
    origin, axes = materialize((origin, axes), d.qvel)
    arm = Vec(*(p[:, None] - o for p, o in zip(c.pos.parts, origin.parts, strict=True)))
    linear = axes.at(arm)
    rows = []
    for k in range(size):
        axis = Vec(*(a[:, None] for a in c.frame.rows[k % 3].parts))
        rows.append(sign * axis.dot(linear if k < 3 else axes.rot))
    return rows
