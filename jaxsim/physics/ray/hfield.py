"""Rays and height fields: the surface, the walls under its rim, and the box of the base.

A cell of the grid is two triangles, either side of the line from (row, column) to (row + 1, column
+ 1). A ray is followed through the box over the base, along the axis on which it passes more cells:
a step is one cell along this axis, and in it the ray is over three cells at most beside each other.
The first of these with a triangle that is met is the last step.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Vec, select
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.lanes import for_some
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.once import once
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.flat import box, crossing
from jaxsim.physics.ray.local import NEVER, Hit, Local, look

BASE, WALL, SURFACE = 0, 1, 5  # parts: the base; from 1 the four walls; from 5 the triangles
BESIDE = 3  # cells beside each other that a ray passes in a step
TINY = 1e-12  # cells a meter: a ray that passes fewer does not move along an axis
SLACK = 1e-3  # of a cell: a ray that comes so near to another one may pass through it


class Grid(NamedTuple):
    """A height field, of one geom or of each of several.

    Attributes:
      rows, cols: points of the grid.
      adr: place of the first among the heights.
      size: half sides along x and y, height of 1, depth of the base [m].
    """

    rows: jax.Array
    cols: jax.Array
    adr: jax.Array
    size: tuple[jax.Array, ...]

    @property
    def step(self) -> tuple[Array, Array]:
        """Sides of a cell along x and y [m]."""
        x, y = self.size[:2]
        cols, rows = (jnp.maximum(n - 1, 1).astype(x.dtype) for n in (self.cols, self.rows))
        return 2 * x / cols, 2 * y / rows


@node()
class Grids:
    """The height fields of a model.

    Attributes:
      field: of each geom, 0 for geoms that are none.
      grid: of all fields, numbers `[nhfield]` and sizes `[nhfield, *W]`.
      data: all heights, `[nhfielddata, *W]`.
    """

    field: jax.Array
    grid: Grid
    data: jax.Array

    def of(self, ray: Local) -> Grid:
        """The fields that rays may meet."""
        field = self.field[ray.geom]
        rows, cols, adr = (x[field] for x in (self.grid.rows, self.grid.cols, self.grid.adr))
        return Grid(rows, cols, adr, look(self.grid.size, field, ray.world))

    def height(self, grid: Grid, row: Array, col: Array, world: Array) -> Array:
        """Heights at points of grids [m]."""
        return grid.size[2] * look(self.data, grid.adr + row * grid.cols + col, world)


def grids(m: Model, field: Array) -> Grids:
    """The height fields of a model, which is in the form of the physics."""
    s = m.structure
    rows, cols, adr = (
        jnp.asarray(x, jnp.int32) for x in (s.hfield_nrow, s.hfield_ncol, s.hfield_adr)
    )
    size = tuple(m.hfield_size[:, k] for k in range(4))
    return Grids(field, Grid(rows, cols, adr, size), m.hfield_data)


class _Lane(NamedTuple):
    """Rays in the boxes over the bases, `[n]`.

    Attributes:
      pos, way: the ray in the frame of the field.
      enter, leave: where it is in the box [m].
      world: column of the tables.
      grid: the field.
    """

    pos: Vec
    way: Vec
    enter: jax.Array
    leave: jax.Array
    world: jax.Array
    grid: Grid


def nearest(fields: Grids, ray: Local, limit: Array) -> tuple[Array, Array]:
    """How far rays go to height fields, and which part they meet, both of the shape of `limit`.

    Args:
      fields: of the model.
      ray: the rays.
      limit: how far they are of interest [m]; below 0: not at all.
    """
    grid = fields.of(ray)
    dist, part = box(_in_base(ray, grid)).dist, jnp.full(limit.shape, BASE, jnp.int32)
    near, far = _over_base(ray, grid)
    enter, leave = jnp.maximum(near[0], 0), jnp.minimum(far[0], jnp.minimum(limit, dist))
    lane = _Lane(ray.pos, ray.way, enter, leave, ray.world, grid)
    lane = jax.tree.map(lambda x: jnp.broadcast_to(x, limit.shape).reshape(-1), lane)
    needed = lane.enter <= lane.leave
    lane = lane._replace(  # rays that pass by are nowhere, not infinitely far
        enter=jnp.where(needed, lane.enter, 0), leave=jnp.where(needed, lane.leave, 0)
    )
    none = jnp.full_like(lane.enter, NEVER), jnp.zeros_like(lane.world)
    on_surface, number = for_some(
        lambda some: _walk(fields, some), needed, lane, platform().lanes, none
    )
    on_surface, number = (x.reshape(limit.shape) for x in (on_surface, number))
    nearer = on_surface < dist
    dist, part = jnp.where(nearer, on_surface, dist), jnp.where(nearer, SURFACE + number, part)
    for t, axis in (near, far):
        met = (near[0] <= far[0]) & (t >= 0) & (t < dist) & (axis < 2)
        wall = _wall(ray, t, axis)
        met &= _under_rim(fields, grid, ray, jnp.where(met, t, 0), wall)
        dist, part = jnp.where(met, t, dist), jnp.where(met, WALL + wall, part)
    return dist, part


def hit(fields: Grids, ray: Local, part: Array) -> Hit:
    """Where rays meet parts of height fields."""
    grid = fields.of(ray)
    found = box(_in_base(ray, grid))
    wall = part - WALL
    of_x, end = wall < 2, jnp.where(wall % 2 > 0, 1, -1).astype(ray.pos.x.dtype)
    x, u = jnp.where(of_x, ray.pos.x, ray.pos.y), jnp.where(of_x, ray.way.x, ray.way.y)
    half = jnp.where(of_x, grid.size[0], grid.size[1])
    t = (end * half - x) / jnp.where(u == 0, 1, u)
    zero = jnp.zeros_like(t)
    normal = Vec(jnp.where(of_x, end, zero), jnp.where(of_x, zero, end), zero)
    found = select(part >= WALL, Hit(t, normal), found)
    number = jnp.maximum(part - SURFACE, 0)
    cell, cols = number // 2, jnp.maximum(grid.cols - 1, 1)
    row, col = cell // cols, cell % cols
    corners = _corners(fields, grid, row, col, ray.world)
    a, b, c = (corner - ray.pos for corner in _triangles(corners, number % 2 > 0))
    return select(part >= SURFACE, triangle.hit(ray.way, a, b, c), found)


def _in_base(ray: Local, grid: Grid) -> Local:
    """Rays in the frame of the box of the base."""
    x, y, _, depth = grid.size
    half = 0.5 * depth
    pos = Vec(ray.pos.x, ray.pos.y, ray.pos.z + half)
    return ray._replace(pos=pos, size=Vec(x, y, half))


def _over_base(ray: Local, grid: Grid) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Where rays enter and leave the box over the base, and through which faces."""
    x, y, top, _ = grid.size
    half = 0.5 * top
    return crossing(Vec(ray.pos.x, ray.pos.y, ray.pos.z - half), ray.way, Vec(x, y, half))


