"""Broad phase of pairs of geoms: a conservative separating-axis test.

Two convex geoms are separated if their projections on some axis are. The axes tested are the line
between the centers and the face normals of boxes; against a plane, its normal. The support width of
a geom along an axis is known in closed form for each type (`EXTENT_FUNCTIONS`). A pair that touches
is never rejected.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.physics.collision.shape import PlacedGeoms


def may_collide(
    kind: tuple[int, int] | None,
    geoms: PlacedGeoms,
    geom1: np.ndarray,
    geom2: np.ndarray,
    reach: Array,
) -> Array:
    """Return a mask of the pairs that may have a contact.

    Args:
      kind: types of the geoms; None: any types, tested by their bounding boxes. The second geom of
        a pair with a plane is also tested by its box where its type has no row in
        `EXTENT_FUNCTIONS`. A plane is never replaced by its box, whose position is not precise.
      geoms: all geoms, `[ngeom, *W]`.
      geom1, geom2: constant ids, `[n]`.
      reach: distance below which contacts are detected, `[n, *W]` [m].

    Returns:
      bool `[n, *W]`.
    """
    # Replace types without a closed-form support width by their bounding boxes.
    a, b = gather_static(geoms, geom1), gather_static(geoms, geom2)
    if kind is None:
        a, b, kind = _bounding_box(a), _bounding_box(b), (GeomType.BOX, GeomType.BOX)
    elif kind[1] not in EXTENT_FUNCTIONS:
        b, kind = _bounding_box(b), (kind[0], GeomType.BOX)
    offset = b.pos - a.pos
    # Against a plane the only separating axis is its normal.
    if kind[0] == GeomType.PLANE:
        line = a.axis
        gap = line.dot(offset) - EXTENT_FUNCTIONS[kind[1]](b, line, 1.0)
        return gap <= reach
    # Separating axes: the line between the centers, and the face normals of boxes.
    lines = [(offset, offset.norm())]
    lines += [(axis, 1.0) for g, k in zip((a, b), kind, strict=True) for axis in _normals(g, k)]
    passed = jnp.ones_like(reach, bool)
    # Conservative test: the pair is near unless the projections on some axis are separate.
    for line, length in lines:  # both sides are scaled by the length of the axis, which may be zero
        gap = jnp.abs(line.dot(offset))
        gap = (
            gap
            - EXTENT_FUNCTIONS[kind[0]](a, line, length)
            - EXTENT_FUNCTIONS[kind[1]](b, line, length)
        )
        passed = passed & (gap <= reach * length)
    return passed


def _bounding_box(g: PlacedGeoms) -> PlacedGeoms:
    """Return the bounding box of a geom, as a box."""
    assert g.box is not None
    center, half = g.box
    return g._replace(pos=center, size=half)


def _normals(g: PlacedGeoms, geom_type: int) -> tuple[Vec, ...]:
    return g.rot.cols if geom_type == GeomType.BOX else ()


def _round_support(g: PlacedGeoms, line: Vec, length: Array) -> Array:
    return g.size.x * length


def _capsule_support(g: PlacedGeoms, line: Vec, length: Array) -> Array:
    """Return the support width of a capsule, which also bounds the cylinder in it."""
    return g.size.y * jnp.abs(g.axis.dot(line)) + g.size.x * length


def _ellipsoid(g: PlacedGeoms, line: Vec, length: Array | float) -> Array:
    return jnp.maximum(jnp.maximum(g.size.x, g.size.y), g.size.z) * length


def _box(g: PlacedGeoms, line: Vec, length: Array | float) -> Array:
    sides = zip(g.size.parts, g.rot.cols, strict=True)
    return sum(size * jnp.abs(axis.dot(line)) for size, axis in sides)


# support width of a geom from its center along an axis, times the length of the axis
EXTENT_FUNCTIONS: dict[int, Callable] = {
    GeomType.SPHERE: _round_support,
    GeomType.CAPSULE: _capsule_support,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _capsule_support,
    GeomType.BOX: _box,
}
