"""Shortest paths around a sphere or an infinite cylinder, for wrapping tendons.

Both reduce to a circle in a plane: the plane through the center and the two ends for a sphere, the
plane normal to the axis for a cylinder, where the path rises uniformly along the axis. Without a
side site the path takes the shorter way around, and wraps only if the straight segment would cross
the circle. A side site s selects the way: the path winds around the center by the same angle as end
-> s -> end does (MuJoCo 4.0). A side site nearer to the center of the geom than the radius, for a
cylinder too, requests a path that touches the circle from within.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.enums import MINVAL, WrapType


class Arc(NamedTuple):
    """Tangent points of a path on a geom, in the geom's frame, and the length between them."""

    enter: np.ndarray
    leave: np.ndarray
    length: float


def wrap(kind: int, radius: float, ends: np.ndarray, side: np.ndarray | None) -> Arc | None:
    """Return the part of a path that lies on a geom. Corresponds to `mju_wrap` in MuJoCo.

    Args:
      kind: WrapType.SPHERE or WrapType.CYLINDER (along z).
      radius: radius of the geom [m].
      ends: the points before and after, in the geom's frame, (2, 3).
      side: the side site in the geom's frame, (3,), or None.

    Returns:
      The arc, or None if the path is straight.
    """
    if radius < MINVAL:
        return None
    plane = _circle_basis(ends, side) if kind == WrapType.SPHERE else np.eye(3)[:2]
    flat = ends @ plane.T
    if side is None:
        inside, flat_side = False, None
    else:
        # for a cylinder too, MuJoCo measures from the center and not from the axis
        flat_side, inside = plane @ side, bool(np.linalg.norm(side) < radius)
    found = _inside_wrap_point(flat, radius) if inside else _tangent_points(flat, radius, flat_side)
    if found is None:
        return None
    points, angle = found
    length = radius * angle
    out = points @ plane
    if kind == WrapType.CYLINDER:
        # the height is proportional to the length of the path in the plane
        legs = np.linalg.norm(points - flat, axis=1)
        rise = (ends[1, 2] - ends[0, 2]) / (legs[0] + length + legs[1])
        out[:, 2] = ends[0, 2] + rise * legs[0], ends[1, 2] - rise * legs[1]
        length = float(np.hypot(length, out[1, 2] - out[0, 2]))
    return Arc(out[0], out[1], length)


def _circle_basis(ends: np.ndarray, side: np.ndarray | None) -> np.ndarray:
    """Return an orthonormal basis (2, 3) of the plane through the center and both ends."""
    x = ends[0] / max(np.linalg.norm(ends[0]), MINVAL)
    normal = np.cross(ends[0], ends[1])
    norm = np.linalg.norm(normal)
    if norm < MINVAL:
        # ends and center collinear: use the coordinate axis most normal to the line
        other = np.zeros(3)
        other[np.argmin(np.abs(x))] = 1.0
        normal = np.cross(x, other)
        norm = np.maximum(np.linalg.norm(normal), MINVAL)
    return np.stack([x, np.cross(normal / norm, x)])


def _tangent_points(
    ends: np.ndarray, radius: float, side: np.ndarray | None
) -> tuple[np.ndarray, float] | None:
    """Return the tangent points (2, 2) and the angle between them, for the path outside of a
    circle; None if an end is inside, or the straight segment does not cross the circle."""
    distance = np.linalg.norm(ends, axis=1)
    if (distance < radius).any():
        return None
    if side is None or np.linalg.norm(side) < MINVAL:
        wrap_angle = _angle(ends[0], ends[1])
    else:
        wrap_angle = _angle(ends[0], side) + _angle(side, ends[1])
    to_tangent = np.arccos(np.minimum(radius / distance, 1.0))
    angle = abs(wrap_angle) - to_tangent.sum()
    if angle <= 0:
        return None
    tangent = np.arctan2(ends[:, 1], ends[:, 0]) + np.sign(wrap_angle) * to_tangent * np.array(
        [1.0, -1.0]
    )
    return radius * np.stack([np.cos(tangent), np.sin(tangent)], axis=1), float(angle)


def _inside_wrap_point(ends: np.ndarray, radius: float) -> tuple[np.ndarray, float] | None:
    """Return the point of a circle, twice, at which the shortest path through the circle is
    reflected; None if an end is inside, or the straight segment meets the circle.

    The path meets the circle at equal angles. As the point moves from the direction of one end to
    that of the other, one angle grows and the other shrinks: bisection locates the point of
    equality.
    """
    distance = np.linalg.norm(ends, axis=1)
    if (distance <= radius).any() or _segment_distance(ends) <= radius:
        return None
    total = _angle(ends[0], ends[1])
    sign, total = np.sign(total), abs(total)

    def tilt(angle: float, length: float) -> float:
        """Return the angle between the normal at a point of the circle and the direction to an
        end."""
        return np.arctan2(length * np.sin(angle), length * np.cos(angle) - radius)

    low, high = 0.0, total
    for _ in range(100):
        middle = 0.5 * (low + high)
        if tilt(middle, distance[0]) < tilt(total - middle, distance[1]):
            low = middle
        else:
            high = middle
    at = np.arctan2(ends[0, 1], ends[0, 0]) + sign * 0.5 * (low + high)
    point = radius * np.array([np.cos(at), np.sin(at)])
    return np.stack([point, point]), 0.0


def _segment_distance(ends: np.ndarray) -> float:
    """Return the distance from the origin to the segment between two points."""
    along = ends[1] - ends[0]
    square = along @ along
    if square < MINVAL:
        return float(np.linalg.norm(ends[0]))
    fraction = np.clip(-(ends[0] @ along) / square, 0.0, 1.0)
    return float(np.linalg.norm(ends[0] + fraction * along))


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    """Return the angle from a to b, counterclockwise, in [-pi, pi]."""
    return float(np.arctan2(a[0] * b[1] - a[1] * b[0], a @ b))
