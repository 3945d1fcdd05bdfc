"""Contact points at the time of impact: a patch of flat contact, or the nearest points.

MuJoCo's documentation, Computation: Speculative contacts (Conservative advancement). Determined by
experiment: both shapes are inflated by half of the distance that they still close within the step,
so that patches that form only later are detected (`growth`); and the choice of points over a plane.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.model.model import Model
from jaxsim.physics.collision.convex.convex import convex_convex, solid_of
from jaxsim.physics.collision.convex.face import (
    corner_of,
    corners_of,
    end_of,
    ends_at,
    faces_at,
    inflated_edge_offset,
    max_face_corners,
    normal_of,
)
from jaxsim.physics.collision.convex.flat_contact import MAX_FLAT_EDGE_SINE
from jaxsim.physics.collision.convex.patch import MAX_PATCH_POINTS
from jaxsim.physics.collision.convex.polygon import four_corners, make_polygon, remove_corners
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape, convex_assets, core_support
from jaxsim.physics.collision.shape import PlacedGeoms, add_slot_axis
from jaxsim.physics.collision.speculative.conservative_advancement import Meeting
from jaxsim.transforms.compaction import add_leading_axes
from jaxsim.transforms.materialize import materialize_decision


class Ends(NamedTuple):
    """Contact points at the time of impact, `[slots, n, *W]`.

    Attributes:
      one, other: points of the first and of the second geom.
      there: the point exists.
    """

    one: Vec
    other: Vec
    there: Array


def single_points(m: Model, a: PlacedGeoms, b: PlacedGeoms, meeting: Meeting) -> Ends:
    """Return the nearest points only, `[1, n, *W]`."""
    return nearest_points(meeting)


def nearest_points(meeting: Meeting) -> Ends:
    """Return the nearest points at the time of impact, `[1, n, *W]`."""
    half = meeting.normal.scale(0.5 * meeting.dist)
    return add_slot_axis(Ends(meeting.pos - half, meeting.pos + half, meeting.there))


def flat_points(m: Model, a: PlacedGeoms, b: PlacedGeoms, meeting: Meeting) -> Ends:
    """Return the points of flat contact patches of two convex geoms at impact, `[MAX_PATCH_POINTS,
    n, *W]`.

    MuJoCo removes the inflation along the line of the nearest points, which is not orthogonal to
    the faces: the points move along the faces.
    """
    # Patches of the inflated shapes; otherwise the nearest points.
    growth = shape_inflation(m, meeting)
    reach = jnp.where(meeting.there, growth, -NO_CONTACT_DISTANCE)
    touch = convex_convex(a, b, convex_assets(m), reach)
    there = touch.dist < NO_CONTACT_DISTANCE
    several = jnp.sum(there, axis=0) > 1
    # Points on the original surfaces, moved along the faces.
    half = touch.normal.scale(0.5 * touch.dist)
    aside = (add_slot_axis(meeting.normal) - touch.normal).scale(0.5 * growth[None])
    patch = Ends(touch.pos - half - aside, touch.pos + half + aside, there)
    return select_where(several[None], patch, _pad_to_slots(nearest_points(meeting), len(there)))


def shape_inflation(m: Model, meeting: Meeting) -> Array:
    """Return by how much shapes at impact are inflated [m]."""
    rest = meeting.closing * (1 - meeting.pose)
    return 2 * meeting.dist + rest + m.opt.ccd_tolerance


def plane_patch_points(m: Model, plane: PlacedGeoms, shape: PlacedGeoms, meeting: Meeting) -> Ends:
    """Return the corners of the face that meets a plane, or the ends of an edge,
    `[MAX_PATCH_POINTS, n, *W]`.

    The face is the one at the lowest point that looks down most, whatever its angle.
    """
    table, normal = convex_assets(m), plane.axis
    solid, down = solid_of(table, shape), shape.rot.T @ -normal
    height = normal.dot(shape.pos - plane.pos)
    parts = solid, down, shape_inflation(m, meeting), height
    # Flatten pairs and worlds into lanes; decide the feature once, then compute its points.
    worlds = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves((parts, normal))))
    solid, down, growth, height = jax.tree.map(
        lambda x: jnp.broadcast_to(x, worlds).reshape(-1), parts
    )
    lowest = materialize_decision(_lowest_of, table, solid, down, growth, height)
    point = _points(table, solid, down, growth, lowest)
    point, there = jax.tree.map(
        lambda x: x.reshape(MAX_PATCH_POINTS, *worlds), (point, lowest.there)
    )
    # Project the points on the plane.
    other = add_slot_axis(shape).pos + add_slot_axis(shape).rot @ point
    rise = add_slot_axis(normal).dot(other - add_slot_axis(plane).pos)
    patch = Ends(other - add_slot_axis(normal).scale(rise), other, there & meeting.there[None])
    return select_where(
        jnp.any(there, axis=0)[None],
        patch,
        _pad_to_slots(nearest_points(meeting), MAX_PATCH_POINTS),
    )


class _Lowest(NamedTuple):
    """The feature of shapes `[n]` that meets a plane.

    Attributes:
      is_face: it is a face; else an edge.
      face: id of the face, `[n]`.
      corner: its corners, or the features of the ends of the edge, `[MAX_PATCH_POINTS, n]`.
      there: which of these points exist, `[MAX_PATCH_POINTS, n]`.
    """

    is_face: Array
    face: Array
    corner: Array
    there: Array


def _lowest_of(assets: Assets, s: ConvexShape, down: Vec, growth: Array, height: Array) -> _Lowest:
    """Return the features of shapes that meet planes.

    Args:
      assets: tables of the model.
      s: the shapes.
      down: direction to the plane, in their frames.
      growth: largest height of a contact point over the plane.
      height: height of the center over the plane.
    """
    feature, _ = core_support(assets, s, down)
    face, is_face = _face(assets, s, feature, down)
    places = jnp.arange(max_face_corners(assets), dtype=jnp.int32)[:, None]
    # Corners of the face, without those that are too high, reduced to four.
    number = jnp.where(is_face, corners_of(assets, s, face), 0)
    polygon = make_polygon(
        corner_of(assets, s, face, places), number, max(len(places), MAX_PATCH_POINTS)
    )
    rise = height[None] + add_leading_axes(down, places).map(jnp.negative).dot(polygon.point)
    polygon = remove_corners(polygon, rise > growth[None])
    chosen, count = four_corners(polygon)
    corner = jnp.take_along_axis(polygon.out, chosen, axis=0)

    # Ends of a level edge.
    ends, is_edge = _edge(assets, s, feature, down)
    edge = _Lowest(is_face, face, ends, is_edge[None])
    point = _points(assets, s, down, growth, edge._replace(is_face=is_face & ~is_face))
    low = height[None] + add_leading_axes(down, point).map(jnp.negative).dot(point) <= growth[None]
    place = jnp.arange(MAX_PATCH_POINTS, dtype=jnp.int32)[:, None]
    there = select_where(is_face[None], place < count[None], is_edge[None] & (place < 2) & low)
    return _Lowest(is_face, face, jnp.where(is_face[None], corner, ends), there)


def _face(assets: Assets, s: ConvexShape, feature: Array, down: Vec) -> tuple[Array, Array]:
    """Return the face at a feature that looks down most, and whether it looks down at all."""
    faces = faces_at(assets, s, feature)
    # Cosine between the normals of the faces and the downward direction.
    looks = normal_of(assets, s, jnp.maximum(faces, 0)).dot(add_leading_axes(down, faces))
    looks = jnp.where(faces >= 0, looks, -1)
    best = jnp.argmax(looks, axis=0).astype(jnp.int32)
    face = jnp.take_along_axis(faces, best[None], axis=0)[0]
    return jnp.maximum(face, 0), jnp.max(looks, axis=0) >= MAX_FLAT_EDGE_SINE


def _edge(assets: Assets, s: ConvexShape, feature: Array, down: Vec) -> tuple[Array, Array]:
    """Return the ends of the first level edge, `[MAX_PATCH_POINTS, n]`, and whether it exists."""
    ends = ends_at(assets, s, feature)
    directions = down.map(lambda x: jnp.broadcast_to(x, ends.shape))
    start = end_of(assets, s, feature, down)
    way = end_of(assets, s, jnp.maximum(ends, 0), directions) - start[None]
    # First edge orthogonal to the downward direction, up to MAX_FLAT_EDGE_SINE.
    level = (jnp.abs(way.normalize().dot(directions)) < MAX_FLAT_EDGE_SINE) & (ends >= 0)
    first = jnp.argmax(level, axis=0).astype(jnp.int32)
    end = jnp.maximum(jnp.take_along_axis(ends, first[None], axis=0)[0], 0)
    line = s.kind == GeomType.CAPSULE  # its segment starts at the lower end
    one, two = jnp.where(line, 0, feature), jnp.where(line, 1, end)
    place = jnp.arange(MAX_PATCH_POINTS, dtype=jnp.int32)[:, None]
    return jnp.where(place % 2 == 0, one[None], two[None]), jnp.any(level, axis=0)


def _points(assets: Assets, s: ConvexShape, down: Vec, growth: Array, lowest: _Lowest) -> Vec:
    """Return the points that meet planes in the frames of their shapes, `[MAX_PATCH_POINTS, n]`."""
    is_face, corner = lowest.is_face[None], lowest.corner
    of_face = corner_of(assets, s, lowest.face, corner)
    directions = down.map(lambda x: jnp.broadcast_to(x, corner.shape))
    end = end_of(assets, s, jnp.where(is_face, 0, corner), directions)
    if GeomType.CAPSULE in assets.kinds:
        end += inflated_edge_offset(s, directions, directions, growth)
    return select_where(is_face, of_face, end)


def _pad_to_slots(ends: Ends, number: int) -> Ends:
    """Return one point in the first of several slots."""

    def point(x: Array) -> Array:
        return jnp.broadcast_to(x, (number, *x.shape[1:]))

    first = jnp.arange(number).reshape(-1, *(1,) * (ends.there.ndim - 1)) == 0
    return Ends(ends.one.map(point), ends.other.map(point), ends.there & first)
