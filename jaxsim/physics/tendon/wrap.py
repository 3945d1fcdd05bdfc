"""The shortest path of a string past a sphere or a cylinder.

MuJoCo's documentation: XML reference, tendon/spatial/geom. The path lies in a plane through the
center (sphere) or is one after projection along the axis (cylinder), so that the problem is that
of two points and a circle:

  * around: the string leaves each end along a tangent. With a side site it turns about the center
    as the path end - side site - end does; without one, as the straight line does.
  * through, when the side site is inside the geom: a straight line that misses the circle is bent
    to touch it in the point that makes the path shortest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL, WrapType
from jaxsim.math import Rot, Vec, safe_arccos, safe_atan2, safe_divide, safe_sqrt, select
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.pin import pin

NEWTON_STEPS = 12  # each squares the error of the touching point; six already suffice in float64


class Wrap(NamedTuple):
    """Result for each leg: whether it touches, where, and the length on the surface."""

    touches: jax.Array
    first: Vec
    last: Vec
    surface: jax.Array


class Planar(NamedTuple):
    """A point in the plane of the problem, and its distance from the center."""

    x: jax.Array
    y: jax.Array
    r: jax.Array

    @classmethod
    def of(cls, x: Array, y: Array) -> "Planar":
        """A point from its coordinates."""
        return cls(x, y, safe_sqrt(x * x + y * y))

    def angle_to(self, other: "Planar") -> Array:
        """Signed angle about the center, in (-pi, pi]."""
        return safe_atan2(self.x * other.y - self.y * other.x, self.x * other.x + self.y * other.y)

    def turned(self, cos: Array, sin: Array, radius: Array) -> "Planar":
        """The point at `radius` in the direction of this one, turned by an angle."""
        x, y = safe_divide(self.x, self.r), safe_divide(self.y, self.r)
        return Planar(radius * (cos * x - sin * y), radius * (sin * x + cos * y), radius)


def wrap(
    kind: WrapType, x0: Vec, x1: Vec, center: Vec, R: Rot, radius: Array, side: Vec | None
) -> Wrap:
    """Wraps legs around geoms of one kind.

    Args:
      kind: SPHERE or CYLINDER.
      x0, x1: ends of the legs, in the world [m].
      center, R: pose of the geoms.
      radius: of the geoms [m].
      side: side sites, or None.

    Returns:
      Touching points in the world; those of a leg that does not touch are the center.
    """
    local = R.T
    p0, p1 = local @ (x0 - center), local @ (x1 - center)
    s = local @ (side - center) if side is not None else None
    e0, e1 = _plane(kind, p0, p1)
    a = Planar.of(p0.dot(e0), p0.dot(e1))
    b = Planar.of(p1.dot(e0), p1.dot(e1))
    p0, p1, e0, e1, a, b = pin((p0, p1, e0, e1, a, b), radius + x0.x)
    outside = (a.r > radius) & (b.r > radius) & (radius > MINVAL)
    if s is None:
        depth, w0, w1, arc = _around(a, b, a.angle_to(b), radius)
    else:
        c = Planar.of(s.dot(e0), s.dot(e1))
        around = _around(a, b, a.angle_to(c) + c.angle_to(b), radius)
        through = _through(a, b, radius)
        inside = s.norm() < radius
        depth, w0, w1, arc = select(inside, through, around)
    depth, w0, w1, arc = pin((depth, w0, w1, arc), radius + x0.x)
    touches = outside & (depth > 0)

    first, last = e0.scale(w0.x) + e1.scale(w0.y), e0.scale(w1.x) + e1.scale(w1.y)
    surface = arc
    if kind == WrapType.CYLINDER:
        # along the axis the string rises in proportion to the way in the plane
        to, fro = _distance(a, w0), _distance(w1, b)
        rise = safe_divide(p1.z - p0.z, to + arc + fro)
        first = Vec(first.x, first.y, p0.z + rise * to)
        last = Vec(last.x, last.y, p1.z - rise * fro)
        surface = safe_sqrt(1 + rise * rise) * arc
    zero = jnp.zeros_like(radius + arc)
    nowhere = Vec(zero, zero, zero)
    return Wrap(
        touches,
        center + R @ select(touches, first, nowhere),
        center + R @ select(touches, last, nowhere),
        jnp.where(touches, surface, 0),
    )


def _plane(kind: WrapType, p0: Vec, p1: Vec) -> tuple[Vec, Vec]:
    """Two perpendicular unit vectors in the plane of the problem, in the geom's frame."""
    one, zero = jnp.ones_like(p0.x), jnp.zeros_like(p0.x)
    if kind == WrapType.CYLINDER:
        return Vec(one, zero, zero), Vec(zero, one, zero)
    e0 = p0.normalize()
    # any plane will do for ends in line with the center: MuJoCo's is towards the two axes that are
    # less in line with them
    x, y, z = (jnp.abs(part) for part in e0.parts)
    by_y, by_z = (y > x) & (y > z), (z > x) & (z > y)
    axis = Vec(
        jnp.where(by_y | by_z, one, zero), jnp.where(by_y, zero, one), jnp.where(by_z, zero, one)
    )
    normal = e0.cross(p1).normalize(fallback=e0.cross(axis).normalize())
    return e0, normal.cross(e0)


