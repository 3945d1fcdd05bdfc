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

from jaxsim.math import Rot, Vec, safe_divide, select
from jaxsim.model.data import FAR
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.once import decide, once
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.face import (
    best_edge,
    best_face,
    corner_of,
    corners_of,
    end_of,
    most_corners,
    normal_of,
)
from jaxsim.physics.collision.convex.feature import Feature
from jaxsim.physics.collision.convex.lanes import in_front
from jaxsim.physics.collision.convex.polygon import Polygon, cut, four_corners, outline, without
from jaxsim.physics.collision.convex.solid import Assets, Solid

POINTS = 4
FACES_MEET = 0.996  # cosine of the angle up to which two faces lie on each other
EDGE_LIES = 0.0888  # sine of that up to which an edge lies in a face


class Patch(NamedTuple):
    """What touches, `[n]`.

    Attributes:
      number: how many points there are; 0: the nearest points are the only contact.
      turned: the face that cuts is of the second shape, what is cut of the first.
      edge: what is cut is an edge.
      face: number of the face that cuts.
      other: number of the face that is cut; of an edge 0.
      ends: features of the ends of the edge that is cut, `[2, n]`.
      own: how many lines what is cut has of its own.
      lines: the two lines that cross in each point, `[2, POINTS, n]`; see polygon.py.
    """

    number: Array
    turned: Array
    edge: Array
    face: Array
    other: Array
    ends: Array
    own: Array
    lines: Array


class _Side(NamedTuple):
    """A shape of each lane: its pose in the frame of the first, and the way out at the contact."""

    shape: Solid
    pos: Vec
    turn: Rot
    out: Vec  # in its own frame

    def world(self, point: Vec) -> Vec:
        """A point of the shape in the frame of the first."""
        pos, turn = in_front((self.pos, self.turn), point)
        return pos + turn @ point


def _sides(set_: Difference, f: Feature) -> _Side:
    """Both shapes, `[2, n]`: asked together, the program has one question."""
    zero = jnp.zeros_like(set_.pos.x)
    one = Rot(*(zero + (1 if k % 4 == 0 else 0) for k in range(9)))
    first = Vec(zero, zero, zero), one, f.normal
    second = set_.pos, set_.rot, set_.rot.T @ -f.normal
    return _Side(set_.both, *jax.tree.map(lambda *x: jnp.stack(x), first, second))


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
    sides = once(_sides, set_, f)
    faces, flat, normals, ends, exists = decide(_facing, assets, sides, f)
    meet = flat[0] & flat[1] & (normals[0].dot(normals[1]) < -FACES_MEET)
    lies = exists & flat[::-1] & ~meet[None]
    turned = lies[0]  # an edge of the first on a face of the second comes first
    edge = lies[0] | lies[1]

    cutter, subject = _of(sides, turned), _of(sides, ~turned)
    face, other = _of(faces, turned), _of(faces, ~turned)
    ends = jnp.where(turned[None], ends[:, 0], ends[:, 1])
    polygon = _cut_polygon(assets, cutter, face, subject, other, ends, edge)

    # points that are too far above the face that cuts are no contacts
    normal = _of(normals, turned)
    origin = cutter.world(corner_of(assets, cutter.shape, face, jnp.zeros_like(face)))
    origin, normal, limit = in_front((origin, normal, reach), polygon.point)
    polygon = without(polygon, (polygon.point - origin).dot(normal) > limit)
    corners, count = four_corners(polygon)
    chosen = (polygon.point, polygon.into, polygon.out)
    point, *lines = jax.tree.map(
        lambda x: jnp.take_along_axis(x, corners, axis=0, mode="clip"), chosen
    )
    own = jnp.where(edge, 2, corners_of(assets, subject.shape, other))
    count = jnp.where(meet | edge, count, 0)
    return Patch(count, turned, edge, face, other, ends, own, jnp.stack(lines)), point


def _facing(assets: Assets, sides: _Side, f: Feature) -> tuple[Array, Array, Vec, Array, Array]:
    """What of each shape the other may lie on.

    Returns:
      The face that touches, whether there is one, and its normal; the ends of the edge that lies in
      the face of the other, and whether there is such an edge.
    """
    touching = _touching(f)
    faces, flat = best_face(assets, sides.shape, touching.first, sides.out)
    normals = sides.turn @ normal_of(assets, sides.shape, faces)
    return faces, flat, normals, *_edge(assets, sides, touching, normals[::-1])


class _Touching(NamedTuple):
    """What of shapes touches: features of corners, and how many different ones there are."""

    first: Array
    second: Array
    number: Array


