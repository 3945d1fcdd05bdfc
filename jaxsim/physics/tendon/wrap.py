"""Shortest path of a string past a sphere or a cylinder.

MuJoCo's documentation, XML reference: tendon/spatial/geom; corresponds to `mju_wrap`. The path lies
in a plane through the center (sphere), or does so after projection along the axis (cylinder), which
reduces the problem to two points and a circle:

  * around: the string leaves each end along a tangent. With a side site it winds about the center
    like the path end - side site - end; without one, like the straight line.
  * through, when the side site is inside the geom: a straight line that misses the circle is bent
    to touch it in the point that minimizes the path length.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL, WrapType
from jaxsim.math import Rot, Vec, safe_arccos, safe_atan2, safe_divide, safe_sqrt, select_where
from jaxsim.transforms.materialize import materialize

NEWTON_STEPS = 12  # quadratic convergence of the touching point; six suffice in float64


class WrapResult(NamedTuple):
    """Result for each leg: contact, first and last touching point, and length on the surface."""

    touches: jax.Array
    first: Vec
    last: Vec
    surface: jax.Array


class Planar(NamedTuple):
    """Point in the plane of the problem, and its distance from the center."""

    x: jax.Array
    y: jax.Array
    r: jax.Array

    @classmethod
    def of(cls, x: Array, y: Array) -> "Planar":
        """Return a point from its coordinates."""
        return cls(x, y, safe_sqrt(x * x + y * y))

    def angle_to(self, other: "Planar") -> Array:
        """Return the signed angle about the center to another point, in (-pi, pi]."""
        return safe_atan2(self.x * other.y - self.y * other.x, self.x * other.x + self.y * other.y)

    def rotated_at_radius(self, cos: Array, sin: Array, radius: Array) -> "Planar":
        """Return the point at `radius` in the direction of this one, rotated by an angle."""
        x, y = safe_divide(self.x, self.r), safe_divide(self.y, self.r)
        return Planar(radius * (cos * x - sin * y), radius * (sin * x + cos * y), radius)


def wrap_legs(
    kind: WrapType, x0: Vec, x1: Vec, center: Vec, R: Rot, radius: Array, side: Vec | None
) -> WrapResult:
    """Wrap legs around geoms of one type.

    Args:
      kind: SPHERE or CYLINDER.
      x0, x1: ends of the legs, in the world [m].
      center, R: pose of the geoms.
      radius: radius of the geoms [m].
      side: side sites, or None.

    Returns:
      Touching points in the world; the center for legs without contact.
    """
    # Transform to the geom's frame, and project to the plane of the problem.
    local = R.T
    p0, p1 = local @ (x0 - center), local @ (x1 - center)
    s = local @ (side - center) if side is not None else None
    e0, e1 = _plane(kind, p0, p1)
    a = Planar.of(p0.dot(e0), p0.dot(e1))
    b = Planar.of(p1.dot(e0), p1.dot(e1))
    p0, p1, e0, e1, a, b = materialize((p0, p1, e0, e1, a, b), radius + x0.x)
    # Legs with an end inside the geom are straight.
    outside = (a.r > radius) & (b.r > radius) & (radius > MINVAL)
    # Winding around, or passing through for a side site inside of the geom.
    if s is None:
        depth, w0, w1, arc = _wrap_outside(a, b, a.angle_to(b), radius)
    else:
        c = Planar.of(s.dot(e0), s.dot(e1))
        around = _wrap_outside(a, b, a.angle_to(c) + c.angle_to(b), radius)
        through = _wrap_inside(a, b, radius)
        inside = s.norm() < radius
        depth, w0, w1, arc = select_where(inside, through, around)
    depth, w0, w1, arc = materialize((depth, w0, w1, arc), radius + x0.x)
    touches = outside & (depth > 0)

    # Back to three dimensions.
    first, last = e0.scale(w0.x) + e1.scale(w0.y), e0.scale(w1.x) + e1.scale(w1.y)
    surface = arc
    if kind == WrapType.CYLINDER:
        # Along the axis the string is a helix: it rises in proportion to the planar length.
        to, fro = _distance(a, w0), _distance(w1, b)
        rise = safe_divide(p1.z - p0.z, to + arc + fro)
        first = Vec(first.x, first.y, p0.z + rise * to)
        last = Vec(last.x, last.y, p1.z - rise * fro)
        surface = safe_sqrt(1 + rise * rise) * arc
    zero = jnp.zeros_like(radius + arc)
    nowhere = Vec(zero, zero, zero)
    return WrapResult(
        touches,
        center + R @ select_where(touches, first, nowhere),
        center + R @ select_where(touches, last, nowhere),
        jnp.where(touches, surface, 0),
    )


def _plane(kind: WrapType, p0: Vec, p1: Vec) -> tuple[Vec, Vec]:
    """Return two orthonormal vectors in the plane of the problem, in the geom's frame."""
    # Cylinder: the plane across its axis.
    one, zero = jnp.ones_like(p0.x), jnp.zeros_like(p0.x)
    if kind == WrapType.CYLINDER:
        return Vec(one, zero, zero), Vec(zero, one, zero)
    # Sphere: the plane through both ends and the center.
    e0 = p0.normalize()
    # For ends in line with the center the plane is arbitrary; this is MuJoCo's choice.
    x, y, z = (jnp.abs(part) for part in e0.parts)
    by_y, by_z = (y > x) & (y > z), (z > x) & (z > y)
    axis = Vec(
        jnp.where(by_y | by_z, one, zero), jnp.where(by_y, zero, one), jnp.where(by_z, zero, one)
    )
    normal = e0.cross(p1).normalize(fallback=e0.cross(axis).normalize())
    return e0, normal.cross(e0)