def _around(
    a: Planar, b: Planar, turn: Array, radius: Array
) -> tuple[Array, Planar, Planar, Array]:
    """String around a circle: (depth, first point, last point, arc length); touching if depth > 0.

    The tangents from the ends reach acos(radius / distance) about the center each; what is left of
    the turn lies on the circle, and if nothing is left the straight line is the path.
    """
    c0 = jnp.minimum(safe_divide(radius, a.r), 1)
    c1 = jnp.minimum(safe_divide(radius, b.r), 1)
    rest = jnp.abs(turn) - safe_arccos(c0) - safe_arccos(c1)
    sign = jnp.where(turn < 0, -1.0, 1.0).astype(rest.dtype)
    w0 = a.turned(c0, sign * safe_sqrt(1 - c0 * c0), radius)
    w1 = b.turned(c1, -sign * safe_sqrt(1 - c1 * c1), radius)
    return rest, w0, w1, radius * rest


def _through(a: Planar, b: Planar, radius: Array) -> tuple[Array, Planar, Planar, Array]:
    """String through a circle, as `_around`; it touches in one point, or passes freely."""
    dx, dy = b.x - a.x, b.y - a.y
    square = dx * dx + dy * dy
    along = jnp.clip(safe_divide(-(a.x * dx + a.y * dy), square), 0, 1)
    px, py = a.x + along * dx, a.y + along * dy
    misses = px * px + py * py - radius * radius
    turn = a.angle_to(b)

    def slope(angle):
        """Derivative of the path length by the angle of the point, and second derivative."""
        first, first2 = _slope(angle, a.r, radius)
        last, last2 = _slope(angle - turn, b.r, radius)
        return first + last, first2 + last2

    def newton(angle):
        g, h = slope(angle)
        return angle - safe_divide(g, h)

    # found without derivative; one more step at the solution carries the implicit one
    lower, upper = jnp.minimum(turn, 0), jnp.maximum(turn, 0)
    found = lax.fori_loop(
        0, NEWTON_STEPS, lambda _, t: jnp.clip(newton(t), lower, upper), 0.5 * turn + 0 * radius
    )
    angle = newton(lax.stop_gradient(found))
    w = a.turned(jnp.cos(angle), jnp.sin(angle), radius)
    return misses, w, w, jnp.zeros_like(angle)


def _slope(angle: Array, distance: Array, radius: Array) -> tuple[Array, Array]:
    """First and second derivative by `angle` of |p - w|, p at `distance`, w at `radius`."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    length = safe_sqrt(distance**2 + radius**2 - 2 * distance * radius * cos)
    first = safe_divide(distance * radius * sin, length)
    second = safe_divide(distance * radius * cos - first * first, length)
    return first, second


def _distance(a: Planar, b: Planar) -> Array:
    return safe_sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2)
