"""Making a value once.

XLA's loop fusion on CPU recomputes a cheap value in every loop that uses it, and along a chain of
values the repetitions multiply. A value that passes through a conditional is made once, whatever
its users. The predicate is true, which the compiler does not know. On other platforms fusion does
not duplicate work that way, and a conditional there would wait for the host; there `pin` does
nothing.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.platform import platform


def few(like: Array) -> bool:
    """Whether an array of the physics, `[items]` or `[items, worlds]`, is of one world."""
    return like.ndim < 2 or like.shape[-1] == 1


def pin(tree: Tree, like: Array) -> Tree:
    """The same values, each computed exactly once.

    Args:
      tree: arrays to keep.
      like: an array of the physics: with worlds last (`[items, worlds]`) values are pinned; for a
        few worlds, where everything is small, they are not.
    """
    if few(like) or not platform().recomputes:
        return tree
    true = lax.optimization_barrier(jnp.ones((), bool))
    return lax.cond(true, lambda t: t, _anything_else, tree)


def _anything_else(tree: Tree) -> Tree:
    """Values of the same shapes that cost nothing to make: arrays of equal shape change places."""
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
