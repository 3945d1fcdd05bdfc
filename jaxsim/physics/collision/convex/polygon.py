"""Clipping of convex polygons by planes, and reduction to four corners.

I. Sutherland, G. Hodgman, Reentrant polygon clipping, 1974. The corners of a convex polygon behind
a plane are consecutive: the result is one run of corners and a new edge. A corner stores the line
of the edge that enters and of that which leaves it, so that it can be recomputed differentiably:
edge k of a polygon as given leads from corner k to corner k + 1 and is line k; the caller numbers
the lines of clipping planes after them (argument `line` of `clip_polygon`). `four_corners` uses
rotating calipers (M. Shamos, 1978; G. Toussaint, Solving geometric problems with the rotating
calipers, 1983).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.transforms.compaction import add_leading_axes


class Polygon(NamedTuple):
    """Corners `[most, n]` of polygons in order, of which `number` `[n]` exist.

    Attributes:
      point: corners.
      into, out: lines of the edges that enter and leave the corner.
      number: number of corners; 2: an open line.
    """

    point: Vec
    into: Array
    out: Array
    number: Array


def make_polygon(points: Vec, number: Array, room: int) -> Polygon:
    """Return a polygon of its corners `[k, n]`, padded for the corners that clipping adds."""
    rows, lanes = points.x.shape
    filler = jnp.zeros((room - rows, lanes), points.x.dtype)
    point = points.map(lambda x: jnp.concatenate([x, filler]))
    place = _slot_indices(room)
    out = jnp.broadcast_to(place, point.x.shape)
    into = jnp.where(place == 0, number[None] - 1, place - 1)
    return Polygon(point, jnp.broadcast_to(into, out.shape), out, number)


def clip_polygon(p: Polygon, origin: Vec, normal: Vec, line: Array, wanted: Array) -> Polygon:
    """Return the part of polygons behind planes.

    Args:
      p: polygons.
      origin, normal: a point of the plane, and its normal to the side that is removed.
      line: id of the new line.
      wanted: where there is a plane, `[n]`.
    """
    place = _slot_indices(p.out.shape[0])
    origin, normal = add_leading_axes((origin, normal), place)
    number, wanted, line = p.number[None], wanted[None], line[None]
    whole = jnp.maximum(number, 1)
    # Signed distances of the corners from the plane.
    height = (p.point - origin).dot(normal)
    inside = (place < number) & (height <= 0)
    kept = jnp.sum(inside, axis=0, keepdims=True, dtype=jnp.int32)

    # The remaining run starts at a corner inside that follows one outside.
    before = jnp.where(place == 0, number - 1, place - 1)
    first = jnp.argmax(inside & ~_gather_rows(inside, before), axis=0, keepdims=True).astype(
        jnp.int32
    )
    last = (first + kept - 1) % whole
    entry, leave = _gather_rows(before, first), (last + 1) % whole
    # Intersections on the two crossed edges, each computed from its remaining corner.
    stays, goes = jnp.concatenate([last, first]), jnp.concatenate([leave, entry])
    (one, up), (other, down) = (_gather_rows((p.point, height), k) for k in (stays, goes))
    crossing = one + (other - one).scale(safe_divide(up, up - down))
    there = _Corner(crossing[:1], _gather_rows(p.out, last), line)
    back = _Corner(crossing[1:], line, _gather_rows(p.into, first))

    # Cyclic order: the run, the exit, the entry. The list starts with what remains of the edge from
    # the first corner to the second.
    at_second = jnp.where(inside[1:2], (1 - first) % whole, kept)
    begin = jnp.where(inside[:1], at_second, kept + 1)
    slot = (place + begin) % (kept + 2)
    some, is_line = wanted & (kept < number), number == 2
    # If nothing is removed, the list also starts with the second corner.
    onward = jnp.where(wanted & ~is_line, (place + 1) % whole, place)
    source = jnp.where(some & ~is_line, (first + slot) % whole, onward)
    here = _Corner(*_gather_rows((p.point, p.into, p.out), source))
    # An open line with one end removed has the other end and the intersection.
    leaves = some & jnp.where(is_line, (place == 1 - first) & (first == 0), slot == kept)
    comes = some & jnp.where(is_line, (place == 1 - first) & (first != 0), slot == kept + 1)
    point, into, out = select_where(leaves, there, select_where(comes, back, here))
    left = jnp.where(kept > 0, jnp.where(is_line, 2, kept + 2), 0)
    return Polygon(point, into, out, jnp.where(some, left, number)[0])


class _Corner(NamedTuple):
    """Corners with the lines of their edges, as in Polygon."""

    point: Vec
    into: Array
    out: Array


def remove_corners(p: Polygon, gone: Array) -> Polygon:
    """Remove the corners flagged in `gone` `[most, n]`; the order is kept."""
    stays = (_slot_indices(p.out.shape[0]) < p.number[None]) & ~gone
    order = jnp.argsort(~stays, axis=0, stable=True).astype(jnp.int32)
    point, into, out = _gather_rows((p.point, p.into, p.out), order)
    return Polygon(point, into, out, jnp.sum(stays, axis=0, dtype=jnp.int32))


def _slot_indices(room: int) -> Array:
    """Return the indices of slots as a column."""
    return jnp.arange(room, dtype=jnp.int32)[:, None]


def four_corners(p: Polygon) -> tuple[Array, Array]:
    """Return up to four corners that span much of the area: their indices `[4, n]`, and how many.

    Rotating calipers: corners a, b, c, d in cyclic order. Each advances as long as that enlarges
    the quadrilateral, d first, then c, then b; then a advances by one. A move to an equal area is
    also made, but no corner passes the next: in a regular polygon many quadrilaterals are equal and
    lead to a larger one, and rounding must not decide whether it is reached. Among equal
    quadrilaterals the one whose centroid is nearest to that of the polygon is kept, so that a
    symmetric polygon has symmetric contacts.
    """
    count = p.number
    equal = 4 * float(jnp.finfo(p.point.x.dtype).eps) ** (
        2 / 3
    )  # relative tolerance of equal areas
    zero = jnp.zeros_like(count)
    row = jnp.arange(4, dtype=jnp.int32)[:, None]
    exists = _slot_indices(p.out.shape[0]) < count[None]
    each = 1 / jnp.maximum(count, 1).astype(p.point.x.dtype)
    mean = p.point.map(lambda x: each * jnp.sum(jnp.where(exists, x, 0), axis=0))

    def following(k: Array) -> Array:
        """Return the next corner in cyclic order."""
        return jnp.where(k + 1 >= add_leading_axes(count, k), 0, k + 1)

    def area(corners: Array) -> tuple[Array, Array]:
        """Return twice the area, and the squared distance from the polygon's centroid."""
        points = _gather_rows(p.point, corners)
        cross = (points[2] - points[0]).cross(points[3] - points[1])
        away = points.map(lambda x: 0.25 * jnp.sum(x, axis=0)) - mean
        return cross.norm(), away.dot(away)

    start = jnp.stack([zero, zero + 1, zero + 2, zero + 3])
    small = count <= 4

    class State(NamedTuple):
        """State of the calipers."""

        corners: Array
        best: Array
        size: Array
        away: Array
        moving: Array  # 3, 2, 1: corner d, c, b is tried; 0: a advances
        done: Array

    def try_advance(s: State) -> State:
        """Try to advance one corner."""
        tried = jnp.where(row == s.moving[None], following(s.corners), s.corners)
        met = jnp.any((row == s.moving[None]) & (tried == jnp.roll(s.corners, -1, axis=0)), axis=0)
        size, away = area(tried)
        moves = (s.moving > 0) & (size >= s.size * (1 - equal)) & ~met & ~s.done
        larger = moves & (size > s.size * (1 + equal))
        better = larger | (moves & (away < s.away - equal * s.size))
        # Next trial: the same corner after a move, otherwise the one before; after b comes d; if d
        # fails, a.
        failed = jnp.where(s.moving == 3, 0, jnp.where(s.moving == 2, 1, 3))
        moving = jnp.where(moves, jnp.where(s.moving == 3, 2, s.moving), failed)
        # Advance a; corners that it meets advance before it.
        a, b, c, d = s.corners
        b_met = b == a
        b2 = jnp.where(b_met, following(b), b)
        c_met = b_met & (c == b2)
        c2 = jnp.where(c_met, following(c), c)
        d2 = jnp.where(c_met & (d == c2), following(d), d)
        on = s.moving == 0
        moved = jnp.stack([a + 1, b2, c2, d2])
        corners = jnp.where(on, moved, jnp.where(moves, tried, s.corners))
        done = s.done | (on & (a + 1 >= count))
        return State(
            jnp.where(s.done, s.corners, corners),
            jnp.where(better, tried, s.best),
            jnp.where(larger, size, s.size),
            jnp.where(better, away, s.away),
            jnp.where(on, 3, moving),
            done,
        )

    state = State(start, start, *area(start), zero + 3, small)
    last = lax.while_loop(lambda s: ~jnp.all(s.done), try_advance, state)
    return jnp.where(small, start, last.best), jnp.minimum(count, 4)


def _gather_rows(x: PyTree, index: Array) -> PyTree:
    """Return rows `x[index]` per lane, `[most, n]`, `[k, n]` -> `[k, n]`."""
    return jax.tree.map(lambda a: jnp.take_along_axis(a, index, axis=0, mode="clip"), x)
