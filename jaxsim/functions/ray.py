"""Intersect rays with a single primitive shape; MuJoCo's `mju_rayGeom`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math import Rot, Vec, select_where
from jaxsim.physics.ray.local_rays import NO_HIT, LocalRays
from jaxsim.physics.ray.plane_box import ray_box, ray_plane
from jaxsim.physics.ray.quadric import ray_capsule, ray_cylinder, ray_ellipsoid, ray_sphere

RAY_SHAPES = {
    GeomType.PLANE: ray_plane,
    GeomType.SPHERE: ray_sphere,
    GeomType.CAPSULE: ray_capsule,
    GeomType.ELLIPSOID: ray_ellipsoid,
    GeomType.CYLINDER: ray_cylinder,
    GeomType.BOX: ray_box,
}


class GeomHit(NamedTuple):
    """Intersections of rays with a shape.

    Attributes:
      dist: distance in lengths of the ray vectors, (...); -1: no intersection.
      normal: outward surface normal in the world, (..., 3), or zero.
    """

    dist: jax.Array
    normal: jax.Array


def ray_geom(
    pos: Array, mat: Array, size: Array, pnt: Array, vec: Array, geomtype: GeomType | int | str
) -> GeomHit:
    """Intersect rays pnt + x vec, x >= 0, with a shape; return the nearest intersection.

    A ray that starts inside a shape hits it from inside; a plane is hit from its front side only,
    within the rectangle of its size (0: infinite). Leading axes are batch axes, and are broadcast.

    Args:
      pos, mat: pose of the shape in the world, (..., 3) [m] and (..., 3, 3).
      size: MuJoCo's `geom_size`, (..., 3) [m].
      pnt: origins of the rays, (..., 3), in the world [m].
      vec: directions, (..., 3), of any length; a zero vector hits nothing.
      geomtype: plane, sphere, capsule, ellipsoid, cylinder or box: a name or a number of
        `GeomType`. Known when traced.

    Returns:
      A GeomHit: dist (...), normal (..., 3).

    Raises:
      ValueError: the type of shape is not supported.
    """
    shape = RAY_SHAPES[_geom_type(geomtype)]
    arrays = [jnp.asarray(x) for x in (pos, size, pnt, vec)]
    rotation = jnp.asarray(mat)
    many = jnp.broadcast_shapes(*(x.shape[:-1] for x in arrays), rotation.shape[:-2])
    center, sizes, begin, along = (
        Vec(*_components(jnp.broadcast_to(x, (*many, 3)))) for x in arrays
    )
    rot = Rot(*_components(jnp.broadcast_to(rotation, (*many, 3, 3)).reshape(*many, 9)))
    x, y, z = along.map(jnp.abs).parts
    moves = jnp.maximum(jnp.maximum(x, y), z) >= MINVAL
    way = select_where(moves, along, Vec(jnp.zeros_like(x), jnp.zeros_like(x), jnp.ones_like(x)))
    length = way.norm()
    nothing = jnp.zeros((), jnp.int32)
    local = LocalRays(
        rot.T @ (begin - center), rot.T @ way.scale(1 / length), sizes, geom=nothing, world=nothing
    )
    hit = shape(local)
    met = moves & (hit.dist < NO_HIT)
    dist = jnp.where(met, jnp.where(met, hit.dist, 0) / length, -1)
    normal = (rot @ hit.normal).map(lambda n: jnp.where(met, n, 0))
    return GeomHit(dist, jnp.stack(normal.parts, axis=-1))


def _geom_type(geomtype: GeomType | int | str) -> GeomType:
    names = {kind.name.lower(): kind for kind in RAY_SHAPES}
    kind = names.get(geomtype) if isinstance(geomtype, str) else geomtype
    if kind not in RAY_SHAPES:
        raise ValueError(
            f"ray_geom: geomtype: expected one of {', '.join(names)}, got {geomtype!r}"
        )
    return GeomType(kind)


def _components(a: Array) -> list[Array]:
    """Return the components along the last axis."""
    return [a[..., k] for k in range(np.shape(a)[-1])]