def _wall(ray: Local, t: Array, axis: Array) -> Array:
    """Number of the wall that is crossed: 0 and 1 across x, 2 and 3 across y."""
    x, y, _ = ray.at(jnp.where(jnp.isfinite(t), t, 0)).parts
    across = jnp.where(axis == 0, x, y)
    return 2 * jnp.minimum(axis, 1) + (across > 0).astype(jnp.int32)


def _under_rim(fields: Grids, grid: Grid, ray: Local, t: Array, wall: Array) -> Array:
    """Whether points of walls are below the rim of the surface."""
    x, y, z = ray.at(t).parts
    dx, dy = grid.step
    of_x, last = wall < 2, wall % 2 > 0
    along = jnp.where(of_x, (y + grid.size[1]) / dy, (x + grid.size[0]) / dx)
    cells = jnp.where(of_x, grid.rows, grid.cols) - 1
    cell = jnp.clip(jnp.floor(along), 0, (cells - 1).astype(along.dtype)).astype(jnp.int32)
    end = jnp.where(last, jnp.where(of_x, grid.cols, grid.rows) - 1, 0)

    def height(k: Array) -> Array:
        row, col = jnp.where(of_x, k, end), jnp.where(of_x, end, k)
        return fields.height(grid, row, col, ray.world)

    part = along - cell.astype(along.dtype)
    return z < (1 - part) * height(cell) + part * height(cell + 1)


