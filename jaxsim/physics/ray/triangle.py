"""A ray and a triangle, from either side.

With the corners a, b, c seen from the beginning of the ray, the ray u passes between them if the
volumes u (b x c), u (c x a), u (a x b) have one sign; the sum of these is u n, with the normal n =
(b - a) x (c - a), and the plane is met at t = (a n) / (u n). (Möller & Trumbore, Fast, Minimum
Storage Ray/Triangle Intersection, 1997; Woop, Benthin & Wald, Watertight Ray/Triangle Intersection,
2013.) The volumes are the same of the parts of the corners across the ray, which are short however
far away the triangle is.

Two triangles that share an edge must not let a ray through between them. So a ray that is nearer to
an edge than the volumes are known meets the triangle: corners that are `far` away and `wide` of the
ray are known to eps far, volumes to eps far wide.
"""

import jax.numpy as jnp

from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.ray.local import NEVER, Hit

ROUNDINGS = 4  # of a volume, in the precision of the numbers


def meets(way: Vec, a: Vec, b: Vec, c: Vec) -> Array:
    """How far rays go to triangles [m], which may be negative; NEVER if they pass by.

    Args:
      way: direction, of unit length.
      a, b, c: corners, seen from where the ray begins.
    """
    x, y, z = (corner - way.scale(way.dot(corner)) for corner in (a, b, c))
    volumes = [way.dot(one.cross(other)) for one, other in ((y, z), (z, x), (x, y))]
    far, wide = (
        jnp.maximum(jnp.maximum(p.dot(p), q.dot(q)), r.dot(r)) for p, q, r in ((a, b, c), (x, y, z))
    )
    unsure = ROUNDINGS * float(jnp.finfo(far.dtype).eps) * jnp.sqrt(far * wide)
    least = jnp.minimum(jnp.minimum(volumes[0], volumes[1]), volumes[2])
    most = jnp.maximum(jnp.maximum(volumes[0], volumes[1]), volumes[2])
    normal = (b - a).cross(c - a)
    along = way.dot(normal)
    through = ((least >= -unsure) | (most <= unsure)) & (
        jnp.abs(along) > jnp.maximum(unsure, MINVAL)
    )
    return jnp.where(through, a.dot(normal) / jnp.where(through, along, 1), NEVER)


def weights(a: Vec, b: Vec, c: Vec) -> tuple[Array, ...]:
    """How near a point in a triangle is to its corners, which are seen from it; the sum is one."""
    normal = (b - a).cross(c - a)
    area = normal.dot(normal)
    per = 1 / jnp.where(area > 0, area, 1)
    return tuple(normal.dot(u.cross(v)) * per for u, v in ((b, c), (c, a), (a, b)))


def hit(way: Vec, a: Vec, b: Vec, c: Vec) -> Hit:
    """Where rays meet the planes of triangles that they do meet; differentiable."""
    normal = (b - a).cross(c - a)
    along = way.dot(normal)
    # of a triangle that is met it is above MINVAL; of others nothing counts, but it is finite
    met = jnp.abs(along) > 0.01 * MINVAL
    return Hit(a.dot(normal) / jnp.where(met, along, 1), normal.normalize())
