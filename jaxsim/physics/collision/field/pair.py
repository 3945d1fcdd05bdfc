"""Two geoms as signed distance functions in the frame of the second, in which the search runs."""

from typing import NamedTuple

from jaxsim.arrays.array import Array
from jaxsim.math import Rot, Vec, safe_divide
from jaxsim.physics.collision.field.distance import SdfGeoms, distance_and_slope, signed_distance
from jaxsim.physics.collision.field.fields import SdfTables
from jaxsim.physics.collision.shape import PlacedGeoms, add_slot_axis


class Slopes(NamedTuple):
    """Distances `[k, n, *W]` of points from both geoms, and their descent directions."""

    first: Array
    second: Array
    slope1: Vec
    slope2: Vec


class Pair(NamedTuple):
    """Pairs of geoms, `[1, n, *W]`.

    Attributes:
      a, b: the geoms.
      rot, offset: pose of the second in the frame of the first.
    """

    a: SdfGeoms
    b: SdfGeoms
    rot: Rot
    offset: Vec

    def to_first(self, x: Vec) -> Vec:
        """Transform points from the frame of the second geom to that of the first."""
        return self.rot @ x + self.offset

    def to_second(self, y: Vec) -> Vec:
        """Transform points from the frame of the first geom to that of the second."""
        return self.rot.T @ (y - self.offset)

    def distances(self, x: Vec) -> tuple[Array, Array]:
        """Return the distances of points, in the frame of the second geom, from both geoms."""
        return signed_distance(self.to_first(x), self.a), signed_distance(x, self.b)

    def slopes(self, x: Vec) -> Slopes:
        """Return distances and descent directions of points, in the frame of the second geom."""
        first, slope = distance_and_slope(self.to_first(x), self.a)
        second, slope2 = distance_and_slope(x, self.b)
        return Slopes(first, second, self.rot.T @ slope, slope2)


def pair_normals(pair: Pair, x: Vec) -> Vec:
    """Return unit normals of the surface of equal distances, from the first geom to the second.

    Zero where there is none.
    """
    s = pair.slopes(x)
    return normalize_or_zero(normalize_or_zero(s.slope1) - normalize_or_zero(s.slope2))


def pair_of(a: PlacedGeoms, b: PlacedGeoms, fields: SdfTables) -> Pair:
    """Return the pairs of placed geoms `[n, *W]`."""
    rot, offset = relative_pose(a, b)
    solids = fields.solid(a, fields.first), fields.solid(b, fields.second)
    return Pair(*solids, *add_slot_axis((rot, offset)))


def relative_pose(a: PlacedGeoms, b: PlacedGeoms) -> tuple[Rot, Vec]:
    """Return the pose of the second geom in the frame of the first, `[n, *W]`."""
    return a.rot.T @ b.rot, a.rot.T @ (b.pos - a.pos)


def normalize_or_zero(v: Vec) -> Vec:
    """Return unit vectors; zero stays zero."""
    return v.scale(safe_divide(1.0, v.norm()))
