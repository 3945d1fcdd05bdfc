"""Sums over subtrees of bodies and over the dofs that move a body: the tree recursions.

They are products with constant 0/1 matrices (topology.py), or one pass through the tree
(linalg/forest.py) where loops cost little and the matrices are not small.
"""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import PyTree
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.linalg.forest import ancestor_sums, descendant_sums
from jaxsim.model.model import Model
from jaxsim.physics.topology import (
    ancestors,
    body_forest,
    carrying_dof,
    descendants,
    dof_forest,
    dofs_before,
    moving_dof,
)
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def subtree_sums(m: Model, x: PyTree) -> PyTree:
    """Sum over the bodies in the subtree of each body, `[nbody, *W] -> [nbody, *W]`."""
    if _prefer_passes(m.nbody):
        return descendant_sums(x, body_forest(m))
    return weighted_sum(descendants(m), x)


def moving_sums(m: Model, x: PyTree) -> PyTree:
    """Sum over the dofs that move each body, `[nv, *W] -> [nbody, *W]`."""
    if _prefer_passes(m.nv):
        return _gather_or_zero(ancestor_sums(x, dof_forest(m)), moving_dof(m))
    return weighted_sum(ancestors(m), x)


def moving_and_carrying_sums(m: Model, x: PyTree) -> tuple[PyTree, PyTree]:
    """Sum over the dofs that move each body, and over those that move the axis of each dof.

    Returns arrays `[nbody, *W]` and `[nv, *W]`.
    """
    if _prefer_passes(m.nv):
        sums = ancestor_sums(x, dof_forest(m))
        return _gather_or_zero(sums, moving_dof(m)), _gather_or_zero(sums, carrying_dof(m))
    return weighted_sum(ancestors(m), x), weighted_sum(dofs_before(m), x)


def _prefer_passes(n: int) -> bool:
    """Return True if a pass through the tree is faster than a product with an n x n matrix."""
    return platform().fuses_calls and n > tuning().max_dense_rows


def _gather_or_zero(sums: PyTree, dof: tuple[int, ...]) -> PyTree:
    """Gather the sums at some dofs, zero at -1."""
    padded = jax.tree.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a]), sums)
    return gather_static(padded, [k + 1 for k in dof])
