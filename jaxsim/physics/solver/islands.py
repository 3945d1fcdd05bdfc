"""Constraint islands: groups of trees that rows connect, which no force leaves.

Newton's method takes a world as one problem, for its solution is the same. What is left when
iterations end early is not: those against slip (noslip.py) end island by island, as MuJoCo's do.
MuJoCo's documentation, Computation: Constraint islands.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import DisableBit
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.products import apply
from jaxsim.physics.arrays.select import column, diagonal, total, weighted_sum
from jaxsim.physics.constraint.jacobian import BasisJacobian, DofJacobian
from jaxsim.physics.constraint.rows import Block
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.topology import dof_ancestors


class Islands(NamedTuple):
    """The islands of a state; each has the number of its first tree.

    Attributes:
      member: block by block `[nisland, n, *W]`: 1 where a row (or a contact) is in the island; rows
        that are not active are in none.
      trace: `[nisland, *W]` sum of the diagonal of M over the dofs of the island; 0: there is none.
    """

    member: list
    trace: jax.Array


def find_islands(m: Model, p: Problem) -> Islands:
    """The islands; one for the whole world where the flag `island` is off."""
    tree = trees(m)
    inertia = diagonal(p.M)
    active = [_active(block) for block in p.rows.blocks]
    if len(tree) == 1 or m.opt.disableflags & DisableBit.ISLAND:
        member = [a[None].astype(inertia.dtype) for a in active]
        return lax.stop_gradient(Islands(member, total(inertia)))
    pairs = zip(p.rows.blocks, active, strict=True)
    touched = [_touched(tree, block, is_active) for block, is_active in pairs]
    connects = [
        t
        for block, t in zip(p.rows.blocks, touched, strict=True)
        if not isinstance(block.J, DofJacobian)
    ]
    island = jnp.asarray(column(np.arange(len(tree), dtype=np.int32), inertia))
    island = jnp.broadcast_to(island, (len(tree), *inertia.shape[1:]))
    island = _connected(island, jnp.concatenate(connects)) if connects else island
    member = [_numbered(_first(t, island), tree, inertia) for t in touched]
    trace = apply(_numbered(island, tree, inertia), weighted_sum(tree, inertia))
    return lax.stop_gradient(Islands(member, trace))


@derived
def trees(s: Structure) -> np.ndarray:
    """[ntree, nv]: 1 where a dof is in a tree; one without parent begins a tree."""
    roots = np.flatnonzero(np.asarray(s.dof_parentid) < 0)
    return 1.0 * dof_ancestors(s)[:, roots].T


def _active(block: Block) -> Array:
    """Rows, or contacts, that take part: `[n, *W]` bool."""
    D = block.cost.D
    return (D[0] if isinstance(D, list) else D) > 0


def _touched(tree: np.ndarray, block: Block, active: Array) -> Array:
    """Trees that a row moves, `[n, ntree, *W]` bool: those in which its Jacobian is not zero."""
    if isinstance(block.J, DofJacobian):
        return jnp.asarray(column(tree.T[list(block.J.dof)], active) > 0) & active[:, None]
    if isinstance(block.J, BasisJacobian):
        size = sum(jnp.abs(J) for J in block.J.basis)
    else:  # what the rows of one object touch, they touch together
        size = weighted_sum(1.0 * (block.ids[:, None] == block.ids), jnp.abs(block.J.matrix))
    by_tree = weighted_sum(tree, jnp.swapaxes(size, 0, 1))
    return (jnp.swapaxes(by_tree, 0, 1) > 0) & active[:, None]


def _connected(island: Array, touched: Array) -> Array:
    """The first tree that each can reach through rows, `[ntree, *W]`."""

    def spread(state):
        island, _ = state
        first = _first(touched, island)
        offered = jnp.where(touched, first[:, None], island.shape[0]).min(axis=0)
        new = jnp.minimum(island, offered)
        return new, jnp.any(new < island)

    return lax.while_loop(lambda state: state[1], spread, (island, jnp.ones((), bool)))[0]


def _first(touched: Array, island: Array) -> Array:
    """The first island that each row touches, `[n, *W]`; past the last: none."""
    return jnp.where(touched, island[None], island.shape[0]).min(axis=1)


def _numbered(number: Array, tree: np.ndarray, like: Array) -> Array:
    """Numbers `[n, *W]` as a table of 0 and 1, `[ntree, n, *W]`."""
    place = column(np.arange(len(tree), dtype=np.int32), number)[:, None]
    return (number[None] == place).astype(like.dtype)
