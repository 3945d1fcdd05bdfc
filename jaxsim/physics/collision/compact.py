"""Stream compaction with a capacity: the first, or the deepest, true items of each world, in order.

`size` is the capacity (number of slots), `mask` the true items, `order` the constant order of
preference. Three forms with equal results: a sequential loop per world in fused CPU kernels
(`_compact_sequentially`), a scan over the items that is vectorized over worlds
(`_compact_by_scan`), and one sort on GPU (`_compact_by_sort`).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_slice_in_dim, dynamic_update_slice
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def compact_true(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """Return the first true items of a list.

    Args:
      mask: bool `[n, *W]`.
      order: constant `[n]`: the items in order of preference; None: as they are stored, which puts
        no constant into the program.
      size: the capacity.

    Returns:
      Items `[size, *W]`; those past the last true one are arbitrary. And the number of true items
      `[1, *W]`, which may exceed `size`.
    """
    if len(mask) and platform().fuses_calls:
        if mask.ndim == 1:
            found, count = _compact_sequentially(mask[:, None], order, size)
            return found[:, 0], count[:, 0]
        return _compact_sequentially(mask, order, size)
    if mask.ndim == 1 or not platform().scans:
        return _compact_by_sort(mask, order, size)
    return _compact_by_scan(mask, order, size)


def compact_ranked(
    mask: Array, order: np.ndarray, rank: Callable[[], Array], size: int
) -> tuple[Array, Array]:
    """Return the first true items, ordered by ranks that differ between worlds.

    Args:
      mask, order, size: as in `compact_true`. If more items are true than the capacity, those are
        kept that come first in `order` or, where one sort does both, by rank.
      rank: returns the ranks, int32 `[n, *W]`; items of equal rank stay in order.

    Returns:
      As `compact_true`.
    """
    if platform().scans:
        index, count = compact_true(mask, order, size)
        return sort_by_rank(index, rank(), count), count
    last = np.iinfo(np.int32).max
    key = gather_static(jnp.where(mask, rank(), last), order)
    item = jnp.broadcast_to(column(order.astype(np.int32), key), key.shape)
    keys, items = lax.sort((key, item), dimension=0, num_keys=1)
    # count the sorted keys: a second evaluation of the mask may differ, see driver.choose
    return items[:size], jnp.sum(keys < last, axis=0, keepdims=True, dtype=jnp.int32)


def select_deepest(mask: Array, dist: Array, size: int) -> Array:
    """Return the true items with the smallest distances, up to the capacity.

    Args:
      mask: bool `[n, *W]`.
      dist: `[n, *W]`.
      size: the capacity.

    Returns:
      `mask` without the items farther than the `size` closest ones; ties may leave more.
    """

    def cut(mask, dist):
        return mask & (
            dist <= _kth_smallest(jnp.where(mask & ~jnp.isnan(dist), dist, jnp.inf), size)
        )

    if size >= len(mask):
        return mask
    dist = lax.stop_gradient(dist)
    if not platform().branches:
        return cut(mask, dist)
    # Search for the threshold only if some world overflows.
    overflow = jnp.sum(mask, axis=0, dtype=jnp.int32) > size
    return lax.cond(jnp.any(overflow), cut, lambda mask, dist: mask, mask, dist)


def sort_by_rank(index: Array, rank: Array, number: Array) -> Array:
    """Sort selected items by their ranks.

    Args:
      index: items, `[size, *W]`.
      rank: int32 `[n, *W]` of all items; items of equal rank keep their order.
      number: number of used slots, `[1, *W]`.

    Returns:
      `[size, *W]`; those past the last used slot are arbitrary.
    """
    size = len(index)
    place = column(np.arange(size, dtype=np.int32), index)
    rank = jnp.where(place < number, gather(rank, index), np.iinfo(np.int32).max)
    # Kernels of a CPU hold no sort; few slots are counted in them.
    if platform().fuses_calls and size <= tuning().max_counted_slots:
        return _sort_used_slots(index, rank, place, jnp.max(number))
    if platform().scans:
        return lax.sort((rank, index), dimension=0, num_keys=1)[1]
    # Counting sort: the slot of an item is the number of items before it.
    before = (rank[None] < rank[:, None]) | (
        (rank[None] == rank[:, None]) & (place[None] < place[:, None])
    )
    to = jnp.sum(before, axis=1, dtype=jnp.int32)
    at = to[None] == place[:, None]
    return jnp.sum(jnp.where(at, index[None], 0), axis=1, dtype=index.dtype)


def _sort_used_slots(index: Array, rank: Array, place: np.ndarray, most: Array) -> Array:
    """Sort by counting in a loop over the first `most` slots, the most that any world uses."""

    def count(k: Array, to: Array) -> Array:
        one = dynamic_slice_in_dim(rank, k, 1)
        return to + ((one < rank) | ((one == rank) & (k < place))).astype(jnp.int32)

    def put(k: Array, found: Array) -> Array:
        one, at = (dynamic_slice_in_dim(a, k, 1) for a in (index, to))
        return jnp.where(at == place, one, found)

    to = lax.fori_loop(0, most, count, jnp.zeros_like(rank))
    return lax.fori_loop(0, most, put, jnp.zeros_like(index))


def _kth_smallest(values: Array, k: int) -> Array:
    """Return the k-th smallest of `[n, *W]` in each world, `[1, *W]`, by bisection."""
    if not platform().scans:  # a sort is one kernel there, an iteration of a loop is several
        return lax.sort(values, dimension=0)[k - 1 : k]
    # The bits of floats, read as integers, have the order of the numbers, reversed for negative
    # ones.
    kind = jnp.int32 if values.dtype.itemsize == 4 else jnp.int64
    most = jnp.iinfo(kind).max
    bits = lax.bitcast_convert_type(values + 0, kind)  # -0 + 0 is 0
    key = jnp.where(bits < 0, bits ^ most, bits)

    def halve(_, ends):
        low, high = ends  # low < wanted key <= high
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        enough = jnp.sum(key <= middle, axis=0, keepdims=True, dtype=jnp.int32) >= k
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    # Bisection over the whole range of keys, one bit per iteration.
    like = jnp.zeros((1, *values.shape[1:]), kind)
    found = lax.fori_loop(0, 8 * values.dtype.itemsize, halve, (like - most - 1, like + most))[1]
    bits = jnp.where(found < 0, found ^ most, found)
    return lax.bitcast_convert_type(bits, values.dtype)


def _compact_sequentially(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """Compact item by item in a fused kernel; an item that is false in all worlds is skipped."""
    items = None if order is None else jnp.asarray(order, jnp.int32)
    worlds = mask.shape[1]

    def offer(place: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Append one item in the worlds where it is true."""
        item = place.astype(jnp.int32) if items is None else items[place]
        here = dynamic_index_in_dim(mask, item, keepdims=False)

        def append(world: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            """Write the item behind those of a world; the next one overwrites a false one."""
            counts, found = state
            count = counts[world]
            # Items beyond the capacity overwrite the spare slot behind it.
            found = dynamic_update_slice(found, item[None, None], (count, world))
            count = count + here[world].astype(jnp.int32)
            return dynamic_update_slice(counts, count[None], (world,)), found

        number = jnp.where(jnp.any(here), jnp.int32(worlds), jnp.int32(0))
        return lax.fori_loop(jnp.int32(0), number, append, state)

    start = jnp.zeros(worlds, jnp.int32), jnp.zeros((size + 1, worlds), jnp.int32)
    counts, found = lax.fori_loop(jnp.int32(0), jnp.int32(len(mask)), offer, start)
    # Items past the last true one are set to the value that `_compact_by_scan` leaves there.
    counts = counts[None]
    used = jnp.arange(size, dtype=jnp.int32)[:, None] < counts
    return jnp.where(used, found[:size], 0), counts


def _compact_by_scan(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """Compact in one pass over the items, the fastest of six methods on a CPU outside of kernels.

    Each item is compared with all slots and stored in the one whose index equals the count so far.
    """
    worlds = mask.shape[1:]
    place = jnp.arange(size, dtype=jnp.int32)[:, None]

    def offer(state, item):
        count, found = state
        here = dynamic_slice_in_dim(mask, item, 1)
        found = jnp.where(here & (place == count), item, found)
        return (count + here.astype(jnp.int32), found), None

    start = jnp.zeros((1, *worlds), jnp.int32), jnp.zeros((size, *worlds), jnp.int32)
    items = jnp.asarray(np.arange(len(mask)) if order is None else order, jnp.int32)
    (count, found), _ = lax.scan(offer, start, items)
    return found, count


def _compact_by_sort(mask: Array, order: np.ndarray | None, size: int) -> tuple[Array, Array]:
    """Sort the items by their position in the order, false ones last."""
    n = len(mask)
    # Sort keys: position in the order, n for false items.
    rank = np.arange(n, dtype=np.int32) if order is None else np.empty(n, np.int32)
    if order is not None:
        rank[order] = np.arange(n)
    rank = rank.reshape(n, *(1,) * (mask.ndim - 1))
    ranks = lax.sort(jnp.where(mask, rank, n), dimension=0)
    first = ranks[:size]
    spare = ((0, max(0, size - n)), *((0, 0),) * (mask.ndim - 1))
    first = jnp.pad(first, spare, constant_values=n)
    # count the sorted keys: a second evaluation of the mask may differ, see driver.choose
    count = jnp.sum(ranks < n, axis=0, keepdims=True, dtype=jnp.int32)
    if order is None:
        return jnp.where(first < n, first, 0), count
    found = np.append(order, 0).astype(np.int32)  # past the last true item: any item
    return gather(jnp.asarray(column(found, first)), first), count
