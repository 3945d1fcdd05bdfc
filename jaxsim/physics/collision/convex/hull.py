"""Convex hulls of meshes: support function, and the faces and edges at a vertex.

The support function returns the vertex farthest in a direction d. It is a table lookup without
iteration (assets/mesh/support_map.py): directions are points of a cube map, and each cell of the
map has a short list of candidate vertices. For d = (.3, .9, -.2):

    face of the largest component, and the other two over it    +y, u = -.22, v = .33
    cell of the grid of 8 x 8 on that face                      row 3, column 5
    `cell_code`: first part of the cell, and parts per side     part 410, 2 x 2 parts
    part of the cell, by the offset of (u, v) in it             row 0, column 0
    `part_adr`: address of a list, or the number of a fan       list at 1207
    `slice_adr`, for a fan: by the direction from its pole      -
    `candidate` from there on, `max_candidates` vertices        3, 9, 17, ...
    the farthest of these                                       9

Lists are read up to the length of the longest one; entries past the end of a list are other
vertices of the same hull, which are not farther.

The tables are those of the loaded mesh. Vertices are leaves of the model and may change, as in
MuJoCo with the same hull; the tables stay exact as long as neighbors and planes are preserved, as
under scaling. If vertices differ from the loaded ones (`moved`), hill climbing along the edges
continues from the candidate. A loop without iterations is free on a CPU; on other platforms
only models loaded with `free=("mesh_vert",)`, or with replaced vertices, contain the loop.

A mesh that could not collide when it was compiled has no hull. All its vertices are searched, in
chunks, as in MuJoCo (Computation: Convex collisions); it has no faces and edges.

Operands are arrays of any equal shape S, such as `[n, *W]` or `[k, n, *W]`. If vertices differ
between worlds, the id of a hull, vertex or polygon is its `row` times the number of worlds, plus
the world, so that lanes of all worlds can be mixed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.node import node
from jaxsim.assets.mesh.directions import CUBE_FACES, FAN_SLICES, POLE_UNIT
from jaxsim.assets.mesh.support_map import CELL_CODE_BASE, CELL_CODE_BITS, CELLS_PER_EDGE
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.math.guard import safe_divide
from jaxsim.model.model import Model
from jaxsim.model.structure import HULLS_MOVED, Structure, cache_by_structure
from jaxsim.model.switch.hulls import loaded_hulls
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


class HullTables(NamedTuple):
    """Constant integers; ids of polygons count through all meshes, ids of vertices through
    `_searched_vertices`.

    Attributes:
      geom_hull: hull of each geom; for a mesh without one, nhull plus its mesh id; 0 for other
        geoms.
      mesh_row: row of each vertex in `mesh_vert`.
      vert_adr, vert_num: first vertex of each mesh that has no hull, and its number of vertices.
      cell_code, part_adr, pole_u, pole_v, slice_adr, candidate: the support map, hull_* of the
        structure (assets/mesh/support_map.py).
      vertex_faces_adr, vertex_faces_num: address and number of the polygons at each vertex, in the
        next two tables.
      vertex_face, vertex_corner: a polygon at the vertex, and the address of the vertex in the
        outline of this polygon.
      outline_adr, outline_num: address and number of the corners of each polygon, in the next two.
      outline_vertex: vertex of a corner.
      spanning_triple: three other corners of the polygon that span much of its area with this one.
    """

    geom_hull: jax.Array
    mesh_row: jax.Array
    vert_adr: jax.Array
    vert_num: jax.Array
    cell_code: jax.Array
    part_adr: jax.Array
    pole_u: jax.Array
    pole_v: jax.Array
    slice_adr: jax.Array
    candidate: jax.Array
    vertex_faces_adr: jax.Array
    vertex_faces_num: jax.Array
    vertex_face: jax.Array
    vertex_corner: jax.Array
    outline_adr: jax.Array
    outline_num: jax.Array
    outline_vertex: jax.Array
    spanning_triple: tuple[jax.Array, jax.Array, jax.Array]


@node("max_candidates", "max_vertex_faces", "max_face_corners", "nhull", "searches_all", "climbs")
class Hulls:
    """The hulls of a model, and its meshes without one.

    Attributes:
      vertex: vertices of hulls, and of meshes that are searched whole, in the frames of the meshes,
        `[n, *W]` [m].
      normal: outward normals of all polygons, `[nmeshpoly, *W]`.
      tables: constants.
      max_candidates: number of candidates per direction.
      max_vertex_faces: largest number of polygons at a vertex.
      max_face_corners: largest number of corners of a polygon.
      nhull: number of hulls.
      searches_all: some mesh without a hull is used, all of whose vertices are searched.
      climbs: hill climbing continues from the candidates.
      moved: some vertices differ from the loaded ones, bool scalar, else hill climbing ends at
        once; None: unknown.
    """

    vertex: Vec
    normal: Vec
    tables: HullTables
    max_candidates: int
    max_vertex_faces: int
    max_face_corners: int
    nhull: int
    searches_all: bool
    climbs: bool
    moved: jax.Array | None

    @property
    def worlds(self) -> int:
        """Return the number of worlds with vertices or normals of their own; 1: all share them."""
        return max(_columns(self.vertex), _columns(self.normal))


def hulls(m: Model, drawn: bool = False) -> Hulls:
    """Return the hulls of a model with meshes.

    Args:
      m: the model.
      drawn: meshes without a hull are searched even if they cannot collide.
    """
    s = m.structure
    tables, (around, corners) = jax.tree.map(jnp.asarray, _tables(s, drawn)), _max_counts(s)
    vertex = gather_static(m.mesh_vert, _searched_vertices(s, drawn))
    return Hulls(
        vertex=vertex,
        normal=m.mesh_polynormal,
        tables=tables,
        max_candidates=s.nhullmost,
        max_vertex_faces=around,
        max_face_corners=corners,
        nhull=s.nhull,
        searches_all=bool(_searched_geoms(s, drawn).any()),
        climbs=platform().branches or HULLS_MOVED in s,
        moved=_detect_changed_vertices(s, vertex, drawn)
        if platform().branches and s.nhull
        else None,
    )


def _detect_changed_vertices(s: Structure, searched: Vec, drawn: bool) -> Array:
    """Return whether some vertex of a hull differs, in some world, from the loaded model."""
    # Compare each coordinate with the loaded one, up to rounding.
    vertex, point, tolerance = loaded_hulls(s)
    place = np.searchsorted(_searched_vertices(s, drawn), vertex)
    now = lax.stop_gradient(gather_static(searched, place))
    off = [
        jnp.abs(a - column(p, a)) > column(tolerance, a)
        for a, p in zip(now.parts, point.T, strict=True)
    ]
    return jnp.any(off[0] | off[1] | off[2])


def geoms_without_hull(s: Structure) -> np.ndarray:
    """Return which geoms have a mesh without a hull, `[ngeom]`."""
    return np.isin(s.geom_type, (GeomType.MESH, GeomType.SDF)) & (s.geom_hullid < 0)


def _searched_geoms(s: Structure, drawn: bool) -> np.ndarray:
    """Return which geoms have a mesh all of whose vertices are searched, `[ngeom]`."""
    bare = geoms_without_hull(s)
    return bare if drawn else bare & collidable_geoms(partial(getattr, s))


def collidable_geoms(field: Callable[[str], np.ndarray]) -> np.ndarray:
    """Return which geoms can collide, `[ngeom]`; `field` returns mjModel's fields by name."""
    pairs = np.concatenate([field("pair_geom1"), field("pair_geom2")])
    named = np.isin(np.arange(len(field("geom_type"))), pairs)
    return named | (field("geom_contype") != 0) | (field("geom_conaffinity") != 0)


