"""Table of intersection functions by geom type."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.enums import GeomType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.field.kinds import NO_SDF, kind_of
from jaxsim.physics.ray import hfield, mesh, plane_box, quadric, sdf
from jaxsim.physics.ray.hfield import RayHfields
from jaxsim.physics.ray.local_rays import Hit, LocalRays
from jaxsim.physics.ray.sdf import Distances
from jaxsim.physics.ray.tree import Trees, mesh_trees

NUM_GEOM_GROUPS = 6  # geom groups, which rays may exclude


@node()
class Surfaces:
    """Tables for ray casts besides poses and sizes; None where no geom needs them.

    Attributes:
      mesh: mesh of each geom, 0 for others, `[ngeom]`.
      corner: vertices of the faces of all meshes, three arrays `[nmeshface]`.
      trees: bounding volume hierarchies of meshes.
      grids: height fields.
      distances: signed distances of `sdf` geoms.
    """

    mesh: jax.Array
    corner: tuple[jax.Array, ...]
    trees: Trees | None
    grids: RayHfields | None
    distances: Distances | None


class RaySurface(NamedTuple):
    """Intersection functions of a geom type.

    Attributes:
      nearest: `(surfaces, rays, limits [geoms, rays, *W])` -> distance up to the limit, else NEVER,
        and the id of the part that is hit.
      hit: `(surfaces, rays, distance, part)` -> the same distance and the normal, differentiable.
    """

    nearest: Callable[[Surfaces, LocalRays, Array], tuple[Array, Array]]
    hit: Callable[[Surfaces, LocalRays, Array, Array], Hit]


def ray_surfaces(m: Model, geoms: np.ndarray) -> Surfaces:
    """Build the tables for rays that may hit some geoms, from a model in the physics layout."""
    s = m.structure
    types = set(s.geom_type[geoms].tolist())
    has_mesh, has_field = GeomType.MESH in types, GeomType.HFIELD in types
    # Signed distances of `sdf` geoms; all others are NONE.
    kinds = [_kind(s, g) if g in geoms else NO_SDF for g in range(s.ngeom)]

    def data(type_: GeomType) -> jax.Array:
        return jnp.asarray(np.where(s.geom_type == type_, s.geom_dataid, 0), jnp.int32)

    corner = _corners(s) if has_mesh else np.zeros((3, 0), np.int32)
    return Surfaces(
        mesh=data(GeomType.MESH),
        corner=tuple(jnp.asarray(c) for c in corner),
        trees=mesh_trees(m) if has_mesh else None,
        grids=hfield.ray_hfields(m, data(GeomType.HFIELD)) if has_field else None,
        distances=sdf.ray_distance_fields(m, kinds) if GeomType.SDF in types else None,
    )


def visible_geoms(s: Structure) -> np.ndarray:
    """Return geoms that rays can hit: all except meshes without faces."""
    mesh = np.where(s.geom_type == GeomType.MESH, s.geom_dataid, -1)
    return np.flatnonzero((mesh < 0) | (np.append(s.mesh_facenum, 0)[mesh] > 0))


def filter_visible_geoms(
    s: Structure, geomgroup: tuple[bool, ...] | None = None, flg_static: bool = True
) -> np.ndarray:
    """Return geoms that rays can hit, in some groups, with or without static ones.

    A group beyond the last counts as the last.
    """
    ids = visible_geoms(s)
    if geomgroup is not None:
        # Groups outside the range count as the nearest.
        group = np.clip(s.geom_group, 0, NUM_GEOM_GROUPS - 1)
        ids = ids[np.array(geomgroup)[group[ids]]]
    return ids if flg_static else ids[s.body_weldid[s.geom_bodyid[ids]] != 0]


def unknown_sdf_geoms(s: Structure) -> np.ndarray:
    """Return geoms with an unknown signed distance, which do not support rays."""
    fields = np.flatnonzero(s.geom_type == GeomType.SDF)
    return np.array([g for g in fields if kind_of(s, g) == NO_SDF], int)


def _kind(s: Structure, geom: int) -> str:
    return kind_of(s, geom) if s.geom_type[geom] == GeomType.SDF else NO_SDF


def _corners(s: Structure) -> np.ndarray:
    """Return the vertices of the faces of all meshes, `[3, nmeshface]`."""
    start = np.repeat(s.mesh_vertadr, s.mesh_facenum)
    return (np.asarray(s.mesh_face).reshape(-1, 3) + start[:, None]).T.astype(np.int32)


def _surface_without_parts(function: Callable[[LocalRays], Hit]) -> RaySurface:
    """Return a surface without parts, whose formula is itself differentiable."""

    def nearest(_: Surfaces, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
        dist = jnp.broadcast_to(function(ray).dist, limit.shape)
        return dist, jnp.zeros(limit.shape, jnp.int32)

    return RaySurface(nearest, lambda surfaces, ray, dist, part: function(ray))


def _mesh_hit(s: Surfaces, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
    assert s.trees is not None
    return mesh.nearest_mesh_hit(s.mesh, s.trees, ray, limit)


def _mesh_surface_hit(s: Surfaces, ray: LocalRays, dist: Array, part: Array) -> Hit:
    assert s.trees is not None
    return mesh.intersect_mesh_face(s.trees, ray, part, s.corner)


def _hfield_hit(s: Surfaces, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
    assert s.grids is not None
    return hfield.nearest_hfield_hit(s.grids, ray, limit)


def _hfield_surface_hit(s: Surfaces, ray: LocalRays, dist: Array, part: Array) -> Hit:
    assert s.grids is not None
    return hfield.intersect_hfield_triangle(s.grids, ray, part)


def _sdf_hit(s: Surfaces, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
    assert s.distances is not None
    return sdf.nearest_sdf_hit(s.distances, ray, limit)


def _sdf_surface_hit(s: Surfaces, ray: LocalRays, dist: Array, part: Array) -> Hit:
    assert s.distances is not None
    return sdf.intersect_sdf_surface(s.distances, ray, dist)


RAY_SURFACES: dict[int, RaySurface] = {
    GeomType.PLANE: _surface_without_parts(plane_box.ray_plane),
    GeomType.SPHERE: _surface_without_parts(quadric.ray_sphere),
    GeomType.CAPSULE: _surface_without_parts(quadric.ray_capsule),
    GeomType.ELLIPSOID: _surface_without_parts(quadric.ray_ellipsoid),
    GeomType.CYLINDER: _surface_without_parts(quadric.ray_cylinder),
    GeomType.BOX: _surface_without_parts(plane_box.ray_box),
    GeomType.MESH: RaySurface(_mesh_hit, _mesh_surface_hit),
    GeomType.HFIELD: RaySurface(_hfield_hit, _hfield_surface_hit),
    GeomType.SDF: RaySurface(_sdf_hit, _sdf_surface_hit),
}
