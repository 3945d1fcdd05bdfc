"""Faces and edges of convex shapes: what of a shape can touch in more than one point.

A face is a polygon: of a hull, of a box, and the cap of a cylinder, which is taken as 16 corners.
An edge is a side of such a polygon at a vertex, the side line of a cylinder, or a capsule as a
whole. Both are numbers; where their corners are is a differentiable function of them. Arrays end
with lanes.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Vec, select
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.convex.hull import (
    face_normal,
    hull_edge,
    hull_face,
    hull_vertex,
)
from jaxsim.physics.collision.convex.lanes import in_front
from jaxsim.physics.collision.convex.solid import Assets, Solid, point_on

CAP_CORNERS = 16
LEVEL = 2e-6  # a cylinder is seen from the side, and has no cap there, if it is this level


def most_corners(assets: Assets) -> int:
    """Most corners that a face can have."""
    known = {GeomType.BOX: 4, GeomType.CYLINDER: CAP_CORNERS}
    most = [known.get(GeomType(kind), 2) for kind in assets.kinds]
    return max([*most, assets.hulls.most_corners if assets.hulls is not None else 0])


# faces


def best_face(assets: Assets, s: Solid, vertex: Array, d: Vec) -> tuple[Array, Array]:
    """Of the faces at a vertex the one whose normal is best along `d`, and whether there is one."""
    face = jnp.zeros_like(vertex)
    exists = jnp.zeros(vertex.shape, bool)
    for kind in _kinds(assets, BEST_FACE):
        here = s.kind == kind
        best, good = BEST_FACE[kind](assets, s, vertex, d)
        face, exists = jnp.where(here, best, face), exists | (here & good)
    return face, exists


def normal_of(assets: Assets, s: Solid, face: Array) -> Vec:
    """Outward unit normal of a face."""
    zero = jnp.zeros(face.shape, s.size.x.dtype)
    normal = Vec(zero, zero, zero)
    for kind in _kinds(assets, NORMAL):
        normal = select(s.kind == kind, NORMAL[kind](assets, s, face), normal)
    return normal


def corner_of(assets: Assets, s: Solid, face: Array, k: Array) -> Vec:
    """The k-th corner of a face, clockwise seen from outside; beyond the last the first.

    The order is MuJoCo's: which four corners of many are kept depends on where one begins.
    """
    s, face = in_front((s, face), k)
    zero = jnp.zeros(jnp.broadcast_shapes(face.shape, k.shape), s.size.x.dtype)
    corner = Vec(zero, zero, zero)
    for kind in _kinds(assets, CORNER):
        corner = select(s.kind == kind, CORNER[kind](assets, s, face, k), corner)
    return corner


def corners_of(assets: Assets, s: Solid, face: Array) -> Array:
    """How many corners a face has."""
    number = jnp.full(face.shape, 4, jnp.int32)
    for kind in _kinds(assets, CORNER):
        if kind == GeomType.CYLINDER:
            number = jnp.where(s.kind == kind, CAP_CORNERS, number)
        if kind == GeomType.MESH:
            assert assets.hulls is not None
            of_hull = _look(assets.hulls.tables.outline_num, face)
            number = jnp.where(s.kind == kind, of_hull, number)
    return number


def _kinds(assets: Assets, table: dict) -> list[int]:
    return [kind for kind in assets.kinds if kind in table]


def _look(table: Array, index: Array) -> Array:
    """Items of a table; an index of another kind of shape reads anything."""
    return jnp.asarray(table).at[index].get(mode="clip")


def _hull_face(assets: Assets, s: Solid, vertex: Array, d: Vec) -> tuple[Array, Array]:
    assert assets.hulls is not None
    vertex = jnp.where(s.kind == GeomType.MESH, vertex, 0)
    return hull_face(assets.hulls, vertex, d), jnp.ones(vertex.shape, bool)


def _box_face(assets: Assets, s: Solid, vertex: Array, d: Vec) -> tuple[Array, Array]:
    """Number 2 k + 1 on the positive side of axis k, 2 k on the other."""
    sides = [(vertex >> k) & 1 for k in range(3)]
    along = jnp.stack([jnp.where(side > 0, c, -c) for side, c in zip(sides, d.parts, strict=True)])
    axis = jnp.argmax(along, axis=0).astype(jnp.int32)
    return 2 * axis + ((vertex >> axis) & 1), jnp.ones(vertex.shape, bool)


def _cap(assets: Assets, s: Solid, vertex: Array, d: Vec) -> tuple[Array, Array]:
    return vertex, jnp.abs(d.z) > LEVEL


BEST_FACE: dict[int, Callable] = {
    GeomType.MESH: _hull_face,
    GeomType.BOX: _box_face,
    GeomType.CYLINDER: _cap,
}


def _hull_normal(assets: Assets, s: Solid, face: Array) -> Vec:
    assert assets.hulls is not None
    return face_normal(assets.hulls, jnp.where(s.kind == GeomType.MESH, face, 0))


def _box_normal(assets: Assets, s: Solid, face: Array) -> Vec:
    one = (2 * (face & 1) - 1).astype(s.size.x.dtype)
    return Vec(*(jnp.where(face >> 1 == k, one, 0) for k in range(3)))


def _cap_normal(assets: Assets, s: Solid, face: Array) -> Vec:
    one = (2 * face - 1).astype(s.size.x.dtype)
    return Vec(jnp.zeros_like(one), jnp.zeros_like(one), one)


NORMAL: dict[int, Callable] = {
    GeomType.MESH: _hull_normal,
    GeomType.BOX: _box_normal,
    GeomType.CYLINDER: _cap_normal,
}


def _hull_corner_of(assets: Assets, s: Solid, face: Array, k: Array) -> Vec:
    assert assets.hulls is not None
    t = assets.hulls.tables
    face = jnp.where(s.kind == GeomType.MESH, face, 0)
    number = _look(t.outline_num, face)
    place = _look(t.outline, face) + number - 1 - k % number
    return hull_vertex(assets.hulls, _look(t.corner, place))


def _box_corners() -> np.ndarray:
    """Sides of the corners of each face of a box, `[face, corner, axis]`."""
    # the first corner, in its plane: sides of the next axis and of that after it
    first = np.array([[1, -1], [1, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]])
    corners = np.zeros((6, 4, 3))
    for face in range(6):
        axis, up = face >> 1, 2 * (face & 1) - 1
        b, c = first[face]
        for k in range(4):
            corners[face, k, [axis, (axis + 1) % 3, (axis + 2) % 3]] = up, b, c
            b, c = up * c, -up * b  # a quarter turn, clockwise from outside
    return corners


BOX_CORNERS = _box_corners().reshape(-1, 3)


def _box_corner(assets: Assets, s: Solid, face: Array, k: Array) -> Vec:
    dtype, place = s.size.x.dtype, 4 * face + k % 4
    sides = (_look(jnp.asarray(BOX_CORNERS[:, j], dtype), place) for j in range(3))
    return Vec(*(size * side for size, side in zip(s.size.parts, sides, strict=True)))


def _cap_corner(assets: Assets, s: Solid, face: Array, k: Array) -> Vec:
    angles = 2 * np.pi * np.arange(CAP_CORNERS) / CAP_CORNERS
    k = jnp.where(face > 0, -k, k) % CAP_CORNERS
    dtype = s.size.x.dtype
    x, y = (_look(jnp.asarray(f(angles), dtype), k) for f in (np.cos, np.sin))
    z = (2 * face - 1).astype(dtype) * s.size.y
    return Vec(s.size.x * x, s.size.x * y, jnp.broadcast_to(z, k.shape))


CORNER: dict[int, Callable] = {
    GeomType.MESH: _hull_corner_of,
    GeomType.BOX: _box_corner,
    GeomType.CYLINDER: _cap_corner,
}


# edges


def best_edge(
    assets: Assets, s: Solid, first: Array, second: Array, normal: Vec
) -> tuple[Array, Array, Array]:
    """The edge at a feature that lies most nearly in a plane.

    Args:
      first: feature that touches.
      second: another one that touches as well; the same, if only one does.
      normal: of the plane.

    Returns:
      The features of both ends; and whether there is an edge.
    """
    one, other = first, second
    exists = jnp.zeros(first.shape, bool)
    for kind in _kinds(assets, OTHER_END):
        here = s.kind == kind
        end = OTHER_END[kind](assets, s, first, second, normal)
        other, exists = jnp.where(here, end, other), exists | here
    return one, other, exists


def end_of(assets: Assets, s: Solid, feature: Array, d: Vec) -> Vec:
    """Where the end of an edge is on the surface seen along `d`, a unit vector."""
    s = in_front(s, feature)
    point = point_on(assets, s, feature, d)
    if GeomType.CAPSULE not in assets.kinds:
        return point
    # beside the axis; the part of d along it is left out, not made up for
    wide = jnp.where(s.kind == GeomType.CAPSULE, s.size.x, 0)
    return Vec(point.x + wide * d.x, point.y + wide * d.y, point.z)


def _hull_end(assets: Assets, s: Solid, first: Array, second: Array, normal: Vec) -> Array:
    assert assets.hulls is not None
    vertex = jnp.where(s.kind == GeomType.MESH, first, 0)
    return jnp.where(first != second, second, hull_edge(assets.hulls, vertex, normal))


def _box_end(assets: Assets, s: Solid, first: Array, second: Array, normal: Vec) -> Array:
    level = jnp.argmin(jnp.stack([jnp.abs(c) for c in normal.parts]), axis=0).astype(jnp.int32)
    changed = first ^ second
    neighbor = (changed == 1) | (changed == 2) | (changed == 4)
    return jnp.where(neighbor, second, first ^ (1 << level))


def _line_end(assets: Assets, s: Solid, first: Array, second: Array, normal: Vec) -> Array:
    return 1 - first


OTHER_END: dict[int, Callable] = {
    GeomType.MESH: _hull_end,
    GeomType.BOX: _box_end,
    GeomType.CYLINDER: _line_end,
    GeomType.CAPSULE: _line_end,
}
