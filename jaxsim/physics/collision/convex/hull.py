"""What collisions ask of the hulls of meshes: farthest vertices, and the faces and edges at them.

All answers are the same few steps whatever the hull and the direction, without a search that would
depend on them: the direction's place in a table (assets/mesh/support_map.py) gives a short list of
vertices, one of which is the farthest. Lists are read to the length of the model's longest one,
beyond their end: what follows are other vertices of the same hull, which are not farther.

The tables are those of the mesh that was loaded. Vertices are leaves and may change, as in MuJoCo
with the same hull: as long as the same vertices are neighbors and planes stay planes, as under a
change of size, nothing else changes.

A mesh that nothing could touch when it was compiled has no hull. Of such a mesh all vertices are
looked at, some at a time, as in MuJoCo (Computation: Convex collisions); it has no faces and edges.

Operands are arrays of any equal shape S, such as `[n, *W]` or `[k, n, *W]`. Where vertices differ
between worlds, the last axis of S is the worlds, or several times all worlds.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.assets.mesh.directions import FACES, POLE_UNIT, SLICES
from jaxsim.assets.mesh.support_map import GRID
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.math.guard import safe_divide
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.node import node

MANY = 64  # vertices of meshes without hull that are looked at together


class Tables(NamedTuple):
    """Constant integers; those of polygons and vertices count through all meshes.

    Attributes:
      geom: hull of each geom; of a mesh without one nhull and its number; 0 for other geoms.
      first, number: first vertex of each mesh, and how many it has.
      cell, part, pole_u, pole_v, slice, candidate: hull_* of the structure.
      around, around_num: where the polygons at each vertex begin, and how many these are.
      face, place: for each of these the polygon, and where in its outline the vertex is.
      outline, outline_num: where the corners of each polygon begin, and how many these are.
      corner: vertices of the corners.
      quad: for each corner three more that span a large part of the polygon.
    """

    geom: jax.Array
    first: jax.Array
    number: jax.Array
    cell: jax.Array
    part: jax.Array
    pole_u: jax.Array
    pole_v: jax.Array
    slice: jax.Array
    candidate: jax.Array
    around: jax.Array
    around_num: jax.Array
    face: jax.Array
    place: jax.Array
    outline: jax.Array
    outline_num: jax.Array
    corner: jax.Array
    quad: tuple[jax.Array, jax.Array, jax.Array]


@node("most", "most_around", "most_corners", "number", "bare")
class Hulls:
    """The hulls of a model, and its meshes without one.

    Attributes:
      vertex: vertices of all meshes in their frames, `[nmeshvert, *W]` [m].
      normal: outward normals of all polygons, `[nmeshpoly, *W]`.
      tables: constants.
      most: candidates that are looked at for a direction.
      most_around: most polygons at a vertex.
      most_corners: most corners of a polygon.
      number: how many hulls there are.
      bare: some mesh without a hull is asked for.
    """

    vertex: Vec
    normal: Vec
    tables: Tables
    most: int
    most_around: int
    most_corners: int
    number: int
    bare: bool


def hulls(m: Model) -> Hulls:
    """The hulls of a model with meshes."""
    s = m.structure
    tables, (around, corners) = jax.tree.map(jnp.asarray, _tables(s)), _most(s)
    return Hulls(
        vertex=m.mesh_vert,
        normal=m.mesh_polynormal,
        tables=tables,
        most=s.nhullmost,
        most_around=around,
        most_corners=corners,
        number=s.nhull,
        bare=bool((without_hull(s) & touchable(partial(getattr, s))).any()),
    )


def without_hull(s: Structure) -> np.ndarray:
    """Which geoms have a mesh and of it no hull, `[ngeom]`."""
    return np.isin(s.geom_type, (GeomType.MESH, GeomType.SDF)) & (s.geom_hullid < 0)


def touchable(field: Callable[[str], np.ndarray]) -> np.ndarray:
    """Which geoms something may touch, `[ngeom]`; `field` gives those of MuJoCo's mjModel."""
    pairs = np.concatenate([field("pair_geom1"), field("pair_geom2")])
    named = np.isin(np.arange(len(field("geom_type"))), pairs)
    return named | (field("geom_contype") != 0) | (field("geom_conaffinity") != 0)


