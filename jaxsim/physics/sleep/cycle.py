"""Cycles of trees that fell asleep together, and waking them.

In `tree_asleep` each sleeping tree has the id of the next one; the ids form a cycle.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.model.data import JUST_AWAKE


def wake_trees(sleep: Array, stirred: Array) -> Array:
    """Wake disturbed trees `[ntree, *W]` bool, and all that fell asleep with them."""
    # A tree wakes if any tree of its cycle is disturbed.
    together = _same_cycle(sleep)
    wakes = (together & stirred[None]).any(axis=1)
    return jnp.where((sleep >= 0) & wakes, np.int32(JUST_AWAKE), sleep)


def woken_by(
    sleep: Array, first: Array, second: Array, ties: Array, always: Array | bool = False
) -> Array:
    """Return `tree_asleep` after couplings between awake and sleeping trees.

    All trees that fell asleep together take the number of the tree that wakes them first; a tree
    that several others wake takes the smallest of their numbers.

    Args:
      sleep: `tree_asleep`, `[ntree, *W]`.
      first, second: the coupled trees, `[n, *W]`; -1: none.
      ties: mask of active couplings, bool `[n, *W]`, in order.
      always: couplings to an object without a tree that is awake, bool `[n, *W]`.
    """
    # Find the sleeping side of each coupling between an awake and a sleeping tree.
    number = [_gather_tree_asleep(sleep, tree) for tree in (first, second)]
    awake = [n < 0 for n in number]
    exists = [tree >= 0 for tree in (first, second)]
    sleeper = jnp.where(exists[0] & ~awake[0], first, second)
    by = jnp.where(exists[0] & ~awake[0], number[1], number[0])
    by = jnp.where(exists[0] & exists[1], by, np.int32(JUST_AWAKE))
    on = ties & jnp.where(exists[0] & exists[1], awake[0] != awake[1], always)
    on = on & (_gather_tree_asleep(sleep, sleeper) >= 0)

    # Encode index of the coupling and number of the tree in one integer; its minimum is the first.
    n = max(on.shape[0], 1)
    place = column(np.arange(on.shape[0], dtype=np.int32), by)
    tree = column(np.arange(len(sleep), dtype=np.int32), by)
    here = on[:, None] & (sleeper[:, None] == tree[None])
    code = jnp.where(
        here, (place * _AWAKE_SPAN + by - JUST_AWAKE)[:, None], np.int32(n * _AWAKE_SPAN)
    )
    earliest = jnp.min(code, axis=0)
    least = jnp.min(jnp.where(here, by[:, None], 0), axis=0)
    # Propagate the first coupling to all trees of the cycle.
    of_all = jnp.min(
        jnp.where(_same_cycle(sleep), earliest[None], np.int32(n * _AWAKE_SPAN)), axis=1
    )
    given = jnp.minimum(of_all % _AWAKE_SPAN + JUST_AWAKE, least)
    return jnp.where((sleep >= 0) & (of_all < n * _AWAKE_SPAN), given, sleep)


def first_trees(sleep: Array) -> Array:
    """Return the first tree of each tree's sleeping cycle, `[ntree, *W]`; an awake tree itself."""
    own = column(np.arange(len(sleep), dtype=np.int32), sleep)
    # Minimum label along the cycle by pointer doubling.
    label = jnp.broadcast_to(own, sleep.shape)
    next_one = jnp.where(sleep >= 0, sleep, own)
    # pointer doubling: the reach doubles in each iteration
    for _ in range(int(np.ceil(np.log2(max(len(sleep), 2))))):
        label = jnp.minimum(label, gather(label, next_one))
        next_one = gather(next_one, next_one)
    return label


_AWAKE_SPAN = -JUST_AWAKE  # size of the range of numbers of an awake tree


def _gather_tree_asleep(sleep: Array, tree: Array) -> Array:
    """Gather `tree_asleep` at ids of each world's own; AWAKE for -1."""
    tree = jnp.broadcast_to(tree, (tree.shape[0], *sleep.shape[1:]))
    found = gather(sleep, jnp.maximum(tree, 0))
    return jnp.where(tree >= 0, found, np.int32(JUST_AWAKE))


def _same_cycle(sleep: Array) -> Array:
    """Return the pairs of trees that are one or fell asleep together, `[ntree, ntree, *W]` bool."""
    label = first_trees(sleep)
    return label[:, None] == label[None]
