"""Ray-triangle intersection, two-sided.

With the corners a, b, c relative to the origin of the ray, the ray u passes between them if the
volumes u (b x c), u (c x a), u (a x b) have one sign. Their sum is u n, with the normal n = (b - a)
x (c - a), and the plane is hit at t = (a n) / (u n). (Möller & Trumbore, *Fast, Minimum Storage
Ray/Triangle Intersection*, 1997; Woop, Benthin & Wald, *Watertight Ray/Triangle Intersection*,
2013.) The volumes are computed from the components of the corners across the ray, which are short
however far away the triangle is.

Two triangles that share an edge must not leave a gap. Therefore a ray that is nearer to an edge
than the rounding error of the volumes hits the triangle: corners at distance `far` and offset
`wide` from the ray have errors of eps far, volumes of eps far wide.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.physics.ray.local_rays import NO_HIT, Hit

_VOLUME_ROUNDING_ULPS = 4  # rounding error of a volume, in units of eps


def ray_triangle(way: Vec, a: Vec, b: Vec, c: Vec) -> Array:
    """Compute distances to triangles [m], which may be negative; NEVER for a miss.

    Args:
      way: unit direction.
      a, b, c: corners relative to the origin of the ray.
    """
    # Scalar triple products of the corners across the ray, and their error bound.
    x, y, z = (corner - way.scale(way.dot(corner)) for corner in (a, b, c))
    volumes = [way.dot(one.cross(other)) for one, other in ((y, z), (z, x), (x, y))]
    # Roundoff of the volumes.
    far, wide = (
        jnp.maximum(jnp.maximum(p.dot(p), q.dot(q)), r.dot(r)) for p, q, r in ((a, b, c), (x, y, z))
    )
    unsure = _VOLUME_ROUNDING_ULPS * float(jnp.finfo(far.dtype).eps) * jnp.sqrt(far * wide)
    # The ray passes through the triangle if the volumes have the same sign.
    least = jnp.minimum(jnp.minimum(volumes[0], volumes[1]), volumes[2])
    most = jnp.maximum(jnp.maximum(volumes[0], volumes[1]), volumes[2])
    normal = (b - a).cross(c - a)
    along = way.dot(normal)
    through = ((least >= -unsure) | (most <= unsure)) & (
        jnp.abs(along) > jnp.maximum(unsure, MINVAL)
    )
    return jnp.where(through, a.dot(normal) / jnp.where(through, along, 1), NO_HIT)


def barycentric_weights(a: Vec, b: Vec, c: Vec) -> tuple[Array, ...]:
    """Return the barycentric weights of a point in a triangle; corners are relative to it."""
    normal = (b - a).cross(c - a)
    area = normal.dot(normal)
    per = 1 / jnp.where(area > 0, area, 1)
    return tuple(normal.dot(u.cross(v)) * per for u, v in ((b, c), (c, a), (a, b)))


def intersect_triangle(way: Vec, a: Vec, b: Vec, c: Vec) -> Hit:
    """Compute the intersections with the planes of triangles that are hit; differentiable."""
    normal = (b - a).cross(c - a)
    along = way.dot(normal)
    # A triangle that is hit is above MINVAL; for others the value is only kept finite.
    met = jnp.abs(along) > 0.01 * MINVAL
    return Hit(a.dot(normal) / jnp.where(met, along, 1), normal.normalize())
