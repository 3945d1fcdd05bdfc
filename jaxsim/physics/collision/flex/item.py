"""Collision items of flexes: elements and vertices under one numbering.

    item id     0, 1, ...      nflexelem, ...     nflexelem + nflexvert
    item        elements       vertices           none: the side is a geom (`no_item`)

An element is the convex hull of its vertices, inflated by a radius: a capsule, a triangle with
thickness, a tetrahedron with round edges.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.math import Rot, Vec
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.shape import PlacedGeoms
from jaxsim.physics.flex.frames import rod_chains

MAX_ELEMENT_VERTICES = 4  # vertices of an element


@cache_by_structure
def element_vertices(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices of each element, `[nflexelem, 4]`, and its flex, `[nflexelem]`.

    Elements with fewer than four vertices repeat the first one.
    """
    parts = [np.zeros((0, MAX_ELEMENT_VERTICES), int)]
    for f in range(s.nflex):
        # Pad the elements of each flex to four vertices.
        size, first = s.flex_dim[f] + 1, s.flex_elemdataadr[f]
        elem = s.flex_elem[first : first + size * s.flex_elemnum[f]].reshape(-1, size)
        padded = np.concatenate(
            [elem, np.repeat(elem[:, :1], MAX_ELEMENT_VERTICES - size, axis=1)], axis=1
        )
        parts.append(s.flex_vertadr[f] + padded)
    return np.concatenate(parts), np.repeat(np.arange(s.nflex), s.flex_elemnum)


@cache_by_structure
def item_corners(s: Structure) -> np.ndarray:
    """Return the vertices of each item, `[nflexelem + nflexvert, 4]`; a vertex repeats itself."""
    vertex = np.repeat(np.arange(s.nflexvert)[:, None], MAX_ELEMENT_VERTICES, axis=1)
    return np.concatenate([element_vertices(s)[0], vertex])


@cache_by_structure
def item_flex(s: Structure) -> np.ndarray:
    """Return the flex of each item, `[nflexelem + nflexvert]`."""
    vertex = np.repeat(np.arange(s.nflex), s.flex_vertnum)
    return np.concatenate([element_vertices(s)[1], vertex])


@cache_by_structure
def any_edge(s: Structure) -> np.ndarray:
    """Return the edge of a rod with twist that an item belongs to; -1: none.

    The shape is `[nflexelem + nflexvert + 1]`; the last entry is for no item.
    """
    out, vert = np.full(no_item(s) + 1, -1), rod_chains(s).vert
    of_ends = {frozenset(ends): k for k, ends in enumerate(vert.tolist())}
    rods = np.flatnonzero(np.isin(item_flex(s)[: s.nflexelem], rod_chains(s).flex))
    for item in rods:
        out[item] = of_ends[frozenset(element_vertices(s)[0][item, :2].tolist())]
    for end in (1, 0):  # the edge that begins at a vertex comes last
        out[s.nflexelem + vert[:, end]] = np.arange(len(vert))
    return out


@cache_by_structure
def item_ids(s: Structure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the flex of each item, and its element and vertex id in the flex, -1 for none.

    The arrays have the shape `[nflexelem + nflexvert + 1]`; the last entry is for no item.
    """
    flex = item_flex(s)
    number = np.arange(no_item(s))
    elem = number - np.asarray(s.flex_elemadr)[flex]
    vert = number - s.nflexelem - np.asarray(s.flex_vertadr)[flex]
    is_elem = number < s.nflexelem
    parts = flex, np.where(is_elem, elem, -1), np.where(is_elem, -1, vert)
    flex, elem, vert = (np.append(a, -1).astype(np.int32) for a in parts)
    return flex, elem, vert


def no_item(s: Structure) -> int:
    """Return the item id that represents none: the number of items."""
    return s.nflexelem + s.nflexvert


class FlexItems(NamedTuple):
    """Collision geometry of all flexes in a state.

    Attributes:
      xpos: vertices in the world frame, `[nflexvert, *W]` [m].
      center, half: axis-aligned bounding boxes of the elements, `[nflexelem, *W]` [m].
      radius: radius of each flex, `[nflex, *W]` [m].
      bars: edges of rods as boxes (rod_box.py), `[n, *W]`; None: no rod with a box section
        collides.
    """

    xpos: Vec
    center: Vec
    half: Vec
    radius: jax.Array
    bars: PlacedGeoms | None = None


class RoundedHull(NamedTuple):
    """Items in the world frame: convex hulls of their corners, inflated by a radius.

    Attributes:
      corner: one vector for each corner, `[n, *W]` [m].
      radius: inflation of the hull, `[n, *W]` [m].
    """

    corner: tuple[Vec, ...]
    radius: jax.Array


def hulls_of(s: Structure, flexes: FlexItems, item: IdArray, size: int) -> RoundedHull:
    """Return the hulls of items with `size` corners."""
    table = item_corners(s)
    corner = tuple(item.look_up(table[:, k]).take(flexes.xpos) for k in range(size))
    return RoundedHull(corner, item.look_up(item_flex(s)).take(flexes.radius))


def as_capsule(hull: RoundedHull) -> PlacedGeoms:
    """Return elements of two vertices as capsules."""
    first, second = hull.corner
    # The axis of the capsule is the z axis of its frame.
    along = first - second
    axis, _, _ = rows = contact_frame(along.normalize()).rows
    size = Vec(hull.radius, 0.5 * along.norm(), jnp.zeros_like(axis.x))
    size = size.map(lambda a: jnp.broadcast_to(a, axis.x.shape))
    rot = Rot.from_rows(rows[1], rows[2], axis).T
    return PlacedGeoms((first + second).scale(0.5), rot, size, _no_id(axis.x))


def as_sphere(hull: RoundedHull) -> PlacedGeoms:
    """Return vertices as spheres."""
    (center,) = hull.corner
    one, zero = jnp.ones_like(center.x), jnp.zeros_like(center.x)
    size = Vec(jnp.broadcast_to(hull.radius, one.shape), zero, zero)
    return PlacedGeoms(
        center, Rot(one, zero, zero, zero, one, zero, zero, zero, one), size, _no_id(one)
    )


def _no_id(like: Array) -> Array:
    return jnp.zeros(like.shape, jnp.int32)