def _wrap_outside(
    a: Planar, b: Planar, turn: Array, radius: Array
) -> tuple[Array, Planar, Planar, Array]:
    """Wrap around a circle: (depth, first point, last point, arc length); contact if depth > 0.

    The tangent points are acos(radius / distance) about the center from each end. The rest of the
    winding angle is on the circle; if it is negative the path is the straight line.
    """
    # Angle of each tangent from its end.
    c0 = jnp.minimum(safe_divide(radius, a.r), 1)
    c1 = jnp.minimum(safe_divide(radius, b.r), 1)
    rest = jnp.abs(turn) - safe_arccos(c0) - safe_arccos(c1)
    sign = jnp.where(turn < 0, -1.0, 1.0).astype(rest.dtype)
    # Touching points by rotation of the ends.
    w0 = a.rotated_at_radius(c0, sign * safe_sqrt(1 - c0 * c0), radius)
    w1 = b.rotated_at_radius(c1, -sign * safe_sqrt(1 - c1 * c1), radius)
    return rest, w0, w1, radius * rest


def _wrap_inside(a: Planar, b: Planar, radius: Array) -> tuple[Array, Planar, Planar, Array]:
    """Pass through a circle; returns as `_wrap_outside`, with one touching point, or none."""
    # Distance of the straight segment from the center.
    dx, dy = b.x - a.x, b.y - a.y
    square = dx * dx + dy * dy
    along = jnp.clip(safe_divide(-(a.x * dx + a.y * dy), square), 0, 1)
    px, py = a.x + along * dx, a.y + along * dy
    misses = px * px + py * py - radius * radius
    # Minimize the length over the angle of the touching point.
    turn = a.angle_to(b)

    def slope(angle):
        """Return first and second derivative of the path length by the angle of the point."""
        first, first2 = _distance_derivatives(angle, a.r, radius)
        last, last2 = _distance_derivatives(angle - turn, b.r, radius)
        return first + last, first2 + last2

    def newton(angle):
        g, h = slope(angle)
        return angle - safe_divide(g, h)

    # Newton iterations without derivatives, then one differentiable step (implicit derivative).
    lower, upper = jnp.minimum(turn, 0), jnp.maximum(turn, 0)
    found = lax.fori_loop(
        0, NEWTON_STEPS, lambda _, t: jnp.clip(newton(t), lower, upper), 0.5 * turn + 0 * radius
    )
    angle = newton(lax.stop_gradient(found))
    w = a.rotated_at_radius(jnp.cos(angle), jnp.sin(angle), radius)
    return misses, w, w, jnp.zeros_like(angle)


def _distance_derivatives(angle: Array, distance: Array, radius: Array) -> tuple[Array, Array]:
    """Return first and second derivative by `angle` of |p - w|, p at `distance`, w at `radius`."""
    # Law of cosines, and its derivatives.
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    length = safe_sqrt(distance**2 + radius**2 - 2 * distance * radius * cos)
    first = safe_divide(distance * radius * sin, length)
    second = safe_divide(distance * radius * cos - first * first, length)
    return first, second


def _distance(a: Planar, b: Planar) -> Array:
    return safe_sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2)
