"""Ray tests against primitive shapes, given by type and size, in the shape's frame."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Vec, safe_sqrt


def ray_hits_shape(kind: GeomType, size: Array, p: Vec, u: Vec) -> Array:
    """Return True where rays from `p` along `u` hit the surface of a shape, or start inside it.

    Args:
      kind: type of the shape.
      size: its size parameters, `[n, 3, *W]` [m].
      p: origins of the rays, in its frame, `[n, *W]` [m].
      u: direction of the rays; a zero vector hits nothing.
    """
    a, b, c = (size[:, k] for k in range(3))
    moving = u.dot(u) > 0
    return moving & RAY_INTERVALS[kind](a, b, c, p, u)


# A line intersects a convex shape in an interval of its parameter; (1, 0) represents none.


def _ball(radius: Array | float, p: Vec, u: Vec) -> tuple[Array, Array]:
    """Return the interval in a sphere; for a zero direction all or none."""
    return _quadratic(u.dot(u), p.dot(u), p.dot(p) - radius * radius)


def _quadratic(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Return the interval where a t^2 + 2 b t + c <= 0, for a >= 0."""
    still = a == 0
    disc = b * b - a * c
    # Roots of the quadratic: the middle plus or minus half the chord.
    root = safe_sqrt(jnp.maximum(disc, 0)) / jnp.where(still, 1.0, a)
    middle = -b / jnp.where(still, 1.0, a)
    # A constant polynomial (a = 0) holds everywhere or nowhere.
    meets = jnp.where(still, c <= 0, disc >= 0)
    lower = jnp.where(still, -jnp.inf, middle - root)
    upper = jnp.where(still, jnp.inf, middle + root)
    return jnp.where(meets, lower, 1.0), jnp.where(meets, upper, 0.0)


def _slab_interval(half: Array, p: Array, u: Array) -> tuple[Array, Array]:
    """Return the interval where |p + t u| <= half."""
    return _quadratic(u * u, p * u, p * p - half * half)


def _common_shapes(*intervals: tuple[Array, Array]) -> tuple[Array, Array]:
    lower, upper = intervals[0]
    for other in intervals[1:]:
        lower, upper = jnp.maximum(lower, other[0]), jnp.minimum(upper, other[1])
    return lower, upper


def _is_ahead(interval: tuple[Array, Array]) -> Array:
    lower, upper = interval
    return (lower <= upper) & (upper >= 0)


def _ray_box(a: Array, b: Array, c: Array, p: Vec, u: Vec) -> Array:
    return _is_ahead(
        _common_shapes(
            _slab_interval(a, p.x, u.x), _slab_interval(b, p.y, u.y), _slab_interval(c, p.z, u.z)
        )
    )


def _ray_cylinder(a: Array, b: Array, c: Array, p: Vec, u: Vec) -> Array:
    pipe = _quadratic(u.x * u.x + u.y * u.y, p.x * u.x + p.y * u.y, p.x * p.x + p.y * p.y - a * a)
    return _is_ahead(_common_shapes(pipe, _slab_interval(b, p.z, u.z)))


def _ray_capsule(a: Array, b: Array, c: Array, p: Vec, u: Vec) -> Array:
    # Union of the two end spheres and the cylinder between them.
    up, down = Vec(p.x, p.y, p.z - b), Vec(p.x, p.y, p.z + b)
    ends = _is_ahead(_ball(a, up, u)) | _is_ahead(_ball(a, down, u))
    return ends | _ray_cylinder(a, b, c, p, u)


def _ray_ellipsoid(a: Array, b: Array, c: Array, p: Vec, u: Vec) -> Array:
    # Scale the ellipsoid to the unit sphere.
    scaled = (Vec(v.x / a, v.y / b, v.z / c) for v in (p, u))
    return _is_ahead(_ball(1.0, *scaled))


RAY_INTERVALS: dict[GeomType, Callable] = {
    GeomType.SPHERE: lambda a, b, c, p, u: _is_ahead(_ball(a, p, u)),
    GeomType.CAPSULE: _ray_capsule,
    GeomType.ELLIPSOID: _ray_ellipsoid,
    GeomType.CYLINDER: _ray_cylinder,
    GeomType.BOX: _ray_box,
}
