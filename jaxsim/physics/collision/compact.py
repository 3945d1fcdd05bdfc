"""Keeping the items that matter: in each world the deepest few of many, in order."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import column, pick, take

FEW = 64  # items that are ordered faster by comparing all with all than by sorting
ROOM = 48  # places from which on many worlds are gone through one by one in kernels
SOME = 256  # places of a list that kernels put in order, which hold no sorting


def first_true(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """The first true items of a list.

    Args:
      mask: bool `[n, *W]`.
      order: constant `[n]`: the items in the order in which they are wanted; None: as they stand,
        which puts no constant into the program.
      size: how many places there are.

    Returns:
      Items `[size, *W]`; those past the last true one are arbitrary. And the number of true items
      `[1, *W]`, which may exceed `size`.
    """
    if len(mask) and platform().in_kernels:
        if mask.ndim == 1:
            found, count = _one_by_one(mask[:, None], order, size)
            return found[:, 0], count[:, 0]
        if size >= ROOM:
            return _one_by_one(mask, order, size)
    if mask.ndim == 1 or not platform().scans:
        return _by_sort(mask, order, size)
    return _by_scan(mask, order, size)


def first_ranked(
    mask: Array, order: np.ndarray, rank: Callable[[], Array], size: int
) -> tuple[Array, Array]:
    """As `first_true`, in the order of ranks that differ from world to world.

    Args:
      mask, order, size: as in `first_true`; where more are true than there are places, those stay
        that come first in `order` or, where one sort does for both, by rank.
      rank: makes the ranks, int32 `[n, *W]`; items of one rank stay in order.
    """
    if platform().scans:
        index, count = first_true(mask, order, size)
        return ascending(index, rank(), count), count
    last = np.iinfo(np.int32).max
    key = take(jnp.where(mask, rank(), last), order)
    item = jnp.broadcast_to(column(order.astype(np.int32), key), key.shape)
    keys, items = lax.sort((key, item), dimension=0, num_keys=1)
    # of what was sorted: a mask that is found a second time may differ, see driver.choose
    return items[:size], jnp.sum(keys < last, axis=0, keepdims=True, dtype=jnp.int32)


def deepest(mask: Array, dist: Array, size: int) -> Array:
    """The true items with the smallest distances, as many as there are places.

    Args:
      mask: bool `[n, *W]`.
      dist: `[n, *W]`.
      size: how many places there are.

    Returns:
      `mask` without the items that are farther than the `size` closest; where distances are equal
      more may be left.
    """

    def cut(mask, dist):
        return mask & (dist <= _smallest(jnp.where(mask & ~jnp.isnan(dist), dist, jnp.inf), size))

    if size >= len(mask):
        return mask
    dist = lax.stop_gradient(dist)
    if not platform().branches:
        return cut(mask, dist)
    overflow = jnp.sum(mask, axis=0, dtype=jnp.int32) > size
    return lax.cond(jnp.any(overflow), cut, lambda mask, dist: mask, mask, dist)


def ascending(index: Array, rank: Array, number: Array) -> Array:
    """Chosen items in the order of their ranks.

    Args:
      index: items, `[size, *W]`.
      rank: int32 `[n, *W]` of all items; those of one rank keep their order.
      number: how many of the places count, `[1, *W]`.

    Returns:
      `[size, *W]`; those past the last that counts are arbitrary.
    """
    size = len(index)
    place = column(np.arange(size, dtype=np.int32), index)
    rank = jnp.where(place < number, pick(rank, index), np.iinfo(np.int32).max)
    if platform().in_kernels and size <= SOME:
        return _as_far_as_some(index, rank, place, jnp.max(number))
    if size > FEW and platform().scans:
        return lax.sort((rank, index), dimension=0, num_keys=1)[1]
    # each goes to the place that is the number of those before it
    before = (rank[None] < rank[:, None]) | (
        (rank[None] == rank[:, None]) & (place[None] < place[:, None])
    )
    to = jnp.sum(before, axis=1, dtype=jnp.int32)
    at = to[None] == place[:, None]
    return jnp.sum(jnp.where(at, index[None], 0), axis=1, dtype=index.dtype)


def _as_far_as_some(index: Array, rank: Array, place: np.ndarray, most: Array) -> Array:
    """The same in a kernel: compares with `most` places, as many as count in some world."""

    def count(k: Array, to: Array) -> Array:
        one = lax.dynamic_slice_in_dim(rank, k, 1)
        return to + ((one < rank) | ((one == rank) & (k < place))).astype(jnp.int32)

    def put(k: Array, found: Array) -> Array:
        one, at = (lax.dynamic_slice_in_dim(a, k, 1) for a in (index, to))
        return jnp.where(at == place, one, found)

    to = lax.fori_loop(0, most, count, jnp.zeros_like(rank))
    return lax.fori_loop(0, most, put, jnp.zeros_like(index))


def _smallest(values: Array, k: int) -> Array:
    """The k-th smallest of `[n, *W]` in each world, `[1, *W]`."""
    if not platform().scans:  # one sort there is one kernel, and a turn of a loop is several
        return lax.sort(values, dimension=0)[k - 1 : k]
    # bits of numbers, read as integers, are in the order of the numbers; of negative ones reversed
    kind = jnp.int32 if values.dtype.itemsize == 4 else jnp.int64
    most = jnp.iinfo(kind).max
    bits = lax.bitcast_convert_type(values + 0, kind)  # -0 + 0 is 0
    key = jnp.where(bits < 0, bits ^ most, bits)

    def halve(_, ends):
        low, high = ends  # the key that is sought is above low, at most high
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        enough = jnp.sum(key <= middle, axis=0, keepdims=True, dtype=jnp.int32) >= k
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    like = jnp.zeros((1, *values.shape[1:]), kind)
    found = lax.fori_loop(0, 8 * values.dtype.itemsize, halve, (like - most - 1, like + most))[1]
    bits = jnp.where(found < 0, found ^ most, found)
    return lax.bitcast_convert_type(bits, values.dtype)


def _one_by_one(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """World by world, item by item: a kernel does this in a nanosecond an item."""
    items = None if order is None else jnp.asarray(order, jnp.int32)
    worlds = mask.shape[1]

    def of_world(world: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        counts, found = state
        world = world.astype(jnp.int32)  # of the type of the counts

        def offer(place: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            count, found = state
            item = place.astype(jnp.int32) if items is None else items[place]
            # past the end of the list an item goes to the place behind it
            found = lax.dynamic_update_slice(found, item[None, None], (count, world))
            here = lax.dynamic_slice(mask, (item, world), (1, 1))[0, 0]
            return count + here.astype(jnp.int32), found

        count, found = lax.fori_loop(0, len(mask), offer, (jnp.int32(0), found))
        return lax.dynamic_update_slice(counts, count[None, None], (jnp.int32(0), world)), found

    start = jnp.zeros((1, worlds), jnp.int32), jnp.zeros((size + 1, worlds), jnp.int32)
    count, found = lax.fori_loop(0, worlds, of_world, start)
    # what is past the last true item looks alike whichever way it is found: see _by_scan
    return jnp.where(np.arange(size, dtype=np.int32)[:, None] < count, found[:size], 0), count


def _by_scan(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """One pass over the items; outside of kernels the fastest of six ways on a CPU.

    Each item is offered to all places, and goes to the one whose number is the count so far.
    """
    worlds = mask.shape[1:]
    place = jnp.arange(size, dtype=jnp.int32)[:, None]

    def offer(state, item):
        count, found = state
        here = lax.dynamic_slice_in_dim(mask, item, 1)
        found = jnp.where(here & (place == count), item, found)
        return (count + here.astype(jnp.int32), found), None

    start = jnp.zeros((1, *worlds), jnp.int32), jnp.zeros((size, *worlds), jnp.int32)
    items = (
        jnp.arange(len(mask), dtype=jnp.int32) if order is None else jnp.asarray(order, jnp.int32)
    )
    (count, found), _ = lax.scan(offer, start, items)
    return found, count


def _by_sort(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """Sorts the items by their place in the order, the false ones behind."""
    n = len(mask)
    rank = jnp.arange(n, dtype=jnp.int32)
    if order is not None:
        rank = np.empty(n, np.int32)
        rank[order] = np.arange(n)
    rank = rank.reshape(n, *(1,) * (mask.ndim - 1))
    ranks = lax.sort(jnp.where(mask, rank, n), dimension=0)
    first = ranks[:size]
    spare = ((0, max(0, size - n)), *((0, 0),) * (mask.ndim - 1))
    first = jnp.pad(first, spare, constant_values=n)
    # of what was sorted: a mask that is found a second time may differ, see driver.choose
    count = jnp.sum(ranks < n, axis=0, keepdims=True, dtype=jnp.int32)
    if order is None:
        return jnp.where(first < n, first, 0), count
    found = np.append(order, 0).astype(np.int32)  # behind the last: any item
    return pick(jnp.asarray(column(found, first)), first), count
