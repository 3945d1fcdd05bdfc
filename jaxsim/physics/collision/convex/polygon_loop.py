"""Clipping of one convex polygon by planes, with time that follows what is cut off.

I. Sutherland, G. Hodgman, Reentrant polygon clipping, 1974. The corners of a convex polygon behind
a plane are consecutive, so a plane that cuts replaces one run of corners by two intersections. For
a pentagon whose corners 3 and 4 are in front of a plane:

    column         0  1  2  3  4         corners in cyclic order
    height         -  -  -  +  +
    after          0  1  2  l  e         l: where the polygon leaves, e: where it enters again
    begin          0 -> 1                the corner that is first in MuJoCo's order

The columns behind the run are moved by one copy, in vectors; a plane that cuts nothing moves
`begin` only. polygon.py computes the same for all lanes at once, for platforms without inexpensive
loops.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
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

    def column(self) -> Array:
        """Return the numbers in a column, `[5, 1]`."""
        return jnp.stack([*self.point.parts, self.into, self.out])[:, None]


class _Corners(NamedTuple):
    """Corners in cyclic order: the first `number` columns of an array `[5, n]`.

    Attributes:
      columns: the corners; other columns are arbitrary.
      begin: the column of the first corner in MuJoCo's order.
      number: number of corners; 2 corners are a segment, one edge rather than a closed polygon.
    """

    columns: Array
    begin: Array
    number: Array

    def corner(self, k: Array) -> _Corner:
        """Return the corner in column k."""
        x = dynamic_slice_in_dim(self.columns, k, 1, axis=1)[:, 0]
        return _Corner(Vec(x[0], x[1], x[2]), x[3], x[4])

    def wrap(self, k: Array) -> Array:
        """Return a cyclic index that is off by at most one round."""
        k = jnp.where(k < 0, k + self.number, k)
        return jnp.where(k >= self.number, k - self.number, k)

    def write(self, corner: _Corner, k: Array) -> "_Corners":
        """Write a corner to column k."""
        columns = dynamic_update_slice_in_dim(self.columns, corner.column(), k, axis=1)
        return self._replace(columns=columns)


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
    dtype = corner(jnp.int32(0)).x.dtype
    # Twice as many columns as corners, so that a run of `capacity` columns starts at any corner.
    zero = jnp.int32(0)
    empty = _Corners(jnp.zeros((5, 2 * capacity + 3), dtype), zero, number)

    def put_corner(k: Array, corners: _Corners) -> _Corners:
        """Write a corner of the polygon as given."""
        into = jnp.where(k == 0, number, k) - 1
        return corners.write(_Corner(corner(k), into.astype(dtype), k.astype(dtype)), k)

    def clip(state: tuple[Array, _Corners]) -> tuple[Array, _Corners]:
        """Clip by one plane."""
        k, corners = state
        return k + 1, _clip(corners, side(k), (number + k).astype(dtype), capacity)

    def remains(state: tuple[Array, _Corners]) -> Array:
        """Return whether there are a plane and a polygon."""
        return (state[0] < sides) & (state[1].number > 0)

    whole = lax.fori_loop(zero, number, put_corner, empty)
    _, clipped = lax.while_loop(remains, clip, (zero, whole))

    def keep(k: Array, state: _Corners) -> _Corners:
        """Write a corner of the result in order, if it is kept."""
        one = clipped.corner(clipped.wrap(clipped.begin + k))
        added = keeps(one.point).astype(jnp.int32)
        return state.write(one, state.number)._replace(number=state.number + added)

    start = _Corners(jnp.zeros((5, capacity + 1), dtype), zero, zero)
    kept = lax.fori_loop(zero, clipped.number, keep, start)
    x, y, z, into, out = (kept.columns[k, :capacity, None] for k in range(5))
    lines = into.astype(jnp.int32), out.astype(jnp.int32)
    return Polygon(Vec(x, y, z), *lines, kept.number[None])


def _clip(corners: _Corners, plane: Plane, line: Array, capacity: int) -> _Corners:
    """Return the part of a polygon behind a plane."""
    # Signed distances, evaluated once: they decide for both edges of a corner.
    point = Vec(*corners.columns[:3, : capacity + 1])
    height = materialize_result(Plane.height, plane, point)
    column = np.arange(capacity + 1, dtype=np.int32)
    inside = jnp.asarray((column < corners.number) & (height <= 0))
    kept = jnp.sum(inside.astype(jnp.int32), dtype=jnp.int32)
    segment = corners.number == 2

    def keep_all() -> _Corners:
        """Keep the corners. A closed polygon then begins with its second one."""
        begin = jnp.where(segment, corners.begin, corners.wrap(corners.begin + 1))
        return corners._replace(begin=begin)

    def cut() -> _Corners:
        """Cut off some corners."""
        return lax.cond(
            segment,
            lambda: _cut_segment(corners, height, inside, kept, line),
            lambda: _cut_closed(corners, height, inside, kept, line, capacity),
        )

    return lax.cond(kept == corners.number, keep_all, cut)


def _cut_closed(
    corners: _Corners, height: Array, inside: Array, kept: Array, line: Array, capacity: int
) -> _Corners:
    """Replace the corners of a closed polygon that are not `inside`, a run, by two intersections.

    Args:
      corners: the polygon.
      height: signed distances of the corners from the plane, `[capacity + 1]`.
      inside: corners that are kept, `[capacity + 1]`.
      kept: their number.
      line: id of the plane.
      capacity: largest number of corners.
    """
    number = corners.number
    column = np.arange(len(inside), dtype=np.int32)
    # The first kept corner follows one that is not.
    at_end = dynamic_index_in_dim(inside, number - 1, keepdims=False)
    before = jnp.concatenate([at_end[None], inside[:-1]])
    first = jnp.min(jnp.where(inside & ~before, column, capacity))
    first = jnp.where(kept == 0, 0, first)
    last = corners.wrap(first + kept - 1)
    leave, enter = corners.wrap(last + 1), corners.wrap(first - 1)
    # Intersections on the two crossed edges, each computed from its remaining corner.
    stays, goes = corners.corner(last), corners.corner(leave)
    there = _crossing(stays, goes, height, last, leave)
    one = _Corner(there, stays.out, line)
    stays, goes = corners.corner(first), corners.corner(enter)
    other = _Corner(_crossing(stays, goes, height, first, enter), line, stays.into)

    # Move the kept columns behind the run that is cut off; all of them if it is around column 0.
    around = last >= first
    target = jnp.where(around, 0, leave + 2)
    behind = dynamic_slice_in_dim(corners.columns, first, capacity, axis=1)
    moved = corners._replace(
        columns=dynamic_update_slice_in_dim(corners.columns, behind, target, axis=1)
    )
    exit_ = jnp.where(around, kept, leave)
    cut = moved.write(one, exit_).write(other, exit_ + 1)

    # Begin with what remains of the edge from the first corner to the second.
    second = corners.wrap(corners.begin + 1)
    is_in, is_next_in = (
        dynamic_index_in_dim(inside, k, keepdims=False) for k in (corners.begin, second)
    )
    new_second = jnp.where(second >= first, second - first + target, second)
    begin = jnp.where(is_in, jnp.where(is_next_in, new_second, exit_), exit_ + 1)
    left = jnp.where(kept > 0, jnp.minimum(kept + 2, capacity), 0)
    return _Corners(cut.columns, begin, left)


def _cut_segment(
    corners: _Corners, height: Array, inside: Array, kept: Array, line: Array
) -> _Corners:
    """Replace the end of a segment that is not `inside`; arguments as for `_cut_closed`."""
    ends = [corners.corner(jnp.int32(k)) for k in range(2)]
    for k in range(2):
        stays = ends[1 - k]
        point = _crossing(stays, ends[k], height, jnp.int32(1 - k), jnp.int32(k))
        new = _Corner(point, line, stays.into) if k == 0 else _Corner(point, stays.out, line)
        corners = corners.write(select_where(inside[k], ends[k], new), jnp.int32(k))
    return corners._replace(number=jnp.where(kept > 0, corners.number, 0))


def _crossing(stays: _Corner, goes: _Corner, height: Array, one: Array, other: Array) -> Vec:
    """Return the intersection of an edge, from column `one`, which stays, to column `other`."""
    near, far = (dynamic_index_in_dim(height, k, keepdims=False) for k in (one, other))
    return stays.point + (goes.point - stays.point).scale(safe_divide(near, near - far))
