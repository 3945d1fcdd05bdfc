"""Candidate pairs of geoms: MuJoCo's selection and filtering, evaluated once for a model.

MuJoCo's documentation, Computation: Collision detection, Selection. Filters on ids and bit masks
are applied here with numpy; those on the state (bounding volumes) are left to the broad phase.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import DisableBit, GeomType
from jaxsim.model.callbacks import FILTERED_BIT
from jaxsim.model.structure import Structure, cache_by_structure

GeomTypePair = tuple[int, int]  # types of the two geoms, the lower one first
AT_A_TIME = 2**20  # pairs of geoms that are filtered together, which bounds the memory


class GeomPairs(NamedTuple):
    """Candidate pairs of geoms in the order of MuJoCo's contacts; integer arrays `[npairs]`.

    Attributes:
      geom1, geom2: the geoms; the one of lower type is first.
      dim: dimension of their contacts.
      predefined: index of the `<pair>` element that names them, or -1.
    """

    geom1: np.ndarray
    geom2: np.ndarray
    dim: np.ndarray
    predefined: np.ndarray

    def without(self, index: np.ndarray) -> "GeomPairs":
        """Return the pairs without those at the given indices."""
        return GeomPairs(*(np.delete(field, index) for field in self))

    def by_body(self, geom_bodyid: np.ndarray) -> "GeomPairs":
        """Sort the pairs of the same two bodies by the geom of the first body, not by type."""
        body1, body2 = geom_bodyid[self.geom1], geom_bodyid[self.geom2]
        low = np.where(body1 < body2, self.geom1, self.geom2)
        high = np.where(body1 < body2, self.geom2, self.geom1)
        bodies = np.minimum(body1, body2), np.maximum(body1, body2)
        order = np.lexsort((high, low, self.predefined, self.predefined < 0, *bodies[::-1]))
        return GeomPairs(*(field[order] for field in self))

    def searched(self, geom_type: np.ndarray) -> "GeomPairs":
        """Return the pairs of `sdf` geoms with geoms other than planes and height fields."""
        first, second = geom_type[self.geom1], geom_type[self.geom2]
        here = (second == GeomType.SDF) & (first != GeomType.PLANE) & (first != GeomType.HFIELD)
        return GeomPairs(*(field[here] for field in self))

    def by_kind(self, geom_type: np.ndarray) -> dict[GeomTypePair, np.ndarray]:
        """Return the indices of the pairs of each kind, ascending."""
        kinds = len(GeomType) * geom_type[self.geom1] + geom_type[self.geom2]
        return {
            (int(k) // len(GeomType), int(k) % len(GeomType)): np.flatnonzero(kinds == k)
            for k in unique_ids(kinds)
        }


class _Found(NamedTuple):
    """Pairs before they are sorted, arrays `[n]`; geom 1 is on the body with the lower id."""

    geom1: np.ndarray
    geom2: np.ndarray
    dim: np.ndarray
    predefined: np.ndarray


def candidate_pairs(s: Structure, flags: int) -> GeomPairs:
    """Return all pairs of geoms that may touch in some state.

    Args:
      s: structure of the model; geoms, bodies, `pair_*` and `exclude_*` are read.
      flags: `m.pair_flags`.

    Returns:
      The pairs sorted by their bodies; of the same bodies, `<pair>` elements first.
    """
    off = flags & (DisableBit.CONTACT | DisableBit.CONSTRAINT)
    if off or s.nbody + s.nflex < 2:  # MuJoCo skips collisions if there is only the world body
        return GeomPairs(*(np.zeros(0, np.int32) for _ in GeomPairs._fields))
    named, found = _pair_elements(s), _body_pairs(s, flags)
    ngeom = len(s.geom_bodyid)
    # An explicit <pair> replaces the pair that the filters would select.
    free = ~np.isin(_unordered_key(found, ngeom), _unordered_key(named, ngeom))
    g1, g2, dim, predefined = (
        np.concatenate([a, b[free]]) for a, b in zip(named, found, strict=True)
    )
    # Put the lower type first, then sort as MuJoCo sorts its contacts.
    body1, body2 = s.geom_bodyid[g1], s.geom_bodyid[g2]
    swap = s.geom_type[g1] > s.geom_type[g2]
    g1, g2 = np.where(swap, g2, g1), np.where(swap, g1, g2)
    order = np.lexsort((g2, g1, predefined, predefined < 0, body2, body1))
    return GeomPairs(*(a[order].astype(np.int32) for a in (g1, g2, dim, predefined)))


known_pairs = cache_by_structure(candidate_pairs)


def unique_ids(*ids: np.ndarray) -> np.ndarray:
    """Return the ids that occur in some arrays, ascending.

    A counting sort: there are many pairs of few geoms, for which `np.unique` takes longer.
    """
    return np.flatnonzero(np.bincount(np.concatenate(ids)))


def _unordered_key(pairs: _Found, ngeom: int) -> np.ndarray:
    """Return a key for each pair that does not depend on the order of its geoms."""
    low = np.minimum(pairs.geom1, pairs.geom2).astype(np.int64)
    return low * ngeom + np.maximum(pairs.geom1, pairs.geom2)


def _pair_elements(s: Structure) -> _Found:
    """Return the pairs of the `<pair>` elements."""
    g1, g2 = np.asarray(s.pair_geom1), np.asarray(s.pair_geom2)
    # Order the geoms of each pair by their bodies.
    swap = s.geom_bodyid[g1] > s.geom_bodyid[g2]
    g1, g2 = np.where(swap, g2, g1), np.where(swap, g1, g2)
    return _Found(g1, g2, np.asarray(s.pair_dim), np.arange(len(g1)))


def _body_pairs(s: Structure, flags: int) -> _Found:
    """Return the pairs of geoms of different bodies that pass the filters, block by block."""
    bodies = np.flatnonzero(s.body_geomnum)
    size = np.cumsum(s.body_geomnum[bodies].astype(np.int64) * len(s.geom_bodyid))
    parts = [np.zeros((2, 0), int)]
    for some in np.split(bodies, np.flatnonzero(np.diff(size // AT_A_TIME)) + 1):
        # Filter pairs of bodies first, then the pairs of their geoms by bit masks.
        b1, b2 = (a.ravel() for a in np.meshgrid(some, bodies))
        b1, b2 = b1[b1 < b2], b2[b1 < b2]
        collide = _bodies_collide(s, b1, b2, flags)
        g1, g2 = _expand_body_pairs(s, b1[collide], b2[collide])
        asked = (
            _filter_callback_pairs(s, g1, g2) if flags & FILTERED_BIT else _compatible(s, g1, g2)
        )
        parts.append(np.stack([g1, g2])[:, asked])
    g1, g2 = np.concatenate(parts, axis=1)
    return _Found(g1, g2, _dim(s, g1, g2), np.full(len(g1), -1))


def _expand_body_pairs(
    s: Structure, b1: np.ndarray, b2: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Expand pairs of bodies into all pairs of their geoms."""
    n1, n2 = s.body_geomnum[b1], s.body_geomnum[b2]
    number = n1 * n2
    # Index of each pair of geoms within its pair of bodies.
    which = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    adr1, adr2, n2 = (np.repeat(a, number) for a in (s.body_geomadr[b1], s.body_geomadr[b2], n2))
    return adr1 + which // n2, adr2 + which % n2


