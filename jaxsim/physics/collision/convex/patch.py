"""Patches of flat contact: up to four points where faces or edges lie on each other.

MuJoCo's documentation, Computation: Multiple contacts; its rules were found by experiment. Where
a face of each shape at the nearest points lie on each other, or an edge on a face, within five
degrees, the one is cut by the sides of the other. What is left, at most four points of it, are
the contacts.

Which points these are is decided (`patch_of`); where they are is a function of the shapes that
has derivatives (`contacts`), as the crossing of two lines in a face.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import GeomType
from jaxsim.math import Vec, safe_divide, select
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.lanes import in_front
from jaxsim.physics.arrays.once import decide, once
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.face import (
    corner_of,
    corners_of,
    end_of,
    line_moved,
    most_corners,
    normal_of,
)
from jaxsim.physics.collision.convex.facing import Facing, Side, facing_of, sides_of
from jaxsim.physics.collision.convex.feature import Feature
from jaxsim.physics.collision.convex.polygon import Polygon, cut, four_corners, outline, without
from jaxsim.physics.collision.convex.solid import Assets

POINTS = 4


class Patch(NamedTuple):
    """What touches, `[n]`.

    Attributes:
      number: how many points there are; 0: the nearest points are the only contact.
      facing: what lies on what: a face or an edge, which is cut, on a face of the other shape.
      own: how many lines what is cut has of its own.
      lines: the two lines that cross in each point, `[2, POINTS, n]`; see polygon.py.
      reach: distance up to which a point is a contact.
    """

    number: Array
    facing: Facing
    own: Array
    lines: Array
    reach: Array


def _of(both: Tree, second: Array) -> Tree:
    """Of values `[2, n]` that of the second shape, or of the first."""
    return jax.tree.map(lambda x: jnp.where(second, x[1], x[0]), both)


def patch_of(set_: Difference, f: Feature, reach: Array) -> tuple[Patch, Vec]:
    """Which points of two shapes touch, if several do.

    Args:
      set_: pairs `[n]`.
      f: their nearest points.
      reach: distance up to which a point is a contact.

    Returns:
      The choice, and where the points are on what is cut, `[POINTS, n]`.
    """
    assets = set_.assets
    sides = once(sides_of, set_, f)
    facing = decide(facing_of, assets, sides, f)
    cutter, subject = _of(sides, facing.turned), _of(sides, ~facing.turned)
    polygon = _cut_polygon(assets, cutter, subject, facing, reach)

    # points that are too far above the face that cuts are no contacts
    normal = cutter.turn @ normal_of(assets, cutter.shape, facing.face)
    first = jnp.zeros_like(facing.face)
    origin = cutter.world(corner_of(assets, cutter.shape, facing.face, first))
    origin, normal, limit = in_front((origin, normal, reach), polygon.point)
    polygon = without(polygon, ((polygon.point - origin).dot(normal) > limit) | ~facing.flat[None])
    own = _corners(assets, subject, facing)
    corners, count = _lone_crossing_twice(polygon, own, facing, *four_corners(polygon))
    chosen = (polygon.point, polygon.into, polygon.out)
    point, *lines = jax.tree.map(
        lambda x: jnp.take_along_axis(x, corners, axis=0, mode="clip"), chosen
    )
    return Patch(count, facing, own, jnp.stack(lines), reach), point


def _lone_crossing_twice(
    p: Polygon, own: Array, facing: Facing, corners: Array, count: Array
) -> tuple[Array, Array]:
    """Corners and their number, where an edge that is cut and of which one point is left has two.

    MuJoCo cuts an edge on its way there and on its way back, and finds each crossing twice. It
    takes the two points farthest apart; but a crossing whose other end is no contact stays double.
    """
    crossing = jnp.maximum(p.into[0], p.out[0]) >= own
    twice = facing.edge & (count == 1) & crossing
    return jnp.where(twice, 0, corners), jnp.where(twice, 2, count)


def _corners(assets: Assets, subject: Side, facing: Facing) -> Array:
    """How many corners, or ends, what is cut has."""
    return jnp.where(facing.edge, 2, corners_of(assets, subject.shape, facing.other))


def _cut_polygon(
    assets: Assets, cutter: Side, subject: Side, facing: Facing, reach: Array
) -> Polygon:
    """The face or the edge of one shape, cut by the sides of a face of the other."""
    face, most = facing.face, most_corners(assets)
    every = jnp.arange(most, dtype=jnp.int32)[:, None]
    points = _points(assets, cutter, subject, facing, every, reach)
    number = _corners(assets, subject, facing)
    sides = corners_of(assets, cutter.shape, face)
    normal = cutter.turn @ normal_of(assets, cutter.shape, face)

    def turn(state: tuple[Array, Polygon]) -> tuple[Array, Polygon]:
        k, p = state
        ends = jnp.broadcast_to(jnp.stack([k, k + 1])[:, None], (2, *face.shape))
        a, b = _two(cutter.world(corner_of(assets, cutter.shape, face, ends)))
        return k + 1, cut(p, a, normal.cross(b - a), number + k, k < sides)

    # as many turns as the largest of the faces on which something lies has sides
    last = jnp.max(jnp.where(facing.flat, sides, 0))
    start = jnp.int32(0), outline(points, number, 2 * most)
    return lax.while_loop(lambda state: state[0] < last, turn, start)[1]


def _two(points: Vec) -> tuple[Vec, Vec]:
    return points[0], points[1]


def _points(
    assets: Assets, cutter: Side, subject: Side, facing: Facing, k: Array, reach: Array
) -> Vec:
    """The k-th corner of what is cut, or end of the edge, in the frame of the first shape."""
    corner = corner_of(assets, subject.shape, facing.other, k)
    one, other, edge = in_front((facing.ends[0], facing.ends[1], facing.edge), k)
    end = jnp.where(k % 2 == 0, one, other)
    out = in_front(subject.out, k).map(lambda x: jnp.broadcast_to(x, end.shape))
    point = end_of(assets, subject.shape, end, out)
    if GeomType.CAPSULE in assets.kinds:
        normal = cutter.turn @ normal_of(assets, cutter.shape, facing.face)
        back = in_front(subject.turn.T @ -normal, k)
        point += line_moved(subject.shape, out, back, reach)
    return subject.world(select(edge, point, corner))


def contacts(
    set_: Difference, f: Feature, patch: Patch, point: Vec | None = None
) -> tuple[Array, Vec, Vec]:
    """Distance, position and normal of the points of patches, `[POINTS, n]`.

    The normal goes from the first shape to the second: it is that of the face of the second, or of
    the only face. Distances are along it.

    Args:
      set_: pairs `[n]`.
      f: their nearest points.
      patch: the choice of points.
      point: where `patch_of` found them; by default they are found again, differentiably.
    """
    assets, facing = set_.assets, patch.facing
    sides = once(sides_of, set_, f)
    cutter, subject = _of(sides, facing.turned), _of(sides, ~facing.turned)
    normal = cutter.turn @ normal_of(assets, cutter.shape, facing.face)
    origin = cutter.world(corner_of(assets, cutter.shape, facing.face, jnp.zeros_like(facing.face)))
    point = _crossings(assets, cutter, subject, patch) if point is None else point

    # faces: the distance from the face of the second shape, which is the one that is cut
    out = subject.turn @ normal_of(assets, subject.shape, facing.other)
    normal, origin, out, edge, turned, number = in_front(
        (normal, origin, out, facing.edge, facing.turned, patch.number), point
    )
    rise = (point - origin).dot(normal)
    foot = point - normal.scale(rise)
    apart = (foot - point).dot(out)
    dist = jnp.where(edge, rise, apart)
    direction = select(edge, select(turned, -normal, normal), -out)
    at = select(edge, point - normal.scale(0.5 * rise), foot - out.scale(0.5 * apart))
    place = jnp.arange(POINTS, dtype=jnp.int32)[:, None]
    dist = jnp.where(place < number, dist, FAR)
    return dist, at, direction.map(lambda x: jnp.broadcast_to(x, dist.shape))


def _crossings(assets: Assets, cutter: Side, subject: Side, patch: Patch) -> Vec:
    """Where the two lines of each point cross, in the frame of the first shape, `[POINTS, n]`."""
    facing, own = patch.facing, patch.own[None]
    into, out = patch.lines[0], patch.lines[1]
    into_own, out_own = into < own, out < own
    # a line of its own begins at its corner and ends at the next
    corner = jnp.where(out_own, out, jnp.where(into_own, into, 0))
    ends = jnp.stack([corner, corner + 1])
    start, end = _two(_points(assets, cutter, subject, facing, ends, patch.reach))
    along = end - start
    plane, at = _side_plane(assets, cutter, facing.face, jnp.where(into_own, out, into) - own)
    on_line = start + along.scale(safe_divide(plane.dot(at - start), plane.dot(along)))

    # of two planes: in the face that is cut
    second, at2 = _side_plane(assets, cutter, facing.face, out - own)
    inner = subject.turn @ normal_of(assets, subject.shape, facing.other)
    inner = in_front(inner, plane).map(lambda x: jnp.broadcast_to(x, plane.x.shape))
    in_face = _meeting((plane, at), (second, at2), (inner, start))
    return select(into_own & out_own, start, select(into_own | out_own, on_line, in_face))


def _side_plane(assets: Assets, side: Side, face: Array, k: Array) -> tuple[Vec, Vec]:
    """Normal of a plane through the k-th side of a face at right angles to it, and a point."""
    k = jnp.maximum(k, 0)
    a, b = _two(side.world(corner_of(assets, side.shape, face, jnp.stack([k, k + 1]))))
    normal = side.turn @ normal_of(assets, side.shape, face)
    return (b - a).cross(in_front(normal, a)).normalize(), a


def _meeting(*planes: tuple[Vec, Vec]) -> Vec:
    """The point that three planes share."""
    (n1, p1), (n2, p2), (n3, p3) = planes
    a, b, c = n2.cross(n3), n3.cross(n1), n1.cross(n2)
    total = a.scale(n1.dot(p1)) + b.scale(n2.dot(p2)) + c.scale(n3.dot(p3))
    return total.scale(safe_divide(1.0, n1.dot(a)))
