"""Bending of interpolated shells: forces at the edges between their walls.

At the midpoint of an edge the unit normals of both walls differ, at rest by fold0:

    E = k/2 |r|^2,   r = n_a - n_b - R fold0

R is the average of the walls' rotations and is held fixed in the derivative. A normal is that of
the tangents t1, t2 at the point. With w the part of r perpendicular to it over |t1 x t2|, a node
whose shape functions have the derivatives g1, g2 there receives the force k (g1 w x t2 - g2 w x
t1), with the opposite sign on the second wall. MuJoCo has no damping for it; corresponds to
`mj_flexPassiveBendInterp`.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import MINVAL
from jaxsim.math import Quat, Vec, select_where
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.cell import combine_nodes
from jaxsim.physics.flex.lattice import (
    LatticeElements,
    lattice_elements,
    shape_function_derivatives,
)
from jaxsim.physics.flex.point_forces import (
    FlexPointState,
    PointForces,
    element_forces,
    gather_element_points,
)

_RECORD_SIZE = 10  # numbers per edge in flex_bending: 2 walls, 2 + 2 coordinates, k, 3 of fold0


class WallSide(NamedTuple):
    """One of the two walls at each edge.

    Attributes:
      wall: index among all elements, `[n]`.
      node: node ids, `[n, k]`.
      grad: derivatives of the shape functions at the edge, `[2, n, k]`.
    """

    wall: np.ndarray
    node: np.ndarray
    grad: np.ndarray


class WallEdges(NamedTuple):
    """Edges between walls of one order.

    Attributes:
      first, second: the sides.
      coef: address of the stiffness in `flex_bending`, `[n]`; fold0 follows it.
    """

    first: WallSide
    second: WallSide
    coef: np.ndarray


@cache_by_structure
def wall_edges(s: Structure) -> list[WallEdges]:
    """Return the edges of all shells that bend, by interpolation order."""
    live = (s.flex_interp < 0) & (s.flex_bendingadr >= 0)
    out, first = [], 0
    for group in lattice_elements(s):
        # Sides of one order, flex by flex.
        flexes = np.unique(group.flex[live[group.flex]])
        if len(flexes):
            tables = [_flex_walls(s, f, np.flatnonzero(group.flex == f)) for f in flexes]
            wall, local, coef = (np.concatenate(t) for t in zip(*tables, strict=True))
            sides = [_wall_side(group, first, wall[:, k], local[:, k]) for k in range(2)]
            out.append(WallEdges(sides[0], sides[1], coef))
        first += len(group.flex)
    return out


def _wall_side(group: LatticeElements, first: int, wall: np.ndarray, local: np.ndarray) -> WallSide:
    grad = np.array([shape_function_derivatives(tuple(p), group.order) for p in local])
    return WallSide(first + wall, group.node[wall], grad.swapaxes(0, 1))


def _flex_walls(s: Structure, f: int | np.integer, index: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return walls at the edges of a flex `[n, 2]`, points in them `[n, 2, 2]`, and addresses.

    `index` maps the flex's walls to indices among all of their kind.
    """
    pairs = list(_pairs(np.asarray(s.flex_cellnum[f])))
    # Walls by pairs, and the midpoint in both.
    n = len(pairs)
    wall = [(index[a], index[b]) for a, b, _, _ in pairs]
    local = [(at_a, at_b) for _, _, at_a, at_b in pairs]
    coef = s.flex_bendingadr[f] + 1 + _RECORD_SIZE * np.arange(n) + 6
    return np.array(wall, int).reshape(n, 2), np.array(local, float).reshape(n, 2, 2), coef


_WallPoint = tuple[float, float]