def _bodies_collide(s: Structure, b1: np.ndarray, b2: np.ndarray, flags: int) -> np.ndarray:
    """Return a mask of the pairs of bodies that may collide.

    Rejected are pairs that `<exclude>` names, bodies welded to each other, bodies without dofs, and
    parent and child. Bodies without joints between them count as one, their `body_weldid`. Children
    of the world collide with it.
    """
    # Bodies welded together count as one; two static bodies never collide.
    w1, w2 = s.body_weldid[b1], s.body_weldid[b2]
    moves = (s.body_dofnum[w1] > 0) | (s.body_dofnum[w2] > 0)
    excluded = np.isin((b1 << 16) + b2, np.asarray(s.exclude_signature))
    collide = (w1 != w2) & moves & ~excluded
    if flags & DisableBit.FILTERPARENT:
        return collide
    # Parent and child do not collide, except with the world.
    parent1, parent2 = s.body_weldid[s.body_parentid[w1]], s.body_weldid[s.body_parentid[w2]]
    return collide & ((w1 == 0) | (w2 == 0) | ((w1 != parent2) & (w2 != parent1)))


def _compatible(s: Structure, g1: np.ndarray, g2: np.ndarray) -> np.ndarray:
    """Return a mask of the pairs in which contype of one has a bit of conaffinity of the other."""
    type_, affinity = s.geom_contype, s.geom_conaffinity
    return ((type_[g1] & affinity[g2]) | (type_[g2] & affinity[g1])) != 0


def _filter_callback_pairs(s: Structure, g1: np.ndarray, g2: np.ndarray) -> np.ndarray:
    """Return a mask of the pairs that a contact filter callback is called for.

    Both geoms have some bit set, and the combined bit masks of their bodies are compatible.
    """
    type_, affinity = (
        np.bitwise_or.reduceat(bits, s.body_geomadr[s.body_geomnum > 0])
        for bits in (s.geom_contype, s.geom_conaffinity)
    )
    body = np.unique(s.geom_bodyid, return_inverse=True)[1]
    b1, b2 = body[g1], body[g2]
    bodies = (type_[b1] & affinity[b2]) | (type_[b2] & affinity[b1])
    some = s.geom_contype | s.geom_conaffinity
    return (bodies != 0) & (some[g1] != 0) & (some[g2] != 0)


def _dim(s: Structure, g1: np.ndarray, g2: np.ndarray) -> np.ndarray:
    """Return `condim` of the geom of higher priority, the larger one at equal priority."""
    # Higher priority wins; at equal priority the larger dimension.
    p1, p2 = s.geom_priority[g1], s.geom_priority[g2]
    d1, d2 = s.geom_condim[g1], s.geom_condim[g2]
    return np.where(p1 == p2, np.maximum(d1, d2), np.where(p1 > p2, d1, d2))
