"""Contacts of two boxes, by the separating axis theorem (SAT) and face clipping.

The separation of two boxes is the largest of the gaps along fifteen directions: the three face
normals of each, and the nine cross products of their edges (Gottschalk, Lin and Manocha, OBBTree,
SIGGRAPH 1996). If it is along a face normal, the incident face of the other box is clipped to the
outline of the reference face, and every corner of the result is a contact. If it is along a cross
product, the contact is at the nearest points of both edges. Corresponds to `mjc_BoxBox` in MuJoCo.

The direction is searched without derivatives and encoded in one integer; its contacts are then
computed once, differentiably.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Rot, Vec, select_where
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.primitive.segment import nearest_on_segments
from jaxsim.physics.collision.shape import (
    CYCLIC_AXES,
    ContactPoints,
    PlacedGeoms,
    add_slot_axis,
    choose_static,
    per_slot,
    permute_parts,
)
from jaxsim.transforms.materialize import (
    materialize_decision,
    materialize_result,
    pack_digits,
    unpack_digits,
)

# Face contacts are preferred to an edge contact whose normal is within 8 degrees of the face's,
# unless its gap is larger by more than 5 percent.
ALIGNED_COSINE, FACE_PREFERENCE = 0.99, 0.05


class SeparatingAxis(NamedTuple):
    """The direction of the largest gap, and the faces or edges along it."""

    by_edges: jax.Array  # it is a cross product of edges, else a face normal
    of_first: jax.Array  # the reference face belongs to the first box
    reference_negative: jax.Array  # the reference face is on the negative side of its axis
    incident_negative: jax.Array  # the incident face is on the negative side of its axis
    edge1: jax.Array  # axes of the edges
    edge2: jax.Array
    face: jax.Array  # axis of the reference face
    opposing: jax.Array  # axis of the incident face

    @classmethod
    def decode(cls, code: jax.Array) -> "SeparatingAxis":
        """Decode the integer that the search returns."""
        digits = unpack_digits(code, len(cls._fields))
        return cls(*(digit == 1 for digit in digits[:4]), *digits[4:])


def box_box(a: PlacedGeoms, b: PlacedGeoms) -> ContactPoints:
    """Compute up to eight contacts of two faces, or one of two edges."""
    rot, pos = materialize_result(_relative_pose, a, b)
    search = SeparatingAxis.decode(materialize_decision(_search_axes, rot, pos, a.size, b.size))
    # Both cases are computed and one is selected.
    face = _clip_to_face(search, materialize_result(_Facing.of, a, b, search))
    edge = add_slot_axis(materialize_result(_edges, a, b, search))
    lone = per_slot([1] + [0] * (len(face.dist) - 1), face.dist[0]) > 0
    edge = edge._replace(dist=jnp.where(lone, edge.dist, NO_CONTACT_DISTANCE))
    return jax.tree.map(lambda e, f: jnp.where(search.by_edges[None], e, f), edge, face)


def _relative_pose(a: PlacedGeoms, b: PlacedGeoms) -> tuple[Rot, Vec]:
    """Return orientation and position of the second box in the frame of the first."""
    return a.rot.T @ b.rot, a.rot.T @ (b.pos - a.pos)


def _search_axes(rot: Rot, pos: Vec, size1: Vec, size2: Vec) -> Array:
    """Compare the fifteen gaps in the frame of the first box; the second has the axes of `rot`."""
    # Gaps along the face normals of both boxes.
    extent = rot.map(jnp.abs)
    seen = rot.T @ pos
    gaps1 = pos.map(jnp.abs) - size1 - extent @ size2
    gaps2 = seen.map(jnp.abs) - size2 - extent.T @ size1
    face1, gap1 = _argmax_first(gaps1.parts)
    face2, gap2 = _argmax_first(gaps2.parts)
    of_first = gap1 >= gap2
    gap = jnp.where(of_first, gap1, gap2)
    face = jnp.where(of_first, face1, face2)

    # Gaps along the cross products of edges.
    edges = [_edge_gap(i, j, rot, extent, pos, size1, size2) for i in range(3) for j in range(3)]
    edge, edge_gap = _argmax_first(edges)
    edge1, edge2 = edge // 3, edge % 3

    # Prefer the face if the cross product is nearly a face normal with a similar gap.
    rows, cols = rot.rows, rot.cols
    normal = _unit_axis(edge1, gap).cross(choose_static(edge2, cols))
    along = normal.dot(select_where(of_first, _unit_axis(face, gap), choose_static(face, cols)))
    nearly = along * along > ALIGNED_COSINE**2 * normal.dot(normal)
    noise = 16 * jnp.finfo(gap.dtype).eps * jnp.maximum(size1.norm(), size2.norm())
    close = edge_gap - gap <= FACE_PREFERENCE * jnp.abs(gap) + noise
    by_edges = (edge_gap > gap) & ~(nearly & close)

    # Incident face: the face of the other box whose normal is most opposed to that of the reference
    # face.
    reference_negative = (
        jnp.where(of_first, choose_static(face, pos.parts), -choose_static(face, seen.parts)) < 0
    )
    slopes = select_where(of_first, choose_static(face, rows), choose_static(face, cols)).parts
    opposing, _ = _argmax_first([jnp.abs(s) for s in slopes])
    incident_negative = (choose_static(opposing, slopes) > 0) ^ reference_negative
    return pack_digits(
        (by_edges, of_first, reference_negative, incident_negative, edge1, edge2, face, opposing)
    )


def _edge_gap(i: int, j: int, rot: Rot, extent: Rot, pos: Vec, size1: Vec, size2: Vec) -> Array:
    """Return the gap along e_i x c_j, a coordinate axis and a column of `rot`.

    Parallel axes have the gap -NO_CONTACT_DISTANCE.

    With (i, k, l) and (j, m, n) in cyclic order the product has the components -R[l, j] along k and
    R[k, j] along l, and along the columns m and n of R components of magnitude R[i, n] and R[i, m].
    """
    (_, k, l), (_, m, n) = CYCLIC_AXES[i], CYCLIC_AXES[j]  # noqa: E741
    R, E = rot.rows, extent.rows
    along_k, along_l = -R[l].parts[j], R[k].parts[j]
    reach1 = size1.parts[k] * E[l].parts[j] + size1.parts[l] * E[k].parts[j]
    reach2 = size2.parts[m] * E[i].parts[n] + size2.parts[n] * E[i].parts[m]
    gap = jnp.abs(pos.parts[k] * along_k + pos.parts[l] * along_l) - reach1 - reach2
    square = along_k * along_k + along_l * along_l
    some = square > max(1e-17, (8 * float(jnp.finfo(gap.dtype).eps)) ** 2)
    return jnp.where(some, gap * lax.rsqrt(jnp.where(some, square, 1.0)), -NO_CONTACT_DISTANCE)


def _argmax_first(values: list[Array] | tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """Return index and value of the first largest number."""
    index, best = jnp.zeros(values[0].shape, jnp.int32), values[0]
    for k in range(1, len(values)):
        better = values[k] > best
        index, best = jnp.where(better, k, index), jnp.where(better, values[k], best)
    return index, best


def _unit_axis(axis: Array, like: Array) -> Vec:
    """Return the unit vector along a traced axis."""
    return Vec(*((axis == k).astype(like.dtype) for k in range(3)))


def _edges(a: PlacedGeoms, b: PlacedGeoms, search: SeparatingAxis) -> ContactPoints:
    """Compute the contact of the two edges that face each other along their cross product."""
    u, *sides1 = permute_parts(a.rot.cols, search.edge1)
    v, *sides2 = permute_parts(b.rot.cols, search.edge2)
    half1, *sizes1 = permute_parts(a.size.parts, search.edge1)
    half2, *sizes2 = permute_parts(b.size.parts, search.edge2)
    offset = b.pos - a.pos
    normal = u.cross(v).normalize()
    normal = select_where(normal.dot(offset) < 0, -normal, normal)

    # Midpoints of the edges farthest along the normal, and their gap.
    center1, center2, dist = a.pos, b.pos, normal.dot(offset)
    for side, size in zip(sides1, sizes1, strict=True):
        along = normal.dot(side)
        center1 = center1 + side.scale(jnp.where(along > 0, size, -size))
        dist = dist - jnp.abs(along) * size
    for side, size in zip(sides2, sizes2, strict=True):
        along = normal.dot(side)
        center2 = center2 - side.scale(jnp.where(along > 0, size, -size))
        dist = dist - jnp.abs(along) * size

    # Nearest points of the edges.
    s, t = nearest_on_segments(center2 - center1, u, half1, v, half2)
    pos = (center1 + u.scale(s) + center2 + v.scale(t)).scale(0.5)
    return ContactPoints(dist, pos, normal)


class _Facing(NamedTuple):
    """A reference face and the incident face of the other box.

    Coordinates (x, y) are in the plane of the reference face, z is the height over it, with the
    origin at its center.
    """

    axes: tuple[Vec, Vec, Vec]  # x, y, z in the world
    origin: Vec  # center of the reference face
    half: tuple[jax.Array, jax.Array]  # its half sizes
    center: Vec  # center of the incident face, in those coordinates
    across: Vec  # its half sides
    along: Vec

    @classmethod
    def of(cls, a: PlacedGeoms, b: PlacedGeoms, search: SeparatingAxis) -> "_Facing":
        """Return the faces in the coordinates of the reference face."""
        base, other = select_where(search.of_first, a, b), select_where(search.of_first, b, a)
        z, x, y = permute_parts(base.rot.cols, search.face)
        size_z, size_x, size_y = permute_parts(base.size.parts, search.face)
        z = select_where(search.reference_negative, -z, z)
        origin = base.pos + z.scale(size_z)

        w, u, v = permute_parts(other.rot.cols, search.opposing)
        size_w, size_u, size_v = permute_parts(other.size.parts, search.opposing)
        to_face = other.pos - origin + w.scale(jnp.where(search.incident_negative, -size_w, size_w))

        def to_face_frame(p: Vec) -> Vec:
            """Transform a direction to the coordinates of the reference face."""
            return Vec(x.dot(p), y.dot(p), z.dot(p))

        sides = to_face_frame(u.scale(size_u)), to_face_frame(v.scale(size_v))
        return cls((x, y, z), origin, (size_x, size_y), to_face_frame(to_face), *sides)


def _clip_to_face(search: SeparatingAxis, facing: _Facing) -> ContactPoints:
    """Return the incident face's corners, clipped to the reference face, with their heights."""
    found = materialize_result(_clip, facing.center, facing.across, facing.along, *facing.half)
    points, exists = materialize_result(_compact_points, *found)
    (x, y, z), origin = add_slot_axis((facing.axes, facing.origin))
    height = z.scale(0.5 * points.z)
    pos = origin + x.scale(points.x) + y.scale(points.y) + height
    normal = select_where(add_slot_axis(search.of_first), z, -z)
    return ContactPoints(jnp.where(exists, points.z, NO_CONTACT_DISTANCE), pos, normal)


