"""Contacts of two boxes.

The separating axis theorem: two boxes are apart by the largest of the gaps along fifteen
directions, the three face normals of either and the nine products of an edge of one with an edge of
the other (Gottschalk, Lin and Manocha, OBBTree, SIGGRAPH 1996). Where that is a face normal, the
opposing face of the other box is clipped to the outline of the face, and every corner of what
remains is a contact. Where it is a product of edges, the boxes touch in the nearest points of those
edges.

The direction is searched without derivatives; its contacts are then computed once, with them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Rot, Vec, select
from jaxsim.physics.collision.segment import nearest_on_segments
from jaxsim.physics.collision.shape import (
    CYCLIC,
    FAR,
    Placed,
    Touch,
    per_slot,
    pick,
    slots,
    turned,
)
from jaxsim.physics.once import decide, decode, encode, once

# An edge contact whose normal is within 8 degrees of the face's gives way to the face contacts,
# unless its gap is larger by more than 5 percent.
ALIGNED, PREFERENCE = 0.99, 0.05


class Search(NamedTuple):
    """The direction of the largest gap, and what faces what along it."""

    by_edges: jax.Array  # it is a product of edges, else a face normal
    of_first: jax.Array  # the reference face belongs to the first box
    against: jax.Array  # the other box lies against the axis of that face
    turned: jax.Array  # the opposing face of the other box has its normal against its axis
    edge1: jax.Array  # axes of the edges
    edge2: jax.Array
    face: jax.Array  # axis of the reference face
    opposing: jax.Array  # axis of the opposing face

    @classmethod
    def decode(cls, code: jax.Array) -> "Search":
        """From the one integer that the search ends in."""
        digits = decode(code, len(cls._fields))
        return cls(*(digit == 1 for digit in digits[:4]), *digits[4:])


def box_box(a: Placed, b: Placed) -> Touch:
    """Up to eight contacts (among twelve candidates) of two faces, or one of two edges."""
    rot, pos = once(_relative, a, b)
    search = Search.decode(decide(_search, rot, pos, a.size, b.size))
    face = _on_face(search, once(_Facing.of, a, b, search))
    edge = slots(once(_edges, a, b, search))
    lone = per_slot([1] + [0] * (len(face.dist) - 1), face.dist[0]) > 0
    edge = edge._replace(dist=jnp.where(lone, edge.dist, FAR))
    return jax.tree.map(lambda e, f: jnp.where(search.by_edges[None], e, f), edge, face)


def _relative(a: Placed, b: Placed):
    """Orientation and position of the second box in the frame of the first."""
    return a.rot.T @ b.rot, a.rot.T @ (b.pos - a.pos)


def _search(rot: Rot, pos: Vec, size1: Vec, size2: Vec):
    """Compares the fifteen gaps in the frame of the first box; the second has the axes of `rot`."""
    extent = rot.map(jnp.abs)
    seen = rot.T @ pos
    gaps1 = pos.map(jnp.abs) - size1 - extent @ size2
    gaps2 = seen.map(jnp.abs) - size2 - extent.T @ size1
    face1, gap1 = _largest(gaps1.parts)
    face2, gap2 = _largest(gaps2.parts)
    of_first = gap1 >= gap2
    gap = jnp.where(of_first, gap1, gap2)
    face = jnp.where(of_first, face1, face2)

    edges = [_edge_gap(i, j, rot, extent, pos, size1, size2) for i in range(3) for j in range(3)]
    edge, edge_gap = _largest(edges)
    edge1, edge2 = edge // 3, edge % 3

    # is the product of edges nearly a face normal, and hardly better?
    rows, cols = rot.rows, rot.cols
    normal = _unit(edge1, gap).cross(pick(edge2, cols))
    along = normal.dot(select(of_first, _unit(face, gap), pick(face, cols)))
    nearly = along * along > ALIGNED**2 * normal.dot(normal)
    noise = 16 * jnp.finfo(gap.dtype).eps * jnp.maximum(size1.norm(), size2.norm())
    close = edge_gap - gap <= PREFERENCE * jnp.abs(gap) + noise
    by_edges = (edge_gap > gap) & ~(nearly & close)

    # the face of the other box whose normal is most against that of the reference face
    against = jnp.where(of_first, pick(face, pos.parts), -pick(face, seen.parts)) < 0
    slopes = select(of_first, pick(face, rows), pick(face, cols)).parts
    opposing, _ = _largest([jnp.abs(s) for s in slopes])
    turned = (pick(opposing, slopes) > 0) ^ against
    return encode((by_edges, of_first, against, turned, edge1, edge2, face, opposing))


def _edge_gap(i: int, j: int, rot: Rot, extent: Rot, pos: Vec, size1: Vec, size2: Vec):
    """The gap along e_i x c_j, a coordinate axis and a column of `rot`; none if parallel.

    With (i, k, l) and (j, m, n) in cyclic order the product has the components -R[l, j] along k and
    R[k, j] along l, and along the columns m and n of R those of size R[i, n] and R[i, m].
    """
    (_, k, l), (_, m, n) = CYCLIC[i], CYCLIC[j]  # noqa: E741
    R, E = rot.rows, extent.rows
    along_k, along_l = -R[l].parts[j], R[k].parts[j]
    reach1 = size1.parts[k] * E[l].parts[j] + size1.parts[l] * E[k].parts[j]
    reach2 = size2.parts[m] * E[i].parts[n] + size2.parts[n] * E[i].parts[m]
    gap = jnp.abs(pos.parts[k] * along_k + pos.parts[l] * along_l) - reach1 - reach2
    square = along_k * along_k + along_l * along_l
    some = square > max(1e-17, (8 * float(jnp.finfo(gap.dtype).eps)) ** 2)
    return jnp.where(some, gap * lax.rsqrt(jnp.where(some, square, 1.0)), -FAR)


def _largest(values):
    """Index and value of the first of the largest."""
    index, best = jnp.zeros(values[0].shape, jnp.int32), values[0]
    for k in range(1, len(values)):
        better = values[k] > best
        index, best = jnp.where(better, k, index), jnp.where(better, values[k], best)
    return index, best


def _unit(axis, like) -> Vec:
    """The unit vector along a traced axis."""
    return Vec(*((axis == k).astype(like.dtype) for k in range(3)))


def _edges(a: Placed, b: Placed, search: Search) -> Touch:
    """Contact of the two edges that face each other along their product."""
    u, *sides1 = turned(a.rot.cols, search.edge1)
    v, *sides2 = turned(b.rot.cols, search.edge2)
    half1, *sizes1 = turned(a.size.parts, search.edge1)
    half2, *sizes2 = turned(b.size.parts, search.edge2)
    offset = b.pos - a.pos
    normal = u.cross(v).normalize()
    normal = select(normal.dot(offset) < 0, -normal, normal)

    # from both centres to the edges farthest along the normal
    center1, center2, dist = a.pos, b.pos, normal.dot(offset)
    for side, size in zip(sides1, sizes1, strict=True):
        along = normal.dot(side)
        center1 = center1 + side.scale(jnp.where(along > 0, size, -size))
        dist = dist - jnp.abs(along) * size
    for side, size in zip(sides2, sizes2, strict=True):
        along = normal.dot(side)
        center2 = center2 - side.scale(jnp.where(along > 0, size, -size))
        dist = dist - jnp.abs(along) * size

    s, t = nearest_on_segments(center2 - center1, u, half1, v, half2)
    pos = (center1 + u.scale(s) + center2 + v.scale(t)).scale(0.5)
    return Touch(dist, pos, normal)


class _Facing(NamedTuple):
    """A reference face and the opposing face of the other box.

    Coordinates (x, y) run in the reference face, z is the height over its centre.
    """

    axes: tuple[Vec, Vec, Vec]  # x, y, z in the world
    origin: Vec  # centre of the reference face
    half: tuple[jax.Array, jax.Array]  # its half sizes
    center: Vec  # centre of the opposing face, in those coordinates
    across: Vec  # its half sides
    along: Vec

    @classmethod
    def of(cls, a: Placed, b: Placed, search: Search) -> "_Facing":
        base, other = select(search.of_first, a, b), select(search.of_first, b, a)
        z, x, y = turned(base.rot.cols, search.face)
        size_z, size_x, size_y = turned(base.size.parts, search.face)
        z = select(search.against, -z, z)
        origin = base.pos + z.scale(size_z)

        w, u, v = turned(other.rot.cols, search.opposing)
        size_w, size_u, size_v = turned(other.size.parts, search.opposing)
        to_face = other.pos - origin + w.scale(jnp.where(search.turned, -size_w, size_w))

        def seen(p: Vec) -> Vec:
            return Vec(x.dot(p), y.dot(p), z.dot(p))

        sides = seen(u.scale(size_u)), seen(v.scale(size_v))
        return cls((x, y, z), origin, (size_x, size_y), seen(to_face), *sides)


def _on_face(search: Search, facing: _Facing) -> Touch:
    """The corners of the opposing face, clipped to the reference face, each with its height."""
    points, exists = once(_clip, facing.center, facing.across, facing.along, *facing.half)
    (x, y, z), origin = slots((facing.axes, facing.origin))
    height = z.scale(0.5 * points.z)
    pos = origin + x.scale(points.x) + y.scale(points.y) + height
    normal = select(slots(search.of_first), z, -z)
    return Touch(jnp.where(exists, points.z, FAR), pos, normal)


def _clip(center: Vec, across: Vec, along: Vec, size_x, size_y):
    """Corners of the parallelogram center +- across +- along inside a rectangle, `[12, n, *W]`.

    They are the points where an edge of the parallelogram enters and leaves the rectangle, and the
    corners of the rectangle that lie below the parallelogram.

    The rectangle is grown by a little, so that edges which coincide, as those of equal boxes in a
    stack, are inside whatever the rounding.
    """
    grown = 1 + max(1e-9, 16 * float(jnp.finfo(size_x.dtype).eps))
    limits = slots((size_x * grown, size_y * grown))
    like = size_x
    middle, across3, along3 = slots((center, across, along))

    # its edges, one after another: from `start` by `step`, in the rectangle for enter < t < leave
    right, up = per_slot((1, -1, -1, 1), like), per_slot((1, 1, -1, -1), like)
    start = middle + across3.scale(right) + along3.scale(up)
    step_across, step_along = per_slot((-2, 0, 2, 0), like), per_slot((0, -2, 0, 2), like)
    step = across3.scale(step_across) + along3.scale(step_along)
    enter, leave = jnp.zeros_like(start.x), jnp.ones_like(start.x)
    for from_, by, limit in zip(start.parts[:2], step.parts[:2], limits, strict=True):
        still = jnp.abs(by) < 1e-12 * limit
        rate = 1 / jnp.where(still, 1.0, by)
        low, high = (-limit - from_) * rate, (limit - from_) * rate
        never = still & (jnp.abs(from_) > limit)
        low, high = jnp.minimum(low, high), jnp.maximum(low, high)
        enter = jnp.where(never, 2.0, jnp.where(still, enter, jnp.maximum(enter, low)))
        leave = jnp.where(still, leave, jnp.minimum(leave, high))
    inside = enter < leave

    # the corners of the rectangle, in coordinates of the parallelogram
    corner_x, corner_y = limits[0] * right, limits[1] * up
    dx, dy = corner_x - middle.x, corner_y - middle.y
    area = across3.x * along3.y - across3.y * along3.x
    rate = 1 / jnp.where(area == 0, 1.0, area)
    p, q = (dx * along3.y - dy * along3.x) * rate, (across3.x * dy - across3.y * dx) * rate
    below = (jnp.abs(p) < 1) & (jnp.abs(q) < 1)

    entries, exits = start + step.scale(enter), start + step.scale(leave)
    corners = Vec(corner_x, corner_y, middle.z + across3.z * p + along3.z * q)
    points = jax.tree.map(lambda *c: jnp.concatenate(c), entries, exits, corners)
    return points, jnp.concatenate([inside, inside & (leave < 1), below])
