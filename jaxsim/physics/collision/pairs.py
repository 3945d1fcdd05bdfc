"""Which pairs of geoms can collide: MuJoCo's selection and filtering, done once for a model.

MuJoCo's documentation, Computation: Collision detection, Selection. What it decides from integers
and flags is decided here; what depends on the state (bounding volumes) is left to the broad phase.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import DisableBit
from jaxsim.structure import Structure

Kind = tuple[int, int]  # types of the two geoms, the lower one first


class Pairs(NamedTuple):
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

    def without(self, index: np.ndarray) -> "Pairs":
        """The pairs that are left when some are taken out."""
        return Pairs(*(np.delete(field, index) for field in self))

    def by_kind(self, geom_type: np.ndarray) -> dict[Kind, np.ndarray]:
        """Indices of the pairs of each kind, in ascending order."""
        kinds = list(zip(geom_type[self.geom1], geom_type[self.geom2], strict=True))
        return {
            (int(a), int(b)): np.flatnonzero([k == (a, b) for k in kinds])
            for a, b in sorted(set(kinds))
        }


def candidate_pairs(s: Structure, disableflags: int) -> Pairs:
    """All pairs of geoms that may touch in some state.

    Args:
      s: tables under MuJoCo's names; read are those of geoms, bodies, `pair_*` and `exclude_*`.
      disableflags: bits of DisableBit.

    Returns:
      The pairs sorted by their bodies; of the same bodies, `<pair>` elements first.
    """
    if disableflags & (DisableBit.CONTACT | DisableBit.CONSTRAINT):
        return Pairs(*(np.zeros(0, np.int32) for _ in Pairs._fields))
    named = [_named_pair(s, k) for k in range(len(s.pair_geom1))]
    taken = {frozenset(row[1:3]) for row in named}
    found = [row for row in _body_pairs(s, disableflags) if frozenset(row[1:3]) not in taken]
    rows = [(bodies, *_by_type(s, g1, g2), dim, k) for bodies, g1, g2, dim, k in named + found]
    rows.sort(key=lambda row: (row[0], row[4] < 0, row[4], row[1], row[2]))
    table = np.array([row[1:] for row in rows], np.int32).reshape(-1, 4)
    return Pairs(*table.T)


def _by_type(s: Structure, g1: int, g2: int) -> tuple[int, int]:
    """The geom of lower type first."""
    return (g2, g1) if s.geom_type[g1] > s.geom_type[g2] else (g1, g2)


def _named_pair(s: Structure, k: int):
    """A `<pair>` element: (bodies, geom 1, geom 2, dim, its index)."""
    g1, g2 = int(s.pair_geom1[k]), int(s.pair_geom2[k])
    b1, b2 = int(s.geom_bodyid[g1]), int(s.geom_bodyid[g2])
    if b1 > b2:
        g1, g2, b1, b2 = g2, g1, b2, b1
    return (b1, b2), g1, g2, int(s.pair_dim[k]), k


def _body_pairs(s: Structure, disableflags: int):
    """Pairs of geoms of different bodies that may collide, in the form of `_named_pair`."""
    excluded = set(np.asarray(s.exclude_signature).tolist())
    bodies = [b for b in range(s.nbody) if s.body_geomnum[b]]
    for i, b1 in enumerate(bodies):
        for b2 in bodies[i + 1 :]:
            if (b1 << 16) + b2 in excluded or not _bodies_collide(s, b1, b2, disableflags):
                continue
            for g1 in _geoms(s, b1):
                for g2 in _geoms(s, b2):
                    if _compatible(s, g1, g2):
                        yield (b1, b2), g1, g2, _dim(s, g1, g2), -1


def _geoms(s: Structure, body: int) -> range:
    first = int(s.body_geomadr[body])
    return range(first, first + int(s.body_geomnum[body]))


def _bodies_collide(s: Structure, b1: int, b2: int, disableflags: int) -> bool:
    """Not welded to each other, not both without dofs, and not parent and child.

    Bodies without joints between them count as one, their `body_weldid`. Children of the world
    collide with it.
    """
    w1, w2 = int(s.body_weldid[b1]), int(s.body_weldid[b2])
    if w1 == w2 or not (s.body_dofnum[w1] or s.body_dofnum[w2]):
        return False
    if disableflags & DisableBit.FILTERPARENT or w1 == 0 or w2 == 0:
        return True
    return w1 != s.body_weldid[s.body_parentid[w2]] and w2 != s.body_weldid[s.body_parentid[w1]]


def _compatible(s: Structure, g1: int, g2: int) -> bool:
    """A bit of the type of one in the affinity of the other."""
    type_, affinity = s.geom_contype, s.geom_conaffinity
    return bool(type_[g1] & affinity[g2] or type_[g2] & affinity[g1])


def _dim(s: Structure, g1: int, g2: int) -> int:
    """Dimension of the geom of higher priority, of equal ones the larger."""
    p1, p2 = s.geom_priority[g1], s.geom_priority[g2]
    d1, d2 = int(s.geom_condim[g1]), int(s.geom_condim[g2])
    return max(d1, d2) if p1 == p2 else d1 if p1 > p2 else d2
