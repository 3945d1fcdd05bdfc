"""Materialization of values against recomputation in fused loops.

XLA's loop fusion on CPU recomputes an inexpensive value in every loop that uses it, and along a
chain of values the copies multiply exponentially. A value that passes through a `cond` is
materialized once, however many users it has; the predicate is true but opaque to the compiler. On
other platforms fusion does not duplicate work that way, and a conditional would wait for the host:
there `materialize` returns its argument.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.transforms.platform import platform


def is_unbatched(like: Array) -> bool:
    """Return whether an array of the physics, `[items]` or `[items, worlds]`, has one world."""
    return like.ndim < 2 or like.shape[-1] == 1


def materialize(tree: PyTree, like: Array) -> PyTree:
    """Return the same values, each computed exactly once.

    Args:
      tree: arrays to materialize.
      like: an array of the physics. Values are pinned if it has a world axis, `[items, worlds]`;
        for one world, where everything is small, they are not.
    """
    if is_unbatched(like) or not platform().recomputes:
        return tree
    true = lax.optimization_barrier(jnp.ones((), bool))
    return lax.cond(true, lambda t: t, _anything_else, tree)


def _anything_else(tree: PyTree) -> PyTree:
    """Return other values of the same shapes at no cost: arrays of equal shape are permuted."""
    leaves, structure = jax.tree.flatten(tree)
    alike: dict = {}
    for place, leaf in enumerate(leaves):
        alike.setdefault((leaf.shape, leaf.dtype), []).append(place)
    out = list(leaves)
    for places in alike.values():
        if len(places) == 1:
            out[places[0]] = lax.optimization_barrier(leaves[places[0]])
        for here, there in zip(places, places[1:] + places[:1], strict=True):
            if here != there:
                out[here] = leaves[there]
    return jax.tree.unflatten(structure, out)