def hull_of(h: Hulls, geom: Array) -> Array:
    """Return the hull ids of geoms, `[..., worlds]` or all in one row (`HullTables.geom_hull`)."""
    hull = _gather_items(h.tables.geom_hull, geom)
    if h.worlds == 1:
        return hull
    world = jnp.arange(max(geom.shape[-1], h.worlds), dtype=jnp.int32) % h.worlds
    return hull * h.worlds + world.reshape((1,) * (geom.ndim - 1) + (-1,))


def row_of(h: Hulls, number: Array) -> Array:
    """Return the rows, in tables that all worlds share, of hull, vertex or polygon ids."""
    return number if h.worlds == 1 else number // h.worlds


def row_ids(h: Hulls, row: Array, like: Array) -> Array:
    """Return the ids of rows, in the worlds of the ids `like`."""
    return row if h.worlds == 1 else row * h.worlds + like % h.worlds


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
    number = jnp.where(row < h.nhull, 0, _gather_items(h.tables.vert_num, mesh))
    of_all = _farthest_of_all(
        h, row_ids(h, _gather_items(h.tables.vert_adr, mesh), hull), number, d
    )
    if not h.nhull:
        return of_all
    listed = _farthest_candidate(h, row_ids(h, jnp.minimum(row, h.nhull - 1), hull), d)
    return jnp.where(row < h.nhull, listed, of_all)


