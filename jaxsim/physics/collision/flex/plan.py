"""Static plan of flex contacts: entries by collider, their capacities, and their order.

An entry is an element or vertex of a flex with a geom or an element. Short lists of entries are
static tables; long ones are formed in each state from near clusters (clusters.py).
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs
from jaxsim.physics.collision.flex.clusters import (
    ClusterPairs,
    cluster_pairs,
    number_of_entries,
)
from jaxsim.physics.collision.flex.pairs import FlexPairEntries, flex_entries, geom_entries
from jaxsim.physics.collision.flex.table import ON_BARS, FlexCollider, flex_collider, geom_collider
from jaxsim.transforms.tuning import tuning

_MAX_NEIGHBORS = {1: 4, 2: 8, 3: 24}  # near elements of an element, by the larger dimension
NEAR_GEOMS_PER_CLUSTER = 4  # near geoms of a cluster, and near clusters of a geom
_CONTACTS_ON_BOX = 3  # contacts of a triangle at rest on a box
_CONTACTS_ON_BAR = 4  # contacts of an edge with a box section
_CONTACTS_PER_ELEMENT = 4  # contacts of an element with other elements
_DEFAULT_CONTACT_CAPACITY = 1024  # bound on the default contact capacity of flexes
MAX_COMPUTED_RANK = 2**30  # bound on ranks computed from element ids; beyond it, entries are sorted


class FlexPairGroup(NamedTuple):
    """Entries of flexes that share a collider.

    Attributes:
      collider: narrow-phase function.
      entries: elements or vertices, with the geom or element that each may touch; with clusters
        one row for each candidate pair of the model (a geom or flex, and a flex).
      sizes: corners of the items on both sides; 0 for geoms.
      bars: sides that are boxes (rod_box.py).
      slots: number of contact points of an entry.
      budget: number of entries that the narrow phase tests.
      rank: rank of the first contact point of each entry in MuJoCo's order, `[n]`; with clusters,
        of each pair of the model, `[npairs]`.
      clusters: pairs of clusters that entries are formed from in each state; None: `entries` is a
        table of all of them.
      cluster_budget: number of pairs of clusters whose elements are tested.
      in_order: entries formed from clusters are sorted before the narrow phase.
    """

    collider: FlexCollider
    entries: FlexPairEntries
    sizes: tuple[int, int]
    bars: tuple[bool, bool]
    slots: int
    budget: int
    rank: np.ndarray
    clusters: ClusterPairs | None = None
    cluster_budget: int = 0
    in_order: bool = False

    @property
    def tests_every_entry(self) -> bool:
        """Return whether the narrow phase tests every entry."""
        return self.clusters is None and self.budget == len(self.entries.pair)

    @property
    def points(self) -> int:
        """Return the number of candidate contacts."""
        return self.budget * self.slots

    @property
    def num_items(self) -> int:
        """Return the number of different elements or vertices."""
        if self.clusters is not None:
            return self.clusters.items
        return _count_items(self.entries, self.sizes)


def flex_pair_groups(s: Structure, pairs: GeomPairs) -> tuple[FlexPairGroup, ...]:
    """Return the groups of all pairs with a flex, without ranks.

    Args:
      s: structure of the model.
      pairs: all pairs of the model.
    """
    # Group the pairs by collider, corners of the items, and box sections.
    pair_ids_by_key: dict[tuple, list[int]] = {}
    for k in np.flatnonzero(pairs.geom2 >= s.ngeom).tolist():
        first_object, flex = int(pairs.geom1[k]), int(pairs.geom2[k] - s.ngeom)
        if not number_of_entries(s, first_object, flex):
            continue
        size = int(s.flex_dim[flex]) + 1
        if first_object < s.ngeom:
            kind = int(s.geom_type[first_object])
            boxed = bool(s.flex_boxed[flex])
            collider, sizes = geom_collider(kind, size - 1, boxed), (0, size)
            bars = False, collider in ON_BARS.values()
            sizes = (0, 1) if kind == GeomType.PLANE else sizes
        else:
            other = first_object - s.ngeom
            sizes = int(s.flex_dim[other]) + 1, size
            rods = sizes == (2, 2)
            bars = rods and bool(s.flex_boxed[other]), rods and bool(s.flex_boxed[flex])
            collider = flex_collider(sizes[0] - 1, sizes[1] - 1, bars)
        pair_ids_by_key.setdefault((collider, sizes, bars), []).append(k)
    # Sort entries in the state where ranks by element ids would overflow.
    groups = [_group(s, pairs, pair_ids, *key) for key, pair_ids in pair_ids_by_key.items()]
    groups = [g for g in groups if len(g.entries.pair)]
    if sum(int(_widths(s, g).sum()) for g in groups) > MAX_COMPUTED_RANK:
        groups = [g._replace(in_order=g.clusters is not None) for g in groups]
    return tuple(groups)


def _group(
    s: Structure,
    pairs: GeomPairs,
    pair_ids: list[int],
    collider: FlexCollider,
    sizes: tuple[int, int],
    bars: tuple[bool, bool],
) -> FlexPairGroup:
    """Return the group of some pairs: a table of entries, or clusters if it would be long."""
    slots, none = collider.points(s), np.zeros(0, int)
    # Number of entries of each pair, which decides the form.
    first_objects = pairs.geom1[pair_ids].tolist()
    flexes = (pairs.geom2[pair_ids] - s.ngeom).tolist()
    entries_per_pair = [
        number_of_entries(s, *of_pair) for of_pair in zip(first_objects, flexes, strict=True)
    ]
    if sizes[1] == 1 or sum(entries_per_pair) <= tuning().max_table_entries:
        entry_tables = [
            _pair_entries(s, *of_pair)
            for of_pair in zip(pair_ids, first_objects, flexes, strict=True)
        ]
        entries = FlexPairEntries(*(np.concatenate(a) for a in zip(*entry_tables, strict=True)))
        budget = _budget(s, len(entries.pair), _count_items(entries, sizes), sizes)
        return FlexPairGroup(collider, entries, sizes, bars, slots, budget, none)
    # Too long for a table: entries are formed from clusters in each state.
    clusters = cluster_pairs(s, pairs, pair_ids)
    return FlexPairGroup(
        collider,
        FlexPairEntries(np.array(pair_ids), np.array(first_objects), clusters.start[1][pair_ids]),
        sizes,
        bars,
        slots,
        _budget(s, sum(entries_per_pair), clusters.items, sizes),
        none,
        clusters,
        _cluster_budget(s, clusters, sizes),
        collider.among is not None,
    )


def _pair_entries(s: Structure, pair: int, first_object: int, flex: int) -> FlexPairEntries:
    """Return the entries of a pair; `first_object` is a geom, or `ngeom` + the id of a flex."""
    if first_object < s.ngeom:
        return geom_entries(s, pair, first_object, flex)
    return flex_entries(s, pair, first_object - s.ngeom, flex)


def _count_items(entries: FlexPairEntries, sizes: tuple[int, int]) -> int:
    """Count the different elements or vertices."""
    first, second = entries.first, entries.second
    return len(np.union1d(first, second) if sizes[0] else np.unique(second))


def _budget(s: Structure, number: int, items: int, sizes: tuple[int, int]) -> int:
    """Return the number of entries of a group that the narrow phase tests.

    All entries of vertices are tested. Otherwise it is the number the user set (`nnear`); by
    default one geom for each element, or a few neighbors of each element.
    """
    if sizes[1] == 1:
        return number
    if s.nnear:
        return min(number, s.nnear)
    most = _MAX_NEIGHBORS[max(sizes) - 1] * items if sizes[0] else items
    return min(number, max(tuning().max_untested_entries, most))


def _cluster_budget(s: Structure, clusters: ClusterPairs, sizes: tuple[int, int]) -> int:
    """Return the capacity for near pairs of clusters.

    It is the number the user set (`nnear`), or a few neighbors of each cluster.
    """
    if s.nnear:
        return min(clusters.number, s.nnear)
    # Default: a few neighbors of each cluster.
    one, other = (len(side.member) for side in clusters.sides)
    neighbors = _MAX_NEIGHBORS[max(sizes) - 1] if sizes[0] else NEAR_GEOMS_PER_CLUSTER
    return min(clusters.number, max(tuning().max_untested_entries, neighbors * (one + other)))


def flex_contact_capacity(s: Structure, groups: tuple[FlexPairGroup, ...]) -> int:
    """Return the default contact capacity of flexes."""
    capacity = 0
    for group in groups:
        first, items = group.entries.first, group.num_items
        if group.sizes[0]:
            # Elements touch a few neighbors; boxed edges more.
            touching = _CONTACTS_PER_ELEMENT * items
            touching *= 2 if all(group.bars) else 1
        else:
            on_box = group.sizes[1] == 3 and (s.geom_type[first] == GeomType.BOX).any()
            contacts_per_item = (
                _CONTACTS_ON_BAR if group.bars[1] else _CONTACTS_ON_BOX if on_box else 1
            )
            touching = items * contacts_per_item
            touching = min(group.points, max(touching, group.slots))
        capacity += min(group.points, touching)
    return min(capacity, _DEFAULT_CONTACT_CAPACITY)


def _visit_keys(group: FlexPairGroup) -> np.ndarray:
    """Return sort keys of the order in which the elements of a pair are visited.

    Colliders with `among` choose among all elements in the order of the table, so their entries
    are not sorted by element.
    """
    if group.collider.among:
        return np.arange(len(group.entries.second))
    return group.entries.second


def rank_contacts(
    s: Structure, geom_slots: np.ndarray, groups: tuple[FlexPairGroup, ...]
) -> tuple[np.ndarray, tuple[FlexPairGroup, ...]]:
    """Rank contact points in MuJoCo's order: by pair, by element of each side, by point.

    The rank of a point is the number of possible points before it:

        pair  elements  points  rank of the first point
        0     geoms     4       0
        1     0 and 2   1       4
        1     0 and 5   1       5
        2     geoms     1       6

    Args:
      s: structure of the model.
      geom_slots: contact points of each pair, 0 for those with flexes, `[npairs]`.
      groups: groups of flexes.

    Returns:
      Rank of the first point of each pair of geoms, `[npairs]`; the groups with their ranks.

    Raises:
      ValueError: the number of contact points exceeds int32.
    """
    # Sort the rows of all tables by pair and elements; a rank is the running sum of their widths.
    number = len(geom_slots)
    pair = np.concatenate([np.arange(number), *(g.entries.pair for g in groups)])
    none = np.zeros(number, int)
    first = np.concatenate(
        [none, *(g.entries.first if g.sizes[0] else 0 * g.entries.pair for g in groups)]
    )
    second = np.concatenate([none, *(_visit_keys(g) for g in groups)])
    width = np.concatenate([geom_slots, *(_widths(s, g) for g in groups)])
    order = np.lexsort((second, first, pair))
    start = np.zeros(len(pair), np.int64)
    start[order] = np.cumsum(width[order]) - width[order]
    if width.sum() > np.iinfo(np.int32).max:
        raise ValueError(
            f"{len(pair)} pairs with flexes may have {width.sum()} contacts, more than int32 can "
            "number; test fewer pairs: load_model(..., pairs=)"
        )
    parts = np.split(start, np.cumsum([number, *(len(g.entries.pair) for g in groups)])[:-1])
    ranks = [_ranks_by_pair(g, r, number) for g, r in zip(groups, parts[1:], strict=True)]
    return parts[0], tuple(g._replace(rank=r) for g, r in zip(groups, ranks, strict=True))


def _widths(s: Structure, group: FlexPairGroup) -> np.ndarray:
    """Return the number of ranks that each row of `entries` occupies, `[n]`."""
    pair, first, second = group.entries
    if group.clusters is None:
        return np.full(len(pair), group.slots)
    if group.in_order:
        return np.full(len(pair), group.budget * group.slots)
    # Ranks by element ids: one for each pair of elements and point.
    number = np.asarray(s.flex_elemnum)[np.searchsorted(s.flex_elemadr, second, "right") - 1]
    if group.sizes[0]:
        number = number * np.asarray(s.flex_elemnum)[first - s.ngeom]
    return number * group.slots


def _ranks_by_pair(group: FlexPairGroup, rank: np.ndarray, number: int) -> np.ndarray:
    """Return `FlexPairGroup.rank` from the ranks of the rows of `entries`, for `number` pairs."""
    if group.clusters is None:
        return rank
    of_pair = np.zeros(number, np.int64)
    of_pair[group.entries.pair] = rank
    return of_pair
