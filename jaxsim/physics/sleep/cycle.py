"""Cycles of trees that fell asleep together, and waking them.

In `tree_asleep` each sleeping tree has the id of the next one; the ids form a cycle. An awake tree
has a negative number, from -11 (`JUST_AWAKE`) to -1, which counts the steps at rest:

    tree             0    1    2    3    4    5
    tree_asleep      2   -11   4    3    0   -4      cycles 0 -> 2 -> 4 -> 0 and 3 -> 3
    `first_trees`    0    1    0    3    0    5      smallest id of the cycle
    `woken_by`      -4   -11  -11   3   -4   -4      couplings 5-4, then 1-2

Tree 5 wakes the cycle first, so its trees take the number -4; tree 2 takes the smaller number of
tree 1, which wakes it too.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.model.data import JUST_AWAKE


def wake_trees(sleep: Array, disturbed: Array) -> Array:
    """Wake disturbed trees `[ntree, *W]` bool, and all that fell asleep with them."""
    # A tree wakes if any tree of its cycle is disturbed.
    together = _same_cycle(sleep)
    wakes = (together & disturbed[None]).any(axis=1)
    return jnp.where((sleep >= 0) & wakes, np.int32(JUST_AWAKE), sleep)


def woken_by(
    sleep: Array, first: Array, second: Array, couplings: Array, always: Array | bool = False
) -> Array:
    """Return `tree_asleep` after couplings between awake and sleeping trees.

    All trees that fell asleep together take the number of the tree that wakes them first; a tree
    that several others wake takes the smallest of their numbers.

    Args:
      sleep: `tree_asleep`, `[ntree, *W]`.
      first, second: the coupled trees, `[n, *W]`; -1: none.
      couplings: mask of the active ones, bool `[n, *W]`, in order.
      always: couplings to an object without a tree that is awake, bool `[n, *W]`.
    """
    # The sleeping side of each coupling, and the number of the awake one.
    number = [_gather_tree_asleep(sleep, tree) for tree in (first, second)]
    awake = [n < 0 for n in number]
    exists = [tree >= 0 for tree in (first, second)]
    sleeper = jnp.where(exists[0] & ~awake[0], first, second)
    by = jnp.where(exists[0] & ~awake[0], number[1], number[0])
    by = jnp.where(exists[0] & exists[1], by, np.int32(JUST_AWAKE))
    # A coupling wakes if one side is awake and the other sleeps.
    wakes = couplings & jnp.where(exists[0] & exists[1], awake[0] != awake[1], always)
    wakes = wakes & (_gather_tree_asleep(sleep, sleeper) >= 0)

    # One integer per coupling, k * 11 + number + 11, sorts by its index k; the minimum is the first
    # coupling of a tree, and the remainder by 11 its number.
    none = np.int32(max(wakes.shape[0], 1) * _AWAKE_SPAN)
    k = column(np.arange(wakes.shape[0], dtype=np.int32), by)
    tree = column(np.arange(len(sleep), dtype=np.int32), by)
    here = wakes[:, None] & (sleeper[:, None] == tree[None])
    code = jnp.where(here, (k * _AWAKE_SPAN + by - JUST_AWAKE)[:, None], none)
    earliest = jnp.min(code, axis=0)
    least = jnp.min(jnp.where(here, by[:, None], 0), axis=0)
    # Propagate the first coupling to all trees of the cycle.
    of_cycle = jnp.min(jnp.where(_same_cycle(sleep), earliest[None], none), axis=1)
    given = jnp.minimum(of_cycle % _AWAKE_SPAN + JUST_AWAKE, least)
    return jnp.where((sleep >= 0) & (of_cycle < none), given, sleep)


def first_trees(sleep: Array) -> Array:
    """Return the first tree of each tree's sleeping cycle, `[ntree, *W]`; an awake tree itself."""
    own = column(np.arange(len(sleep), dtype=np.int32), sleep)
    # Minimum label along the cycle by pointer doubling: the reach doubles in each iteration.
    label = jnp.broadcast_to(own, sleep.shape)
    next_one = jnp.where(sleep >= 0, sleep, own)
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
