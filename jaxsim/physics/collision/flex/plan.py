"""The static plan of contacts of flexes: what may touch, by which function, how many places."""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.pairs import Pairs
from jaxsim.physics.collision.flex.pairs import (
    Entries,
    flex_entries,
    geom_entries,
)
from jaxsim.physics.collision.flex.table import (
    ON_BARS,
    SoftCollider,
    flex_collider,
    geom_collider,
)

FEW = 64  # entries of a group for which a test would cost more than it saves
NEIGHBORS = {1: 4, 2: 8, 3: 24}  # of an element among those of flexes, by the larger dimension
ON_BOX = 3  # contacts of a triangle that lies on a box
ON_BAR = 4  # contacts of an edge that is a box
BESIDE = 4  # contacts of an element with other elements
MOST = 1024  # contacts for which there is room if nothing is said


class SoftGroup(NamedTuple):
    """What one function collides.

    Attributes:
      collider: the function.
      entries: what may touch.
      sizes: corners of the items on both sides; 0: it is a geom.
      bars: which sides are taken for boxes (bar.py).
      slots: how many contact points each of them has.
      budget: how many of them go through the narrow phase.
      rank: numbers of the first contact point of each in MuJoCo's order, `[n]`.
    """

    collider: SoftCollider
    entries: Entries
    sizes: tuple[int, int]
    bars: tuple[bool, bool]
    slots: int
    budget: int
    rank: np.ndarray

    @property
    def all(self) -> bool:
        """Every entry goes through the narrow phase."""
        return self.budget == len(self.entries.pair)

    @property
    def points(self) -> int:
        """Candidate contacts."""
        return self.budget * self.slots


def soft_groups(s: Structure, pairs: Pairs) -> tuple[SoftGroup, ...]:
    """The groups of all pairs with a flex, without ranks; `pairs` are those of the whole model."""
    parts: dict[tuple, list[Entries]] = {}
    for k in np.flatnonzero(pairs.geom2 >= s.ngeom).tolist():
        first, f = int(pairs.geom1[k]), int(pairs.geom2[k] - s.ngeom)
        size = int(s.flex_dim[f]) + 1
        if first < s.ngeom:
            kind = int(s.geom_type[first])
            boxed = bool(s.flex_boxed[f])
            collider, sizes = geom_collider(kind, size - 1, boxed), (0, size)
            bars = False, collider in ON_BARS.values()
            sizes = (0, 1) if kind == GeomType.PLANE else sizes
            entries = geom_entries(s, k, first, f)
        else:
            other = first - s.ngeom
            sizes = int(s.flex_dim[other]) + 1, size
            rods = sizes == (2, 2)
            bars = rods and bool(s.flex_boxed[other]), rods and bool(s.flex_boxed[f])
            collider = flex_collider(sizes[0] - 1, sizes[1] - 1, bars)
            entries = flex_entries(s, k, other, f)
        if len(entries.pair):
            parts.setdefault((collider, sizes, bars), []).append(entries)
    groups = []
    for (collider, sizes, bars), some in parts.items():
        entries = Entries(*(np.concatenate(a) for a in zip(*some, strict=True)))
        budget, slots = _budget(s, entries, sizes), collider.points(s)
        groups.append(SoftGroup(collider, entries, sizes, bars, slots, budget, np.zeros(0, int)))
    return tuple(groups)


def _budget(s: Structure, entries: Entries, sizes: tuple[int, int]) -> int:
    """How many entries of a group are looked at: all vertices; as many as were asked for; all
    elements with one geom each; a few neighbors of each element."""
    n = len(entries.pair)
    if sizes[1] == 1:
        return n
    if s.nnear:
        return min(n, s.nnear)
    most = len(np.unique(entries.second))
    if sizes[0]:
        most = NEIGHBORS[max(sizes) - 1] * len(np.union1d(entries.first, entries.second))
    return min(n, max(FEW, most))


def soft_capacity(s: Structure, groups: tuple[SoftGroup, ...]) -> int:
    """For how many contacts of flexes there is room."""
    room = 0
    for group in groups:
        first, second = group.entries.first, group.entries.second
        if group.sizes[0]:
            touching = BESIDE * len(np.union1d(first, second))
            touching *= 2 if all(group.bars) else 1
        else:
            on_box = group.sizes[1] == 3 and (s.geom_type[first] == GeomType.BOX).any()
            each = ON_BAR if group.bars[1] else ON_BOX if on_box else 1
            touching = len(np.unique(second)) * each
            touching = min(group.points, max(touching, group.slots))
        room += min(group.points, touching)
    return min(room, MOST)


def _visit(group: SoftGroup) -> np.ndarray:
    """Numbers that rise in the order in which the elements of a pair are looked at."""
    if group.collider.among:
        return np.arange(len(group.entries.second))
    return group.entries.second


def ranked(
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
    slots = [np.full(len(g.entries.pair), g.slots) for g in groups]
    width = np.concatenate([geom_slots, *slots])
    order = np.lexsort((second, first, pair))
    start = np.zeros(len(pair), np.int64)
    start[order] = np.cumsum(width[order]) - width[order]
    parts = np.split(start, np.cumsum([number, *(len(g.entries.pair) for g in groups)])[:-1])
    return parts[0], tuple(g._replace(rank=r) for g, r in zip(groups, parts[1:], strict=True))