def _clip(center: Vec, across: Vec, along: Vec, size_x: Array, size_y: Array) -> tuple[Vec, Array]:
    """Clip the parallelogram center +- across +- along to a rectangle.

    Its edges are clipped at the sides x = +-size_x (Sutherland and Hodgman, Reentrant polygon
    clipping, CACM 1974); then the remaining edges, including those along these sides, at y =
    +-size_y. The rectangle is grown slightly, so that edges which coincide, as those of equal boxes
    in a stack, are inside independent of rounding.

    Returns:
      Points `[16, n, *W]`, along the boundary in MuJoCo's order, and which of them exist.
    """
    grown = 1 + max(1e-9, 16 * float(jnp.finfo(size_x.dtype).eps))
    limit_x, limit_y = add_slot_axis((size_x * grown, size_y * grown))
    u, v = (per_slot(signs, size_x) for signs in zip(*_FACE_CORNER_SIGNS, strict=True))
    middle, across, along = add_slot_axis((center, across, along))
    start = middle + across.scale(u) + along.scale(v)
    # Clip the edges in x.
    edge = _clip_edges(start, _rotate_items(start, 1), 0, limit_x)

    # Edge along the side x = +-size_x: from an exit to the next entry of the boundary.
    back = edge.entry
    for k in (3, 2, 1):
        back = select_where(_rotate_items(edge.inside, k), _rotate_items(edge.entry, k), back)
    # Clip the pieces of both kinds in y.
    piece = _clip_edges(edge.entry, edge.exit, 1, limit_y)
    side = _clip_edges(edge.exit, back, 1, limit_y)

    points = piece.entry, piece.exit, side.entry, side.exit
    exists = (
        edge.inside & piece.inside,
        edge.inside & piece.leaves,
        edge.leaves & side.inside,
        edge.leaves & side.leaves,
    )
    return _interleave(*points), _interleave(*exists)


