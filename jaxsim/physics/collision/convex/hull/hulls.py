"""The hulls of a model: their vertices, normals and tables, and lookups by id.

The tables are those of the loaded mesh. Vertices are leaves of the model and may change, as in
MuJoCo with the same hull; the tables stay exact as long as neighbors and planes are preserved, as
under scaling. If vertices differ from the loaded ones (`moved`), hill climbing along the edges
continues from the candidate (support.py). A loop without iterations is free on a CPU; elsewhere
only models loaded with `free=("mesh_vert",)`, or with replaced vertices, contain the loop.

Operands are arrays of any equal shape S, such as `[n, *W]` or `[k, n, *W]`. If vertices differ
between worlds, the id of a hull, vertex or polygon is its `row` times the number of worlds, plus
the world, so that lanes of all worlds can be mixed.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import take
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.node import node
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.structure import HULLS_MOVED, Structure
from jaxsim.model.switch.hulls import loaded_hulls
from jaxsim.physics.collision.convex.hull.tables import (
    HullTables,
    lookup_tables,
    max_face_counts,
    searched_geoms,
    searched_vertices,
)
from jaxsim.transforms.platform import platform


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
    max_vertex_faces, max_face_corners = max_face_counts(s)
    vertex = gather_static(m.mesh_vert, searched_vertices(s, drawn))
    return Hulls(
        vertex=vertex,
        normal=m.mesh_polynormal,
        tables=jax.tree.map(jnp.asarray, lookup_tables(s, drawn)),
        max_candidates=s.nhullmost,
        max_vertex_faces=max_vertex_faces,
        max_face_corners=max_face_corners,
        nhull=s.nhull,
        searches_all=bool(searched_geoms(s, drawn).any()),
        climbs=platform().branches or HULLS_MOVED in s,
        moved=_detect_changed_vertices(s, vertex, drawn)
        if platform().branches and s.nhull
        else None,
    )


def hull_of(h: Hulls, geom: Array) -> Array:
    """Return the hull ids of geoms, `[..., worlds]` or all in one row (`HullTables.geom_hull`)."""
    hull = take(h.tables.geom_hull, geom)
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


def hull_vertex(h: Hulls, vertex: Array) -> Vec:
    """Return coordinates of vertices in the frame of their geom [m]."""
    return lookup_per_world(h, h.vertex, vertex)


def lookup_per_world(h: Hulls, table: Vec, number: Array) -> Vec:
    """Return items of a table that worlds may share."""
    place = number if _columns(table) == h.worlds else row_of(h, number)
    return table.map(lambda a: take(a.reshape(-1), place))


def leading_iota(n: int, like: Array) -> Array:
    """Return 0, 1, ... n - 1 along a new axis in front of those of `like`."""
    return jnp.arange(n, dtype=jnp.int32).reshape(n, *(1,) * like.ndim)


def add_axis(x: PyTree) -> PyTree:
    """Add a leading axis of 1."""
    return jax.tree.map(lambda a: a[None], x)


def argmax_choice(choices: Array, value: Array) -> Array:
    """Return the choice along the first axis with the largest value; the first among equal ones.

    One reduction over both, with a plain comparison, is twice as fast as `argmax`.
    """

    def better(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        larger = b[0] > a[0]
        return jnp.where(larger, b[0], a[0]), jnp.where(larger, b[1], a[1])

    none = jnp.array(-jnp.inf, value.dtype), jnp.array(0, choices.dtype)
    return lax.reduce((lax.stop_gradient(value), choices), none, better, (0,))[1]


def _detect_changed_vertices(s: Structure, searched: Vec, drawn: bool) -> Array:
    """Return whether some vertex of a hull differs, in some world, from the loaded model."""
    # Compare each coordinate with the loaded one, up to rounding.
    vertex, point, tolerance = loaded_hulls(s)
    place = np.searchsorted(searched_vertices(s, drawn), vertex)
    now = lax.stop_gradient(gather_static(searched, place))
    off = [
        jnp.abs(a - column(p, a)) > column(tolerance, a)
        for a, p in zip(now.parts, point.T, strict=True)
    ]
    return jnp.any(off[0] | off[1] | off[2])


def _columns(table: Vec) -> int:
    """Return the number of worlds of a table `[n]`, `[n, 1]` or `[n, worlds]`."""
    return table.x.shape[1] if table.x.ndim > 1 else 1
