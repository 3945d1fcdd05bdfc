"""Clusters of elements: the upper level of a bounding volume hierarchy with fixed shapes.

A table of all pairs of elements grows with the product of their numbers. Here the elements of a
flex are split into clusters along its bounding volume hierarchy (`flex_elemorder`,
io/search_order.py), all of nearly the same size. The static tables stay small: the elements of each
cluster, and the flexes that may touch. Pairs of elements are formed in each state from near
clusters (broadphase.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs
from jaxsim.physics.collision.flex.item import element_vertices
from jaxsim.physics.collision.flex.pairs import active_elements, active_in_order
from jaxsim.transforms.tuning import tuning


class Side(NamedTuple):
    """Clusters of all elements on one side of the pairs of a group.

    Attributes:
      member: elements of each cluster, or one geom, `[n, width]`; -1: empty slot.
      owner: row or column in `ClusterPairs.pair` of each cluster, `[n]`.
      number: index of each cluster among those of the same owner, `[n]`.
    """

    member: np.ndarray
    owner: np.ndarray
    number: np.ndarray

    @property
    def width(self) -> int:
        """Return the number of slots of a cluster."""
        return self.member.shape[1]


class ClusterPairs(NamedTuple):
    """Pairs of clusters that may touch: the product of the clusters of both sides.

    Attributes:
      sides: clusters on both sides.
      pair: index of the pair of two owners, `[owners1, owners2]`; -1: they do not touch.
      is_alone: whether each pair of the model is a self-collision, `[npairs]` bool.
      start: first element of each pair on both sides, `[npairs]` each.
      stride: number of elements of each pair on its second side, `[npairs]`.
      filtered: some elements never touch, as they share a vertex or a body.
      items: number of different elements.
    """

    sides: tuple[Side, Side]
    pair: np.ndarray
    is_alone: np.ndarray
    start: tuple[np.ndarray, np.ndarray]
    stride: np.ndarray
    filtered: bool
    items: int

    @property
    def number(self) -> int:
        """Return the number of all pairs of clusters."""
        return len(self.sides[0].member) * len(self.sides[1].member)

    def mask(self) -> np.ndarray:
        """Return a mask of the pairs of clusters that may touch, bool `[n1, n2]`.

        In a self-collision each pair occurs once.
        """
        one, other = self.sides
        cell = np.ix_(one.owner, other.owner)
        pair, once = self.pair[cell], one.number[:, None] <= other.number
        return (pair >= 0) & (once | ~self.is_alone[pair])


def number_of_entries(s: Structure, first: int, f: int) -> int:
    """Return the maximal number of entries of a pair with a flex; 0 if all is on one body.

    Args:
      s: structure of the model.
      first: id of a geom, or `ngeom` plus the id of the other flex.
      f: id of the flex.
    """
    own = active_elements(s, f)
    if first >= s.ngeom:
        other = first - s.ngeom
        one_body = _only_key(s)[f] == _only_key(s)[other] >= 0
        return 0 if one_body else len(own) * len(active_elements(s, other))
    kind = s.geom_type[first]
    if kind == GeomType.PLANE:
        return int(s.flex_vertnum[f])
    if kind == GeomType.SDF:
        return len(own) if s.flex_dim[f] == 2 else 0
    return int(np.sum(~(corner_keys(s)[own] == s.geom_bodyid[first]).any(axis=1)))


def cluster_pairs(s: Structure, pairs: GeomPairs, numbers: Sequence[int]) -> ClusterPairs:
    """Return the clusters of the pairs that share a collider.

    Args:
      s: structure of the model.
      pairs: all pairs of the model.
      numbers: indices of the pairs, either all geom-flex or all flex-flex.
    """
    # Number the owners (flexes or geoms) of each side, with the pair of each two of them.
    first, second = pairs.geom1[numbers], pairs.geom2[numbers] - s.ngeom
    alone, of_flexes = pairs.geom1 == pairs.geom2, bool(first[0] >= s.ngeom)
    owners: tuple[dict, dict] = {}, {}
    cells = []
    for k, a, f in zip(numbers, first.tolist(), second.tolist(), strict=True):
        own = active_in_order(s, a - s.ngeom) if of_flexes else np.array([a])
        both = (a, own), (f, active_in_order(s, f))
        row, col = (
            known.setdefault(name, (len(known), member))[0]
            for known, (name, member) in zip(owners, both, strict=True)
        )
        cells.append((row, col, k))
    pair = np.full([len(known) for known in owners], -1)
    for row, col, k in cells:
        pair[row, col] = k
    # Split the elements of each owner into clusters.
    one, other = (
        _split_into_clusters([member for _, member in known.values()]) for known in owners
    )
    elements = [side.member for side in ((one, other) if of_flexes else (other,))]
    items = np.unique(np.concatenate([member.ravel() for member in elements]))

    # Offsets by which element ids become ranks of contact points.
    start, stride = np.zeros((2, len(alone)), int), np.zeros(len(alone), int)
    start[1, numbers] = np.asarray(s.flex_elemadr)[second]
    if of_flexes:
        start[0, numbers] = np.asarray(s.flex_elemadr)[first - s.ngeom]
        stride[numbers] = np.asarray(s.flex_elemnum)[second]
    filtered = _filtered(s, first, second)
    return ClusterPairs(
        (one, other), pair, alone, (start[0], start[1]), stride, filtered, int(np.sum(items >= 0))
    )


def _split_into_clusters(parts: list[np.ndarray]) -> Side:
    """Split several lists of elements into clusters."""
    sizes = [cluster_sizes(len(part)) for part in parts]
    width = max(int(size.max()) for size in sizes)
    members = []
    for part, size in zip(parts, sizes, strict=True):
        # Pad all clusters to the width of the largest.
        slot, start = np.arange(width), (np.cumsum(size) - size)[:, None]
        last = np.append(part, -1)  # -1 past the end of a cluster
        members.append(last[np.where(slot < size[:, None], start + slot, len(part))])
    owner = np.repeat(np.arange(len(parts)), [len(size) for size in sizes])
    number = np.concatenate([np.arange(len(size)) for size in sizes])
    return Side(np.concatenate(members), owner, number)


def cluster_sizes(number: int) -> np.ndarray:
    """Return the sizes of the leaves of a tree that halves its nodes down to
    `max_cluster_elements`, in order.

    The sizes of nodes at the same depth differ by at most one.
    """
    sizes = np.array([number])
    while sizes.max() > tuning().max_cluster_elements:
        sizes = np.stack([sizes - sizes // 2, sizes // 2], axis=1).ravel()
    return sizes


def _filtered(s: Structure, first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether some paired elements and geoms never touch, as they share a body or vertex."""
    key = corner_keys(s)
    for a, f in zip(first.tolist(), second.tolist(), strict=True):
        own = key[active_elements(s, f)]
        if a >= s.ngeom:
            never = np.isin(own, key[active_elements(s, a - s.ngeom)]).any()
        else:
            never = s.geom_type[a] != GeomType.SDF and (own == s.geom_bodyid[a]).any()
        if never:
            return True
    return False


@cache_by_structure
def _only_key(s: Structure) -> np.ndarray:
    """Return the single body of all elements of each flex, `[nflex]`; -1: there are several."""
    keys = [corner_keys(s)[active_elements(s, f)] for f in range(s.nflex)]
    return np.array([k[0, 0] if k.size and (k == k[0, 0]).all() else -1 for k in keys], int)


@cache_by_structure
def visits(s: Structure) -> np.ndarray:
    """Return the index of each element in the order of the tree of its flex, `[nflexelem]`."""
    order = np.asarray(s.flex_elemorder) + np.repeat(s.flex_elemadr, s.flex_elemnum)
    index = np.empty(len(order), np.int32)
    index[order] = np.arange(len(order))
    return index


@cache_by_structure
def corner_keys(s: Structure) -> np.ndarray:
    """Return the filter keys of elements, `[nflexelem, 4]`: elements with a common key never touch.

    A key is the body of a vertex, or `nbody` plus the vertex id where the vertex has no body.
    """
    vertex = element_vertices(s)[0]
    body = np.asarray(s.flex_vertbodyid)[vertex]
    return np.where(body >= 0, body, s.nbody + vertex).astype(np.int32)
