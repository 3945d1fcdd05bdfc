"""Broad phase of pairs of geoms: a conservative separating-axis test.

Two convex geoms are separated if their projections on some axis are. The axes tested are the line
between the centers and the face normals of boxes; against a plane, its normal. The support width of
a geom along an axis is known in closed form for each type (`EXTENT_FUNCTIONS`). A pair that touches
is never rejected. In kernels of a CPU pairs are tested one by one, by their bounding spheres first.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.physics.collision.shape import PlacedGeoms
from jaxsim.transforms.platform import platform


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
    first, second = geoms, geoms
    if kind is None:
        first = second = _bounding_box(geoms)
        kind = GeomType.BOX, GeomType.BOX
    elif kind[1] not in EXTENT_FUNCTIONS:
        second, kind = _bounding_box(geoms), (kind[0], GeomType.BOX)
    if platform().fuses_calls and reach.ndim == 2 and kind[0] != GeomType.PLANE:
        return _test_one_by_one(kind, first, second, geom1, geom2, reach)
    return _may_overlap(kind, gather_static(first, geom1), gather_static(second, geom2), reach)


def _test_one_by_one(
    kind: tuple[int, int],
    first: PlacedGeoms,
    second: PlacedGeoms,
    geom1: np.ndarray,
    geom2: np.ndarray,
    reach: Array,
) -> Array:
    """Test pair by pair, by bounding spheres first: few pairs get further in any world."""
    first, second, reach = lax.stop_gradient((first, second, reach))
    ids = jnp.asarray(geom1, jnp.int32), jnp.asarray(geom2, jnp.int32)
    sides = [(g, RADIUS_FUNCTIONS[k](g.size)) for g, k in zip((first, second), kind, strict=True)]
    slack = 1 + 16 * float(jnp.finfo(reach.dtype).eps)  # rounding must not reject pairs that touch

    def row(x: PyTree, k: Array) -> PyTree:
        return jax.tree.map(lambda a: dynamic_index_in_dim(a, k, keepdims=False), x)

    def test(k: Array, passed: Array) -> Array:
        """Test one pair in all worlds."""
        (a, radius1), (b, radius2) = (row(x, row(i, k)) for x, i in zip(sides, ids, strict=True))
        limit = row(reach, k)
        offset, far = b.pos - a.pos, radius1 + radius2 + limit
        near = (offset.dot(offset) <= slack * far * far) & (far >= 0)
        near = lax.cond(jnp.any(near), lambda: near & _may_overlap(kind, a, b, limit), lambda: near)
        return dynamic_update_index_in_dim(passed, near, k, 0)

    worlds = jnp.broadcast_shapes(reach.shape[1:], first.pos.x.shape[1:], second.pos.x.shape[1:])
    none = jnp.zeros((len(geom1), *worlds), bool)
    return lax.fori_loop(jnp.int32(0), jnp.int32(len(geom1)), test, none)


def _may_overlap(kind: tuple[int, int], a: PlacedGeoms, b: PlacedGeoms, reach: Array) -> Array:
    """Return whether no separating axis is found; both geoms have arrays of one shape."""
    offset = b.pos - a.pos
    # Against a plane the only separating axis is its normal.
    if kind[0] == GeomType.PLANE:
        line = a.axis
        gap = line.dot(offset) - EXTENT_FUNCTIONS[kind[1]](b, line, 1.0)
        return gap <= reach
    # Separating axes: the line between the centers, and the face normals of boxes.
    lines = [(offset, offset.norm())]
    lines += [(axis, 1.0) for g, k in zip((a, b), kind, strict=True) for axis in _normals(g, k)]
    passed = jnp.ones(jnp.broadcast_shapes(reach.shape, offset.x.shape), bool)
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

# radius of a sphere around the center that contains the geom
RADIUS_FUNCTIONS: dict[int, Callable] = {
    GeomType.SPHERE: lambda size: size.x,
    GeomType.CAPSULE: lambda size: size.x + size.y,
    GeomType.ELLIPSOID: lambda size: jnp.maximum(jnp.maximum(size.x, size.y), size.z),
    GeomType.CYLINDER: lambda size: size.x + size.y,
    GeomType.BOX: lambda size: size.norm(),
}
