"""Candidate pairs of flexes with geoms and flexes, and their elements and vertices.

MuJoCo's documentation, XML reference: flex/contact. A flex collides with a geom or another flex if
contype of one has a bit of conaffinity of the other; with itself, if its own masks are compatible
and `selfcollide` is not 'none'. An element never collides with a geom or an element on a body of
one of its vertices, nor with an element that shares a vertex. Only elements of solids in the outer
`activelayers` collide with anything but planes.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.enums import DisableBit, GeomType
from jaxsim.model.flex.kinds import bits_in_common, mode_contacts
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs
from jaxsim.physics.collision.flex.item import element_vertices


class FlexPairEntries(NamedTuple):
    """Items that may touch in pairs with a flex, integer arrays `[n]`.

    Attributes:
      pair: index of the pair.
      first: id of a geom or an element.
      second: id of an element or a vertex, as an item (item.py).
    """

    pair: np.ndarray
    first: np.ndarray
    second: np.ndarray


def flex_pairs(s: Structure, disableflags: int, by_mode: bool = False) -> GeomPairs:
    """Return all pairs of a geom with a flex and of two flexes, then self-collisions.

    Flexes are numbered after the geoms. With `by_mode`, pairs that the IPC mode resolves are left
    out.
    """
    if disableflags & (DisableBit.CONTACT | DisableBit.CONSTRAINT) or not s.nflex:
        return GeomPairs(*(np.zeros(0, np.int32) for _ in GeomPairs._fields))
    # Masks of compatible geoms and flexes.
    geom, flex, itself = (
        bits_in_common(s, "geom", "flex"),
        bits_in_common(s, "flex", "flex"),
        touches_itself(s),
    )
    if by_mode:
        taken, of_flexes = mode_contacts(s)
        geom, flex, itself = geom & ~taken.T, flex & ~of_flexes, itself & ~np.diag(of_flexes)
    with_geom = np.nonzero(geom)
    with_flex = np.nonzero(np.triu(flex, 1))
    alone = np.flatnonzero(itself)
    first = np.concatenate([with_geom[0], s.ngeom + with_flex[0], s.ngeom + alone])
    second = s.ngeom + np.concatenate([with_geom[1], with_flex[1], alone])
    table = np.stack([first, second, _dim(s, first, second), np.full(len(first), -1)])
    return GeomPairs(*table.astype(np.int32))


def touches_itself(s: Structure) -> np.ndarray:
    """Return a mask of the flexes that collide with themselves, `[nflex]` bool."""
    # The masks of a flex must be compatible with themselves.
    own = np.asarray(s.flex_contype) & np.asarray(s.flex_conaffinity)
    soft = ~np.asarray(s.flex_rigid, bool)
    return (own != 0) & soft & (np.asarray(s.flex_selfcollide) != 0)


def _dim(s: Structure, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return `condim` of the geom or flex of higher priority, the larger one at equal priority."""
    priority, dim = surface_table(s, "priority"), surface_table(s, "condim")
    p1, p2, d1, d2 = priority[first], priority[second], dim[first], dim[second]
    return np.where(p1 == p2, np.maximum(d1, d2), np.where(p1 > p2, d1, d2))


def surface_table(s: Structure, name: str) -> np.ndarray:
    """Return the values of a field for all geoms, then for all flexes."""
    return np.concatenate([np.asarray(getattr(s, f"{kind}_{name}")) for kind in ("geom", "flex")])


@cache_by_structure
def element_bodies(s: Structure) -> np.ndarray:
    """Return the bodies of the vertices of each element, `[nflexelem, 4]`; -1: interpolated."""
    return np.asarray(s.flex_vertbodyid)[element_vertices(s)[0]]


def active_elements(s: Structure, f: int) -> np.ndarray:
    """Return the elements of a flex that may collide: all, or the outer layers of a solid."""
    item = s.flex_elemadr[f] + np.arange(s.flex_elemnum[f])
    return item[_is_active(s, item)]


def active_in_order(s: Structure, f: int) -> np.ndarray:
    """Return `active_elements` in the order of the bounding volume hierarchy of the flex."""
    first, number = s.flex_elemadr[f], s.flex_elemnum[f]
    item = first + np.asarray(s.flex_elemorder)[first : first + number]
    return item[_is_active(s, item)]


def _is_active(s: Structure, item: np.ndarray) -> np.ndarray:
    flex = element_vertices(s)[1][item]
    layer, most = np.asarray(s.flex_elemlayer)[item], np.asarray(s.flex_activelayers)[flex]
    return (np.asarray(s.flex_dim)[flex] < 3) | (layer < most)


def geom_entries(s: Structure, pair: int, geom: int, f: int) -> FlexPairEntries:
    """Return the entries of a geom with the elements of a flex; of a plane with its vertices.

    An `sdf` geom collides with shells only. Their elements are in the order of the search, and no
    element is filtered by its bodies.
    """
    if s.geom_type[geom] == GeomType.SDF:
        item = active_in_order(s, f) if s.flex_dim[f] == 2 else np.zeros(0, int)
    elif s.geom_type[geom] == GeomType.PLANE:
        item = s.nflexelem + s.flex_vertadr[f] + np.arange(s.flex_vertnum[f])
    else:
        item = active_elements(s, f)
        item = item[~(element_bodies(s)[item] == s.geom_bodyid[geom]).any(axis=1)]
    return FlexPairEntries(np.full_like(item, pair), np.full_like(item, geom), item)


def flex_entries(s: Structure, pair: int, f1: int, f2: int) -> FlexPairEntries:
    """Return the entries of the elements of two flexes, or of one flex with itself."""
    # All pairs of elements; in a self-collision each pair once.
    one, other = np.meshgrid(active_elements(s, f1), active_elements(s, f2), indexing="ij")
    one, other = one.ravel(), other.ravel()
    if f1 == f2:
        keep = one < other
        one, other = one[keep], other[keep]
    # Reject elements that share a body or a vertex.
    apart = ~_rows_share_entry(element_bodies(s), one, other)
    if f1 == f2:
        apart &= ~_rows_share_entry(element_vertices(s)[0], one, other)
    return FlexPairEntries(np.full_like(one, pair)[apart], one[apart], other[apart])


def _rows_share_entry(table: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return a mask of the pairs of rows that have an entry in common other than -1."""
    same = np.zeros(len(one), bool)
    for j in range(table.shape[1]):
        for k in range(table.shape[1]):
            same |= (table[one, j] == table[other, k]) & (table[one, j] >= 0)
    return same
