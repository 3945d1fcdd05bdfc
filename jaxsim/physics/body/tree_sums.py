"""Sums over subtrees of bodies and over the dofs that move a body: the tree recursions.

They are products with constant 0/1 matrices (topology.py), or one pass through the tree
(arrays/system/forest.py) where loops cost little and the matrices are not small.
"""

import jax
import jax.numpy as jnp

from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Tree
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import take, weighted_sum
from jaxsim.physics.arrays.system.forest import ancestor_sums, descendant_sums
from jaxsim.physics.topology import (
    ancestors,
    body_forest,
    carrying_dof,
    descendants,
    dof_forest,
    dofs_before,
    moving_dof,
)

SHORT = 8  # size up to which the matrix product is always used


def subtree_sums(m: Model, x: Tree) -> Tree:
    """Sum over the bodies in the subtree of each body, `[nbody, *W] -> [nbody, *W]`."""
    if _passes(m.nbody):
        return descendant_sums(x, body_forest(m))
    return weighted_sum(descendants(m), x)


def moving_sums(m: Model, x: Tree) -> Tree:
    """Sum over the dofs that move each body, `[nv, *W] -> [nbody, *W]`."""
    if _passes(m.nv):
        return _at(ancestor_sums(x, dof_forest(m)), moving_dof(m))
    return weighted_sum(ancestors(m), x)


def moving_and_carrying_sums(m: Model, x: Tree) -> tuple[Tree, Tree]:
    """Sum over the dofs that move each body, and over those that move the axis of each dof.

    Returns arrays `[nbody, *W]` and `[nv, *W]`.
    """
    if _passes(m.nv):
        sums = ancestor_sums(x, dof_forest(m))
        return _at(sums, moving_dof(m)), _at(sums, carrying_dof(m))
    return weighted_sum(ancestors(m), x), weighted_sum(dofs_before(m), x)


def _passes(n: int) -> bool:
    """Return True if a pass through the tree is faster than a product with an n x n matrix."""
    return platform().in_kernels and n > SHORT


def _at(sums: Tree, dof: tuple[int, ...]) -> Tree:
    """Gather the sums at some dofs, zero at -1."""
    padded = jax.tree.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a]), sums)
    return take(padded, [k + 1 for k in dof])
