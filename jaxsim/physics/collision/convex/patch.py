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
from jaxsim.physics.arrays.array import Array
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
    """One shape: its pose in the frame of the first, and the way out of it at the contact."""

    shape: Solid
    pos: Vec
    turn: Rot
    out: Vec  # in its own frame

    def world(self, point: Vec) -> Vec:
        """A point of the shape in the frame of the first."""
        pos, turn = in_front((self.pos, self.turn), point)
        return pos + turn @ point


def _sides(set_: Difference, f: Feature) -> tuple[_Side, _Side]:
    shapes = [jax.tree.map(lambda x, k=k: x[k], set_.both) for k in (0, 1)]
    zero = jnp.zeros_like(set_.pos.x)
    one = Rot(*(zero + (1 if k % 4 == 0 else 0) for k in range(9)))
    first = _Side(shapes[0], Vec(zero, zero, zero), one, f.normal)
    return first, _Side(shapes[1], set_.pos, set_.rot, set_.rot.T @ -f.normal)


def patch_of(set_: Difference, f: Feature, reach: Array) -> Patch:
    """Which points of two shapes touch, if several do.

    Args:
      set_: pairs `[n]`.
      f: their nearest points.
      reach: distance up to which a point is a contact.
    """
    assets = set_.assets
    first, second = _sides(set_, f)
    touching = [_touching(feature, f) for feature in f.corners.feature]
    faces = [
        best_face(assets, side.shape, t.first, side.out)
        for side, t in zip((first, second), touching, strict=True)
    ]
    normals = [
        side.turn @ normal_of(assets, side.shape, face)
        for side, (face, _) in zip((first, second), faces, strict=True)
    ]
    meet = faces[0][1] & faces[1][1] & (normals[0].dot(normals[1]) < -FACES_MEET)
    edges = [
        _edge(assets, side, t, normal)
        for side, t, normal in ((first, touching[0], normals[1]), (second, touching[1], normals[0]))
    ]
    lies = [edges[0].exists & faces[1][1] & ~meet, edges[1].exists & faces[0][1] & ~meet]
    turned = lies[0]  # an edge of the first on a face of the second comes first
    edge = lies[0] | lies[1]

    cutter = select(turned, second, first)
    subject = select(turned, first, second)
    face = jnp.where(turned, faces[1][0], faces[0][0])
    other = jnp.where(turned, faces[0][0], faces[1][0])
    ends = select(turned, edges[0].ends, edges[1].ends)
    polygon = _cut_polygon(assets, cutter, face, subject, other, ends, edge)

    # points that are too far above the face that cuts are no contacts
    normal = cutter.turn @ normal_of(assets, cutter.shape, face)
    origin = cutter.world(corner_of(assets, cutter.shape, face, jnp.zeros_like(face)))
    origin, normal, limit = in_front((origin, normal, reach), polygon.point)
    polygon = without(polygon, (polygon.point - origin).dot(normal) > limit)
    corners, count = four_corners(polygon)
    lines = jnp.stack(
        [jnp.take_along_axis(x, corners, axis=0, mode="clip") for x in (polygon.into, polygon.out)]
    )
    own = jnp.where(edge, 2, corners_of(assets, subject.shape, other))
    count = jnp.where(meet | edge, count, 0)
    return Patch(count, turned, edge, face, other, ends, own, lines)


class _Touching(NamedTuple):
    """What of a shape touches: features of corners, and how many different ones there are."""

    first: Array
    second: Array
    number: Array


def _touching(feature: Array, f: Feature) -> _Touching:
    """`feature` is that of three corners, `[3, n]`."""
    one, two, three = feature[0], feature[1], feature[2]
    two = jnp.where(f.needed[0], two, one)
    three = jnp.where(f.needed[1], three, one)
    others = (two != one).astype(jnp.int32) + ((three != one) & (three != two)).astype(jnp.int32)
    number = 1 + others
    return _Touching(one, jnp.where(two != one, two, three), number)


class _Edge(NamedTuple):
    ends: Array
    exists: Array


