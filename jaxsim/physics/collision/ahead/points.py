"""The points at which two geoms meet: a patch of flat contact, or the nearest points.

MuJoCo's documentation, Computation: Speculative contacts (Conservative advancement). That both
shapes reach out by half of what they still close in on each other, so that patches are found where
they meet only later, was found by experiment; so was what is taken over a plane.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.model.data import FAR
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.lanes import in_front
from jaxsim.physics.arrays.once import decide
from jaxsim.physics.collision.ahead.advance import Meeting
from jaxsim.physics.collision.convex.convex import convex_convex, solid_of
from jaxsim.physics.collision.convex.face import (
    corner_of,
    corners_of,
    end_of,
    ends_at,
    faces_at,
    line_moved,
    most_corners,
    normal_of,
)
from jaxsim.physics.collision.convex.facing import EDGE_LIES
from jaxsim.physics.collision.convex.patch import POINTS
from jaxsim.physics.collision.convex.polygon import four_corners, outline, without
from jaxsim.physics.collision.convex.solid import Assets, Solid, assets, support
from jaxsim.physics.collision.shape import Placed, slots


class Ends(NamedTuple):
    """Where two geoms meet, `[slots, n, *W]`.

    Attributes:
      one, other: points of the first and of the second geom, when they meet.
      there: there is such a point.
    """

    one: Vec
    other: Vec
    there: Array


def single_points(m: Model, a: Placed, b: Placed, meeting: Meeting) -> Ends:
    """The nearest points alone, `[1, n, *W]`."""
    return nearest_points(meeting)


def nearest_points(meeting: Meeting) -> Ends:
    """Where two geoms are nearest when they meet, `[1, n, *W]`."""
    half = meeting.normal.scale(0.5 * meeting.dist)
    return slots(Ends(meeting.pos - half, meeting.pos + half, meeting.there))


def flat_points(m: Model, a: Placed, b: Placed, meeting: Meeting) -> Ends:
    """The points of patches of two convex geoms where they meet, `[POINTS, n, *W]`.

    MuJoCo takes the growth of the shapes back along the line of the nearest points, which is not at
    right angles to the faces: the points move along the faces.
    """
    growth = grown(m, meeting)
    reach = jnp.where(meeting.there, growth, -FAR)
    touch = convex_convex(a, b, assets(m), reach)
    there = touch.dist < FAR
    several = jnp.sum(there, axis=0) > 1
    half = touch.normal.scale(0.5 * touch.dist)
    aside = (slots(meeting.normal) - touch.normal).scale(0.5 * growth[None])
    patch = Ends(touch.pos - half - aside, touch.pos + half + aside, there)
    return select(several[None], patch, _padded(nearest_points(meeting), len(there)))


def grown(m: Model, meeting: Meeting) -> Array:
    """How much nearer shapes that meet are taken than they are [m]."""
    rest = meeting.closing * (1 - meeting.pose)
    return 2 * meeting.dist + rest + m.opt.ccd_tolerance


def points_over_plane(m: Model, plane: Placed, shape: Placed, meeting: Meeting) -> Ends:
    """The corners of the face that meets a plane, or the ends of the edge, `[POINTS, n, *W]`.

    Whatever the angle is: of the faces at the lowest point the one that looks down most.
    """
    table, normal = assets(m), plane.axis
    solid, down = solid_of(table, shape), shape.rot.T @ -normal
    height = normal.dot(shape.pos - plane.pos)
    parts = solid, down, grown(m, meeting), height
    worlds = jnp.broadcast_shapes(*(x.shape for x in jax.tree.leaves((parts, normal))))
    solid, down, growth, height = jax.tree.map(
        lambda x: jnp.broadcast_to(x, worlds).reshape(-1), parts
    )
    lowest = decide(_lowest_of, table, solid, down, growth, height)
    point = _points(table, solid, down, growth, lowest)
    point, there = jax.tree.map(lambda x: x.reshape(POINTS, *worlds), (point, lowest.there))
    other = slots(shape).pos + slots(shape).rot @ point
    rise = slots(normal).dot(other - slots(plane).pos)
    patch = Ends(other - slots(normal).scale(rise), other, there & meeting.there[None])
    return select(jnp.any(there, axis=0)[None], patch, _padded(nearest_points(meeting), POINTS))


class _Lowest(NamedTuple):
    """What of shapes `[n]` meets planes.

    Attributes:
      is_face: a face; else an edge.
      face: number of the face, `[n]`.
      corner: corners of it, or the features of the ends of the edge, `[POINTS, n]`.
      there: which of these points there are, `[POINTS, n]`.
    """

    is_face: Array
    face: Array
    corner: Array
    there: Array


def _lowest_of(assets: Assets, s: Solid, down: Vec, growth: Array, height: Array) -> _Lowest:
    """What of shapes meets planes.

    Args:
      assets: tables of the model.
      s: the shapes.
      down: the direction to the plane, in their frames.
      growth: how high over the plane a point can be.
      height: of the center over the plane.
    """
    feature, _ = support(assets, s, down)
    face, is_face = _face(assets, s, feature, down)
    places = jnp.arange(most_corners(assets), dtype=jnp.int32)[:, None]
    number = jnp.where(is_face, corners_of(assets, s, face), 0)
    polygon = outline(corner_of(assets, s, face, places), number, max(len(places), POINTS))
    rise = height[None] + in_front(down, places).map(jnp.negative).dot(polygon.point)
    polygon = without(polygon, rise > growth[None])
    chosen, count = four_corners(polygon)
    corner = jnp.take_along_axis(polygon.out, chosen, axis=0)

    ends, is_edge = _edge(assets, s, feature, down)
    edge = _Lowest(is_face, face, ends, is_edge[None])
    point = _points(assets, s, down, growth, edge._replace(is_face=is_face & ~is_face))
    low = height[None] + in_front(down, point).map(jnp.negative).dot(point) <= growth[None]
    place = jnp.arange(POINTS, dtype=jnp.int32)[:, None]
    there = select(is_face[None], place < count[None], is_edge[None] & (place < 2) & low)
    return _Lowest(is_face, face, jnp.where(is_face[None], corner, ends), there)


def _face(assets: Assets, s: Solid, feature: Array, down: Vec) -> tuple[Array, Array]:
    """The face at a feature that looks down most, and whether it looks down at all."""
    faces = faces_at(assets, s, feature)
    looks = normal_of(assets, s, jnp.maximum(faces, 0)).dot(in_front(down, faces))
    looks = jnp.where(faces >= 0, looks, -1)
    best = jnp.argmax(looks, axis=0).astype(jnp.int32)
    face = jnp.take_along_axis(faces, best[None], axis=0)[0]
    return jnp.maximum(face, 0), jnp.max(looks, axis=0) >= EDGE_LIES


def _edge(assets: Assets, s: Solid, feature: Array, down: Vec) -> tuple[Array, Array]:
    """The ends of the first level edge at a feature, `[POINTS, n]`, and whether there is one."""
    ends = ends_at(assets, s, feature)
    directions = down.map(lambda x: jnp.broadcast_to(x, ends.shape))
    start = end_of(assets, s, feature, down)
    way = end_of(assets, s, jnp.maximum(ends, 0), directions) - start[None]
    level = (jnp.abs(way.normalize().dot(directions)) < EDGE_LIES) & (ends >= 0)
    first = jnp.argmax(level, axis=0).astype(jnp.int32)
    end = jnp.maximum(jnp.take_along_axis(ends, first[None], axis=0)[0], 0)
    line = s.kind == GeomType.CAPSULE  # its line begins below
    one, two = jnp.where(line, 0, feature), jnp.where(line, 1, end)
    place = jnp.arange(POINTS, dtype=jnp.int32)[:, None]
    return jnp.where(place % 2 == 0, one[None], two[None]), jnp.any(level, axis=0)


def _points(assets: Assets, s: Solid, down: Vec, growth: Array, lowest: _Lowest) -> Vec:
    """Where the points that meet planes are in the frames of their shapes, `[POINTS, n]`."""
    is_face, corner = lowest.is_face[None], lowest.corner
    of_face = corner_of(assets, s, lowest.face, corner)
    directions = down.map(lambda x: jnp.broadcast_to(x, corner.shape))
    end = end_of(assets, s, jnp.where(is_face, 0, corner), directions)
    if GeomType.CAPSULE in assets.kinds:
        end += line_moved(s, directions, directions, growth)
    return select(is_face, of_face, end)


def _padded(ends: Ends, number: int) -> Ends:
    """One point in the first of several slots."""

    def point(x: Array) -> Array:
        return jnp.broadcast_to(x, (number, *x.shape[1:]))

    first = jnp.arange(number).reshape(-1, *(1,) * (ends.there.ndim - 1)) == 0
    return Ends(ends.one.map(point), ends.other.map(point), ends.there & first)