def _pairs(count: np.ndarray) -> Iterator[tuple[int, int, _WallPoint, _WallPoint]]:
    """Yield the wall numbers at each edge, and its midpoint in the coordinates of both.

    The order is that of `flex_bending`: from the wall of the smaller number, along its slow axis
    first, lower end first.
    """
    # Iterate over walls and their edges; each edge is reported once.
    sides = list(_iterate_walls(count))
    number = {side: i for i, side in enumerate(sides)}
    for i, (normal, upper, *cell) in enumerate(sides):
        for axis, end in product(((normal + 1) % 3, (normal + 2) % 3), (0, 1)):
            # The neighbor on the same side of the box, or around its corner.
            beside = list(cell)
            beside[axis] += 2 * end - 1
            if 0 <= beside[axis] < count[axis]:
                other, across, far = (normal, upper, *beside), axis, 1 - end
            else:  # around the corner the cell is the same
                other, across, far = (axis, end, *cell), normal, upper
            if i < number[other]:
                yield i, number[other], _middle(normal, axis, end), _middle(other[0], across, far)


def _iterate_walls(count: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Yield the walls in order: axis, upper side or not, and the cell."""
    # Walls of a box: two per axis, cells by their in-plane axes.
    for axis, upper in product(range(3), (0, 1)):
        slow, fast = (axis + 1) % 3, (axis + 2) % 3
        for i, j in np.ndindex(count[slow], count[fast]):
            cell = [0, 0, 0]
            cell[axis], cell[slow], cell[fast] = upper * int(count[axis] - 1), i, j
            yield axis, upper, *cell


def _middle(normal: int, axis: int, end: int) -> _WallPoint:
    """Return the midpoint of the edge at one end of an axis, in a wall's own coordinates."""
    slow, fast = (float(end) if a == axis else 0.5 for a in ((normal + 1) % 3, (normal + 2) % 3))
    return slow, fast


def wall_forces(m: Model, state: FlexPointState) -> list[PointForces]:
    """Compute the forces of the edges on the nodes of both walls."""
    return [push for group in wall_edges(m) for push in _forces(m, group, state)]


class Normal(NamedTuple):
    """Tangents and unit normal of a wall `[n, *W]`, and the area |t1 x t2|."""

    first: Vec
    second: Vec
    unit: Vec
    area: Array


def _forces(m: Model, group: WallEdges, state: FlexPointState) -> list[PointForces]:
    assert state.rotation is not None  # there are walls
    sides = (group.first, group.second)
    a, b = (
        _normal(side, gather_element_points(state.xpos, side.node + m.nflexvert)) for side in sides
    )
    between = _mean_rotation(*(gather_static(state.rotation, side.wall) for side in sides))
    k = gather_static(m.flex_bending, group.coef)
    fold = Vec(*(gather_static(m.flex_bending, group.coef + i) for i in (1, 2, 3)))
    # Jump of the normals relative to the rotated rest fold; degenerate walls have no force.
    r = a.unit - b.unit - between.rotate(fold)
    solid = (a.area >= MINVAL) & (b.area >= MINVAL)
    k = jnp.where(solid, k, 0)
    out = []
    for sign, side, n in ((1, sides[0], a), (-1, sides[1], b)):
        # Force on the nodes through the tangents of their wall.
        w = (r - n.unit.scale(n.unit.dot(r))).scale(sign * k / jnp.where(solid, n.area, 1))
        spring = _outer_product(side.grad[0], w.cross(n.second)) - _outer_product(
            side.grad[1], w.cross(n.first)
        )
        out.append(element_forces(side.node + m.nflexvert, spring, spring.map(jnp.zeros_like)))
    return out


def _normal(side: WallSide, x: Vec) -> Normal:
    # Tangents from the derivatives of the shape functions.
    first, second = (combine_nodes(grad, x) for grad in side.grad)
    normal = first.cross(second)
    return Normal(first, second, normal.normalize(), normal.norm())


def _mean_rotation(a: Quat, b: Quat) -> Quat:
    """Return the normalized mean of two rotations."""
    # Quaternions of equal sign, averaged.
    b = select_where(a.dot(b) < 0, -b, b)
    return (a + b).normalize()


def _outer_product(weights: np.ndarray, v: Vec) -> Vec:
    """Compute weights[n, k] v[n], `[n, k, *W]`."""
    return v.map(lambda a: column(weights, a) * a[:, None])
