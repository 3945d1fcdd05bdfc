"""The difference of two shapes: the set of all a - b, in which nearness is nearness to the origin.

Two shapes are apart as far as the origin is outside of their difference, and deep in each other as
far as it is inside. Everything is in the frame of the first shape, so that no digit is spent on
where in the world they are.

Both shapes are asked together, as two rows of one array: the program has one support function.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math import Rot, Vec, safe_sqrt
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.lanes import in_front
from jaxsim.physics.collision.convex.solid import Assets, Solid, held, is_flat, radius, support


class Corner(NamedTuple):
    """A point of the difference, of each of some lanes S.

    Attributes:
      y: the point, a - b.
      a: the point of the first shape.
      feature: the features of both shapes that it is on.
    """

    y: Vec
    a: Vec
    feature: tuple[Array, Array]

    @property
    def b(self) -> Vec:
        """The point of the second shape."""
        return self.a - self.y


class Difference(NamedTuple):
    """The difference of the cores of two shapes, of lanes `[n]`.

    Attributes:
      assets: what their support functions need.
      both: the shapes, `[2, n]`.
      pos, rot: pose of the second in the frame of the first, `[n]`.
    """

    assets: Assets
    both: Solid
    pos: Vec
    rot: Rot

    @property
    def radii(self) -> tuple[Array, Array]:
        """The radii about the cores."""
        both = radius(self.both)
        return both[0], both[1]

    def farthest(self, n: Vec) -> Corner:
        """The corner that is farthest along `n`, which is `[n]` or `[k, n]`."""
        feature, points = support(self.assets, self._shapes(n), self._directions(n))
        return self._corner((feature[0], feature[1]), points)

    def moved(self, corner: Corner, n: Vec, flat: Array) -> Corner:
        """The point farthest along `n` that is on the features of a corner; differentiable.

        On a shape whose cap is `flat` it is the point of the corner itself.
        """
        pos, rot = in_front((self.pos, self.rot), corner.y)
        back = rot.T @ (corner.b - pos)
        points = jax.tree.map(lambda *x: jnp.stack(x), corner.a, back)
        shapes, feature = self._shapes(n), jnp.stack(corner.feature)
        moved = held(self.assets, shapes, feature, self._directions(n), points, flat)
        return self._corner(corner.feature, moved)

    def flat(self, corners: tuple[Corner, Corner, Corner], n: Vec) -> Array:
        """Whether each shape touches with a cap, as a face, `[2, n]`."""
        spread = [_spread([c.a for c in corners]), _spread([c.b for c in corners])]
        return is_flat(self.both, self._directions(n), jnp.stack(spread))

    def _shapes(self, n: Vec) -> Solid:
        """The shapes, with an axis for several directions if there are such."""
        one = (2, *(1,) * (len(n.shape) - 1), -1)
        return jax.tree.map(lambda x: x.reshape(one), self.both)

    def _directions(self, n: Vec) -> Vec:
        """Along `n` for the first shape, against it for the second, each in its own frame."""
        back = in_front(self.rot, n).T @ -n
        return jax.tree.map(lambda *x: jnp.stack(jnp.broadcast_arrays(*x)), n, back)

    def _corner(self, feature: tuple[Array, Array], points: Vec) -> Corner:
        a, b = points[0], points[1]
        pos, rot = in_front((self.pos, self.rot), a)
        return Corner(a - (pos + rot @ b), a, feature)


def same_features(one: Corner, other: Corner) -> Array:
    """Whether two corners are on the same features of both shapes."""
    first, second = (a == b for a, b in zip(one.feature, other.feature, strict=True))
    return first & second


def _spread(points: list[Vec]) -> Array:
    """The longest side of a triangle."""
    one, two, three = points
    squares = [side.dot(side) for side in (two - one, three - two, one - three)]
    return safe_sqrt(jnp.maximum(jnp.maximum(squares[0], squares[1]), squares[2]))