def _farthest_candidate(h: Hulls, hull: Array, d: Vec) -> Array:
    """Return the farthest candidate vertex, or the vertex to which hill climbing leads from it."""
    start = _candidates(h.tables, row_of(h, hull), d)
    listed = _gather_items(h.tables.candidate, start[None] + _leading_iota(h.max_candidates, start))
    listed = row_ids(h, listed, hull[None])
    best = _argmax_choice(listed, hull_vertex(h, listed).dot(_add_axis(d)))
    return _hill_climb(h, best, d) if h.climbs and h.nhull else best


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
        best = _argmax_choice(near, hull_vertex(h, near).dot(_add_axis(d)))
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
            k * size + _leading_iota(size, first),
            jnp.maximum(number - 1, 0)[None],
        )
        listed = first[None] + place * h.worlds
        chosen = _argmax_choice(listed, hull_vertex(h, listed).dot(_add_axis(d)))
        value = hull_vertex(h, chosen).dot(d)
        farther = value > best[0]
        return jnp.where(farther, value, best[0]), jnp.where(farther, chosen, best[1])

    shape = jnp.broadcast_shapes(first.shape, d.shape)
    first, number = jnp.broadcast_to(first, shape), jnp.broadcast_to(number, shape)
    start = jnp.full(shape, -jnp.inf, d.x.dtype), first
    num_chunks = (jnp.max(number, initial=0) + size - 1) // size
    return lax.fori_loop(0, num_chunks, search_chunk, start)[1]


def hull_vertex(h: Hulls, vertex: Array) -> Vec:
    """Return coordinates of vertices in the frame of their geom [m]."""
    return _lookup_per_world(h, h.vertex, vertex)


def hull_faces(h: Hulls, vertex: Array) -> Array:
    """Return the polygons at vertices in MuJoCo's order, `(max_vertex_faces, *S)`.

    The last one is repeated. -1 for a vertex of a mesh without hull.
    """
    return _if_any(
        h,
        vertex,
        row_ids(h, _gather_items(h.tables.vertex_face, _vertex_polygons(h, vertex)), vertex[None]),
    )


