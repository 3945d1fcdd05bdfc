"""Clipping of convex polygons by planes, and reduction to four corners.

I. Sutherland, G. Hodgman, Reentrant polygon clipping, 1974. The corners of a convex polygon behind
a plane are consecutive: the result is one run of corners and a new edge. A corner stores the line
of the edge that enters and of that which leaves it, so that it can be recomputed differentiably:
edge k of a polygon as given leads from corner k to corner k + 1 and is line k; the caller numbers
the lines of clipping planes after them (argument `line` of `clip_polygon`). `four_corners` uses
rotating calipers (M. Shamos, 1978; G. Toussaint, Solving geometric problems with the rotating
calipers, 1983).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.physics.collision.compact import compact_true
from jaxsim.transforms.compaction import add_leading_axes


class Polygon(NamedTuple):
    """Corners `[most, n]` of polygons in order, of which `number` `[n]` exist.

    Attributes:
      point: corners.
      into, out: lines of the edges that enter and leave the corner.
      number: number of corners; 2 corners are a segment, one edge rather than a closed polygon.
    """

    point: Vec
    into: Array
    out: Array
    number: Array


def make_polygon(points: Vec, number: Array, capacity: int) -> Polygon:
    """Return a polygon of its corners, padded for the corners that clipping adds.

    Args:
      points: corners in order, `[k, n]`.
      number: number of existing corners, `[n]`.
      capacity: rows of the result.
    """
    rows, lanes = points.x.shape
    filler = jnp.zeros((capacity - rows, lanes), points.x.dtype)
    point = points.map(lambda x: jnp.concatenate([x, filler]))
    slot = _slot_indices(capacity)
    out = jnp.broadcast_to(slot, point.x.shape)
    into = jnp.where(slot == 0, number[None] - 1, slot - 1)
    return Polygon(point, jnp.broadcast_to(into, out.shape), out, number)


def clip_polygon(p: Polygon, origin: Vec, normal: Vec, line: Array, is_clipped: Array) -> Polygon:
    """Return the part of polygons behind planes, one plane for each of n lanes.

    Args:
      p: polygons.
      origin, normal: a point of the plane, and its normal to the side that is removed, `[n]`.
      line: id of the new line, `[n]`.
      is_clipped: lanes that are clipped, `[n]` bool; polygons of the others are unchanged.
    """
    row = _slot_indices(p.out.shape[0])
    origin, normal = add_leading_axes((origin, normal), row)
    number, is_clipped, line = p.number[None], is_clipped[None], line[None]
    whole = jnp.maximum(number, 1)
    # Signed distances of the corners from the plane.
    height = (p.point - origin).dot(normal)
    inside = (row < number) & (height <= 0)
    kept = jnp.sum(inside, axis=0, keepdims=True, dtype=jnp.int32)

    # The remaining run starts at a corner inside that follows one outside.
    before = jnp.where(row == 0, number - 1, row - 1)
    first = jnp.argmax(inside & ~_gather_rows(inside, before), axis=0, keepdims=True).astype(
        jnp.int32
    )
    last = _wrap(first + kept - 1, whole)
    entry, leave = _gather_rows(before, first), _wrap(last + 1, whole)
    # Intersections on the two crossed edges, each computed from its remaining corner.
    stays, goes = jnp.concatenate([last, first]), jnp.concatenate([leave, entry])
    (one, up), (other, down) = (_gather_rows((p.point, height), k) for k in (stays, goes))
    crossing = one + (other - one).scale(safe_divide(up, up - down))
    there = _Corner(crossing[:1], _gather_rows(p.out, last), line)
    back = _Corner(crossing[1:], line, _gather_rows(p.into, first))

    # Cyclic order: the run, the exit, the entry. The list starts with what remains of the edge from
    # the first corner to the second.
    at_second = jnp.where(inside[1:2], _wrap(1 - first, whole), kept)
    begin = jnp.where(inside[:1], at_second, kept + 1)
    slot = _wrap(row + begin, kept + 2)
    some, is_segment = is_clipped & (kept < number), number == 2
    # If nothing is removed, the list also starts with the second corner.
    onward = jnp.where(is_clipped & ~is_segment, _wrap(row + 1, whole), row)
    source = jnp.where(some & ~is_segment, _wrap(first + slot, whole), onward)
    here = _Corner(*_gather_rows((p.point, p.into, p.out), source))
    # A segment with one end removed has the other end and the intersection.
    leaves = some & jnp.where(is_segment, (row == 1 - first) & (first == 0), slot == kept)
    comes = some & jnp.where(is_segment, (row == 1 - first) & (first != 0), slot == kept + 1)
    point, into, out = select_where(leaves, there, select_where(comes, back, here))
    left = jnp.where(kept > 0, jnp.where(is_segment, 2, kept + 2), 0)
    return Polygon(point, into, out, jnp.where(some, left, number)[0])


def _wrap(index: Array, number: Array) -> Array:
    """Return a cyclic index that is off by at most one round, without an integer division."""
    index = jnp.where(index < 0, index + number, index)
    return jnp.where(index >= number, index - number, index)


class _Corner(NamedTuple):
    """Corners with the lines of their edges, as in Polygon."""

    point: Vec
    into: Array
    out: Array


def remove_corners(p: Polygon, gone: Array) -> Polygon:
    """Remove the corners flagged in `gone` `[most, n]`; the order is kept."""
    stays = (_slot_indices(p.out.shape[0]) < p.number[None]) & ~gone
    order, number = compact_true(stays, None, len(stays))
    point, into, out = _gather_rows((p.point, p.into, p.out), order)
    return Polygon(point, into, out, number[0])


def _slot_indices(capacity: int) -> Array:
    """Return the indices of slots as a column."""
    return jnp.arange(capacity, dtype=jnp.int32)[:, None]


def four_corners(p: Polygon) -> tuple[Array, Array]:
    """Return up to four corners that span much of the area: their indices `[4, n]`, and how many.

    Rotating calipers (M. Shamos, Computational Geometry, 1978): corners a, b, c, d in cyclic order.
    Each advances as long as that enlarges the quadrilateral, d first, then c, then b; then a
    advances by one. A move to an equal area is also made, but no corner passes the next: in a
    regular polygon many quadrilaterals are equal and lead to a larger one, and rounding must not
    decide whether it is reached. Among equal quadrilaterals the one whose centroid is nearest to
    that of the polygon is kept, so that a symmetric polygon has symmetric contacts.
    """
    # Mean of the corners of each polygon.
    count = p.number
    zero = jnp.zeros_like(count)
    row = jnp.arange(4, dtype=jnp.int32)[:, None]
    exists = _slot_indices(p.out.shape[0]) < count[None]
    each = 1 / jnp.maximum(count, 1).astype(p.point.x.dtype)
    mean = p.point.map(lambda x: each * jnp.sum(jnp.where(exists, x, 0), axis=0))

    # Start at the first four corners; a polygon of up to four has no other choice.
    start = jnp.stack([zero, zero + 1, zero + 2, zero + 3])
    small = count <= 4
    state = _Calipers(start, start, *_quadrilateral_area(p, mean, start), zero + 3, small)
    advance = partial(_advance_calipers, p, mean, row)
    last = lax.while_loop(lambda s: ~jnp.all(s.done), advance, state)
    return jnp.where(small, start, last.best), jnp.minimum(count, 4)


class _Calipers(NamedTuple):
    """State of the rotating calipers.

    Attributes:
      corners: indices of the corners a, b, c, d, `[4, n]`.
      best: corners of the best quadrilateral so far, `[4, n]`.
      size: twice its area, `[n]`.
      away: squared distance of its centroid from the mean of the polygon's corners, `[n]`.
      moving: 3, 2, 1: corner d, c, b is tried; 0: a advances, `[n]`.
      done: whether a has passed the last corner, `[n]` bool.
    """

    corners: Array
    best: Array
    size: Array
    away: Array
    moving: Array
    done: Array


def _advance_calipers(p: Polygon, mean: Vec, row: Array, s: _Calipers) -> _Calipers:
    """Try to advance one corner.

    Args:
      p: polygons.
      mean: mean of the corners of each, `[n]`.
      row: 0, 1, 2, 3 as a column.
      s: state.
    """
    # Advance the tried corner unless the area shrinks or it meets the next one.
    equal = 4 * float(jnp.finfo(p.point.x.dtype).eps) ** (2 / 3)  # tolerance of equal areas
    tried = jnp.where(row == s.moving[None], _next_corner(p, s.corners), s.corners)
    met = jnp.any((row == s.moving[None]) & (tried == jnp.roll(s.corners, -1, axis=0)), axis=0)
    size, away = _quadrilateral_area(p, mean, tried)
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
    b2 = jnp.where(b_met, _next_corner(p, b), b)
    c_met = b_met & (c == b2)
    c2 = jnp.where(c_met, _next_corner(p, c), c)
    d2 = jnp.where(c_met & (d == c2), _next_corner(p, d), d)
    a_moves = s.moving == 0
    moved = jnp.stack([a + 1, b2, c2, d2])
    corners = jnp.where(a_moves, moved, jnp.where(moves, tried, s.corners))
    done = s.done | (a_moves & (a + 1 >= p.number))
    return _Calipers(
        jnp.where(s.done, s.corners, corners),
        jnp.where(better, tried, s.best),
        jnp.where(larger, size, s.size),
        jnp.where(better, away, s.away),
        jnp.where(a_moves, 3, moving),
        done,
    )


def _next_corner(p: Polygon, k: Array) -> Array:
    """Return the corners after `k` in cyclic order."""
    return jnp.where(k + 1 >= add_leading_axes(p.number, k), 0, k + 1)


def _quadrilateral_area(p: Polygon, mean: Vec, corners: Array) -> tuple[Array, Array]:
    """Return twice the area, and the squared distance of the centroid from `mean`, `[n]` each."""
    points = _gather_rows(p.point, corners)
    cross = (points[2] - points[0]).cross(points[3] - points[1])
    away = points.map(lambda x: 0.25 * jnp.sum(x, axis=0)) - mean
    return cross.norm(), away.dot(away)


def _gather_rows(x: PyTree, index: Array) -> PyTree:
    """Return rows `x[index]` per lane, `[most, n]`, `[k, n]` -> `[k, n]`."""
    return jax.tree.map(lambda a: jnp.take_along_axis(a, index, axis=0, mode="clip"), x)
