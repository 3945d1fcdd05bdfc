"""Contacts of a plane with the convex geoms.

A plane bounds the half space below it. The depth of a point is its height over the plane, so each
collider only computes the points of the other geom that can be lowest; the normal is the plane's.
The functions correspond to `mjc_PlaneSphere`, `mjc_PlaneCapsule`, ... in MuJoCo.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.math.guard import safe_divide
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis, per_slot
from jaxsim.transforms.materialize import materialize_decision


def _plane_contacts(
    plane: PlacedGeoms, points: Vec, radius: Array | float = 0.0, tangent: Vec | None = None
) -> ContactPoints:
    """Return contacts of spheres about `points` `[k, n, *W]`; a radius of 0 is the point itself."""
    plane = add_slot_axis(plane)
    n = plane.axis
    dist = n.dot(points - plane.pos) - radius
    return ContactPoints(dist, points - n.scale(0.5 * dist + radius), n, tangent)


def plane_sphere(plane: PlacedGeoms, sphere: PlacedGeoms) -> ContactPoints:
    """Return the lowest point of the sphere."""
    sphere = add_slot_axis(sphere)
    return _plane_contacts(plane, sphere.pos, sphere.size.x)


def plane_capsule(plane: PlacedGeoms, capsule: PlacedGeoms) -> ContactPoints:
    """Return the lowest points of the two end spheres; the first tangent lies along the capsule."""
    end = per_slot((1, -1), capsule.size.y)
    capsule = add_slot_axis(capsule)
    ends = capsule.pos + capsule.axis.scale(end * capsule.size.y)
    return _plane_contacts(plane, ends, capsule.size.x, capsule.axis)


def plane_ellipsoid(plane: PlacedGeoms, ellipsoid: PlacedGeoms) -> ContactPoints:
    """Return the lowest point, -S u: semi-axes S stretch a unit sphere with normal u along S n."""
    n, s = ellipsoid.rot.T @ plane.axis, ellipsoid.size
    u = Vec(s.x * n.x, s.y * n.y, s.z * n.z).normalize()
    lowest = ellipsoid.pos - ellipsoid.rot @ Vec(s.x * u.x, s.y * u.y, s.z * u.z)
    return _plane_contacts(plane, add_slot_axis(lowest))


def plane_cylinder(plane: PlacedGeoms, cylinder: PlacedGeoms) -> ContactPoints:
    """Return the lowest point of both rims, and two more on the lower rim, at +-120 degrees."""
    n = plane.axis
    radius, half = cylinder.size.x, cylinder.size.y

    axis = cylinder.axis
    up = n.dot(axis)
    # Decided once: for a lying cylinder rounding decides, and it must be the same for x, y and z.
    turned = materialize_decision(_is_positive, up)
    lower = axis.scale(jnp.where(turned, -1.0, 1.0))  # towards the lower cap

    # Downward direction within a cap: -n without its part along the axis; arbitrary for a level
    # cap.
    down = axis.scale(up) - n
    length = down.norm()
    level = length < 4096 * jnp.finfo(length.dtype).eps
    down = select_where(level, cylinder.rot.cols[0], down.scale(safe_divide(1.0, length)))
    side = down.cross(lower)

    # Points as combinations of the axis, the downward direction and the sideways one.
    root = 0.75**0.5
    points = add_slot_axis(cylinder.pos)
    for direction, extent, parts in (
        (lower, half, (1, -1, 1, 1)),
        (down, radius, (1, 1, -0.5, -0.5)),
        (side, radius, (0, 0, root, -root)),
    ):
        points = points + add_slot_axis(direction).scale(
            per_slot(parts, radius) * add_slot_axis(extent)
        )
    return _plane_contacts(plane, points)


def _is_positive(x: Array) -> Array:
    """Return whether a number is positive."""
    return x > 0


def plane_box(plane: PlacedGeoms, box: PlacedGeoms) -> ContactPoints:
    """Return the lower end of each of the four space diagonals, in the order of the corners."""
    # Choose the corners once, then compute their positions.
    sides = [c.scale(s) for c, s in zip(box.rot.cols, box.size.parts, strict=True)]
    heights = tuple(plane.axis.dot(side) for side in sides)
    corner = materialize_decision(_lower_corners, heights)
    points = add_slot_axis(box.pos)
    for bit, side in enumerate(add_slot_axis(sides)):
        points = points + side.scale(_corner_sign(corner, bit, side.x.dtype))
    return _plane_contacts(plane, points)


def plane_box_corners(plane: PlacedGeoms, box: PlacedGeoms) -> ContactPoints:
    """Return all eight corners, so that each contact appears and vanishes smoothly."""
    corner = np.arange(8)
    points = add_slot_axis(box.pos)
    for bit, (axis, size) in enumerate(zip(box.rot.cols, box.size.parts, strict=True)):
        points = points + add_slot_axis(axis.scale(size)).scale(
            per_slot(_corner_sign(corner, bit, None), size)
        )
    return _plane_contacts(plane, points)


def _lower_corners(heights: tuple[Array, Array, Array]) -> Array:
    """Return lower corners `[4, n, *W]`, ascending: bit k of a corner is its side of axis k.

    Args:
      heights: rise of each half side of the box along the normal, three of `[n, *W]`.
    """
    rows = []
    for corner in range(4):  # the other end of its diagonal is corner 7 - corner
        signs = (_corner_sign(corner, bit, None) for bit in range(3))
        up = sum(sign * height for sign, height in zip(signs, heights, strict=True))
        rows.append(jnp.where(up > 0, 7 - corner, corner))
    # Sorting network for four numbers.
    for i, j in ((0, 1), (2, 3), (0, 2), (1, 3), (1, 2)):
        rows[i], rows[j] = jnp.minimum(rows[i], rows[j]), jnp.maximum(rows[i], rows[j])
    return jnp.stack(rows)


def _corner_sign(corner: Any, bit: int, dtype: np.dtype | None) -> Any:
    """Return the side of a corner on an axis, -1 or 1, for a static or traced corner."""
    sign = 2 * (corner >> bit & 1) - 1
    return sign if dtype is None else sign.astype(dtype)
