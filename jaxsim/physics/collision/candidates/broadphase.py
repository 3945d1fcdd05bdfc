"""A cheap test that no touching pair fails.

Two convex geoms are apart if they are apart along any direction. Tried are the line of their
centers and the face normals of boxes; against a plane, its normal. How far a geom reaches along a
line is known for each type.
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
    """Whether pairs may have a contact.

    Args:
      kind: types of the geoms; None: any, told by their bounding boxes. So is what is beside a
        plane and has no extent of its own; never the plane, whose box has no precise place.
      geoms: all geoms, `[ngeom, *W]`.
      geom1, geom2: constant ids, `[n]`.
      reach: distance up to which contacts are found, `[n, *W]`.

    Returns:
      bool `[n, *W]`.
    """
    a, b = gather_static(geoms, geom1), gather_static(geoms, geom2)
    if kind is None:
        a, b, kind = _as_box(a), _as_box(b), (GeomType.BOX, GeomType.BOX)
    elif kind[1] not in EXTENT_FUNCTIONS:
        b, kind = _as_box(b), (kind[0], GeomType.BOX)
    offset = b.pos - a.pos
    if kind[0] == GeomType.PLANE:
        line = a.axis
        gap = line.dot(offset) - EXTENT_FUNCTIONS[kind[1]](b, line, 1.0)
        return gap <= reach
    lines = [(offset, offset.norm())]
    lines += [(axis, 1.0) for g, k in zip((a, b), kind, strict=True) for axis in _normals(g, k)]
    passed = jnp.ones_like(reach, bool)
    for line, length in lines:  # everything times the length of the line, which may be zero
        gap = jnp.abs(line.dot(offset))
        gap = (
            gap
            - EXTENT_FUNCTIONS[kind[0]](a, line, length)
            - EXTENT_FUNCTIONS[kind[1]](b, line, length)
        )
        passed = passed & (gap <= reach * length)
    return passed


def _as_box(g: PlacedGeoms) -> PlacedGeoms:
    """The bounding box in the place of a geom."""
    assert g.box is not None
    center, half = g.box
    return g._replace(pos=center, size=half)


def _normals(g: PlacedGeoms, geom_type: int) -> tuple[Vec, ...]:
    return g.rot.cols if geom_type == GeomType.BOX else ()


def _round(g: PlacedGeoms, line: Vec, length: Array) -> Array:
    return g.size.x * length


def _long(g: PlacedGeoms, line: Vec, length: Array) -> Array:
    """Capsule; and the cylinder inside it with its round ends."""
    return g.size.y * jnp.abs(g.axis.dot(line)) + g.size.x * length


def _ellipsoid(g: PlacedGeoms, line: Vec, length: Array | float) -> Array:
    return jnp.maximum(jnp.maximum(g.size.x, g.size.y), g.size.z) * length


def _box(g: PlacedGeoms, line: Vec, length: Array | float) -> Array:
    sides = zip(g.size.parts, g.rot.cols, strict=True)
    return sum(size * jnp.abs(axis.dot(line)) for size, axis in sides)


# reach of a geom from its center along a line, times the length of that
EXTENT_FUNCTIONS: dict[int, Callable] = {
    GeomType.SPHERE: _round,
    GeomType.CAPSULE: _long,
    GeomType.ELLIPSOID: _ellipsoid,
    GeomType.CYLINDER: _long,
    GeomType.BOX: _box,
}
