"""The Minkowski difference of two convex shapes: the set of all a - b.

The distance of two shapes is the distance of the origin from their difference, their penetration
depth the depth of the origin inside it. Everything is in the frame of the first shape, so that
precision does not depend on the position in the world. Both shapes are rows of one array `[2,
...]`, so that the program contains one support function.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec, safe_divide, safe_sqrt, select_where
from jaxsim.physics.collision.convex.solid import (
    Assets,
    ConvexShape,
    core_radius,
    core_support,
    feature_support,
    is_flat,
)
from jaxsim.transforms.compaction import add_leading_axes


class Corner(NamedTuple):
    """A point of the Minkowski difference, for lanes S.

    Attributes:
      y: the point, a - b.
      a: the point of the first shape.
      feature: ids of the features of both shapes on which it lies.
    """

    y: Vec
    a: Vec
    feature: tuple[Array, Array]

    @property
    def b(self) -> Vec:
        """Return the point of the second shape."""
        return self.a - self.y


class Difference(NamedTuple):
    """Minkowski difference of the cores of two shapes, for lanes `[n]`.

    Attributes:
      assets: tables of their support functions.
      both: the shapes, `[2, n]`.
      pos, rot: pose of the second in the frame of the first, `[n]`.
    """

    assets: Assets
    both: ConvexShape
    pos: Vec
    rot: Rot

    @property
    def radii(self) -> tuple[Array, Array]:
        """Return the radii around the cores."""
        both = core_radius(self.both)
        return both[0], both[1]

    def farthest(self, n: Vec) -> Corner:
        """Return the support point along `n`, which is `[n]` or `[k, n]`."""
        feature, points = core_support(self.assets, self._shapes(n), self._directions(n))
        return self._corner((feature[0], feature[1]), points)

    def support_on_features(self, corner: Corner, n: Vec, flat: Array) -> Corner:
        """Return the point farthest along `n` on the features of a corner; differentiable.

        On a shape that touches with a `flat` cap it is the corner's own point.
        """
        # Points of both shapes in their own frames.
        pos, rot = add_leading_axes((self.pos, self.rot), corner.y)
        back = rot.T @ (corner.b - pos)
        points = jax.tree.map(lambda *x: jnp.stack(x), corner.a, back)
        shapes, feature = self._shapes(n), jnp.stack(corner.feature)
        moved = feature_support(self.assets, shapes, feature, self._directions(n), points, flat)
        return self._corner(corner.feature, moved)

    def flat(self, corners: tuple[Corner, Corner, Corner], n: Vec) -> Array:
        """Return whether each shape touches with a cap, as a face, `[2, n]`."""
        spread = [_longest_side([c.a for c in corners]), _longest_side([c.b for c in corners])]
        return is_flat(self.both, self._directions(n), jnp.stack(spread))

    def rim(self, n: Vec, flat: Array) -> Array:
        """Return the angle of `n` from the nearest axis of a cylinder that touches with a rim.

        On the axis the point of the rim is not determined. Shape `[n]`, in radians; infinite where
        no rim touches, because caps are `flat` or shapes are of other kinds.
        """
        d = self._directions(n)
        here = (self.both.kind == GeomType.CYLINDER) & ~flat
        return jnp.min(jnp.where(here, safe_sqrt(d.x * d.x + d.y * d.y), jnp.inf), axis=0)

    def cap(self, n: Vec, second: Array) -> tuple[tuple[Corner, Corner, Corner], Vec, Array]:
        """Return a cap of one shape, a cylinder, as a face under the other shape.

        Args:
          n: direction from the first to the second shape, which chooses the cap, `[n]`.
          second: it is a cap of the second shape, `[n]`.

        Returns:
          Three corners of its rim, each with the farthest point of the other shape; the normal of
          the cap, from the first to the second shape; and where between the middle and the first
          corner the other point is, 0 to 1 if it is over the cap.
        """
        # Cap on the side of the other shape, with its normal in the frame of the first.
        directions = self._directions(n)
        size, d = (select_where(second, x[1], x[0]) for x in (self.both.size, directions))
        zero = jnp.zeros_like(size.x)
        axis = Vec(zero, zero, jnp.where(d.z > 0, zero + 1, -1))
        normal = select_where(second, -(self.rot @ axis), axis)
        far = self.farthest(normal)
        # First corner in the direction of the other point, seen from the axis.
        other = select_where(second, self.rot.T @ (far.a - self.pos), far.b)
        out = Vec(other.x, other.y, zero)
        first = out.normalize(fallback=Vec(zero + 1, zero, zero))
        # Three corners of the rim, each with the support point of the other shape.
        corners = []
        for angle in (0, 2 * np.pi / 3, 4 * np.pi / 3):
            c, s = float(np.cos(angle)), float(np.sin(angle))
            at = Vec(first.x * c - first.y * s, first.x * s + first.y * c, zero).scale(size.x)
            at = Vec(at.x, at.y, axis.z * size.y)
            a = select_where(second, far.a, at)
            b = select_where(second, self.pos + self.rot @ at, far.b)
            corners.append(Corner(a - b, a, far.feature))
        one, two, three = corners
        return (one, two, three), normal, safe_divide(out.norm(), size.x)

    def rim_crossing(self, n: Vec, second: Array) -> tuple[Corner, Vec]:
        """Return the crossing of the rims of two nearly parallel caps, and their normal there.

        Both support points lie on a rim, each in the direction of the normal across its axis. Seen
        along the axes, the rims are circles; they cross where the support points coincide. That
        gives the direction of the normal across each axis, and from both the normal.

        Args:
          n: direction from the first to the second shape, which chooses the caps, `[n]`.
          second: the second of the two crossings.

        Returns:
          The corner; and the normal, exact to first order in the angle of the axes, `n` if the
          shapes are no cylinders, the circles do not cross, or the caps do not touch there.
        """
        # Caps in the frame of the first shape: their axes, and the center of the second.
        upper = self._directions(n).z > 0
        up, down = jnp.where(upper, 1, -1).astype(n.z.dtype)
        (r1, r2), (h1, h2) = self.both.size.x, self.both.size.y
        zero = jnp.zeros_like(n.x)
        axis = self.rot @ Vec(zero, zero, down)
        center = self.pos + axis.scale(h2)
        # The crossing: unit vectors u and w to it from the centers of the circles.
        length = safe_sqrt(center.x * center.x + center.y * center.y)
        x, y = safe_divide(center.x, length), safe_divide(center.y, length)
        along = 0.5 * (safe_divide(r1 * r1 - r2 * r2, length) + length)
        across = safe_sqrt(r1 * r1 - along * along) * jnp.where(second, -1, 1)
        a = Vec(x * along - y * across, y * along + x * across, up * h1)
        b = Vec(a.x, a.y, center.z)
        u, w = a.scale(1 / r1), (b - center).scale(1 / r2)
        # n = up + s u, and -n is parallel to axis + t w: s u + t w = -axis / |axis.z|.
        slope = axis.scale(safe_divide(-1.0, jnp.abs(axis.z)))
        over = safe_divide(1.0, u.x * w.y - u.y * w.x)
        s = (slope.x * w.y - slope.y * w.x) * over
        t = (u.x * slope.y - u.y * slope.x) * over
        both = jnp.all(self.both.kind == GeomType.CYLINDER, axis=0)
        touch = both & (s > 0) & (t > 0) & (across != 0)
        normal = select_where(touch, Vec(s * u.x, s * u.y, up).normalize(fallback=n), n)
        feature = upper.astype(jnp.int32)
        return Corner(a - b, a, (feature[0], feature[1])), normal

    def _shapes(self, n: Vec) -> ConvexShape:
        """Return the shapes, with an additional axis if there are several directions."""
        one = (2, *(1,) * (len(n.shape) - 1), -1)
        return jax.tree.map(lambda x: x.reshape(one), self.both)

    def _directions(self, n: Vec) -> Vec:
        """Return `n` for the first shape and -n for the second, each in its own frame."""
        back = add_leading_axes(self.rot, n).T @ -n
        return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), n, back)

    def _corner(self, feature: tuple[Array, Array], points: Vec) -> Corner:
        """Assemble a corner from the points of both shapes."""
        a, b = points[0], points[1]
        pos, rot = add_leading_axes((self.pos, self.rot), a)
        return Corner(a - (pos + rot @ b), a, feature)


def same_features(one: Corner, other: Corner) -> Array:
    """Return whether two corners lie on the same features of both shapes."""
    first, second = (a == b for a, b in zip(one.feature, other.feature, strict=True))
    return first & second


def _longest_side(points: list[Vec]) -> Array:
    """Return the longest side of a triangle."""
    one, two, three = points
    squares = [side.dot(side) for side in (two - one, three - two, one - three)]
    return safe_sqrt(jnp.maximum(jnp.maximum(squares[0], squares[1]), squares[2]))
