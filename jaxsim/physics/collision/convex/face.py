"""Faces and edges of convex shapes, which can touch in more than one point.

A face is a polygon of a hull, of a box, or the cap of a cylinder, which is approximated by 16
corners. An edge is a side of such a polygon at a vertex, the side line of a cylinder, or a whole
capsule. Faces and edges have ids; the positions of their corners are differentiable functions of
them. The last axis of arrays are lanes. Faces and edges at a feature are listed in MuJoCo's order,
on which the choice among equal ones depends. Tables by geom type (_FACE_FUNCTIONS,
_NORMAL_FUNCTIONS, _CORNER_FUNCTIONS, _EDGE_END_FUNCTIONS) hold one function per type.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import take_clipped
from jaxsim.enums import GeomType
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.convex.hull.faces import (
    face_corner,
    face_normal,
    face_size,
    hull_ends,
    hull_faces,
    num_hull_faces,
)
from jaxsim.physics.collision.convex.hull.hulls import hull_vertex
from jaxsim.physics.collision.convex.solid import Assets, ConvexShape, point_on
from jaxsim.transforms.compaction import add_leading_axes

CAP_CORNERS = 16
_LEVEL_TOLERANCE = 2e-6  # a cylinder touches with its side, not with a cap, if |d.z| is below this


def max_face_corners(assets: Assets) -> int:
    """Return the largest number of corners of a face."""
    known = {GeomType.BOX: 4, GeomType.CYLINDER: CAP_CORNERS}
    most = [known.get(GeomType(kind), 2) for kind in assets.kinds]
    return max([*most, assets.hulls.max_face_corners if assets.hulls is not None else 0])


# faces


def max_faces_at(assets: Assets) -> int:
    """Return the largest number of faces, or of edges, at a feature."""
    known = {
        GeomType.BOX: 3,
        GeomType.MESH: assets.hulls.max_vertex_faces if assets.hulls is not None else 1,
    }
    return max(
        (known.get(GeomType(kind), 1) for kind in _kinds(assets, _EDGE_END_FUNCTIONS)), default=1
    )


def num_faces_at(assets: Assets, s: ConvexShape, feature: Array) -> Array:
    """Return the number of faces at a feature, S; a capsule, which has none, counts its edge."""
    number = jnp.ones(feature.shape, jnp.int32)
    for kind in _kinds(assets, _EDGE_END_FUNCTIONS):
        if kind == GeomType.BOX:
            number = jnp.where(s.kind == kind, 3, number)
        if kind == GeomType.MESH:
            assert assets.hulls is not None
            vertex = jnp.where(s.kind == kind, feature, 0)
            number = jnp.where(s.kind == kind, num_hull_faces(assets.hulls, vertex), number)
    return number


def faces_at(assets: Assets, s: ConvexShape, feature: Array, k: Array | None = None) -> Array:
    """Return the k-th face at a feature; -1 where there is none.

    Args:
      assets: tables of the model.
      s: shapes, S.
      feature: one of their features, S.
      k: index in the list of each feature, broadcasts with S; None: all, `[max_faces_at, *S]`.
    """
    return _look_up(assets, s, feature, k, _FACE_FUNCTIONS)


def _look_up(
    assets: Assets, s: ConvexShape, feature: Array, k: Array | None, table: dict[int, Callable]
) -> Array:
    """Return the k-th item that a table lists for each shape; -1 past the last one."""
    if k is None:
        k = jnp.arange(max_faces_at(assets), dtype=jnp.int32)
        k = k.reshape(-1, *(1,) * feature.ndim)
    s, feature = add_leading_axes((s, feature), k)
    found = jnp.full(jnp.broadcast_shapes(k.shape, feature.shape), -1, jnp.int32)
    for kind in _kinds(assets, table):
        found = jnp.where(s.kind == kind, table[kind](assets, s, feature, k), found)
    return jnp.where(k < num_faces_at(assets, s, feature), found, -1)


def normal_of(assets: Assets, s: ConvexShape, face: Array) -> Vec:
    """Return the outward unit normal of a face."""
    s = add_leading_axes(s, face)
    zero = jnp.zeros(face.shape, s.size.x.dtype)
    normal = Vec(zero, zero, zero)
    for kind in _kinds(assets, _NORMAL_FUNCTIONS):
        normal = select_where(s.kind == kind, _NORMAL_FUNCTIONS[kind](assets, s, face), normal)
    return normal


def corner_of(assets: Assets, s: ConvexShape, face: Array, k: Array) -> Vec:
    """Return the k-th corner of a face, clockwise from outside; cyclic in k.

    The order is MuJoCo's: which four corners of many are kept depends on the first one.
    """
    s, face = add_leading_axes((s, face), k)
    zero = jnp.zeros(jnp.broadcast_shapes(face.shape, k.shape), s.size.x.dtype)
    corner = Vec(zero, zero, zero)
    for kind in _kinds(assets, _CORNER_FUNCTIONS):
        corner = select_where(s.kind == kind, _CORNER_FUNCTIONS[kind](assets, s, face, k), corner)
    return corner


def corners_of(assets: Assets, s: ConvexShape, face: Array) -> Array:
    """Return the number of corners of a face."""
    number = jnp.full(face.shape, 4, jnp.int32)
    for kind in _kinds(assets, _CORNER_FUNCTIONS):
        if kind == GeomType.CYLINDER:
            number = jnp.where(s.kind == kind, CAP_CORNERS, number)
        if kind == GeomType.MESH:
            assert assets.hulls is not None
            number = jnp.where(s.kind == kind, face_size(assets.hulls, face), number)
    return number


def _kinds(assets: Assets, table: dict) -> list[int]:
    """Return the kinds of a table that occur; meshes without hulls have neither faces nor edges."""
    flat = assets.hulls is not None and assets.hulls.nhull > 0
    return [k for k in assets.kinds if k in table and (flat or k != GeomType.MESH)]


def _hull_faces(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return a polygon at a vertex of a hull."""
    assert assets.hulls is not None
    return hull_faces(assets.hulls, jnp.where(s.kind == GeomType.MESH, feature, 0), k)


