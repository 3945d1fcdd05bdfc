"""Patches of flat contact: up to four points where faces or edges lie on each other.

MuJoCo's documentation, Computation: Multiple contacts; its rules were determined by experiment. If
a face of each shape at the nearest points, or an edge and a face, are parallel within five degrees
(flat_contact.py), the face or edge of the subject is clipped by the sides of the reference face of
the cutter (polygon.py). At most four points of the result are the contacts.

`patch_of` decides which points these are, without derivatives; `patch_contacts` computes them as a
differentiable function of the shapes, as intersections of lines in a face.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.enums import GeomType
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.convex.difference import Difference
from jaxsim.physics.collision.convex.face import (
    corner_of,
    corners_of,
    end_of,
    inflated_edge_offset,
    max_face_corners,
    normal_of,
)
from jaxsim.physics.collision.convex.feature import Feature
from jaxsim.physics.collision.convex.flat_contact import Facing, FacingShape, facing_of, sides_of
from jaxsim.physics.collision.convex.polygon import (
    Polygon,
    clip_polygon,
    four_corners,
    make_polygon,
    remove_corners,
)
from jaxsim.physics.collision.convex.polygon_loop import Plane, clip_in_loop
from jaxsim.physics.collision.convex.solid import Assets
from jaxsim.transforms.compaction import add_leading_axes, evaluate_part
from jaxsim.transforms.materialize import materialize_decision, materialize_result
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning

MAX_PATCH_POINTS = 4


class Patch(NamedTuple):
    """A flat contact, `[n]`.

    Attributes:
      number: number of points; 0: the nearest points are the only contact.
      facing: which face or edge, the subject, lies on which reference face.
      own: number of lines of the subject itself.
      lines: the two lines that intersect in each point, `[2, MAX_PATCH_POINTS, n]`; see polygon.py.
      reach: distance up to which a point is a contact.
    """

    number: Array
    facing: Facing
    own: Array
    lines: Array
    reach: Array


def _select_shape(both: PyTree, second: Array) -> PyTree:
    """Select from values `[2, n]` that of the second shape, or of the first."""
    return jax.tree.map(lambda x: jnp.where(second, x[1], x[0]), both)


def patch_of(
    set_: Difference, f: Feature, reach: Array, near: Array, size: int
) -> tuple[Patch, Vec]:
    """Return the contact points of two shapes in flat contact.

    Args:
      set_: pairs `[n]`.
      f: their nearest points.
      reach: distance up to which a point is a contact.
      near: the pairs within reach.
      size: lanes of a chunk of the detection.

    Returns:
      The selection, and the positions on the subject, `[MAX_PATCH_POINTS, n]`.
    """
    assets = set_.assets
    sides = materialize_result(sides_of, set_, f)
    detect = partial(_detect, assets)
    facing = evaluate_part(detect, near, (sides, f), size)
    # Few contacts are flat, and clipping takes longer than all the rest.
    lanes, clip = _Lanes(sides, facing, reach), partial(_clip, assets)
    found = evaluate_part(clip, facing.flat, lanes, tuning().clip_lanes)
    count, own, lines, point = found
    return Patch(count, facing, own, lines, reach), point


def _detect(assets: Assets, operands: tuple[FacingShape, Feature]) -> Facing:
    """Detect flat contact."""
    return materialize_decision(facing_of, assets, *operands)


class _Lanes(NamedTuple):
    """Operands of the clipping, for compacted lanes."""

    sides: FacingShape
    facing: Facing
    reach: Array


def _clip(assets: Assets, lanes: _Lanes) -> tuple[Array, Array, Array, Vec]:
    """Clip the subject by the sides of the reference face.

    Returns:
      The number of points, the number of lines of the subject, and the lines and positions of the
      points, as in `patch_of`.
    """
    sides, facing, reach = lanes
    cutter, subject = _select_shape(sides, facing.turned), _select_shape(sides, ~facing.turned)
    one_lane = platform().fuses_calls and facing.face.shape == (1,)
    cut = _cut_one_polygon if one_lane else _cut_polygons
    polygon = cut(assets, cutter, subject, facing, reach)
    # Reduce to four points.
    own = _corners(assets, subject, facing)
    corners, count = _lone_crossing_twice(polygon, own, facing, *four_corners(polygon))
    chosen = (polygon.point, polygon.into, polygon.out)
    point, *lines = jax.tree.map(
        lambda x: jnp.take_along_axis(x, corners, axis=0, mode="clip"), chosen
    )
    return count, own, jnp.stack(lines), point


def _lone_crossing_twice(
    p: Polygon, own: Array, facing: Facing, corners: Array, count: Array
) -> tuple[Array, Array]:
    """Duplicate the only remaining point of a clipped edge if it is an intersection.

    MuJoCo clips an edge in both directions and obtains each intersection twice. It keeps the two
    points farthest apart, but an intersection whose other end is no contact stays double.
    """
    crossing = jnp.maximum(p.into[0], p.out[0]) >= own
    twice = facing.edge & (count == 1) & crossing
    return jnp.where(twice, 0, corners), jnp.where(twice, 2, count)


def _corners(assets: Assets, subject: FacingShape, facing: Facing) -> Array:
    """Return the number of corners of the subject."""
    return jnp.where(facing.edge, 2, corners_of(assets, subject.shape, facing.other))


def _cut_polygons(
    assets: Assets, cutter: FacingShape, subject: FacingShape, facing: Facing, reach: Array
) -> Polygon:
    """Clip the subject by the sides of the reference face; drop points too far above it."""
    face, most = facing.face, max_face_corners(assets)
    every = jnp.arange(most, dtype=jnp.int32)[:, None]
    # Subject polygon, and the number of sides of the reference face.
    points = _points(assets, cutter, subject, facing, every, reach)
    number = _corners(assets, subject, facing)
    sides = corners_of(assets, cutter.shape, face)
    normal = cutter.rot @ normal_of(assets, cutter.shape, face)

    def iterate(state: tuple[Array, Polygon]) -> tuple[Array, Polygon]:
        """Clip by one side."""
        k, p = state
        ends = jnp.broadcast_to(jnp.stack([k, k + 1])[:, None], (2, *face.shape))
        a, b = _two(cutter.world(corner_of(assets, cutter.shape, face, ends)))
        return k + 1, clip_polygon(p, a, normal.cross(b - a), number + k, k < sides)

    # As many iterations as the largest reference face has sides.
    last = jnp.max(jnp.where(facing.flat, sides, 0))
    start = jnp.int32(0), make_polygon(points, number, 2 * most)
    polygon = lax.while_loop(lambda state: state[0] < last, iterate, start)[1]
    plane, limit = add_leading_axes((_face_plane(assets, cutter, face), reach), polygon.point)
    return remove_corners(polygon, (plane.height(polygon.point) > limit) | ~facing.flat[None])


def _cut_one_polygon(
    assets: Assets, cutter: FacingShape, subject: FacingShape, facing: Facing, reach: Array
) -> Polygon:
    """Return what `_cut_polygons` does for one lane, by loops over corners that exist."""
    face, none = facing.face, jnp.zeros_like(facing.face[0])
    plane = _face_plane(assets, cutter, face)

    def corner(k: Array) -> Vec:
        """Return the k-th corner of the subject."""
        return _points(assets, cutter, subject, facing, k.reshape(1, 1), reach)[0, 0]

    def side(k: Array) -> Plane:
        """Return the plane through the k-th side of the reference face."""
        a, b = _two(
            cutter.world(corner_of(assets, cutter.shape, face, jnp.stack([k, k + 1])[:, None]))
        )
        return Plane(a[0], plane.normal[0].cross((b - a)[0]))

    def keeps(point: Vec) -> Array:
        """Return whether a point is near enough to the reference face."""
        return Plane(plane.origin[0], plane.normal[0]).height(point) <= reach[0]

    number, sides = _corners(assets, subject, facing), corners_of(assets, cutter.shape, face)
    number, sides = (jnp.where(facing.flat, x, none)[0] for x in (number, sides))
    return clip_in_loop(corner, number, side, sides, keeps, 2 * max_face_corners(assets))


def _face_plane(assets: Assets, cutter: FacingShape, face: Array) -> Plane:
    """Return the plane of a face, `[n]`."""
    normal = cutter.rot @ normal_of(assets, cutter.shape, face)
    return Plane(cutter.world(corner_of(assets, cutter.shape, face, jnp.zeros_like(face))), normal)


def _two(points: Vec) -> tuple[Vec, Vec]:
    """Return the two items."""
    return points[0], points[1]


def _points(
    assets: Assets,
    cutter: FacingShape,
    subject: FacingShape,
    facing: Facing,
    k: Array,
    reach: Array,
) -> Vec:
    """Return the k-th corner of the subject in the frame of the first shape."""
    corner = corner_of(assets, subject.shape, facing.other, k)
    one, other, edge = add_leading_axes((facing.ends[0], facing.ends[1], facing.edge), k)
    end = jnp.where(k % 2 == 0, one, other)
    out = add_leading_axes(subject.out, k).map(lambda x: jnp.broadcast_to(x, end.shape))
    point = end_of(assets, subject.shape, end, out)
    if GeomType.CAPSULE in assets.kinds:
        normal = cutter.rot @ normal_of(assets, cutter.shape, facing.face)
        back = add_leading_axes(subject.rot.T @ -normal, k)
        point += inflated_edge_offset(subject.shape, out, back, reach)
    return subject.world(select_where(edge, point, corner))


def patch_contacts(
    set_: Difference, f: Feature, patch: Patch, point: Vec | None = None
) -> tuple[Array, Vec, Vec]:
    """Return distance, position and normal of the points of patches, `[MAX_PATCH_POINTS, n]`.

    The normal goes from the first shape to the second: that of the face of the second shape, or of
    the only face. Distances are along it.

    Args:
      set_: pairs `[n]`.
      f: their nearest points.
      patch: the selection of points.
      point: their positions from `patch_of`; by default they are recomputed, differentiably.
    """
    assets, facing = set_.assets, patch.facing
    sides = materialize_result(sides_of, set_, f)
    cutter, subject = _select_shape(sides, facing.turned), _select_shape(sides, ~facing.turned)
    # Reference plane, and the points on the subject.
    normal = cutter.rot @ normal_of(assets, cutter.shape, facing.face)
    origin = cutter.world(corner_of(assets, cutter.shape, facing.face, jnp.zeros_like(facing.face)))
    point = _crossings(assets, cutter, subject, patch) if point is None else point

    # Face-face: the distance to the plane of the second shape's face, which is the subject.
    out = subject.rot @ normal_of(assets, subject.shape, facing.other)
    normal, origin, out, edge, turned, number = add_leading_axes(
        (normal, origin, out, facing.edge, facing.turned, patch.number), point
    )
    rise = (point - origin).dot(normal)
    foot = point - normal.scale(rise)
    apart = (foot - point).dot(out)
    dist = jnp.where(edge, rise, apart)
    # Edge-face: the normal of the reference face, with the sign of the order of the shapes.
    direction = select_where(edge, select_where(turned, -normal, normal), -out)
    at = select_where(edge, point - normal.scale(0.5 * rise), foot - out.scale(0.5 * apart))
    place = jnp.arange(MAX_PATCH_POINTS, dtype=jnp.int32)[:, None]
    dist = jnp.where(place < number, dist, NO_CONTACT_DISTANCE)
    return dist, at, direction.map(lambda x: jnp.broadcast_to(x, dist.shape))


def _crossings(assets: Assets, cutter: FacingShape, subject: FacingShape, patch: Patch) -> Vec:
    """Intersect the lines of points in the frame of the first shape, `[MAX_PATCH_POINTS, n]`."""
    facing, own = patch.facing, patch.own[None]
    into, out = patch.lines[0], patch.lines[1]
    into_own, out_own = into < own, out < own
    # An own line of the subject goes from its corner to the next one.
    corner = jnp.where(out_own, out, jnp.where(into_own, into, 0))
    ends = jnp.stack([corner, corner + 1])
    start, end = _two(_points(assets, cutter, subject, facing, ends, patch.reach))
    along = end - start
    # Intersection of an own line with a clipping plane.
    plane, at = _side_plane(assets, cutter, facing.face, jnp.where(into_own, out, into) - own)
    on_line = start + along.scale(safe_divide(plane.dot(at - start), plane.dot(along)))

    # Intersection of two clipping planes in the subject's face.
    second, at2 = _side_plane(assets, cutter, facing.face, out - own)
    inner = subject.rot @ normal_of(assets, subject.shape, facing.other)
    inner = add_leading_axes(inner, plane).map(lambda x: jnp.broadcast_to(x, plane.x.shape))
    in_face = _intersect_planes((plane, at), (second, at2), (inner, start))
    return select_where(
        into_own & out_own, start, select_where(into_own | out_own, on_line, in_face)
    )


def _side_plane(assets: Assets, side: FacingShape, face: Array, k: Array) -> tuple[Vec, Vec]:
    """Return the plane through the k-th side of a face, orthogonal to it: normal and a point."""
    k = jnp.maximum(k, 0)
    a, b = _two(side.world(corner_of(assets, side.shape, face, jnp.stack([k, k + 1]))))
    normal = side.rot @ normal_of(assets, side.shape, face)
    return (b - a).cross(add_leading_axes(normal, a)).normalize(), a


def _intersect_planes(*planes: tuple[Vec, Vec]) -> Vec:
    """Return the intersection of three planes."""
    (n1, p1), (n2, p2), (n3, p3) = planes
    a, b, c = n2.cross(n3), n3.cross(n1), n1.cross(n2)
    total = a.scale(n1.dot(p1)) + b.scale(n2.dot(p2)) + c.scale(n3.dot(p3))
    return total.scale(safe_divide(1.0, n1.dot(a)))
