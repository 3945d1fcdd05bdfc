"""Keeping the items that matter: the first few active ones of many, in order."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.tree import HIGHEST, column, pick, take

BY_PRODUCT = 512  # longest list whose running count is a product with a triangle of ones


def running_count(active):
    """Number of active items up to and including each, int `[n, *W]`."""
    n = active.shape[0]
    if n > BY_PRODUCT:
        return lax.cumsum(active.astype(jnp.int32), axis=0)
    ones = jnp.asarray(np.tri(n), jnp.float32)
    dims = (((1,), (0,)), ((), ()))
    count = lax.dot_general(ones, active.astype(jnp.float32), dims, precision=HIGHEST)
    return count.astype(jnp.int32)


def first_true(mask, order: np.ndarray, size: int):
    """The first true items of a list.

    Args:
      mask: bool `[n, *W]`.
      order: constant `[n]`: the items in the order in which they are wanted.
      size: how many places there are.

    Returns:
      Items `[size, *W]`; those past the last true one are arbitrary. And the number of true items
      `[1, *W]`, which may exceed `size`.
    """
    count = running_count(take(mask, order))
    rank = column(np.arange(1, size + 1, dtype=np.int32), count)
    place = _search(count, jnp.broadcast_to(rank, (size, *count.shape[1:])))
    place = jnp.minimum(place, len(order) - 1)
    if np.array_equal(order, np.arange(len(order))):
        return place, count[-1:]
    return pick(column(order.astype(np.int32), place), place), count[-1:]


def _search(count, rank):
    """First place where a non-decreasing list reaches a value: bisection, `[size, *W]`."""
    n = count.shape[0]
    low = jnp.zeros_like(rank)
    step = 1 << max(0, (n - 1).bit_length() - 1)
    while step:
        there = jnp.minimum(low + step, n) - 1
        below = jnp.take_along_axis(count, there, axis=0, mode="promise_in_bounds") < rank
        low = jnp.where(below & (low + step <= n), low + step, low)
        step //= 2
    return low
