"""Contacts of two boxes.

The separating axis theorem: two boxes are apart by the largest of the gaps along fifteen directions,
the three face normals of either and the nine products of an edge of one with an edge of the other
(Gottschalk, Lin and Manocha, OBBTree, SIGGRAPH 1996). Where that is a face normal, the
opposing face of the other box is clipped to the outline of the face, and every corner of what remains is a
contact. Where it is a product of edges, the boxes touch in the nearest points of those edges.

The direction is searched without derivatives; its contacts are then computed once, with them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Rot, Vec, select
from jaxsim.physics.collision.segment import nearest_on_segments
from jaxsim.physics.collision.shape import FAR, Placed, Touch, per_slot, pick, slots, turned

# An edge contact whose normal is within 8 degrees of the face's gives way to the face contacts, unless
# its gap is larger by more than 5 percent.
ALIGNED, PREFERENCE = 0.99, 0.05


class Search(NamedTuple):
    """The direction of the largest gap."""

    by_edges: jax.Array  # a product of edges, else a face normal
    of_first: jax.Array  # the face belongs to the first box
    face: jax.Array  # axis of the face in its box
    edge1: jax.Array  # axes of the edges
    edge2: jax.Array


def box_box(a: Placed, b: Placed) -> Touch:
    """Up to eight contacts (among twelve candidates) of two faces, or one of two edges."""
    rot, pos = a.rot.T @ b.rot, a.rot.T @ (b.pos - a.pos)
    search = _search(*lax.stop_gradient((rot, pos, a.size, b.size)))
    face = _faces(a, b, search)
    edge = slots(_edges(a, b, search))
    lone = per_slot([1] + [0] * (len(face.dist) - 1), face.dist[0]) > 0
    edge = edge._replace(dist=jnp.where(lone, edge.dist, FAR))
    return select_touch(slots(search.by_edges), edge, face)


def select_touch(mask, yes: Touch, no: Touch) -> Touch:
    """`select` for contacts whose positions or normals are the same in several slots."""
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)


def _search(rot: Rot, pos: Vec, size1: Vec, size2: Vec) -> Search:
    """Compares the fifteen gaps, in the frame of the first box; the second has the axes of `rot`."""
    extent = rot.map(jnp.abs)
    seen = rot.T @ pos
    gaps1 = pos.map(jnp.abs) - size1 - extent @ size2
    gaps2 = seen.map(jnp.abs) - size2 - extent.T @ size1
    face1, gap1 = _largest(gaps1.parts)
    face2, gap2 = _largest(gaps2.parts)
    of_first = gap1 >= gap2
    gap = jnp.where(of_first, gap1, gap2)
    face = jnp.where(of_first, face1, face2)

    # the nine products; for parallel edges, which have none, a face says all
    tiny = max(1e-17, (8 * jnp.finfo(gap.dtype).eps) ** 2)
    edges = []
    for i in range(3):
        for j in range(3):
            normal, square = _product(i, rot.cols[j])
            length = jnp.sqrt(jnp.where(square > tiny, square, 1.0))
            reach = normal.map(jnp.abs).dot(size1) + (rot.T @ normal).map(jnp.abs).dot(size2)
            edges.append(jnp.where(square > tiny, (jnp.abs(normal.dot(pos)) - reach) / length, -FAR))
    index, edge_gap = _largest(edges)
    edge1, edge2 = index // 3, index % 3

    # is the product of edges nearly a face normal, and hardly better?
    normal, square = _product(edge1, Vec(*(pick(edge2, row.parts) for row in rot.rows)))
    face_axis = select(of_first, _unit(face, gap), Vec(*(pick(face, row.parts) for row in rot.rows)))
    along = normal.dot(face_axis)
    noise = 16 * jnp.finfo(gap.dtype).eps * jnp.maximum(size1.norm(), size2.norm())
    nearly = along * along > ALIGNED**2 * square
    close = edge_gap - gap <= PREFERENCE * jnp.abs(gap) + noise
    return Search((edge_gap > gap) & ~(nearly & close), of_first, face, edge1, edge2)


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


def _product(axis, v: Vec):
    """The product of a coordinate axis (static or traced) with `v`, and its squared length."""
    zero = jnp.zeros_like(v.x)
    crossed = (Vec(zero, -v.z, v.y), Vec(v.z, zero, -v.x), Vec(-v.y, v.x, zero))
    n = crossed[axis] if isinstance(axis, int) else pick(axis, crossed)
    return n, n.dot(n)


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


def _faces(a: Placed, b: Placed, search: Search) -> Touch:
    """Corners of the opposing face of the other box clipped to the reference face.

    Coordinates (x, y) run in the reference face, z is the height over it. The clipped outline has as
    corners: the points where an edge of the opposing face enters and leaves the rectangle, and the corners of
    the rectangle that lie below the opposing face.
    """
    base = select(search.of_first, a, b)
    other = select(search.of_first, b, a)
    z, x, y = turned(base.rot.cols, search.face)
    size_z, size_x, size_y = turned(base.size.parts, search.face)
    offset = other.pos - base.pos
    z = select(z.dot(offset) < 0, -z, z)
    x, y = select(z.dot(x.cross(y)) < 0, -x, x), y

    # the opposing face: the one whose normal is most against z
    slopes = [z.dot(c) for c in other.rot.cols]
    opposing, _ = _largest([jnp.abs(s) for s in slopes])
    w, u, v = turned(other.rot.cols, opposing)
    size_w, size_u, size_v = turned(other.size.parts, opposing)
    w = select(pick(opposing, slopes) > 0, -w, w)

    def seen(p: Vec) -> Vec:
        return Vec(x.dot(p), y.dot(p), z.dot(p))

    center = seen(offset + w.scale(size_w))
    across, along = seen(u.scale(size_u)), seen(v.scale(size_v))
    points, exists = _clip(center, across, along, size_x, size_y)

    # back to the world
    base, x, y, z = slots((base, x, y, z))
    dist = points.z - size_z[None]
    height = size_z[None] + 0.5 * dist
    pos = base.pos + x.scale(points.x) + y.scale(points.y) + z.scale(height)
    normal = select(slots(search.of_first), z, -z)
    return Touch(jnp.where(exists, dist, FAR), pos, normal)


def _clip(center: Vec, across: Vec, along: Vec, size_x, size_y):
    """Corners of the parallelogram center +- across +- along inside the rectangle, `[12, n, *W]`.

    The rectangle is grown by a little, so that edges which coincide, as those of equal boxes in a stack, are
    inside whatever the rounding.
    """
    grown = 1 + max(1e-9, 16 * float(jnp.finfo(size_x.dtype).eps))
    limits = slots((size_x * grown, size_y * grown))
    like = size_x
    middle, across3, along3 = slots((center, across, along))

    # its edges, one after another: from `start` by `step`, inside the rectangle for enter < t < leave
    right, up = per_slot((1, -1, -1, 1), like), per_slot((1, 1, -1, -1), like)
    start = middle + across3.scale(right) + along3.scale(up)
    step = across3.scale(per_slot((-2, 0, 2, 0), like)) + along3.scale(per_slot((0, -2, 0, 2), like))
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
