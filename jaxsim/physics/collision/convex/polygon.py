"""Cutting convex polygons by planes, and choosing four of their corners.

I. Sutherland, G. Hodgman, Reentrant polygon clipping, 1974. Of a convex polygon the corners
behind a plane are neighbors of each other: what is left is one run of corners and a new edge. A
corner remembers the line of the edge that leaves it, so that what is found can be computed again:
line k of the polygon itself, or line `own + k` for the k-th plane.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec, safe_divide, select
from jaxsim.physics.arrays.array import Array, Tree


class Polygon(NamedTuple):
    """Corners `[most, n]` of polygons in their order, of which `number` `[n]` exist.

    Attributes:
      point: corners.
      into, out: lines of the edges that come to the corner and leave it.
      number: how many corners there are; 2: a line, not closed.
    """

    point: Vec
    into: Array
    out: Array
    number: Array


def outline(points: Vec, count: Array, room: int) -> Polygon:
    """A polygon of its corners `[k, n]`, with room for more."""
    rows = points.x.shape[0]
    point = points.map(
        lambda x: jnp.concatenate([x, jnp.zeros((room - rows, *x.shape[1:]), x.dtype)])
    )
    place = jnp.arange(room, dtype=jnp.int32)[:, None]
    out = jnp.broadcast_to(place, point.x.shape)
    into = jnp.where(place == 0, count - 1, place - 1)
    return Polygon(point, jnp.broadcast_to(into, out.shape), out, count)


def cut(p: Polygon, origin: Vec, normal: Vec, line: Array, wanted: Array) -> Polygon:
    """What of polygons is behind planes.

    Args:
      p: polygons.
      origin, normal: a point of the plane and its normal, to the side that goes.
      line: number of the new line.
      wanted: where there is a plane, `[n]`.
    """
    room = p.out.shape[0]
    place = jnp.arange(room, dtype=jnp.int32)[:, None]
    height = (p.point - origin.map(lambda x: x[None])).dot(normal.map(lambda x: x[None]))
    live = place < p.number
    inside = live & (height <= 0)
    kept = jnp.sum(inside, axis=0, dtype=jnp.int32)

    # the run of corners that stay begins where one follows a corner that goes
    before = jnp.where(place == 0, p.number - 1, place - 1)
    first = jnp.argmax(inside & ~_at(inside, before), axis=0).astype(jnp.int32)
    last = (first + kept - 1) % jnp.maximum(p.number, 1)
    entry, leave = _at(before, first[None])[0], (last + 1) % jnp.maximum(p.number, 1)

    def crossing(a: Array, b: Array) -> Vec:
        pa, pb = (_at(p.point, k[None])[0] for k in (a, b))
        ha, hb = (_at(height, k[None])[0] for k in (a, b))
        return pa + (pb - pa).scale(safe_divide(ha, ha - hb))

    # slot 0 .. kept-1: the run; kept: where it leaves; kept + 1: where it comes back
    run = (first + place) % jnp.maximum(p.number, 1)
    there = Polygon(
        crossing(last, leave),
        _at(p.out, last[None])[0],
        jnp.broadcast_to(line, kept.shape),
        p.number,
    )
    back = Polygon(
        crossing(entry, first),
        jnp.broadcast_to(line, kept.shape),
        _at(p.into, first[None])[0],
        p.number,
    )

    def placed(x: Tree, there: Tree, back: Tree) -> Tree:
        x = jax.tree.map(lambda a: _at(a, run), x)
        x = select(place == kept, jax.tree.map(lambda a: a[None], there), x)
        return select(place == kept + 1, jax.tree.map(lambda a: a[None], back), x)

    result = Polygon(
        placed(p.point, there.point, back.point),
        placed(p.into, there.into, back.into),
        placed(p.out, there.out, back.out),
        jnp.where(kept > 0, kept + 2, 0),
    )
    some = wanted & (kept < p.number)
    line_only = p.number == 2  # an open line loses one end, and keeps two
    result = select(some, result, p)
    return select(some & line_only, _shortened(p, kept, first, there, back), result)


def _shortened(p: Polygon, kept: Array, first: Array, there: Polygon, back: Polygon) -> Polygon:
    """A line of two points of which a plane leaves one: the other end is where it crosses."""
    place = jnp.arange(p.out.shape[0], dtype=jnp.int32)[:, None]
    new = select(first == 0, there, back)
    moved = place == 1 - first

    def put(x: Tree, value: Tree) -> Tree:
        return select(moved, jax.tree.map(lambda a: a[None], value), x)

    return Polygon(
        put(p.point, new.point),
        put(p.into, new.into),
        put(p.out, new.out),
        jnp.where(kept > 0, 2, 0),
    )


def without(p: Polygon, gone: Array) -> Polygon:
    """The corners that are left, in their order, when some `[most, n]` go."""
    place = jnp.arange(p.out.shape[0], dtype=jnp.int32)[:, None]
    stays = (place < p.number) & ~gone
    order = jnp.argsort(~stays, axis=0, stable=True).astype(jnp.int32)
    moved = jax.tree.map(lambda x: _at(x, order), (p.point, p.into, p.out))
    return Polygon(moved[0], moved[1], moved[2], jnp.sum(stays, axis=0, dtype=jnp.int32))


def four_corners(p: Polygon) -> tuple[Array, Array]:
    """Up to four corners that span much of the area: their places `[4, n]`, and how many.

    Calipers: the corners a, b, c, d go around the polygon; each is moved on as long as that makes
    the quadrilateral larger, d first, then c, then b; then a goes on by one.
    """
    count = p.number
    eps = 16 * float(jnp.finfo(p.point.x.dtype).eps)
    zero = jnp.zeros_like(count)

    def following(k: Array) -> Array:
        return jnp.where(k + 1 >= count, 0, k + 1)

    def area(corners: Array) -> Array:
        points = _at(p.point, corners)
        cross = (points[2] - points[0]).cross(points[3] - points[1])
        return cross.norm()

    start = jnp.stack([zero, zero + 1, zero + 2, zero + 3])
    row = jnp.arange(4, dtype=jnp.int32)[:, None]
    small = count <= 4

    class State(NamedTuple):
        corners: Array
        best: Array
        size: Array
        moving: Array  # 3, 2, 1: which corner is tried; 0: a goes on
        done: Array

    def turn(s: State) -> State:
        tried = jnp.where(row == s.moving, following(s.corners), s.corners)
        size = area(tried)
        larger = (s.moving > 0) & (size > s.size * (1 + eps)) & ~s.done
        # what is tried next: the same again, or the one before; after b comes d; d not larger: a
        failed = jnp.where(s.moving == 3, 0, jnp.where(s.moving == 2, 1, 3))
        moving = jnp.where(larger, jnp.where(s.moving == 3, 2, s.moving), failed)
        # a goes on; what it meets goes on before it
        a, b, c, d = s.corners
        b_met = b == a
        b2 = jnp.where(b_met, following(b), b)
        c_met = b_met & (c == b2)
        c2 = jnp.where(c_met, following(c), c)
        d2 = jnp.where(c_met & (d == c2), following(d), d)
        on = s.moving == 0
        moved = jnp.stack([a + 1, b2, c2, d2])
        corners = jnp.where(on, moved, jnp.where(larger, tried, s.corners))
        done = s.done | (on & (a + 1 >= count))
        return State(
            jnp.where(s.done, s.corners, corners),
            jnp.where(larger, tried, s.best),
            jnp.where(larger, size, s.size),
            jnp.where(on, 3, moving),
            done,
        )

    state = State(start, start, area(start), zero + 3, small)
    last = lax.while_loop(lambda s: ~jnp.all(s.done), turn, state)
    return jnp.where(small, start, last.best), jnp.minimum(count, 4)


def _at(x: Tree, index: Array) -> Tree:
    """Rows `x[index]` lane by lane, `[most, n]`, `[k, n]` -> `[k, n]`."""
    return jax.tree.map(lambda a: jnp.take_along_axis(a, index, axis=0, mode="clip"), x)