# Corners of a face, as signs of its half sides, in MuJoCo's order.
_FACE_CORNER_SIGNS = ((1, 1), (-1, 1), (-1, -1), (1, -1))
_MAX_CLIPPED_CORNERS = 2 * len(_FACE_CORNER_SIGNS)  # largest number of corners after clipping


class _Cut(NamedTuple):
    """The part of an edge between two sides of a rectangle."""

    inside: jax.Array  # the part is not empty
    entry: Vec
    exit: Vec
    leaves: jax.Array  # the exit is not the end of the edge


def _clip_edges(start: Vec, end: Vec, axis: int, limit: Array) -> _Cut:
    """Clip edges to where a coordinate is within +-limit."""
    step = end - start
    from_, by = start.parts[axis], step.parts[axis]
    still = jnp.abs(by) < 1e-12 * limit
    rate = 1 / jnp.where(still, 1.0, by)
    one, other = (-limit - from_) * rate, (limit - from_) * rate
    enter = jnp.where(still, 0.0, jnp.maximum(jnp.minimum(one, other), 0.0))
    leave = jnp.where(still, 1.0, jnp.minimum(jnp.maximum(one, other), 1.0))
    inside = (enter < leave) & ~(still & (jnp.abs(from_) > limit))
    return _Cut(inside, start + step.scale(enter), start + step.scale(leave), inside & (leave < 1))


