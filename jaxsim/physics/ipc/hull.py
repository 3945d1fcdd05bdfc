"""Signed distances of points from the convex hulls of fixed meshes, by a search over all faces."""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.flex.triangle import nearest_on_triangle
from jaxsim.physics.collision.shape import PlacedGeoms
from jaxsim.physics.ipc.plan import ipc_plan


class TriangleHulls(NamedTuple):
    """Convex hulls of meshes as triangles, padded to equal counts by repetition.

    Attributes:
      row: hull of each geom, int `[ngeom, 1]`.
      corner: corners of the triangles, `[hulls, triangles, *W]` each.
    """

    row: jax.Array
    corner: tuple[Vec, ...]


def triangle_hulls(m: Model) -> TriangleHulls | None:
    """Return the hulls of meshes that shells can meet; None: there are none."""
    # The same geoms in every grid of meshes.
    geoms = [g.second.ravel() for g in ipc_plan(m).grids if g.type == GeomType.MESH]
    if not geoms:
        return None
    # Triangles of each hull, padded.
    row, table = _triangles(m.structure, tuple(geoms[0].tolist()))
    flat = [gather_static(m.mesh_vert, table[:, :, k].ravel()) for k in range(3)]
    corner = (v.map(lambda a: a.reshape(*table.shape[:2], *a.shape[1:])) for v in flat)
    return TriangleHulls(jnp.asarray(column(row, flat[0]), jnp.int32), tuple(corner))


def hull_distance_and_normal(of: TriangleHulls, geom: PlacedGeoms, x: Vec) -> tuple[Array, Vec]:
    """Compute distances from hulls and unit normals, `[n, *W]`; arguments as in surface.py."""
    # Transform to the geom's frame, and gather the triangles of its hull.
    local = geom.rot.T @ (x - geom.pos)
    count = of.corner[0].shape[1]
    first = count * gather(of.row, geom.id)
    number = jnp.asarray(column(np.arange(count, dtype=np.int32), first))[:, None] + first[None]
    corner = tuple(_gather_rows(c, number) for c in of.corner)
    point = local.map(lambda a: jnp.broadcast_to(a[None], number.shape))
    one, two, three = corner
    # Signed height over each face; inside, the largest one is the distance.
    across = (two - one).cross(three - one)
    size = across.norm()
    out = across.scale(1 / jnp.where(size > MINVAL, size, 1))
    height = jnp.where(size > MINVAL, (point - one).dot(out), -jnp.inf)
    top = jnp.argmax(height, axis=0)
    inside = jnp.max(height, axis=0) <= 0
    # Outside, the distance is that of the nearest triangle.
    motion = point - nearest_on_triangle(point, corner)
    near = jnp.argmin(motion.dot(motion), axis=0)
    away = motion.map(lambda a: _gather_entry(a, near))
    normal = select_where(inside, out.map(lambda a: _gather_entry(a, top)), away.normalize())
    dist = jnp.where(inside, _gather_entry(height, top), away.norm())
    return dist, geom.rot @ normal


def _gather_rows(table: Vec, number: Array) -> Vec:
    # Flatten hulls and triangles to one axis.
    flat = number.reshape(-1, *number.shape[2:])
    rows = table.map(lambda a: a.reshape(-1, *a.shape[2:]))
    return gather(rows, flat).map(lambda a: a.reshape(number.shape))


def _gather_entry(a: Array, index: Array) -> Array:
    """Gather the entry that each pair selects, `[k, n, *W]` -> `[n, *W]`."""
    return jnp.take_along_axis(a, index[None], axis=0)[0]


@cache_by_structure
def _triangles(s: Structure, geoms: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hull of each geom `[ngeom]`, and triangles as `mesh_vert` ids `[k, count, 3]`."""
    # Triangulate each distinct mesh once.
    of_geom = np.asarray(s.geom_dataid)[list(geoms)]
    meshes = np.unique(of_geom)
    fans = [_triangulate_fans(s, int(mesh)) for mesh in meshes]
    most = max(len(fan) for fan in fans)
    table = np.array([fan[np.arange(most) % len(fan)] for fan in fans])
    row = np.zeros(s.ngeom, int)
    row[list(geoms)] = np.searchsorted(meshes, of_geom)
    return row, table


def _triangulate_fans(s: Structure, mesh: int) -> np.ndarray:
    """Triangulate the polygons of a hull as fans."""
    out = []
    # A fan of triangles per polygon.
    for p in range(s.mesh_polyadr[mesh], s.mesh_polyadr[mesh] + s.mesh_polynum[mesh]):
        outline = s.mesh_polyvert[s.mesh_polyvertadr[p] :][: s.mesh_polyvertnum[p]]
        for one, other in pairwise(outline[1:]):
            out.append((outline[0], one, other))
    return s.mesh_vertadr[mesh] + np.array(out)
