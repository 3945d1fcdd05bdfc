"""Waking the trees that fell asleep together.

In `tree_asleep` each of them has the number of the next; following the numbers one comes back.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import AWAKE
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, pick


def woken(sleep: Array, stirred: Array) -> Array:
    """`tree_asleep` with some trees stirred, `[ntree, *W]` bool: fully awake if they slept."""
    together = _together(sleep)
    wakes = (together & stirred[None]).any(axis=1)
    return jnp.where((sleep >= 0) & wakes, np.int32(AWAKE), sleep)


def woken_by(
    sleep: Array, first: Array, second: Array, ties: Array, always: Array | bool = False
) -> Array:
    """`tree_asleep` after ties between trees that are awake and trees that sleep.

    The trees that slept together get the number of the tree that woke them first; one that others
    tie too gets the least of their numbers.

    Args:
      sleep: `tree_asleep`, `[ntree, *W]`.
      first, second: the trees, `[n, *W]`; -1: none.
      ties: which of the ties there are, bool `[n, *W]`, in their order.
      always: ties to something without a tree that is awake, bool `[n, *W]`.
    """
    number = [_number(sleep, tree) for tree in (first, second)]
    awake = [n < 0 for n in number]
    exists = [tree >= 0 for tree in (first, second)]
    sleeper = jnp.where(exists[0] & ~awake[0], first, second)
    by = jnp.where(exists[0] & ~awake[0], number[1], number[0])
    by = jnp.where(exists[0] & exists[1], by, np.int32(AWAKE))
    on = ties & jnp.where(exists[0] & exists[1], awake[0] != awake[1], always)
    on = on & (_number(sleep, sleeper) >= 0)

    # place of the tie and number of the tree in one integer, so that the least is the first
    n = max(on.shape[0], 1)
    place = column(np.arange(on.shape[0], dtype=np.int32), by)
    tree = column(np.arange(len(sleep), dtype=np.int32), by)
    here = on[:, None] & (sleeper[:, None] == tree[None])
    code = jnp.where(here, (place * SPAN + by - AWAKE)[:, None], np.int32(n * SPAN))
    earliest = jnp.min(code, axis=0)
    least = jnp.min(jnp.where(here, by[:, None], 0), axis=0)
    of_all = jnp.min(jnp.where(_together(sleep), earliest[None], np.int32(n * SPAN)), axis=1)
    given = jnp.minimum(of_all % SPAN + AWAKE, least)
    return jnp.where((sleep >= 0) & (of_all < n * SPAN), given, sleep)


def cycles(sleep: Array) -> Array:
    """The first tree of those that sleep with a tree, `[ntree, *W]`; of one awake itself."""
    own = column(np.arange(len(sleep), dtype=np.int32), sleep)
    label = jnp.broadcast_to(own, sleep.shape)
    next_one = jnp.where(sleep >= 0, sleep, own)
    for _ in range(int(np.ceil(np.log2(max(len(sleep), 2))))):  # each turn looks twice as far
        label = jnp.minimum(label, pick(label, next_one))
        next_one = pick(next_one, next_one)
    return label


SPAN = -AWAKE  # numbers that a tree which is awake can have


def _number(sleep: Array, tree: Array) -> Array:
    """`tree_asleep` of trees chosen by each world; of none: awake."""
    tree = jnp.broadcast_to(tree, (tree.shape[0], *sleep.shape[1:]))
    found = pick(sleep, jnp.maximum(tree, 0))
    return jnp.where(tree >= 0, found, np.int32(AWAKE))


def _together(sleep: Array) -> Array:
    """Whether two trees are one, or fell asleep together, `[ntree, ntree, *W]` bool."""
    label = cycles(sleep)
    return label[:, None] == label[None]
