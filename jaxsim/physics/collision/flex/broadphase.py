"""Broad phase of flexes: the nearest pairs of elements, by axis-aligned bounding boxes.

In a short table every pair of elements is tested. Where the table would be long (clusters.py), a
bounding volume hierarchy of two levels with fixed shapes replaces it. For two shells of 4,968
triangles in 512 clusters of 9 or 10, with the default budgets:

    clusters of both sides                     512, 512
    gaps of all pairs of their boxes           [512, 512, *W]        _select_near_clusters
    the nearest of them, up to their capacity  8,192                 `cluster_budget`
    their elements, pair by pair               [8192, 10, 10, *W]    _test_elements
    the nearest of these, up to the budget     79,488                `budget`

The index of a pair of elements in the flattened array is

    index = (cell * width1 + slot1) * width2 + slot2

with the pair of clusters `cell`, and the slots of the elements in these. No near pair is missed
unless a capacity is exceeded.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.math import Rot, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.compact import compact_true, select_deepest
from jaxsim.physics.collision.contact_ids import IdArray, StaticIds, TracedIds
from jaxsim.physics.collision.flex.clusters import ClusterPairs, Side, corner_keys, visits
from jaxsim.physics.collision.flex.item import FlexItems
from jaxsim.physics.collision.flex.plan import FlexPairGroup
from jaxsim.physics.collision.shape import PlacedGeoms

# Margin of the boxes of clusters over those of their elements, in machine epsilons.
_BOX_ROUNDING_ULPS = 4


class NearEntries(NamedTuple):
    """Entries of a group that the narrow phase tests, `[budget, *W]`.

    Attributes:
      pair: index among all pairs.
      first, second: see `FlexPairEntries`.
      rank: rank of the first contact point of each entry in MuJoCo's order.
      reach: distance below which contacts are detected [m]; -NO_CONTACT_DISTANCE for empty slots.
      dropped: number of near entries beyond the budget, `[1, *W]`, or 0.
    """

    pair: IdArray
    first: IdArray
    second: IdArray
    rank: IdArray
    reach: Array
    dropped: Array | int


def select_near_entries(
    s: Structure, group: FlexPairGroup, geoms: PlacedGeoms, flexes: FlexItems, reach: Array
) -> NearEntries:
    """Return the entries of a group that may touch in a state.

    Args:
      s: structure of the model.
      group: the group.
      geoms: all geoms, `[ngeom, *W]`.
      flexes: all flexes.
      reach: distance below which contacts of each pair are detected, `[npairs, *W]` [m].
    """
    if group.clusters is not None:
        return _search_clusters(s, group, group.clusters, geoms, flexes, reach)
    entries = group.entries
    dropped: Array | int = 0
    reach = StaticIds.of(entries.pair).take(reach)
    if group.tests_every_entry:
        number: IdArray = StaticIds.of(np.arange(len(entries.pair)))
    else:
        # Keep the entries with the smallest gaps, up to the budget, in their order.
        gap = entry_gaps(s, group, geoms, flexes)
        mask = jnp.broadcast_to(gap <= reach, jnp.broadcast_shapes(gap.shape, reach.shape))
        kept = select_deepest(mask, gap, group.budget)
        index, _ = compact_true(kept, np.arange(len(entries.pair)), group.budget)
        count = jnp.sum(mask, axis=0, keepdims=True, dtype=jnp.int32)
        filled = column(np.arange(group.budget, dtype=np.int32), count) < count
        number = TracedIds(index)
        reach = jnp.where(filled, number.take(reach), -NO_CONTACT_DISTANCE)
        dropped = jnp.maximum(count - group.budget, 0)
    pair, first, second = (number.look_up(table) for table in entries)
    return NearEntries(pair, first, second, number.look_up(group.rank), reach, dropped)


def entry_gaps(s: Structure, group: FlexPairGroup, geoms: PlacedGeoms, flexes: FlexItems) -> Array:
    """Return the gaps between the bounding boxes of all entries of a group, `[n, *W]` [m]."""
    # Boxes of the second side are those of elements; the first is an element or a geom.
    first, second = (StaticIds.of(a) for a in group.entries[1:])
    box = second.take((flexes.center, flexes.half))
    if group.sizes[0]:
        return _element_box_gap(*first.take((flexes.center, flexes.half)), *box)
    return _geom_box_gap(first.take(geoms), *box)


def number_near(
    s: Structure, group: FlexPairGroup, geoms: PlacedGeoms, flexes: FlexItems, reach: Array
) -> Array:
    """Return the capacity that the near pairs of a group need, `[1, *W]`.

    With clusters it is the larger of the number of near pairs of clusters, and of near pairs of
    elements in the pairs of clusters that are kept.
    """
    if group.clusters is None:
        near = entry_gaps(s, group, geoms, flexes) <= gather_static(reach, group.entries.pair)
        return jnp.sum(near, axis=0, keepdims=True, dtype=jnp.int32)
    # Otherwise both levels of the hierarchy may need capacity.
    cells = _select_near_clusters(group, group.clusters, geoms, flexes, reach)
    tested = _test_elements(s, group, group.clusters, geoms, flexes, reach, cells)
    return jnp.maximum(cells.number, _count(_merge_axes(tested.near, 3)))


class _NearClusters(NamedTuple):
    """Near pairs of clusters, `[capacity, *W]`.

    Attributes:
      ids: indices of the clusters on both sides.
      pair: index of their pair among all pairs of the model.
      number: how many are near, `[1, *W]`, those beyond the capacity included.
    """

    ids: tuple[Array, Array]
    pair: Array
    number: Array


class _TestedElements(NamedTuple):
    """Pairs of elements of near clusters.

    Attributes:
      gap: gap between their boxes, `[capacity, width1, width2, *W]` [m].
      near: bool, shape as `gap`.
      item: items on both sides, `[capacity, width, *W]` each.
    """

    gap: Array
    near: Array
    item: tuple[Array, Array]


def _search_clusters(
    s: Structure,
    group: FlexPairGroup,
    clusters: ClusterPairs,
    geoms: PlacedGeoms,
    flexes: FlexItems,
    reach: Array,
) -> NearEntries:
    """Find near pairs of clusters, and near pairs of elements in them."""
    # Level 1 tests clusters, level 2 the elements of near clusters.
    geoms, flexes, reach = lax.stop_gradient((geoms, flexes, reach))
    cells = _select_near_clusters(group, clusters, geoms, flexes, reach)
    tested = _test_elements(s, group, clusters, geoms, flexes, reach, cells)

    # Keep the nearest pairs of elements, up to the capacity.
    near, gap = _merge_axes(tested.near, 3), _merge_axes(tested.gap, 3)
    index, _ = compact_true(select_deepest(near, gap, group.budget), None, group.budget)
    count = _count(near)
    filled = column(np.arange(group.budget, dtype=np.int32), count) < count
    dropped = jnp.maximum(cells.number - group.cluster_budget, 0)
    dropped = dropped + jnp.maximum(count - group.budget, 0)

    # The index of a pair of elements holds the pair of clusters, and the slot in each of them.
    width1, width2 = (side.width for side in clusters.sides)
    cell, slot = index // (width1 * width2), index % (width1 * width2)
    slots = cell * width1 + slot // width2, cell * width2 + slot % width2
    items = (_merge_axes(a) for a in tested.item)
    first, second = (gather(a, k) for a, k in zip(items, slots, strict=True))
    pair = gather(cells.pair, cell)
    if clusters.is_alone.any():  # self-collision: the lower element is first
        alone = _lookup_pair(clusters.is_alone, pair)
        low, high = jnp.minimum(first, second), jnp.maximum(first, second)
        first, second = jnp.where(alone, low, first), jnp.where(alone, high, second)
    reach = jnp.where(filled, gather(reach, pair), -NO_CONTACT_DISTANCE)
    if group.in_order:
        pair, first, second, reach = _sort_entries(s, group, pair, first, second, reach)
    rank = _entry_rank(group, clusters, pair, first, second)
    return NearEntries(
        TracedIds(pair), TracedIds(first), TracedIds(second), TracedIds(rank), reach, dropped
    )


def _select_near_clusters(
    group: FlexPairGroup,
    clusters: ClusterPairs,
    geoms: PlacedGeoms,
    flexes: FlexItems,
    reach: Array,
) -> _NearClusters:
    """Find the nearest pairs of clusters by their boxes, up to the capacity."""
    # Gaps between the boxes of all clusters of one side and all of the other.
    one, other = clusters.sides
    box = _insert_axis(_enlarged_boxes(*_boxes(flexes, other)), 0)
    if group.sizes[0]:
        gap = _element_box_gap(*_insert_axis(_enlarged_boxes(*_boxes(flexes, one)), 1), *box)
    else:
        gap = _geom_box_gap(_insert_axis(gather_static(geoms, one.member[:, 0]), 1), *box)
    # Mask pairs that are far apart, or that the filters exclude.
    limit = _limits(clusters, reach)
    shape = jnp.broadcast_shapes(gap.shape, limit.shape)
    near = jnp.broadcast_to(gap <= limit, shape)
    if not (mask := clusters.mask()).all():
        near = near & mask.reshape(*mask.shape, *(1,) * (near.ndim - 2))
    near, gap = (_merge_axes(jnp.broadcast_to(a, shape)) for a in (near, gap))
    # Compact the nearest pairs, and look up their clusters and their pair of the model.
    size = group.cluster_budget
    index, _ = compact_true(select_deepest(near, gap, size), None, size)
    columns = len(other.member)
    row, col = index // columns, index % columns
    owner = _lookup_pair(one.owner, row) * clusters.pair.shape[1] + _lookup_pair(other.owner, col)
    pair = _lookup_pair(np.maximum(clusters.pair, 0).ravel(), owner)
    return _NearClusters((row, col), pair, _count(near))


def _limits(clusters: ClusterPairs, reach: Array) -> Array:
    """Return the detection distance of pairs of clusters, `[n1, n2, *W]` or `[1, 1, *W]` [m]."""
    # With a single pair the limit is a scalar; else gather it by both owners.
    pair = np.maximum(clusters.pair, 0)
    if pair.size == 1:
        return gather_static(reach, pair.ravel())[None]
    of_owners = gather_static(reach, pair.ravel()).reshape(*pair.shape, *reach.shape[1:])
    one, other = clusters.sides
    rows = gather_static(of_owners, one.owner)
    return jnp.moveaxis(gather_static(jnp.moveaxis(rows, 1, 0), other.owner), 0, 1)


def _test_elements(
    s: Structure,
    group: FlexPairGroup,
    clusters: ClusterPairs,
    geoms: PlacedGeoms,
    flexes: FlexItems,
    reach: Array,
    cells: _NearClusters,
) -> _TestedElements:
    """Test all pairs of elements of near clusters."""
    # Gaps between the boxes of the elements, or between these and the geom.
    one, other = clusters.sides
    row, col = cells.ids
    item = _cluster_members(one, row), _cluster_members(other, col)
    box = _insert_axis(_gather_rows(_boxes(flexes, other), col), 1)
    if group.sizes[0]:
        gap = _element_box_gap(*_insert_axis(_gather_rows(_boxes(flexes, one), row), 2), *box)
    else:
        geom = TracedIds(item[0][:, 0]).take(geoms)
        gap = _geom_box_gap(_insert_axis(_insert_axis(geom, 1), 1), *box)
    # Mask empty slots, far elements, and elements that share a body or a vertex.
    index = column(np.arange(len(row), dtype=np.int32), cells.number)
    limit = jnp.where(index < cells.number, gather(reach, cells.pair), -NO_CONTACT_DISTANCE)
    near = gap <= limit[:, None, None]
    if clusters.filtered:
        near = near & ~_shares_vertex(s, group, item)
    if clusters.is_alone.any():  # a cluster with itself: the upper triangle of its pairs
        same = _lookup_pair(one.number, row) == _lookup_pair(other.number, col)
        same = same & _lookup_pair(clusters.is_alone, cells.pair)
        again = np.arange(one.width)[:, None] >= np.arange(other.width)
        again = again.reshape(1, *again.shape, *(1,) * (near.ndim - 3))
        near = near & ~(same[:, None, None] & again)
    return _TestedElements(jnp.broadcast_to(gap, near.shape), near, item)


def _boxes(flexes: FlexItems, side: Side) -> tuple[Vec, Vec]:
    """Gather the boxes of the elements of all clusters, `[n, width, *W]`.

    Empty slots have the half size -NO_CONTACT_DISTANCE, so they are near nothing.
    """
    shape = side.member.shape
    center, half = gather_static((flexes.center, flexes.half), np.maximum(side.member, 0).ravel())
    center, half = jax.tree.map(lambda a: a.reshape(*shape, *a.shape[1:]), (center, half))
    if (side.member >= 0).all():
        return center, half
    filled = (side.member >= 0).reshape(*shape, *(1,) * (center.x.ndim - 2))
    return center, half.map(lambda a: jnp.where(filled, a, -NO_CONTACT_DISTANCE))


def _enlarged_boxes(center: Vec, half: Vec) -> tuple[Vec, Vec]:
    """Return bounding boxes over the second axis, enlarged by a few machine epsilons."""
    # Union of boxes, with a margin for rounding.
    low = (center - half).map(lambda a: jnp.min(a, axis=1))
    high = (center + half).map(lambda a: jnp.max(a, axis=1))
    spare = _BOX_ROUNDING_ULPS * jnp.finfo(low.x.dtype).eps
    more = low.map(jnp.abs) + high.map(jnp.abs)
    return (low + high).scale(0.5), (high - low).scale(0.5) + more.scale(spare)


def _shares_vertex(s: Structure, group: FlexPairGroup, item: tuple[Array, Array]) -> Array:
    """Return a mask of pairs that share a body or a vertex, `[capacity, width1, width2, *W]`."""
    # Keys of both sides: bodies of vertices, or the body of a geom.
    keys = []
    for size, own in zip(group.sizes, item, strict=True):
        table = corner_keys(s)[:, :size] if size else np.asarray(s.geom_bodyid)[:, None]
        flat = _merge_axes(jnp.maximum(own, 0))
        keys.append([_lookup_pair(k, flat).reshape(own.shape) for k in table.T])
    same = [a[:, :, None] == b[:, None] for a in keys[0] for b in keys[1]]
    return functools.reduce(jnp.logical_or, same)


def _sort_entries(
    s: Structure, group: FlexPairGroup, pair: Array, first: Array, second: Array, reach: Array
) -> tuple[Array, ...]:
    """Sort entries by pair, then by element of each side; empty ones come last."""
    # Sort keys: pair, first element, second element in the order of its visit.
    last = jnp.where(reach > -NO_CONTACT_DISTANCE / 2, pair, np.iinfo(np.int32).max)
    visit = _lookup_pair(visits(s), second) if group.collider.among else second
    reach = jnp.broadcast_to(reach, pair.shape)
    keys = last, first if group.sizes[0] else jnp.zeros_like(first), visit
    return lax.sort((*keys, pair, first, second, reach), dimension=0, num_keys=len(keys))[3:]


def _entry_rank(
    group: FlexPairGroup, clusters: ClusterPairs, pair: Array, first: Array, second: Array
) -> Array:
    """Return the rank of the first contact point of each entry, `[n, *W]`.

    The ranks of a pair of the model are consecutive. They follow the index of the entry where
    entries are sorted, else the element ids.
    """
    start = _lookup_pair(group.rank, pair)
    if group.in_order:
        return start + column(np.arange(len(pair), dtype=np.int32), pair) * group.slots
    second = second - _lookup_pair(clusters.start[1], pair)
    if group.sizes[0]:
        first = first - _lookup_pair(clusters.start[0], pair)
        second = second + first * _lookup_pair(clusters.stride, pair)
    return start + second * group.slots


def _lookup_pair(table: np.ndarray, index: Array) -> Array:
    """Look up entries of a constant table, `[n]`, `[k, *W]` -> `[k, *W]`."""
    kind = bool if table.dtype == bool else np.int32
    return gather(jnp.asarray(column(table.astype(kind), index)), index)


def _cluster_members(side: Side, index: Array) -> Array:
    """Return the items of chosen clusters, `[k, width, *W]`."""
    return _gather_rows(jnp.asarray(column(side.member.astype(np.int32), index)), index)


def _gather_rows(x: PyTree, index: Array) -> PyTree:
    """Gather rows of `[n, width, *W]` that each world chooses, `[k, width, *W]`."""

    def rows(a: Array) -> Array:
        width = a.shape[1]
        slot = np.arange(width, dtype=np.int32).reshape(1, width, *(1,) * (index.ndim - 1))
        at = _merge_axes(index[:, None] * width + slot)
        return gather(_merge_axes(a), at).reshape(len(index), width, *index.shape[1:])

    return jax.tree.map(rows, x)


def _insert_axis(x: PyTree, axis: int) -> PyTree:
    """Insert an axis of length 1, to broadcast one side against the other."""
    return jax.tree.map(lambda a: jnp.expand_dims(a, axis), x)


def _merge_axes(a: Array, axes: int = 2) -> Array:
    """Merge the first axes into one."""
    return a.reshape(-1, *a.shape[axes:])


def _count(near: Array) -> Array:
    """Count near pairs, `[n, *W]` -> `[1, *W]`."""
    return jnp.sum(near, axis=0, keepdims=True, dtype=jnp.int32)


def _element_box_gap(center1: Vec, half1: Vec, center2: Vec, half2: Vec) -> Array:
    """Return the largest gap along a world axis between axis-aligned boxes; negative: none [m]."""
    return _largest_gap(center2 - center1, half1 + half2)


def _geom_box_gap(geom: PlacedGeoms, center: Vec, half: Vec) -> Array:
    """Return the largest gap along an axis of the world, or of the bounding box of the geom [m]."""
    assert geom.box is not None
    # Separating axes: those of the world, then those of the box of the geom.
    middle, size = geom.box
    offset = center - middle
    along_world = _largest_gap(offset, _rotated_half_sizes(geom.rot, size) + half)
    back = geom.rot.T
    return jnp.maximum(
        along_world, _largest_gap(back @ offset, _rotated_half_sizes(back, half) + size)
    )


def _largest_gap(offset: Vec, reach: Vec) -> Array:
    gaps = [jnp.abs(x) - r for x, r in zip(offset.parts, reach.parts, strict=True)]
    return jnp.maximum(jnp.maximum(gaps[0], gaps[1]), gaps[2])


def _rotated_half_sizes(rot: Rot, half: Vec) -> Vec:
    """Return the half sizes of the axis-aligned box around a rotated box."""
    return rot.map(jnp.abs) @ half
