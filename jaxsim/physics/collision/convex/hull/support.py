"""The support function of hulls: the vertex farthest in a direction d.

It is a table lookup without iteration (assets/mesh/support_map.py): directions are points of a cube
map, and each cell of the map has a short list of candidate vertices. For d = (.3, .9, -.2):

    face of the largest component, and the other two over it    +y, u = -.22, v = .33
    cell of the grid of 8 x 8 on that face                      row 3, column 5
    `cell_code`: first part of the cell, and parts per side     part 410, 2 x 2 parts
    part of the cell, by the offset of (u, v) in it             row 0, column 0
    `part_adr`: address of a list, or the number of a fan       list at 1207
    `slice_adr`, for a fan: by the direction from its pole      -
    `candidate` from there on, `max_candidates` vertices        3, 9, 17, ...
    the farthest of these                                       9

Where a platform has inexpensive loops, lists are read up to the length of the longest one of the
call, elsewhere of the model; entries past the end of a list are other vertices of the same hull,
which are not farther. A mesh without a hull is searched whole, in
chunks, as in MuJoCo (Computation: Convex collisions). hulls.py defines ids and shapes of the
operands.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take
from jaxsim.assets.mesh.directions import CUBE_FACES, FAN_SLICES, POLE_UNIT
from jaxsim.assets.mesh.support_map import CELL_CODE_BASE, CELL_CODE_BITS, CELLS_PER_EDGE
from jaxsim.math import Vec
from jaxsim.math.guard import safe_divide
from jaxsim.physics.collision.convex.hull.faces import hull_ends
from jaxsim.physics.collision.convex.hull.hulls import (
    Hulls,
    add_axis,
    argmax_choice,
    hull_vertex,
    leading_iota,
    row_ids,
    row_of,
)
from jaxsim.physics.collision.convex.hull.tables import HullTables
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def hull_support(h: Hulls, hull: Array, d: Vec) -> Array:
    """Return the support vertices in some directions.

    Args:
      h: all hulls.
      hull: hull ids, S.
      d: directions in the frame of the geom, of any length; for zero any vertex is returned.

    Returns:
      Vertex ids, int32 S: rows of `h.vertex`.
    """
    if not h.searches_all:
        return _farthest_candidate(h, hull, d)
    # Meshes without hull search all vertices, the others their candidates.
    row = row_of(h, hull)
    mesh = jnp.maximum(row - h.nhull, 0)
    number = jnp.where(row < h.nhull, 0, take(h.tables.vert_num, mesh))
    of_all = _farthest_of_all(h, row_ids(h, take(h.tables.vert_adr, mesh), hull), number, d)
    if not h.nhull:
        return of_all
    listed = _farthest_candidate(h, row_ids(h, jnp.minimum(row, h.nhull - 1), hull), d)
    return jnp.where(row < h.nhull, listed, of_all)


def _farthest_candidate(h: Hulls, hull: Array, d: Vec) -> Array:
    """Return the farthest candidate vertex, or the vertex to which hill climbing leads from it."""
    start = _candidates(h.tables, row_of(h, hull), d)
    if platform().scans:
        best = _farthest_in_list(h, hull, start, d)
    else:
        place = start[None] + leading_iota(h.max_candidates, start)
        listed = row_ids(h, take(h.tables.candidate, place), hull[None])
        best = argmax_choice(listed, hull_vertex(h, listed).dot(add_axis(d)))
    return _hill_climb(h, best, d) if h.climbs and h.nhull else best


def _farthest_in_list(h: Hulls, hull: Array, start: Array, d: Vec) -> Array:
    """Return the farthest candidate of the lists from `start` on, by a loop over the longest."""
    h, d = lax.stop_gradient((h, d))
    number = take(h.tables.candidate_num, start)

    def candidate(k: Array | int) -> tuple[Array, Array]:
        """Return the k-th candidate, or the last one, and how far it is."""
        place = start + jnp.minimum(k, number - 1)
        vertex = row_ids(h, take(h.tables.candidate, place), hull)
        return vertex, hull_vertex(h, vertex).dot(d)

    def offer(k: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        """Keep the farther one; the first among equal ones."""
        vertex, value = candidate(k)
        farther = value > best[1]
        return jnp.where(farther, vertex, best[0]), jnp.where(farther, value, best[1])

    return lax.fori_loop(1, jnp.max(number, initial=0), offer, candidate(0))[0]


def _hill_climb(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Climb along edges of the hull, from some vertices, until no neighbor is farther along `d`.

    On a convex hull the end is the support vertex. Moved vertices keep their polygons, as in
    MuJoCo, so a hull that is not convex any more has the same result as there.
    """

    # Climb without derivatives, until no lane moves.
    h, d = lax.stop_gradient((h, d))

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Move to the farthest neighbor, if that is farther than the vertex."""
        vertex, _ = state
        near = hull_ends(h, vertex)
        best = argmax_choice(near, hull_vertex(h, near).dot(add_axis(d)))
        goes_on = hull_vertex(h, best).dot(d) > hull_vertex(h, vertex).dot(d)
        return jnp.where(goes_on, best, vertex), goes_on

    moved = jnp.ones((), bool) if h.moved is None else h.moved
    start = vertex, jnp.broadcast_to(moved, vertex.shape)
    return lax.while_loop(lambda state: jnp.any(state[1]), step, start)[0]


def _farthest_of_all(h: Hulls, first: Array, number: Array, d: Vec) -> Array:
    """Return the farthest of `number` vertices from the first one on; the first among equal ones.

    They are searched in chunks, up to the largest number that occurs.
    """
    size = tuning().hull_vertices_per_chunk

    def search_chunk(k: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        """Search one chunk of vertices."""
        # Indices past the end repeat the last vertex.
        place = jnp.minimum(
            k * size + leading_iota(size, first),
            jnp.maximum(number - 1, 0)[None],
        )
        listed = first[None] + place * h.worlds
        chosen = argmax_choice(listed, hull_vertex(h, listed).dot(add_axis(d)))
        value = hull_vertex(h, chosen).dot(d)
        farther = value > best[0]
        return jnp.where(farther, value, best[0]), jnp.where(farther, chosen, best[1])

    shape = jnp.broadcast_shapes(first.shape, d.shape)
    first, number = jnp.broadcast_to(first, shape), jnp.broadcast_to(number, shape)
    start = jnp.full(shape, -jnp.inf, d.x.dtype), first
    num_chunks = (jnp.max(number, initial=0) + size - 1) // size
    return lax.fori_loop(0, num_chunks, search_chunk, start)[1]


def _candidates(t: HullTables, hull: Array, d: Vec) -> Array:
    """Return the address of the candidate list for directions, S."""
    # Cell of the coarse grid on the cube map.
    face, u, v = _cube_coordinates(d)
    row, x = _interval_index((u + 1) * (CELLS_PER_EDGE / 2), CELLS_PER_EDGE)
    column, y = _interval_index((v + 1) * (CELLS_PER_EDGE / 2), CELLS_PER_EDGE)
    cell = take(
        t.cell_code, ((hull * CUBE_FACES + face) * CELLS_PER_EDGE + row) * CELLS_PER_EDGE + column
    )

    # Part of the cell, which is subdivided as finely as needed.
    side = jnp.left_shift(1, cell & (CELL_CODE_BASE - 1))
    row, _ = _interval_index(x * side.astype(u.dtype), side)
    column, _ = _interval_index(y * side.astype(u.dtype), side)
    part = take(t.part_adr, (cell >> CELL_CODE_BITS) + row * side + column)
    if not len(t.slice_adr):
        return part

    # A part with a large face is a fan of slices around the face's normal (the pole).
    fan = jnp.maximum(-1 - part, 0)
    pole_u, pole_v = (take(a, fan).astype(u.dtype) * POLE_UNIT for a in (t.pole_u, t.pole_v))
    in_fan = take(t.slice_adr, fan * FAN_SLICES + _fan_slice(u - pole_u, v - pole_v))
    return jnp.where(part < 0, in_fan, part)


def _cube_coordinates(d: Vec) -> tuple[Array, Array, Array]:
    """Return face and coordinates (u, v) of directions on the cube (assets/mesh/directions.py)."""
    x, y, z = d.parts
    ax, ay, az = (jnp.abs(a) for a in d.parts)
    by_x = (ax >= ay) & (ax >= az)
    by_y = ~by_x & (ay >= az)

    def chosen(a: Array | int, b: Array | int, c: Array | int) -> Array:
        """Select by the axis of the largest component."""
        return jnp.where(by_x, a, jnp.where(by_y, b, c))

    # Project on the face of the largest component.
    out = chosen(x, y, z)
    size = jnp.abs(out)
    scale = 1 / jnp.where(size == 0, 1.0, size)
    face = chosen(0, 2, 4) + jnp.where(out < 0, 1, 0)
    return face.astype(jnp.int32), chosen(y, z, x) * scale, chosen(z, x, y) * scale


def _fan_slice(a: Array, b: Array) -> Array:
    """Return the slice of a fan, from coordinates relative to its pole."""
    # Side of a square around the pole, and the interval on that side.
    on_side = FAN_SLICES // 4
    along_a = jnp.abs(a) >= jnp.abs(b)
    depth, across = jnp.where(along_a, a, b), jnp.where(along_a, b, a)
    tangent = safe_divide(across, jnp.abs(depth))
    step, _ = _interval_index((tangent + 1) * (on_side / 2), on_side)
    side = jnp.where(along_a, 0, 2) + jnp.where(depth < 0, 1, 0)
    return side.astype(jnp.int32) * on_side + step


def _interval_index(x: Array, n: Array | int) -> tuple[Array, Array]:
    """Return the index of the unit interval that contains x, 0 to n - 1, and the offset in it."""
    whole = jnp.clip(x.astype(jnp.int32), 0, n - 1)
    return whole, x - whole.astype(x.dtype)