def _edge(assets: Assets, side: _Side, t: _Touching, normal: Vec) -> _Edge:
    """The edge of a shape that lies in a face of the other, whose normal is given."""
    own = side.turn.T @ normal
    one, other, exists = best_edge(assets, side.shape, t.first, t.second, own)
    a, b = (end_of(assets, side.shape, end, side.out) for end in (one, other))
    along = (b - a).normalize()
    level = jnp.abs(along.dot(own)) < EDGE_LIES
    return _Edge(jnp.stack([one, other]), exists & (t.number < 3) & level)


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
        a, b = (
            cutter.world(corner_of(assets, cutter.shape, face, jnp.broadcast_to(j, face.shape)))
            for j in (k, k + 1)
        )
        return cut(p, a, normal.cross(b - a), number + k, k < sides)

    return lax.fori_loop(0, most, turn, outline(points, number, 2 * most))


def _points(assets: Assets, side: _Side, face: Array, k: Array, ends: Array, edge: Array) -> Vec:
    """The k-th corner of a face, or end of an edge, in the frame of the first shape."""
    corner = corner_of(assets, side.shape, face, k)
    one, other, edge = in_front((ends[0], ends[1], edge), k)
    end = jnp.where(k % 2 == 0, one, other)
    out = in_front(side.out, k).map(lambda x: jnp.broadcast_to(x, end.shape))
    return side.world(select(edge, end_of(assets, side.shape, end, out), corner))


def contacts(set_: Difference, f: Feature, patch: Patch) -> tuple[Array, Vec, Vec]:
    """Distance, position and normal of the points of patches, `[POINTS, n]`; differentiable.

    The normal goes from the first shape to the second: it is that of the face of the second, or of
    the only face. Distances are along it.
    """
    assets = set_.assets
    first, second = _sides(set_, lax.stop_gradient(f))
    cutter = select(patch.turned, second, first)
    subject = select(patch.turned, first, second)
    normal = cutter.turn @ normal_of(assets, cutter.shape, patch.face)
    origin = cutter.world(corner_of(assets, cutter.shape, patch.face, jnp.zeros_like(patch.face)))
    point = _crossings(assets, cutter, subject, patch)

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
    place = jnp.arange(POINTS).reshape(POINTS, 1)
    dist = jnp.where(place < number, dist, FAR)
    return dist, at, direction.map(lambda x: jnp.broadcast_to(x, dist.shape))


def _crossings(assets: Assets, cutter: _Side, subject: _Side, patch: Patch) -> Vec:
    """Where the two lines of each point cross, in the frame of the first shape, `[POINTS, n]`."""
    own = patch.own[None]
    into, out = patch.lines[0], patch.lines[1]
    into_own, out_own = into < own, out < own
    corner = jnp.where(out_own, out, into)
    args = assets, subject, patch.other
    a = _points(*args, jnp.where(out_own, out, 0), patch.ends, patch.edge)
    # a line of its own begins at its corner and ends at the next
    start = _points(*args, jnp.where(into_own | out_own, corner, 0), patch.ends, patch.edge)
    after = jnp.where(into_own | out_own, corner, 0) + 1
    along = _points(*args, after, patch.ends, patch.edge) - start
    plane, at = _side_plane(assets, cutter, patch.face, jnp.where(into_own, out, into) - own)
    on_line = start + along.scale(safe_divide(plane.dot(at - start), plane.dot(along)))

    # of two planes: in the face that is cut
    second, at2 = _side_plane(assets, cutter, patch.face, out - own)
    inner = subject.turn @ normal_of(assets, subject.shape, patch.other)
    inner = in_front(inner, plane).map(lambda x: jnp.broadcast_to(x, plane.x.shape))
    in_face = _meeting((plane, at), (second, at2), (inner, start))
    return select(into_own & out_own, a, select(into_own | out_own, on_line, in_face))


def _side_plane(assets: Assets, side: _Side, face: Array, k: Array) -> tuple[Vec, Vec]:
    """Normal of a plane through the k-th side of a face at right angles to it, and a point."""
    k = jnp.maximum(k, 0)
    a, b = (side.world(corner_of(assets, side.shape, face, j)) for j in (k, k + 1))
    normal = side.turn @ normal_of(assets, side.shape, face)
    return (b - a).cross(in_front(normal, a)).normalize(), a


def _meeting(*planes: tuple[Vec, Vec]) -> Vec:
    """The point that three planes share."""
    (n1, p1), (n2, p2), (n3, p3) = planes
    a, b, c = n2.cross(n3), n3.cross(n1), n1.cross(n2)
    total = a.scale(n1.dot(p1)) + b.scale(n2.dot(p2)) + c.scale(n3.dot(p3))
    return total.scale(safe_divide(1.0, n1.dot(a)))
