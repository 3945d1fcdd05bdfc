"""The polygons and edges at the vertices of hulls, in MuJoCo's order.

hulls.py defines ids and shapes of the operands. A mesh without a hull has no faces and edges: its
vertices have the polygon and neighbor -1.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Vec
from jaxsim.physics.collision.convex.hull.hulls import (
    Hulls,
    add_axis,
    argmax_choice,
    gather_items,
    hull_vertex,
    leading_iota,
    lookup_per_world,
    row_ids,
    row_of,
)


def hull_faces(h: Hulls, vertex: Array) -> Array:
    """Return the polygons at vertices in MuJoCo's order, `(max_vertex_faces, *S)`.

    The last one is repeated. -1 for a vertex of a mesh without hull.
    """
    return _if_any(
        h,
        vertex,
        row_ids(h, gather_items(h.tables.vertex_face, _vertex_polygons(h, vertex)), vertex[None]),
    )


def hull_corner(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Return the address of each vertex in the outline of its polygon best aligned with `d`, S."""
    entry = _vertex_polygons(h, vertex)
    face = row_ids(h, gather_items(h.tables.vertex_face, entry), vertex[None])
    best = argmax_choice(entry, face_normal(h, face).dot(add_axis(d)))
    return gather_items(h.tables.vertex_corner, best)


def face_normal(h: Hulls, face: Array) -> Vec:
    """Return outward normals of polygons."""
    return lookup_per_world(h, h.normal, face)


def face_corner(h: Hulls, face: Array, k: Array) -> Array:
    """Return the k-th vertex of polygons, clockwise from outside; cyclic in k."""
    t, row = h.tables, row_of(h, face)
    number = gather_items(t.outline_num, row)
    adr = gather_items(t.outline_adr, row) + number - 1 - k % number
    return row_ids(h, gather_items(t.outline_vertex, adr), face)


def face_size(h: Hulls, face: Array) -> Array:
    """Return the number of corners of polygons; arbitrary for other ids."""
    return h.tables.outline_num.at[row_of(h, face)].get(mode="clip")


def face_vertices(h: Hulls, face: Array) -> tuple[Vec, Array]:
    """Return the corners of polygons.

    Returns:
      Coordinates of the corners, counter-clockwise from outside, padded to the largest polygon by
      repeating the last one, `(max_face_corners, *S)`; and their numbers, S.
    """
    # Past the last corner the index stays at it.
    t, row = h.tables, row_of(h, face)
    number = gather_items(t.outline_num, row)
    place = jnp.minimum(leading_iota(h.max_face_corners, face), number[None] - 1)
    corner = gather_items(t.outline_vertex, gather_items(t.outline_adr, row)[None] + place)
    return hull_vertex(h, row_ids(h, corner, face[None])), number


def hull_ends(h: Hulls, vertex: Array) -> Array:
    """Return the neighbors of vertices, `(max_vertex_faces, *S)`; the last is repeated.

    In MuJoCo's order: for each polygon at a vertex, the corner before it. -1 for a vertex of a mesh
    without hull.
    """
    t = h.tables
    entry = _vertex_polygons(h, vertex)
    face, place = gather_items(t.vertex_face, entry), gather_items(t.vertex_corner, entry)
    # Corner before the vertex in the outline of each polygon, cyclically.
    first = gather_items(t.outline_adr, face)
    last = first + gather_items(t.outline_num, face) - 1
    end = gather_items(t.outline_vertex, jnp.where(place > first, place - 1, last))
    return _if_any(h, vertex, row_ids(h, end, vertex[None]))


def _vertex_polygons(h: Hulls, vertex: Array) -> Array:
    """Return addresses in `tables.vertex_face`, `(max_vertex_faces, *S)`; the last is repeated."""
    row = row_of(h, vertex)
    last = jnp.maximum(gather_items(h.tables.vertex_faces_num, row) - 1, 0)
    k = jnp.minimum(leading_iota(h.max_vertex_faces, row), last[None])
    return gather_items(h.tables.vertex_faces_adr, row)[None] + k


def _if_any(h: Hulls, vertex: Array, listed: Array) -> Array:
    """Return the listed items; -1 where the vertex has no polygon."""
    if not h.searches_all:
        return listed
    return jnp.where(gather_items(h.tables.vertex_faces_num, row_of(h, vertex)) > 0, listed, -1)
