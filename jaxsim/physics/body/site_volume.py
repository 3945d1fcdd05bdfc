"""Volumes of sites: containment tests of points in the frame of the site."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure


def points_inside_site(m: Model, kind: GeomType, site: np.ndarray, p: Vec) -> Array:
    """Return True where points are inside sites of one type; for a mesh, its convex hull.

    Args:
      m: the model.
      kind: GeomType of the sites, one of INSIDE_FUNCTIONS or a mesh.
      site: the sites, `[n]`.
      p: points in the frames of these, `[n, *W]` or `[n, k, *W]` [m].

    Returns:
      bool, of the shape of a component of `p`.
    """
    between = p.x.ndim - m.site_size.ndim + 1  # number of point axes between sites and worlds

    def of_site(table: np.ndarray | Array) -> Array:
        a = gather_static(jnp.asarray(table), site)
        return a.reshape(len(site), *(1,) * between, *a.shape[1:])

    if kind == GeomType.MESH:
        mesh = m.site_dataid[site]
        return in_hull(m, mesh.reshape(len(site), *(1,) * (p.x.ndim - 1)), p)
    return INSIDE_FUNCTIONS[kind](*(of_site(m.site_size[:, k]) for k in range(3)), p)


def _box(a: Array, b: Array, c: Array, p: Vec) -> Array:
    return (jnp.abs(p.x) < a) & (jnp.abs(p.y) < b) & (jnp.abs(p.z) < c)


def _capsule(a: Array, b: Array, c: Array, p: Vec) -> Array:
    z = p.z - jnp.clip(p.z, -b, b)
    return p.x * p.x + p.y * p.y + z * z < a * a


def _cylinder(a: Array, b: Array, c: Array, p: Vec) -> Array:
    return (p.x * p.x + p.y * p.y < a * a) & (jnp.abs(p.z) < b)


def _ellipsoid(a: Array, b: Array, c: Array, p: Vec) -> Array:
    return (p.x / a) ** 2 + (p.y / b) ** 2 + (p.z / c) ** 2 < 1


INSIDE_FUNCTIONS: dict[GeomType, Callable] = {
    GeomType.SPHERE: lambda a, b, c, p: p.dot(p) < a * a,
    GeomType.CAPSULE: _capsule,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _cylinder,
    GeomType.BOX: _box,
}


def in_hull(m: Model, mesh: Array | np.ndarray, p: Vec) -> Array:
    """Return True where points are below all faces of the convex hulls of meshes.

    Args:
      m: the model.
      mesh: mesh of each point, one used by a site; it broadcasts with a component of `p`.
      p: points in the frame of the mesh file, which is the site's frame; the frame of the vertices
        has a pose in it; `[..., *W]` [m].
    """
    worlds = m.mesh_polynormal.x.ndim - 1
    front = (1,) * (p.x.ndim - worlds)

    def spread(values):
        """Insert `[k, *W]` before the batch axis, after the axes of the points."""
        return values.map(lambda x: x.reshape(*front, *x.shape))

    found = jnp.zeros(p.shape, bool)
    # Test each mesh that a site uses.
    for k, side, corner in _hulls(m.structure):
        quat, pos = (
            gather_static(x, [k]).map(lambda a: a.reshape(*front, *a.shape[1:]))
            for x in (m.mesh_quat, m.mesh_pos)
        )
        q = quat.conj.rotate(p - pos).map(lambda x: jnp.expand_dims(x, len(front)))
        normal, corners = (
            spread(gather_static(m.mesh_polynormal, side)),
            spread(gather_static(m.mesh_vert, corner)),
        )
        under = jnp.all((q - corners).dot(normal) < 0, axis=len(front))
        found = jnp.where(mesh == k, under, found)
    return found


@cache_by_structure
def _hulls(s: Structure) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Return the meshes used by sites: id, faces of the hull, a vertex of each face."""
    owner = np.repeat(np.arange(s.nmesh), s.mesh_polynum)
    hulls = []
    for mesh in np.unique(s.site_dataid[s.site_type == GeomType.MESH]):
        side = np.flatnonzero(owner == mesh)
        first = np.asarray(s.mesh_polyvert)[s.mesh_polyvertadr[side]]
        hulls.append((int(mesh), side, first + s.mesh_vertadr[mesh]))
    return hulls


VOLUME_TYPES = frozenset((*INSIDE_FUNCTIONS, GeomType.MESH))
