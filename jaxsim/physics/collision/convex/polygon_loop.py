"""Clipping of one convex polygon by planes, corner by corner.

I. Sutherland, G. Hodgman, Reentrant polygon clipping, 1974, in its sequential form: the corners are
in a ring buffer, and each plane reads them in order and appends what remains behind it. Time
follows the corners that exist; polygon.py, which computes the same for all lanes and all slots at
once, is for platforms without inexpensive loops. Corners are rows of one array, so that the buffer
is updated without a copy.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.physics.collision.convex.polygon import Polygon
from jaxsim.transforms.materialize import materialize_result


class Plane(NamedTuple):
    """A plane: a point, and the normal to the side that is removed; `[]`."""

    origin: Vec
    normal: Vec

    def height(self, point: Vec) -> Array:
        """Return the signed distance of a point, scaled by the length of the normal."""
        return (point - self.origin).dot(self.normal)


class _Corner(NamedTuple):
    """A corner, and the lines of the edges that enter and leave it, all of one float type."""

    point: Vec
    into: Array
    out: Array

    def row(self) -> Array:
        """Return the numbers in a row, `[1, 5]`."""
        return jnp.stack([*self.point.parts, self.into, self.out])[None]


class _Ring(NamedTuple):
    """A ring buffer `[capacity, 5]` with `number` corners from row `start` on."""

    rows: Array
    start: Array
    number: Array

    def corner(self, k: Array) -> _Corner:
        """Return the k-th corner, k < `number`."""
        x = lax.dynamic_slice_in_dim(self.rows, self.row(k), 1)
        return _Corner(Vec(x[0, 0], x[0, 1], x[0, 2]), x[0, 3], x[0, 4])

    def row(self, k: Array) -> Array:
        """Return the row of the k-th corner, for any k."""
        return lax.rem(self.start + k, jnp.int32(len(self.rows)))


def clip_in_loop(
    corner: Callable[[Array], Vec],
    number: Array,
    side: Callable[[Array], Plane],
    sides: Array,
    keeps: Callable[[Vec], Array],
    capacity: int,
) -> Polygon:
    """Return the part of a polygon behind all planes, without the corners that are not kept.

    Args:
      corner: returns the k-th corner of the polygon.
      number: its number of corners, int32 `[]`.
      side: returns the k-th plane. Its line has the id `number` + k.
      sides: number of planes, int32 `[]`.
      keeps: whether a corner of the result is kept.
      capacity: largest number of corners of a result, and rows of this one.

    Returns:
      The polygon, `[capacity, 1]`.
    """
    first = corner(jnp.int32(0))
    dtype = first.x.dtype
    # A plane adds a corner at most; two rows are written ahead.
    rows = jnp.zeros((capacity + 3, 5), dtype)

    def put_corner(k: Array, rows: Array) -> Array:
        """Write a corner of the polygon as given."""
        into = jnp.where(k == 0, number, k) - 1
        new = _Corner(corner(k), into.astype(dtype), k.astype(dtype))
        return lax.dynamic_update_slice_in_dim(rows, new.row(), k, 0)

    rows = lax.fori_loop(jnp.int32(0), number, put_corner, rows)
    ring = _Ring(rows, jnp.int32(0), number)

    def clip(state: tuple[Array, _Ring]) -> tuple[Array, _Ring]:
        """Clip by one plane."""
        k, ring = state
        return k + 1, _clip_ring(ring, side(k), (number + k).astype(dtype), capacity)

    def remains(state: tuple[Array, _Ring]) -> Array:
        """Return whether there are a plane and a polygon."""
        return (state[0] < sides) & (state[1].number > 0)

    _, ring = lax.while_loop(remains, clip, (jnp.int32(0), ring))

    def keep(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Write a corner of the result, if it is kept."""
        count, rows = state
        one = ring.corner(k)
        rows = lax.dynamic_update_slice_in_dim(rows, one.row(), count, 0)
        return count + keeps(one.point).astype(jnp.int32), rows

    start = jnp.int32(0), jnp.zeros((capacity + 1, 5), dtype)
    count, rows = lax.fori_loop(jnp.int32(0), ring.number, keep, start)
    x, y, z, into, out = (rows[:capacity, k : k + 1] for k in range(5))
    lines = into.astype(jnp.int32), out.astype(jnp.int32)
    return Polygon(Vec(x, y, z), *lines, count[None])


class _Clipped(NamedTuple):
    """State after some corners: the buffer, how many corners the result has, the next corner."""

    rows: Array
    number: Array
    corner: _Corner
    height: Array


def _clip_ring(ring: _Ring, plane: Plane, line: Array, capacity: int) -> _Ring:
    """Append the part of the polygon behind a plane to the ring, and return that part."""
    first = ring.corner(jnp.int32(0))
    height = materialize_result(Plane.height, plane, first.point)
    segment = ring.number == 2

    def visit(k: Array, state: _Clipped) -> _Clipped:
        """Append what remains of the edge from corner k to the next one, without its start.

        A segment is no closed polygon: its corners stay in order, and an intersection replaces a
        removed one.
        """
        rows, count, one, up = state
        last = k + 1 == ring.number
        other = select_where(last, first, ring.corner(jnp.where(last, 0, k + 1)))
        # exactly once: whether a corner lies on the plane decides here and for the next edge
        down = materialize_result(Plane.height, plane, other.point)
        here, there = up <= 0, down <= 0
        # Intersection, computed from the remaining corner.
        stays, goes = select_where(here, one, other), select_where(here, other, one)
        near, far = jnp.where(here, up, down), jnp.where(here, down, up)
        away = safe_divide(near, near - far)
        crossing = stays.point + (goes.point - stays.point).scale(away)
        # The line of the plane enters a corner at which the edge starts, and leaves its end.
        ends = jnp.where(segment, k == 1, here)
        cut = _Corner(crossing, jnp.where(ends, stays.out, line), jnp.where(ends, line, stays.into))
        cut = select_where(segment & here, one, cut)
        crosses = jnp.where(segment, here | there, here != there)

        def append(rows: Array, count: Array, corner: _Corner) -> Array:
            place = ring.row(ring.number + count)
            return lax.dynamic_update_slice_in_dim(rows, corner.row(), place, 0)

        rows = append(rows, count, cut)
        count = count + crosses.astype(jnp.int32)
        rows = append(rows, count, other)
        count = count + (there & ~segment).astype(jnp.int32)
        return _Clipped(rows, count, other, down)

    start = _Clipped(ring.rows, jnp.int32(0), first, height)
    end = lax.fori_loop(jnp.int32(0), ring.number, visit, start)
    return _Ring(end.rows, ring.row(ring.number), jnp.minimum(end.number, capacity))
