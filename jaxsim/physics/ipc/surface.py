"""Signed distances of points from the surfaces of fixed geoms, with normals.

Positive outside; inside, minus the distance to the surface. MuJoCo takes cylinders from its convex
collision algorithm, which has no signed distance inside.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Vec, safe_divide, safe_sqrt
from jaxsim.physics.collision.shape import PlacedGeoms

_MAX_ELLIPSOID_STEPS = 24  # Newton iterations for ellipsoids, which converge monotonically


def geom_distance_and_normal(kind: GeomType, geom: PlacedGeoms, x: Vec) -> tuple[Array, Vec]:
    """Compute distances from geoms of one type other than mesh, and unit normals, `[n, *W]`.

    Args:
      kind: type of the geoms.
      geom: the geoms, `[n, *W]`.
      x: points in the world, `[n, *W]`.
    """
    dist, normal = _DISTANCE_FUNCTIONS[kind](geom.rot.T @ (x - geom.pos), geom.size)
    return dist, geom.rot @ normal


def _plane(x: Vec, size: Vec) -> tuple[Array, Vec]:
    del size
    return x.z, _unit_z(x)


def _sphere(x: Vec, size: Vec) -> tuple[Array, Vec]:
    return x.norm() - size.x, x.normalize(_unit_z(x))


def _capsule(x: Vec, size: Vec) -> tuple[Array, Vec]:
    away = Vec(x.x, x.y, x.z - jnp.clip(x.z, -size.y, size.y))
    return away.norm() - size.x, away.normalize()


def _box(x: Vec, size: Vec) -> tuple[Array, Vec]:
    # Outside, distance to the box; inside, to the nearest face.
    over = [jnp.abs(c) - s for c, s in zip(x.parts, size.parts, strict=True)]
    outside = Vec(*(jnp.maximum(o, 0) for o in over))
    # Nearest face inside: the largest coordinate excess.
    most = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    first = over[0] == most
    second = ~first & (over[1] == most)
    face = (first, second, ~first & ~second)
    inside = most <= 0
    # Normal: face normal inside, direction to the nearest point outside.
    unit = outside.normalize()
    signed = [
        jnp.where(inside, f.astype(o.dtype), u) * jnp.where(c < 0, -1, 1)
        for f, o, u, c in zip(face, over, unit.parts, x.parts, strict=True)
    ]
    return jnp.where(inside, most, outside.norm()), Vec(*signed)


def _cylinder(x: Vec, size: Vec) -> tuple[Array, Vec]:
    # Reduce to two dimensions: radial and axial distance.
    away = safe_sqrt(x.x * x.x + x.y * x.y)
    beside, above = away - size.x, jnp.abs(x.z) - size.y
    out = Vec(jnp.maximum(beside, 0), jnp.maximum(above, 0), jnp.zeros_like(away))
    inside = (beside <= 0) & (above <= 0)
    # Inside, the nearer of mantle and caps.
    by_side = beside > above
    unit = out.normalize()
    side = jnp.where(inside, by_side.astype(away.dtype), unit.x)
    cap = jnp.where(inside, (~by_side).astype(away.dtype), unit.y)
    normal = Vec(
        side * jnp.where(away > 0, safe_divide(x.x, away), 1),
        side * safe_divide(x.y, away),
        cap * jnp.where(x.z < 0, -1, 1),
    )
    return jnp.where(inside, jnp.maximum(beside, above), out.norm()), normal


def _ellipsoid(x: Vec, size: Vec) -> tuple[Array, Vec]:
    """Compute the distance to the foot s^2 x / (s^2 + t), with the t that puts it on the surface.

    D. Eberly, *Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid*.
    """
    # Root of the level-set function of t.
    square = size.map(lambda a: a * a)

    def level_set(t: Array) -> tuple[Array, Array]:
        """Return the excess of the point over the surface, and its derivative."""
        terms = [
            (c * c * s / ((s + t) * (s + t)), s + t)
            for c, s in zip(x.parts, square.parts, strict=True)
        ]
        return sum(a for a, _ in terms) - 1, -2 * sum(a / b for a, b in terms)

    def newton_step(_: int, t: Array) -> Array:
        value, slope = level_set(t)
        return t - safe_divide(value, slope)

    # Start where the root is approached monotonically.
    axes = zip(x.parts, size.parts, strict=True)
    start = [s * jnp.abs(c) - s * s for c, s in axes]
    t = jnp.maximum(jnp.maximum(start[0], start[1]), start[2])
    t = lax.stop_gradient(lax.fori_loop(0, _MAX_ELLIPSOID_STEPS, newton_step, t))
    t = newton_step(0, t)  # one differentiable Newton step gives the derivative of the root
    # Foot point and surface normal.
    foot = Vec(*(s * safe_divide(c, s + t) for c, s in zip(x.parts, square.parts, strict=True)))
    normal = Vec(*(f / s for f, s in zip(foot.parts, square.parts, strict=True))).normalize()
    return normal.dot(x - foot), normal


def _unit_z(like: Vec) -> Vec:
    zero = jnp.zeros_like(like.x)
    return Vec(zero, zero, jnp.ones_like(zero))


_DISTANCE_FUNCTIONS: Mapping[GeomType, Callable[[Vec, Vec], tuple[Array, Vec]]] = {
    GeomType.PLANE: _plane,
    GeomType.SPHERE: _sphere,
    GeomType.CAPSULE: _capsule,
    GeomType.BOX: _box,
    GeomType.CYLINDER: _cylinder,
    GeomType.ELLIPSOID: _ellipsoid,
}