def _rotate_items(x: PyTree, k: int) -> PyTree:
    """Return the items `k` positions later, cyclically."""
    return jax.tree.map(lambda a: jnp.concatenate([a[k:], a[:k]]), x)


def _interleave(*lists: PyTree) -> PyTree:
    """Interleave several lists: first items, second items, ..."""

    def mixed(*arrays):
        mixture = jnp.stack(arrays, axis=1)
        return mixture.reshape(-1, *mixture.shape[2:])

    return jax.tree.map(mixed, *lists)


def _compact_points(points: Vec, exists: Array) -> tuple[Vec, Array]:
    """Compact the existing points, in order, into the first of _MAX_CLIPPED_CORNERS slots."""
    slot = per_slot(np.arange(_MAX_CLIPPED_CORNERS), points.x[0]).astype(np.int32)
    count = jnp.zeros_like(exists[:1], jnp.int32)
    packed = points.map(lambda a: jnp.zeros_like(a[:_MAX_CLIPPED_CORNERS]))

    def put(state, item):
        """Append a point if it exists."""
        count, packed = state
        point, some = add_slot_axis(item)
        packed = select_where(some & (count == slot), point, packed)
        return (count + some.astype(jnp.int32), packed), None

    (count, packed), _ = lax.scan(put, (count, packed), (points, exists))
    return packed, jnp.asarray(slot < count)