def _touching(f: Feature) -> _Touching:
    """Of both shapes, `[2, n]`."""
    one, two, three = jnp.stack(f.corners.feature, axis=1)
    two = jnp.where(f.needed[0], two, one)
    three = jnp.where(f.needed[1], three, one)
    others = (two != one).astype(jnp.int32) + ((three != one) & (three != two)).astype(jnp.int32)
    return _Touching(one, jnp.where(two != one, two, three), 1 + others)


def _edge(assets: Assets, sides: _Side, t: _Touching, normal: Vec) -> tuple[Array, Array]:
    """The edge of each shape that lies in a face of the other, whose normal is given.

    Returns:
      Features of its ends, `[2, *S]`; and whether there is such an edge.
    """
    own = sides.turn.T @ normal
    one, other, exists = best_edge(assets, sides.shape, t.first, t.second, own)
    ends = jnp.stack([one, other])
    out = sides.out.map(lambda x: jnp.broadcast_to(x, ends.shape))
    at = end_of(assets, sides.shape, ends, out)
    along = (at[1] - at[0]).normalize()
    level = jnp.abs(along.dot(own)) < EDGE_LIES
    return ends, exists & (t.number < 3) & level


def _cut_polygon(
    assets: Assets,
    cutter: _Side,
    face: Array,
    subject: _Side,
    other: Array,
    ends: Array,
    edge: Array,
) -> Polygon:
    """The face or the edge of one shape, cut by the sides of a face of the other."""
    most = most_corners(assets)
    every = jnp.arange(most, dtype=jnp.int32)[:, None]
    points = _points(assets, subject, other, every, ends, edge)
    number = jnp.where(edge, 2, corners_of(assets, subject.shape, other))
    sides = corners_of(assets, cutter.shape, face)
    normal = cutter.turn @ normal_of(assets, cutter.shape, face)

    def turn(k: Array, p: Polygon) -> Polygon:
        ends = jnp.broadcast_to(jnp.stack([k, k + 1])[:, None], (2, *face.shape))
        a, b = _two(cutter.world(corner_of(assets, cutter.shape, face, ends)))
        return cut(p, a, normal.cross(b - a), number + k, k < sides)

    return lax.fori_loop(0, most, turn, outline(points, number, 2 * most))


def _two(points: Vec) -> tuple[Vec, Vec]:
    return points[0], points[1]


def _points(assets: Assets, side: _Side, face: Array, k: Array, ends: Array, edge: Array) -> Vec:
    """The k-th corner of a face, or end of an edge, in the frame of the first shape."""
    corner = corner_of(assets, side.shape, face, k)
    one, other, edge = in_front((ends[0], ends[1], edge), k)
    end = jnp.where(k % 2 == 0, one, other)
    out = in_front(side.out, k).map(lambda x: jnp.broadcast_to(x, end.shape))
    return side.world(select(edge, end_of(assets, side.shape, end, out), corner))


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
    assets = set_.assets
    sides = once(_sides, set_, f)
    cutter, subject = _of(sides, patch.turned), _of(sides, ~patch.turned)
    normal = cutter.turn @ normal_of(assets, cutter.shape, patch.face)
    origin = cutter.world(corner_of(assets, cutter.shape, patch.face, jnp.zeros_like(patch.face)))
    point = _crossings(assets, cutter, subject, patch) if point is None else point

    # faces: the distance from the face of the second shape, which is the one that is cut
    out = subject.turn @ normal_of(assets, subject.shape, patch.other)
    normal, origin, out, edge, turned, number = in_front(
        (normal, origin, out, patch.edge, patch.turned, patch.number), point
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


def _crossings(assets: Assets, cutter: _Side, subject: _Side, patch: Patch) -> Vec:
    """Where the two lines of each point cross, in the frame of the first shape, `[POINTS, n]`."""
    own = patch.own[None]
    into, out = patch.lines[0], patch.lines[1]
    into_own, out_own = into < own, out < own
    # a line of its own begins at its corner and ends at the next
    corner = jnp.where(out_own, out, jnp.where(into_own, into, 0))
    ends = jnp.stack([corner, corner + 1])
    start, end = _two(_points(assets, subject, patch.other, ends, patch.ends, patch.edge))
    along = end - start
    plane, at = _side_plane(assets, cutter, patch.face, jnp.where(into_own, out, into) - own)
    on_line = start + along.scale(safe_divide(plane.dot(at - start), plane.dot(along)))

    # of two planes: in the face that is cut
    second, at2 = _side_plane(assets, cutter, patch.face, out - own)
    inner = subject.turn @ normal_of(assets, subject.shape, patch.other)
    inner = in_front(inner, plane).map(lambda x: jnp.broadcast_to(x, plane.x.shape))
    in_face = _meeting((plane, at), (second, at2), (inner, start))
    return select(into_own & out_own, start, select(into_own | out_own, on_line, in_face))


def _side_plane(assets: Assets, side: _Side, face: Array, k: Array) -> tuple[Vec, Vec]:
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