def hull_corner(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Return the address of each vertex in the outline of its polygon best aligned with `d`, S."""
    entry = _vertex_polygons(h, vertex)
    face = row_ids(h, _gather_items(h.tables.vertex_face, entry), vertex[None])
    best = _argmax_choice(entry, face_normal(h, face).dot(_add_axis(d)))
    return _gather_items(h.tables.vertex_corner, best)


def face_normal(h: Hulls, face: Array) -> Vec:
    """Return outward normals of polygons."""
    return _lookup_per_world(h, h.normal, face)


def face_corner(h: Hulls, face: Array, k: Array) -> Array:
    """Return the k-th vertex of polygons, clockwise from outside; cyclic in k."""
    t, row = h.tables, row_of(h, face)
    number = _gather_items(t.outline_num, row)
    adr = _gather_items(t.outline_adr, row) + number - 1 - k % number
    return row_ids(h, _gather_items(t.outline_vertex, adr), face)


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
    number = _gather_items(t.outline_num, row)
    place = jnp.minimum(_leading_iota(h.max_face_corners, face), number[None] - 1)
    corner = _gather_items(t.outline_vertex, _gather_items(t.outline_adr, row)[None] + place)
    return hull_vertex(h, row_ids(h, corner, face[None])), number


def hull_ends(h: Hulls, vertex: Array) -> Array:
    """Return the neighbors of vertices, `(max_vertex_faces, *S)`; the last is repeated.

    In MuJoCo's order: for each polygon at a vertex, the corner before it. -1 for a vertex of a mesh
    without hull.
    """
    t = h.tables
    entry = _vertex_polygons(h, vertex)
    face, place = _gather_items(t.vertex_face, entry), _gather_items(t.vertex_corner, entry)
    # Corner before the vertex in the outline of each polygon, cyclically.
    first = _gather_items(t.outline_adr, face)
    last = first + _gather_items(t.outline_num, face) - 1
    end = _gather_items(t.outline_vertex, jnp.where(place > first, place - 1, last))
    return _if_any(h, vertex, row_ids(h, end, vertex[None]))


def _if_any(h: Hulls, vertex: Array, listed: Array) -> Array:
    """Return the listed items; -1 where the vertex has no polygon."""
    if not h.searches_all:
        return listed
    return jnp.where(_gather_items(h.tables.vertex_faces_num, row_of(h, vertex)) > 0, listed, -1)


def _argmax_choice(choices: Array, value: Array) -> Array:
    """Return the choice along the first axis with the largest value; the first among equal ones.

    One reduction over both, with a plain comparison, is twice as fast as `argmax`.
    """

    def better(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        larger = b[0] > a[0]
        return jnp.where(larger, b[0], a[0]), jnp.where(larger, b[1], a[1])

    none = jnp.array(-jnp.inf, value.dtype), jnp.array(0, choices.dtype)
    return lax.reduce((lax.stop_gradient(value), choices), none, better, (0,))[1]


def _vertex_polygons(h: Hulls, vertex: Array) -> Array:
    """Return addresses in `tables.vertex_face`, `(max_vertex_faces, *S)`; the last is repeated."""
    row = row_of(h, vertex)
    last = jnp.maximum(_gather_items(h.tables.vertex_faces_num, row) - 1, 0)
    k = jnp.minimum(_leading_iota(h.max_vertex_faces, row), last[None])
    return _gather_items(h.tables.vertex_faces_adr, row)[None] + k


def _candidates(t: HullTables, hull: Array, d: Vec) -> Array:
    """Return the address of the candidate list for directions, S."""
    # Cell of the coarse grid on the cube map.
    face, u, v = _cube_coordinates(d)
    row, x = _interval_index((u + 1) * (CELLS_PER_EDGE / 2), CELLS_PER_EDGE)
    column, y = _interval_index((v + 1) * (CELLS_PER_EDGE / 2), CELLS_PER_EDGE)
    cell = _gather_items(
        t.cell_code, ((hull * CUBE_FACES + face) * CELLS_PER_EDGE + row) * CELLS_PER_EDGE + column
    )

    # Part of the cell, which is subdivided as finely as needed.
    side = jnp.left_shift(1, cell & (CELL_CODE_BASE - 1))
    row, _ = _interval_index(x * side.astype(u.dtype), side)
    column, _ = _interval_index(y * side.astype(u.dtype), side)
    part = _gather_items(t.part_adr, (cell >> CELL_CODE_BITS) + row * side + column)
    if not len(t.slice_adr):
        return part

    # A part with a large face is a fan of slices around the face's normal (the pole).
    fan = jnp.maximum(-1 - part, 0)
    pole_u, pole_v = (
        _gather_items(a, fan).astype(u.dtype) * POLE_UNIT for a in (t.pole_u, t.pole_v)
    )
    in_fan = _gather_items(t.slice_adr, fan * FAN_SLICES + _fan_slice(u - pole_u, v - pole_v))
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


def _columns(table: Vec) -> int:
    """Return the number of worlds of a table `[n]`, `[n, 1]` or `[n, worlds]`."""
    return table.x.shape[1] if table.x.ndim > 1 else 1


def _lookup_per_world(h: Hulls, table: Vec, number: Array) -> Vec:
    """Return items of a table that worlds may share."""
    place = number if _columns(table) == h.worlds else row_of(h, number)
    return table.map(lambda a: _gather_items(a.reshape(-1), place))


def _gather_items(table: Array, index: Array) -> Array:
    """Return items of a table `[n]`."""
    return table.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _leading_iota(n: int, like: Array) -> Array:
    """Return 0, 1, ... n - 1 along a new axis in front of those of `like`."""
    return jnp.arange(n, dtype=jnp.int32).reshape(n, *(1,) * like.ndim)


def _add_axis(x: PyTree) -> PyTree:
    """Add a leading axis of 1."""
    return jax.tree.map(lambda a: a[None], x)


@cache_by_structure
def _searched_vertices(s: Structure, drawn: bool) -> np.ndarray:
    """Return the rows of `mesh_vert` that searches read, ascending.

    They are the corners of the hulls, and all vertices of meshes that are searched whole. A mesh
    that is drawn often has a hundred times as many vertices as its hull.
    """
    whole = np.unique(s.geom_dataid[_searched_geoms(s, drawn)])
    parts = [s.mesh_vertadr[k] + np.arange(s.mesh_vertnum[k]) for k in whole]
    hull = np.isin(np.arange(s.nmesh), s.geom_dataid[s.geom_hullid >= 0])
    of_hull = np.repeat(np.repeat(hull, s.mesh_polynum), s.mesh_polyvertnum)
    return np.unique(np.concatenate([s.hull_vertid, _outline_vertices(s)[of_hull], *parts]))


def _outline_vertices(s: Structure) -> Any:
    """Return the corners of all polygons, one polygon after the other, as rows of `mesh_vert`."""
    of_polygon = np.repeat(np.arange(s.nmesh), s.mesh_polynum)
    return s.mesh_polyvert + s.mesh_vertadr[np.repeat(of_polygon, s.mesh_polyvertnum)]


@cache_by_structure
def _tables(s: Structure, drawn: bool) -> HullTables:
    """Return the constant tables of the hulls of a model."""
    searched = _searched_vertices(s, drawn)
    # Polygons of meshes that are only drawn are not read: their corners may be any vertex.
    outline = np.searchsorted(searched, _outline_vertices(s))
    of_vertex = np.repeat(np.arange(s.nmesh), s.mesh_vertnum)
    of_entry = np.repeat(of_vertex, s.mesh_polymapnum)
    tables = HullTables(
        geom_hull=np.where(
            geoms_without_hull(s), s.nhull + s.geom_dataid, np.maximum(s.geom_hullid, 0)
        ),
        mesh_row=searched,
        vert_adr=np.searchsorted(searched, s.mesh_vertadr),
        vert_num=s.mesh_vertnum,
        cell_code=s.hull_cell.ravel(),
        part_adr=s.hull_part,
        pole_u=s.hull_pole[:, 0],
        pole_v=s.hull_pole[:, 1],
        slice_adr=s.hull_slice.ravel(),
        candidate=np.searchsorted(searched, s.hull_vertid),
        vertex_faces_adr=s.mesh_polymapadr[searched],
        vertex_faces_num=s.mesh_polymapnum[searched],
        vertex_face=_append_zero(s.mesh_polymap + s.mesh_polyadr[of_entry]),
        vertex_corner=_append_zero(s.mesh_polyplace),
        outline_adr=s.mesh_polyvertadr,
        outline_num=s.mesh_polyvertnum,
        outline_vertex=np.minimum(outline, max(len(searched) - 1, 0)),
        spanning_triple=tuple(s.mesh_polyquad.T),
    )
    return jax.tree.map(lambda a: np.ascontiguousarray(a, np.int32), tables)


def _append_zero(entries: Any) -> Any:
    """Append an entry, which the last vertex of a trailing mesh without hull reads."""
    return np.append(entries, 0)


@cache_by_structure
def _max_counts(s: Structure) -> tuple[int, int]:
    """Return the largest number of polygons at a hull vertex, and of corners of such a polygon."""
    around = s.mesh_polymapnum[s.hull_vertid]
    corners = [np.zeros(1, int)] + [
        s.mesh_polyvertnum[s.mesh_polyadr[k] : s.mesh_polyadr[k] + s.mesh_polynum[k]]
        for k in np.unique(s.geom_dataid[s.geom_hullid >= 0])
    ]
    return int(around.max(initial=1)), int(np.concatenate(corners).max())
