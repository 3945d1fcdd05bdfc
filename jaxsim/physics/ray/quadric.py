"""Ray intersections with quadrics: spheres, ellipsoids, capsules, cylinders.

The points of a line p + t u at distance r from a center are

    t = t0 +- sqrt((r r - q q) / (u u)),   t0 = -(p u) / (u u),   q = p + t0 u

with q the point of the line nearest to the center. The difference of r and |q| is as precise as the
radius, however far away the ray's origin is.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, safe_sqrt
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, LocalRays, nearest_ahead


def ray_sphere(ray: LocalRays) -> Hit:
    """Intersect with a sphere of radius `size.x`."""
    t = nearest_ahead(*sphere_crossings(ray.pos, ray.way, ray.size.x))
    return Hit(t, _hit_points(ray, t).normalize())


def ray_ellipsoid(ray: LocalRays) -> Hit:
    """Intersect with an ellipsoid of semi-axes `size`: a unit sphere in scaled coordinates."""
    a, b, c = ray.size.parts

    def stretched(v: Vec) -> Vec:
        return Vec(v.x / a, v.y / b, v.z / c)

    t = nearest_ahead(*sphere_crossings(stretched(ray.pos), stretched(ray.way), jnp.ones_like(a)))
    return Hit(t, stretched(stretched(_hit_points(ray, t))).normalize())


def ray_capsule(ray: LocalRays) -> Hit:
    """Intersect with a capsule of radius `size.x` and half length `size.y`."""
    radius, half = ray.size.x, ray.size.y
    # The cylindrical side, then both end spheres.
    ways = [_intersect_side(ray)]
    for end in (1.0, -1.0):
        z = ray.pos.z - end * half
        for t in sphere_crossings(Vec(ray.pos.x, ray.pos.y, z), ray.way, radius):
            # A sphere counts only beyond its end of the cylinder.
            beyond = end * (z + jnp.where(jnp.isfinite(t), t, 0) * ray.way.z) >= 0
            ways.append(jnp.where(beyond, t, NO_HIT))
    t = nearest_ahead(*ways)
    at = _hit_points(ray, t)
    # The normal points away from the nearest point of the axis.
    return Hit(t, Vec(at.x, at.y, at.z - jnp.clip(at.z, -half, half)).normalize())


def ray_cylinder(ray: LocalRays) -> Hit:
    """Intersect with a cylinder of radius `size.x` and half length `size.y`."""
    radius, half = ray.size.x, ray.size.y
    moves = jnp.abs(ray.way.z) > MINVAL
    # Both end disks.
    ends = []
    for sign in (-1.0, 1.0):
        t = (sign * half - ray.pos.z) / jnp.where(moves, ray.way.z, 1)
        x, y = ray.pos.x + t * ray.way.x, ray.pos.y + t * ray.way.y
        ends.append(jnp.where(moves & (x * x + y * y <= radius * radius), t, NO_HIT))
    # The nearer of disk and side decides the normal.
    on_end, on_side = nearest_ahead(*ends), _intersect_side(ray)
    t = nearest_ahead(on_end, on_side)
    at, flat = _hit_points(ray, t), on_end <= on_side
    zero = jnp.zeros_like(t)
    round_ = Vec(at.x, at.y, zero).normalize()
    end = jnp.where(at.z < 0, -1, 1).astype(t.dtype)
    x, y, z = (jnp.where(flat, a, b) for a, b in zip((zero, zero, end), round_.parts, strict=True))
    return Hit(t, Vec(x, y, z))


def _intersect_side(ray: LocalRays) -> Array:
    """Return the first intersection with the lateral surface about the z axis."""
    zero = jnp.zeros_like(ray.pos.z)
    across, way = Vec(ray.pos.x, ray.pos.y, zero), Vec(ray.way.x, ray.way.y, zero)
    t = nearest_ahead(*sphere_crossings(across, way, ray.size.x))
    z = ray.pos.z + jnp.where(jnp.isfinite(t), t, 0) * ray.way.z
    return jnp.where(jnp.abs(z) <= ray.size.y, t, NO_HIT)


def sphere_crossings(p: Vec, u: Vec, radius: Array) -> tuple[Array, Array]:
    """Return entry and exit of lines p + t u in a sphere about the origin; NEVER for a miss."""
    a = u.dot(u)
    moves = a >= MINVAL
    a = jnp.where(moves, a, 1)
    middle = -p.dot(u) / a
    # Point of the line nearest to the center; half the chord from Pythagoras.
    nearest = p + u.scale(middle)
    square = (radius * radius - nearest.dot(nearest)) / a
    meets = moves & (square >= 0)
    half = safe_sqrt(jnp.maximum(square, 0))
    return jnp.where(meets, middle - half, NO_HIT), jnp.where(meets, middle + half, NO_HIT)


def _hit_points(ray: LocalRays, t: Array) -> Vec:
    """Return the hit points; for rays without a hit their origins."""
    return ray.at(jnp.where(jnp.isfinite(t), t, 0))