def _box_faces(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return a face at a box's corner: 2 k + 1 on the positive side of axis k, else 2 k."""
    k = jnp.minimum(k, 2)
    return 2 * k + ((feature >> k) & 1)


def _cylinder_cap(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return the cap at a rim of a cylinder."""
    return feature


_FACE_FUNCTIONS: dict[int, Callable] = {
    GeomType.MESH: _hull_faces,
    GeomType.BOX: _box_faces,
    GeomType.CYLINDER: _cylinder_cap,
}


def touches_with_side(s: ConvexShape, d: Vec) -> Array:
    """Return whether a cylinder touches with its side, so that neither cap is a face."""
    return (s.kind == GeomType.CYLINDER) & (jnp.abs(d.z) <= _LEVEL_TOLERANCE)


def _hull_normal(assets: Assets, s: ConvexShape, face: Array) -> Vec:
    """Return the normal of a polygon of a hull."""
    assert assets.hulls is not None
    return face_normal(assets.hulls, jnp.where(s.kind == GeomType.MESH, face, 0))


def _box_normal(assets: Assets, s: ConvexShape, face: Array) -> Vec:
    """Return the normal of a face of a box."""
    one = (2 * (face & 1) - 1).astype(s.size.x.dtype)
    return Vec(*(jnp.where(face >> 1 == k, one, 0) for k in range(3)))


def _cap_normal(assets: Assets, s: ConvexShape, face: Array) -> Vec:
    """Return the normal of a cap."""
    one = (2 * face - 1).astype(s.size.x.dtype)
    return Vec(jnp.zeros_like(one), jnp.zeros_like(one), one)


_NORMAL_FUNCTIONS: dict[int, Callable] = {
    GeomType.MESH: _hull_normal,
    GeomType.BOX: _box_normal,
    GeomType.CYLINDER: _cap_normal,
}


def _hull_corner_of(assets: Assets, s: ConvexShape, face: Array, k: Array) -> Vec:
    """Return a corner of a polygon of a hull."""
    assert assets.hulls is not None
    mine = jnp.where(s.kind == GeomType.MESH, face, 0)
    return hull_vertex(assets.hulls, face_corner(assets.hulls, mine, k))


def _box_corners() -> np.ndarray:
    """Return the signs of the corners of each face of a box, `[face, corner, axis]`."""
    # First corner of each face: its signs along the next two axes in cyclic order.
    first = np.array([[1, -1], [1, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]])
    corners = np.zeros((6, 4, 3))
    for face in range(6):
        axis, up = face >> 1, 2 * (face & 1) - 1
        b, c = first[face]
        for k in range(4):
            corners[face, k, [axis, (axis + 1) % 3, (axis + 2) % 3]] = up, b, c
            b, c = up * c, -up * b  # rotate by 90 degrees, clockwise from outside
    return corners


BOX_CORNERS = _box_corners().reshape(-1, 3)


def _box_corner(assets: Assets, s: ConvexShape, face: Array, k: Array) -> Vec:
    """Return a corner of a face of a box."""
    dtype, place = s.size.x.dtype, 4 * face + k % 4
    sides = (take_clipped(jnp.asarray(BOX_CORNERS[:, j], dtype), place) for j in range(3))
    return Vec(*(size * side for size, side in zip(s.size.parts, sides, strict=True)))


def _cap_corner(assets: Assets, s: ConvexShape, face: Array, k: Array) -> Vec:
    """Return a corner of the polygon that approximates a cap."""
    # Corners on the rim, clockwise from outside on either cap.
    angles = 2 * np.pi * np.arange(CAP_CORNERS) / CAP_CORNERS
    k = jnp.where(face > 0, -k, k) % CAP_CORNERS
    dtype = s.size.x.dtype
    x, y = (take_clipped(jnp.asarray(f(angles), dtype), k) for f in (np.cos, np.sin))
    z = (2 * face - 1).astype(dtype) * s.size.y
    return Vec(s.size.x * x, s.size.x * y, jnp.broadcast_to(z, k.shape))


_CORNER_FUNCTIONS: dict[int, Callable] = {
    GeomType.MESH: _hull_corner_of,
    GeomType.BOX: _box_corner,
    GeomType.CYLINDER: _cap_corner,
}


# edges


def ends_at(assets: Assets, s: ConvexShape, feature: Array, k: Array | None = None) -> Array:
    """Return the feature at the other end of a feature's k-th edge; arguments as for `faces_at`."""
    return _look_up(assets, s, feature, k, _EDGE_END_FUNCTIONS)


def end_of(assets: Assets, s: ConvexShape, feature: Array, d: Vec) -> Vec:
    """Return the surface point of an edge's end along `d`, a unit vector."""
    # Point of the core, then the radius of a capsule.
    s = add_leading_axes(s, feature)
    point = point_on(assets, s, feature, d)
    if GeomType.CAPSULE not in assets.kinds:
        return point
    # Offset orthogonal to the axis only, without renormalizing d.
    wide = jnp.where(s.kind == GeomType.CAPSULE, s.size.x, 0)
    return Vec(point.x + wide * d.x, point.y + wide * d.y, point.z)


def inflated_edge_offset(s: ConvexShape, d: Vec, back: Vec, reach: Array) -> Vec:
    """Return the offset of a capsule's edge for shapes that are inflated until they touch.

    Each shape is inflated by half of `reach`. A capsule then gets wider about its axis, not longer;
    the inflation is removed along `back`, the outward normal of the face on which the edge lies.
    """
    s, reach = add_leading_axes((s, reach), d)
    half = jnp.where(s.kind == GeomType.CAPSULE, 0.5 * reach, 0)
    return Vec(d.x - back.x, d.y - back.y, -back.z).scale(half)


def _hull_ends(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return a neighbor of a vertex of a hull."""
    assert assets.hulls is not None
    return hull_ends(assets.hulls, jnp.where(s.kind == GeomType.MESH, feature, 0), k)


def _box_ends(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return a neighbor of a corner of a box."""
    return feature ^ (1 << jnp.minimum(k, 2))


def _line_end(assets: Assets, s: ConvexShape, feature: Array, k: Array) -> Array:
    """Return the other end of the line of a capsule or cylinder."""
    return 1 - feature


_EDGE_END_FUNCTIONS: dict[int, Callable] = {
    GeomType.MESH: _hull_ends,
    GeomType.BOX: _box_ends,
    GeomType.CYLINDER: _line_end,
    GeomType.CAPSULE: _line_end,
}
