"""The polygons and edges at the vertices of hulls, in MuJoCo's order.

hulls.py defines ids and shapes of the operands. A mesh without a hull has no faces and edges: its
vertices have the polygon and neighbor -1.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take, take_clipped
from jaxsim.math import Vec
from jaxsim.physics.collision.convex.hull.hulls import (
    Hulls,
    add_axis,
    argmax_choice,
    hull_vertex,
    leading_iota,
    lookup_per_world,
    row_ids,
    row_of,
)


def hull_faces(h: Hulls, vertex: Array, k: Array | None = None) -> Array:
    """Return the k-th polygon at vertices in MuJoCo's order.

    Past the last one, the last one is repeated. -1 for a vertex of a mesh without hull.

    Args:
      h: all hulls.
      vertex: vertex ids, S.
      k: index in the list of each vertex, broadcasts with S; None: all, `(max_vertex_faces, *S)`.
    """
    vertex, k = _aligned(h, vertex, k)
    face = take(h.tables.vertex_face, _vertex_polygons(h, vertex, k))
    return _if_any(h, vertex, row_ids(h, face, vertex))


def num_hull_faces(h: Hulls, vertex: Array) -> Array:
    """Return the number of polygons at vertices, which is that of edges, S."""
    return take(h.tables.vertex_faces_num, row_of(h, vertex))


def hull_corner(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Return the address of each vertex in the outline of its polygon best aligned with `d`, S."""
    vertex, k = _aligned(h, vertex, None)
    entry = _vertex_polygons(h, vertex, k)
    face = row_ids(h, take(h.tables.vertex_face, entry), vertex)
    best = argmax_choice(entry, face_normal(h, face).dot(add_axis(d)))
    return take(h.tables.vertex_corner, best)


def face_normal(h: Hulls, face: Array) -> Vec:
    """Return outward normals of polygons."""
    return lookup_per_world(h, h.normal, face)


def face_corner(h: Hulls, face: Array, k: Array) -> Array:
    """Return the k-th vertex of polygons, clockwise from outside; cyclic in k."""
    t, row = h.tables, row_of(h, face)
    number = take(t.outline_num, row)
    adr = take(t.outline_adr, row) + number - 1 - k % number
    return row_ids(h, take(t.outline_vertex, adr), face)


def face_size(h: Hulls, face: Array) -> Array:
    """Return the number of corners of polygons; arbitrary for other ids."""
    return take_clipped(h.tables.outline_num, row_of(h, face))


def face_vertices(h: Hulls, face: Array) -> tuple[Vec, Array]:
    """Return the corners of polygons.

    Returns:
      Coordinates of the corners, counter-clockwise from outside, padded to the largest polygon by
      repeating the last one, `(max_face_corners, *S)`; and their numbers, S.
    """
    # Past the last corner the index stays at it.
    t, row = h.tables, row_of(h, face)
    number = take(t.outline_num, row)
    place = jnp.minimum(leading_iota(h.max_face_corners, face), number[None] - 1)
    corner = take(t.outline_vertex, take(t.outline_adr, row)[None] + place)
    return hull_vertex(h, row_ids(h, corner, face[None])), number


def hull_ends(h: Hulls, vertex: Array, k: Array | None = None) -> Array:
    """Return the k-th neighbor of vertices in MuJoCo's order; arguments as for `hull_faces`.

    It is the corner before the vertex in the k-th polygon there. Past the last one, the last one is
    repeated. -1 for a vertex of a mesh without hull.
    """
    t = h.tables
    vertex, k = _aligned(h, vertex, k)
    entry = _vertex_polygons(h, vertex, k)
    face, place = take(t.vertex_face, entry), take(t.vertex_corner, entry)
    # Corner before the vertex in the outline of each polygon, cyclically.
    first = take(t.outline_adr, face)
    last = first + take(t.outline_num, face) - 1
    end = take(t.outline_vertex, jnp.where(place > first, place - 1, last))
    return _if_any(h, vertex, row_ids(h, end, vertex))


def _aligned(h: Hulls, vertex: Array, k: Array | None) -> tuple[Array, Array]:
    """Return vertices and indices in their lists with as many axes."""
    k = leading_iota(h.max_vertex_faces, vertex) if k is None else k
    return vertex.reshape((1,) * (k.ndim - vertex.ndim) + vertex.shape), k


def _vertex_polygons(h: Hulls, vertex: Array, k: Array) -> Array:
    """Return the address of the k-th polygon at vertices in `tables.vertex_face`."""
    last = jnp.maximum(num_hull_faces(h, vertex) - 1, 0)
    return take(h.tables.vertex_faces_adr, row_of(h, vertex)) + jnp.minimum(k, last)


def _if_any(h: Hulls, vertex: Array, listed: Array) -> Array:
    """Return the listed items; -1 where the vertex has no polygon."""
    if not h.searches_all:
        return listed
    return jnp.where(num_hull_faces(h, vertex) > 0, listed, -1)