def _walk(fields: Grids, lane: _Lane) -> tuple[Array, Array]:
    """The first triangle that rays meet in their boxes, and how far it is."""
    grid, dtype = lane.grid, lane.enter.dtype
    dx, dy = grid.step
    ux, uy = lane.way.x / dx, lane.way.y / dy  # in cells
    x, y = (lane.pos.x + grid.size[0]) / dx, (lane.pos.y + grid.size[1]) / dy
    by_x = jnp.abs(ux) >= jnp.abs(uy)

    def swap(one: Array, other: Array) -> tuple[Array, Array]:
        return jnp.where(by_x, one, other), jnp.where(by_x, other, one)

    u, v = swap(ux, uy)  # along the axis of the steps, and beside it
    p, q = swap(x, y)
    length, width = swap(grid.cols - 1, grid.rows - 1)

    def cell(at: Array, cells: Array) -> Array:
        return jnp.clip(jnp.floor(at), 0, (cells - 1).astype(dtype)).astype(jnp.int32)

    ends = [p + t * u for t in (lane.enter, lane.leave)]
    begin = cell(jnp.minimum(*ends) - SLACK, length)
    number = cell(jnp.maximum(*ends) + SLACK, length) - begin + 1
    forward = u >= 0
    moves = jnp.abs(u) > TINY
    per = 1 / jnp.where(moves, u, 1)

    every, way, world = jax.tree.map(lambda x: x[None], (grid, lane.way, lane.world))

    def step(state: tuple) -> tuple:
        k, best, found = state
        here = begin + jnp.where(forward, k, number - 1 - k)
        # from where to where the ray is over this row of cells
        sides = [(here.astype(dtype) + side - p) * per for side in (-SLACK, 1 + SLACK)]
        low, high = jnp.minimum(*sides), jnp.maximum(*sides)
        low = jnp.where(moves, jnp.clip(low, lane.enter, lane.leave), lane.enter)
        high = jnp.where(moves, jnp.clip(high, lane.enter, lane.leave), lane.leave)
        across = [q + t * v for t in (low, high)]
        first = cell(jnp.minimum(*across) - SLACK, width)
        last = cell(jnp.maximum(*across) + SLACK, width)
        # from there, lest digits be spent on the way to the cells
        start = jax.tree.map(lambda x: x[None], lane.pos + lane.way.scale(low))
        beside = jnp.minimum(first[None] + np.arange(BESIDE, dtype=np.int32)[:, None], last[None])
        row, col = (
            jnp.where(by_x[None], beside, here[None]),
            jnp.where(by_x[None], here[None], beside),
        )
        corners = _corners(fields, every, row, col, world)
        t, place = once(_first_of_cells, every, corners, start, way, low[None], row, col)
        nearer = (k < number) & (t < best)
        best, found = jnp.where(nearer, t, best), jnp.where(nearer, place, found)
        return k + 1, best, found

    def going(state: tuple) -> Array:
        k, best, _ = state
        return jnp.any((k < number) & (best == NEVER))

    best = jnp.full_like(lane.enter, NEVER)
    _, best, found = lax.while_loop(going, step, (jnp.int32(0), best, jnp.zeros_like(begin)))
    return best, found


def _first_of_cells(
    grid: Grid, corners: tuple, start: Vec, way: Vec, low: Array, row: Array, col: Array
) -> tuple[Array, Array]:
    """How far rays go to the triangles of cells `[BESIDE, n]`, and the number of the first."""
    ways = []
    for second in (0, 1):
        abc = (c - start for c in _triangles(corners, jnp.full(row.shape, second > 0)))
        t = low + triangle.meets(way, *abc)
        place = 2 * (row * (grid.cols - 1) + col) + second
        ways += list(zip(jnp.where(t >= 0, t, NEVER), place, strict=True))
    # in pairs, not in a chain, whose every link would be computed in all that follow
    while len(ways) > 1:
        one, other = ways.pop(0), ways.pop(0)
        ways.append(select(other[0] < one[0], other, one))
    return ways[0]


def _corners(
    fields: Grids, grid: Grid, row: Array, col: Array, world: Array
) -> tuple[tuple[Vec, Vec], tuple[Vec, Vec]]:
    """Corners of cells in the frames of the fields: of the row, and of the next one."""
    dx, dy = grid.step

    def corner(row: Array, col: Array) -> Vec:
        x, y = col.astype(dx.dtype) * dx - grid.size[0], row.astype(dx.dtype) * dy - grid.size[1]
        return Vec(x, y, fields.height(grid, row, col, world))

    lower, upper = ((corner(r, col), corner(r, col + 1)) for r in (row, row + 1))
    return lower, upper


def _triangles(corners: tuple, second: Array) -> tuple[Vec, Vec, Vec]:
    """One of the triangles of cells, its corners against the clock seen from above.

    The first is on the side of the next column, the second on that of the next row.
    """
    (here, right), (up, across) = corners
    return here, select(second, across, right), select(second, up, across)
