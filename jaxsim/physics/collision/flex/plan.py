"""The static plan of contacts of flexes: what may touch, by which function, how many places."""

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

_MAX_UNTESTED_ENTRIES = 64  # entries of a group for which a test would cost more than it saves
_MAX_NEIGHBORS = {1: 4, 2: 8, 3: 24}  # of an element among those of flexes, by the larger dimension
GEOMS = 4  # of a cluster among geoms, and of a geom among clusters
ON_BOX = 3  # contacts of a triangle that lies on a box
ON_BAR = 4  # contacts of an edge that is a box
_CONTACTS_PER_ELEMENT = 4  # contacts of an element with other elements
_DEFAULT_CONTACT_CAPACITY = 1024  # contacts for which there is room if nothing is said
TABLE = 2**14  # entries of a group that are a table; more are made of clusters in each state
RANKS = 2**30  # numbers of contact points that may go by the numbers of the elements


class SoftGroup(NamedTuple):
    """What one function collides.

    Attributes:
      collider: the function.
      entries: what may touch.
      sizes: corners of the items on both sides; 0: it is a geom.
      bars: which sides are taken for boxes (bar.py).
      slots: how many contact points each of them has.
      budget: how many of them go through the narrow phase.
      rank: numbers of the first contact point of each in MuJoCo's order, `[n]`; with clusters of
        each pair of the model, `[npairs]`.
      clusters: what entries are made of in each state; None: they are the table `entries`. Else
        that has one row for each pair, which stands for all of it.
      cluster_budget: how many pairs of clusters are looked into.
      in_order: entries made of clusters are sorted before the narrow phase.
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
    def all(self) -> bool:
        """Every entry goes through the narrow phase."""
        return self.clusters is None and self.budget == len(self.entries.pair)

    @property
    def points(self) -> int:
        """Candidate contacts."""
        return self.budget * self.slots

    @property
    def items(self) -> int:
        """Number of elements or vertices that take part."""
        if self.clusters is not None:
            return self.clusters.items
        return _items(self.entries, self.sizes)


def soft_groups(s: Structure, pairs: GeomPairs) -> tuple[SoftGroup, ...]:
    """The groups of all pairs with a flex, without ranks; `pairs` are those of the whole model."""
    parts: dict[tuple, list[int]] = {}
    for k in np.flatnonzero(pairs.geom2 >= s.ngeom).tolist():
        first, f = int(pairs.geom1[k]), int(pairs.geom2[k] - s.ngeom)
        if not number_of_entries(s, first, f):
            continue
        size = int(s.flex_dim[f]) + 1
        if first < s.ngeom:
            kind = int(s.geom_type[first])
            boxed = bool(s.flex_boxed[f])
            collider, sizes = geom_collider(kind, size - 1, boxed), (0, size)
            bars = False, collider in ON_BARS.values()
            sizes = (0, 1) if kind == GeomType.PLANE else sizes
        else:
            other = first - s.ngeom
            sizes = int(s.flex_dim[other]) + 1, size
            rods = sizes == (2, 2)
            bars = rods and bool(s.flex_boxed[other]), rods and bool(s.flex_boxed[f])
            collider = flex_collider(sizes[0] - 1, sizes[1] - 1, bars)
        parts.setdefault((collider, sizes, bars), []).append(k)
    groups = [_group(s, pairs, numbers, *key) for key, numbers in parts.items()]
    groups = [g for g in groups if len(g.entries.pair)]
    if sum(int(_widths(s, g).sum()) for g in groups) > RANKS:
        groups = [g._replace(in_order=g.clusters is not None) for g in groups]
    return tuple(groups)


def _group(
    s: Structure,
    pairs: GeomPairs,
    numbers: list[int],
    collider: FlexCollider,
    sizes: tuple[int, int],
    bars: tuple[bool, bool],
) -> SoftGroup:
    """Make the group of some pairs: a table of what may touch, or clusters if it would be long."""
    slots, none = collider.points(s), np.zeros(0, int)
    first, flex = pairs.geom1[numbers].tolist(), (pairs.geom2[numbers] - s.ngeom).tolist()
    each = [number_of_entries(s, *of_pair) for of_pair in zip(first, flex, strict=True)]
    if sizes[1] == 1 or sum(each) <= TABLE:
        some = [_entries(s, *of_pair) for of_pair in zip(numbers, first, flex, strict=True)]
        entries = FlexPairEntries(*(np.concatenate(a) for a in zip(*some, strict=True)))
        budget = _budget(s, len(entries.pair), _items(entries, sizes), sizes)
        return SoftGroup(collider, entries, sizes, bars, slots, budget, none)
    clusters = cluster_pairs(s, pairs, numbers)
    return SoftGroup(
        collider,
        FlexPairEntries(np.array(numbers), np.array(first), clusters.start[1][numbers]),
        sizes,
        bars,
        slots,
        _budget(s, sum(each), clusters.items, sizes),
        none,
        clusters,
        _cluster_budget(s, clusters, sizes),
        collider.among is not None,
    )


def _entries(s: Structure, pair: int, first: int, f: int) -> FlexPairEntries:
    """List what may touch in a pair."""
    if first < s.ngeom:
        return geom_entries(s, pair, first, f)
    return flex_entries(s, pair, first - s.ngeom, f)


def _items(entries: FlexPairEntries, sizes: tuple[int, int]) -> int:
    """Count the elements or vertices that take part."""
    first, second = entries.first, entries.second
    return len(np.union1d(first, second) if sizes[0] else np.unique(second))


def _budget(s: Structure, number: int, items: int, sizes: tuple[int, int]) -> int:
    """How many entries of a group are looked at: all vertices; as many as were asked for; all
    elements with one geom each; a few neighbors of each element."""
    if sizes[1] == 1:
        return number
    if s.nnear:
        return min(number, s.nnear)
    most = _MAX_NEIGHBORS[max(sizes) - 1] * items if sizes[0] else items
    return min(number, max(_MAX_UNTESTED_ENTRIES, most))


def _cluster_budget(s: Structure, clusters: ClusterPairs, sizes: tuple[int, int]) -> int:
    """Return the capacity for near pairs of clusters: that of the user, or a few neighbors of each
    cluster."""
    if s.nnear:
        return min(clusters.number, s.nnear)
    one, other = (len(side.member) for side in clusters.sides)
    neighbors = _MAX_NEIGHBORS[max(sizes) - 1] if sizes[0] else GEOMS
    return min(clusters.number, max(_MAX_UNTESTED_ENTRIES, neighbors * (one + other)))


def soft_capacity(s: Structure, groups: tuple[SoftGroup, ...]) -> int:
    """For how many contacts of flexes there is room."""
    room = 0
    for group in groups:
        first, items = group.entries.first, group.items
        if group.sizes[0]:
            touching = _CONTACTS_PER_ELEMENT * items
            touching *= 2 if all(group.bars) else 1
        else:
            on_box = group.sizes[1] == 3 and (s.geom_type[first] == GeomType.BOX).any()
            each = ON_BAR if group.bars[1] else ON_BOX if on_box else 1
            touching = items * each
            touching = min(group.points, max(touching, group.slots))
        room += min(group.points, touching)
    return min(room, _DEFAULT_CONTACT_CAPACITY)


def _visit(group: SoftGroup) -> np.ndarray:
    """Numbers that rise in the order in which the elements of a pair are looked at."""
    if group.collider.among:
        return np.arange(len(group.entries.second))
    return group.entries.second


def rank_contacts(
    s: Structure, geom_slots: np.ndarray, groups: tuple[SoftGroup, ...]
) -> tuple[np.ndarray, tuple[SoftGroup, ...]]:
    """Numbers of contact points in MuJoCo's order: by pair, by element of each side, by point.

    Args:
      s: tables.
      geom_slots: contact points of each pair, 0 for those with flexes, `[npairs]`.
      groups: of flexes.

    Returns:
      Of each pair of geoms that of its first point `[npairs]`; the groups with theirs.
    """
    number = len(geom_slots)
    pair = np.concatenate([np.arange(number), *(g.entries.pair for g in groups)])
    none = np.zeros(number, int)
    first = np.concatenate(
        [none, *(g.entries.first if g.sizes[0] else 0 * g.entries.pair for g in groups)]
    )
    second = np.concatenate([none, *(_visit(g) for g in groups)])
    width = np.concatenate([geom_slots, *(_widths(s, g) for g in groups)])
    order = np.lexsort((second, first, pair))
    start = np.zeros(len(pair), np.int64)
    start[order] = np.cumsum(width[order]) - width[order]
    if width.sum() > np.iinfo(np.int32).max:
        raise ValueError(
            f"{len(pair)} pairs with flexes may have {width.sum()} contacts, more than can be "
            "numbered; look at fewer: load_model(..., pairs=)"
        )
    parts = np.split(start, np.cumsum([number, *(len(g.entries.pair) for g in groups)])[:-1])
    ranks = [_by_pair(g, r, number) for g, r in zip(groups, parts[1:], strict=True)]
    return parts[0], tuple(g._replace(rank=r) for g, r in zip(groups, ranks, strict=True))


def _widths(s: Structure, group: SoftGroup) -> np.ndarray:
    """Return the number of ranks that the contact points of each row of `entries` take, `[n]`."""
    pair, first, second = group.entries
    if group.clusters is None:
        return np.full(len(pair), group.slots)
    if group.in_order:
        return np.full(len(pair), group.budget * group.slots)
    number = np.asarray(s.flex_elemnum)[np.searchsorted(s.flex_elemadr, second, "right") - 1]
    if group.sizes[0]:
        number = number * np.asarray(s.flex_elemnum)[first - s.ngeom]
    return number * group.slots


def _by_pair(group: SoftGroup, rank: np.ndarray, number: int) -> np.ndarray:
    """Return `SoftGroup.rank` from the ranks of the rows of `entries`; `number`: of all pairs."""
    if group.clusters is None:
        return rank
    of_pair = np.zeros(number, np.int64)
    of_pair[group.entries.pair] = rank
    return of_pair
