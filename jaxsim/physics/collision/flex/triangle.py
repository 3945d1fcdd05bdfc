"""Contacts of spheres, capsules and boxes with triangles that have a thickness.

A sphere touches the point of the triangle that is nearest to its center. A capsule touches with the
spheres at its two ends, and with its side at the three vertices; a box with its faces at the three
vertices, and with its eight corners. A triangle therefore has up to 1, 5 and 11 contacts, as in
MuJoCo.
"""

import itertools

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.physics.collision.flex.item import RoundedHull
from jaxsim.physics.collision.primitive.sphere import spheres
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis, touch_if


def sphere_triangle(sphere: PlacedGeoms, triangle: RoundedHull) -> ContactPoints:
    """Return the contact of a sphere with a triangle."""
    return add_slot_axis(_ball(sphere.pos, sphere.size.x, triangle))


def capsule_triangle(capsule: PlacedGeoms, triangle: RoundedHull) -> ContactPoints:
    """Return the contacts of both ends of a capsule, and of its side with the vertices."""
    # Spheres at the ends.
    radius, half = capsule.size.x, capsule.size.y
    half_axis = capsule.axis.scale(half)
    ends = [capsule.pos - half_axis, capsule.pos + half_axis]
    touches = [_ball(end, radius, triangle) for end in ends]
    # Vertices whose projection on the axis is between the ends.
    for vertex in triangle.corner:
        along = vertex - ends[0]
        share = safe_divide(along.dot(half_axis), 2 * half * half)
        beside = (share > MINVAL) & (share < 1 - MINVAL)
        center = ends[0] + half_axis.scale(2 * share)
        touch = spheres(center, radius, vertex, triangle.radius, _unit_x(vertex))
        touches.append(touch_if(beside, touch))
    return _concat_contacts(touches)


def box_triangle(box: PlacedGeoms, triangle: RoundedHull, reach: Array) -> ContactPoints:
    """Return the contacts of vertices with the faces of a box, and of the corners of the box."""
    touches = [_vertex(box, vertex, triangle.radius, reach) for vertex in triangle.corner]
    none = jnp.zeros_like(box.size.x)
    for z, y, x in itertools.product((-1, 1), repeat=3):
        corner = Vec(x * box.size.x, y * box.size.y, z * box.size.z)
        touches.append(_ball(box.pos + box.rot @ corner, none, triangle))
    return _concat_contacts(touches)


def _vertex(box: PlacedGeoms, vertex: Vec, radius: Array, reach: Array) -> ContactPoints:
    """Return the contact of a vertex with the face of least penetration of a box."""
    # Face of least penetration (of the largest distance outside the box).
    local = box.rot.T @ (vertex - box.pos)
    out = [jnp.abs(x) - size for x, size in zip(local.parts, box.size.parts, strict=True)]
    best, side = out[0], [jnp.ones_like(out[0], bool)] + [jnp.zeros_like(out[0], bool)] * 2
    for k in (1, 2):
        more = out[k] > best
        best = jnp.where(more, out[k], best)
        side = [jnp.where(more, j == k, on) for j, on in enumerate(side)]
    # The vertex must be within reach of all faces.
    over = out[0] <= reach + radius
    for value in out[1:]:
        over = over & (value <= reach + radius)
    # Outward normal of that face.
    sign = [
        jnp.where(on, jnp.where(x > 0, 1.0, -1.0), 0).astype(best.dtype)
        for on, x in zip(side, local.parts, strict=True)
    ]
    normal = box.rot @ Vec(*sign)
    dist = best - radius
    return touch_if(over, ContactPoints(dist, vertex - normal.scale(radius + 0.5 * dist), normal))


def _ball(center: Vec, radius: Array, triangle: RoundedHull) -> ContactPoints:
    """Return the contact of a sphere at the point of the triangle nearest to its center."""
    nearest = nearest_on_triangle(center, triangle.corner)
    one, two, three = triangle.corner
    across = (two - one).cross(three - one).normalize()
    return spheres(center, radius, nearest, triangle.radius, across)


def nearest_on_triangle(point: Vec, corner: tuple[Vec, ...]) -> Vec:
    """Return the point of a triangle that is nearest to a point."""
    return weighted_point(nearest_shares(point, corner), corner)


def nearest_shares(point: Vec, corner: tuple[Vec, ...]) -> tuple[Array, Array, Array]:
    """Return the barycentric coordinates of the point of a triangle nearest to a point.

    It is the orthogonal projection if this is inside, else the nearest point of the three sides.
    """
    one, two, three = corner
    inside, foot = _project_on_plane(point, one, two, three)
    zero = jnp.zeros_like(point.x)
    found, least = foot, jnp.where(inside, -1.0, jnp.inf).astype(zero.dtype)
    # Project on the sides; a projection inside has the key -1, so it wins.
    ends = ((0, 1), (1, 2), (2, 0))
    for first, second in ends:
        share = share_on_segment(point, corner[first], corner[second])
        parts = [zero, zero, zero]
        parts[first], parts[second] = 1 - share, share
        offset = weighted_point(tuple(parts), corner) - point
        square = lax.stop_gradient(offset.dot(offset))
        nearer = square < least
        found, least = select_where(nearer, tuple(parts), found), jnp.where(nearer, square, least)
    return found


def _project_on_plane(
    point: Vec, one: Vec, two: Vec, three: Vec
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Project a point on the plane; return whether it is inside, and barycentric coordinates."""
    a, b, p = two - one, three - one, point - one
    normal = a.cross(b)
    # Barycentric coordinates by ratios of areas; a degenerate triangle has none.
    square = normal.dot(normal)
    v = safe_divide(p.cross(b).dot(normal), square)
    w = safe_divide(a.cross(p).dot(normal), square)
    u = 1 - v - w
    return (square > 0) & (u >= 0) & (v >= 0) & (w >= 0), (u, v, w)


def share_on_segment(point: Vec, start: Vec, end: Vec) -> Array:
    """Return the fraction in [0, 1] at which a segment is nearest to a point."""
    along = end - start
    return jnp.clip(safe_divide((point - start).dot(along), along.dot(along)), 0, 1)


def weighted_point(share: tuple[Array, ...], corner: tuple[Vec, ...]) -> Vec:
    """Return the weighted sum of points."""
    parts = [c.scale(w) for c, w in zip(corner, share, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _unit_x(like: Vec) -> Vec:
    one, zero = jnp.ones_like(like.x), jnp.zeros_like(like.x)
    return Vec(one, zero, zero)


def _concat_contacts(touches: list[ContactPoints]) -> ContactPoints:
    """Stack contact points on a new leading axis of slots."""

    def stack(*parts: Array) -> Array:
        return jnp.stack(jnp.broadcast_arrays(*parts))

    each = [t._replace(tangent=None, dropped=None) for t in touches]
    return jax.tree.map(stack, *each)