def hull_of(h: Hulls, geom: Array) -> Array:
    """The hulls of geoms, as in `Tables.geom`."""
    return _look(h.tables.geom, geom)


def hull_support(h: Hulls, hull: Array, d: Vec) -> Array:
    """The vertices that lie farthest in some directions.

    Args:
      h: all hulls.
      hull: which of them, S.
      d: directions in the frame of the geom, of any length; of zero any vertex is the answer.

    Returns:
      Rows of `mesh_vert`, int32 S.
    """
    if not h.bare:
        return _farthest_listed(h, hull, d)
    mesh = jnp.maximum(hull - h.number, 0)
    number = jnp.where(hull < h.number, 0, _look(h.tables.number, mesh))
    of_all = _farthest_of_all(h, _look(h.tables.first, mesh), number, d)
    if not h.number:
        return of_all
    listed = _farthest_listed(h, jnp.minimum(hull, h.number - 1), d)
    return jnp.where(hull < h.number, listed, of_all)


def _farthest_listed(h: Hulls, hull: Array, d: Vec) -> Array:
    start = _candidates(h.tables, hull, d)
    listed = _look(h.tables.candidate, start[None] + _counting(h.most, start))
    return _best(listed, hull_vertex(h, listed).dot(_each(d)))


def _farthest_of_all(h: Hulls, first: Array, number: Array, d: Vec) -> Array:
    """The farthest of so many vertices from the first one on; of equally far ones the first.

    They are looked at MANY at a time, as often as the longest list that there is needs it.
    """

    def turn(k: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        place = jnp.minimum(k * MANY + _counting(MANY, first), jnp.maximum(number - 1, 0)[None])
        listed = first[None] + place
        chosen = _best(listed, hull_vertex(h, listed).dot(_each(d)))
        value = hull_vertex(h, chosen).dot(d)
        farther = value > best[0]
        return jnp.where(farther, value, best[0]), jnp.where(farther, chosen, best[1])

    shape = jnp.broadcast_shapes(first.shape, d.shape)
    first, number = jnp.broadcast_to(first, shape), jnp.broadcast_to(number, shape)
    start = jnp.full(shape, -jnp.inf, d.x.dtype), first
    turns = (jnp.max(number, initial=0) + MANY - 1) // MANY
    return lax.fori_loop(0, turns, turn, start)[1]


def hull_vertex(h: Hulls, vertex: Array) -> Vec:
    """Coordinates of vertices in the frame of their geom [m]."""
    return h.vertex.map(lambda a: _look(a, vertex))


def hull_faces(h: Hulls, vertex: Array) -> Array:
    """The polygons at some vertices as MuJoCo lists them, `(most_around, *S)`; the last repeats.

    -1 for a vertex of a mesh without hull.
    """
    return _if_any(h, vertex, _look(h.tables.face, _entries(h, vertex)))


def hull_corner(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Where the vertices stand among the corners of these polygons: rows of `tables.corner`, S."""
    return _look(h.tables.place, _best_around(h, vertex, d))


def face_normal(h: Hulls, face: Array) -> Vec:
    """Outward normals of polygons."""
    return h.normal.map(lambda a: _look(a, face))


def face_vertices(h: Hulls, face: Array) -> tuple[Vec, Array]:
    """Corners of polygons.

    Returns:
      Coordinates of the corners, counter-clockwise from outside, in as many rows as the largest
      polygon has corners, `(most_corners, *S)`: the last one of the others is repeated. And their
      numbers, S.
    """
    t = h.tables
    number = _look(t.outline_num, face)
    place = jnp.minimum(_counting(h.most_corners, face), number[None] - 1)
    return hull_vertex(h, _look(t.corner, _look(t.outline, face)[None] + place)), number


def hull_ends(h: Hulls, vertex: Array) -> Array:
    """The other ends of the edges at some vertices, `(most_around, *S)`; the last is repeated.

    In MuJoCo's order: of each polygon at a vertex the corner before it, as it lists them. -1 for a
    vertex of a mesh without hull.
    """
    t = h.tables
    entry = _entries(h, vertex)
    face, place = _look(t.face, entry), _look(t.place, entry)
    first = _look(t.outline, face)
    last = first + _look(t.outline_num, face) - 1
    return _if_any(h, vertex, _look(t.corner, jnp.where(place > first, place - 1, last)))


def _if_any(h: Hulls, vertex: Array, listed: Array) -> Array:
    """What is listed at vertices; -1 where no polygon is."""
    if not h.bare:
        return listed
    return jnp.where(_look(h.tables.around_num, vertex) > 0, listed, -1)


def _best_around(h: Hulls, vertex: Array, d: Vec) -> Array:
    """Of the entries of polygons at vertices those whose polygon's normal is best along `d`."""
    entry = _entries(h, vertex)
    return _best(entry, face_normal(h, _look(h.tables.face, entry)).dot(_each(d)))


def _best(choices: Array, value: Array) -> Array:
    """Of choices along the first axis the one with the largest value; of equal ones the first.

    One reduction of both together, with the plainest comparison, runs twice as fast as `argmax`.
    """

    def better(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        larger = b[0] > a[0]
        return jnp.where(larger, b[0], a[0]), jnp.where(larger, b[1], a[1])

    none = jnp.array(-jnp.inf, value.dtype), jnp.array(0, choices.dtype)
    return lax.reduce((lax.stop_gradient(value), choices), none, better, (0,))[1]


def _entries(h: Hulls, vertex: Array) -> Array:
    """The entries of the polygons at vertices, `(most_around, *S)`; the last is repeated."""
    last = jnp.maximum(_look(h.tables.around_num, vertex) - 1, 0)
    k = jnp.minimum(_counting(h.most_around, vertex), last[None])
    return _look(h.tables.around, vertex)[None] + k


def _candidates(t: Tables, hull: Array, d: Vec) -> Array:
    """Where the lists begin for directions, S: by cell of the grid, part of the cell, and fan."""
    face, u, v = _on_cube(d)
    row, x = _step((u + 1) * (GRID / 2), GRID)
    column, y = _step((v + 1) * (GRID / 2), GRID)
    cell = _look(t.cell, ((hull * FACES + face) * GRID + row) * GRID + column)

    side = jnp.left_shift(1, cell & 7)
    row, _ = _step(x * side.astype(u.dtype), side)
    column, _ = _step(y * side.astype(u.dtype), side)
    part = _look(t.part, (cell >> 3) + row * side + column)
    if not len(t.slice):
        return part

    fan = jnp.maximum(-1 - part, 0)
    pole_u, pole_v = (_look(a, fan).astype(u.dtype) * POLE_UNIT for a in (t.pole_u, t.pole_v))
    in_fan = _look(t.slice, fan * SLICES + _slice(u - pole_u, v - pole_v))
    return jnp.where(part < 0, in_fan, part)


def _on_cube(d: Vec) -> tuple[Array, Array, Array]:
    """Face and place (u, v) where directions meet the cube [-1, 1]^3; see directions.py."""
    x, y, z = d.parts
    ax, ay, az = (jnp.abs(a) for a in d.parts)
    by_x = (ax >= ay) & (ax >= az)
    by_y = ~by_x & (ay >= az)

    def chosen(a: Array | int, b: Array | int, c: Array | int) -> Array:
        return jnp.where(by_x, a, jnp.where(by_y, b, c))

    out = chosen(x, y, z)
    size = jnp.abs(out)
    scale = 1 / jnp.where(size == 0, 1.0, size)
    face = chosen(0, 2, 4) + jnp.where(out < 0, 1, 0)
    return face.astype(jnp.int32), chosen(y, z, x) * scale, chosen(z, x, y) * scale


def _slice(a: Array, b: Array) -> Array:
    """In which slice of a fan a place is, from its coordinates relative to the pole."""
    on_side = SLICES // 4
    along_a = jnp.abs(a) >= jnp.abs(b)
    depth, across = jnp.where(along_a, a, b), jnp.where(along_a, b, a)
    tangent = safe_divide(across, jnp.abs(depth))
    step, _ = _step((tangent + 1) * (on_side / 2), on_side)
    side = jnp.where(along_a, 0, 2) + jnp.where(depth < 0, 1, 0)
    return side.astype(jnp.int32) * on_side + step


def _step(x: Array, n: Array | int) -> tuple[Array, Array]:
    """The number of the unit interval that x is in, 0 to n - 1, and the place in it."""
    whole = jnp.clip(x.astype(jnp.int32), 0, n - 1)
    return whole, x - whole.astype(x.dtype)


def _look(table: Array, index: Array) -> Array:
    """Items `table[index]` of `[n]`, of `[n, 1]`, or of `[n, worlds]`, each world's for itself."""
    if table.ndim == 2 and table.shape[1] > 1:
        world = np.arange(index.shape[-1], dtype=np.int32) % table.shape[1]
        place = table.at[index, world.reshape((1,) * (index.ndim - 1) + (-1,))]
    else:
        place = table.reshape(-1).at[index]
    return place.get(mode="promise_in_bounds", wrap_negative_indices=False)


def _counting(n: int, like: Array) -> Array:
    """0, 1, ... n - 1 along a new axis in front of those of `like`."""
    return jnp.arange(n, dtype=jnp.int32).reshape(n, *(1,) * like.ndim)


def _each(x: Tree) -> Tree:
    """The same for all along a new axis in front."""
    return jax.tree.map(lambda a: a[None], x)


@derived
def _tables(s: Structure) -> Tables:
    mesh = np.arange(s.nmesh)
    of_vertex, of_polygon = np.repeat(mesh, s.mesh_vertnum), np.repeat(mesh, s.mesh_polynum)
    of_corner = np.repeat(of_polygon, s.mesh_polyvertnum)
    of_entry = np.repeat(of_vertex, s.mesh_polymapnum)
    tables = Tables(
        geom=np.where(without_hull(s), s.nhull + s.geom_dataid, np.maximum(s.geom_hullid, 0)),
        first=s.mesh_vertadr,
        number=s.mesh_vertnum,
        cell=s.hull_cell.ravel(),
        part=s.hull_part,
        pole_u=s.hull_pole[:, 0],
        pole_v=s.hull_pole[:, 1],
        slice=s.hull_slice.ravel(),
        candidate=s.hull_vertid,
        around=s.mesh_polymapadr,
        around_num=s.mesh_polymapnum,
        face=_ended(s.mesh_polymap + s.mesh_polyadr[of_entry]),
        place=_ended(s.mesh_polyplace),
        outline=s.mesh_polyvertadr,
        outline_num=s.mesh_polyvertnum,
        corner=s.mesh_polyvert + s.mesh_vertadr[of_corner],
        quad=tuple(s.mesh_polyquad.T),
    )
    return jax.tree.map(lambda a: np.ascontiguousarray(a, np.int32), tables)


def _ended(entries: Any) -> Any:
    """Entries of polygons, and one where those of a last mesh without hull would begin."""
    return np.append(entries, 0)


@derived
def _most(s: Structure) -> tuple[int, int]:
    """Most polygons at a vertex of a hull, and most corners of one of these polygons."""
    around = s.mesh_polymapnum[s.hull_vertid]
    corners = [np.zeros(1, int)] + [
        s.mesh_polyvertnum[s.mesh_polyadr[k] : s.mesh_polyadr[k] + s.mesh_polynum[k]]
        for k in np.unique(s.geom_dataid[s.geom_hullid >= 0])
    ]
    return int(around.max(initial=1)), int(np.concatenate(corners).max())
