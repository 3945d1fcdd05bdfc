"""Ray intersections with height fields: surface, side walls, and base box.

A cell of the grid has two triangles, separated by the diagonal from (row, column) to (row + 1,
column + 1). A ray is traversed through the box above the base by a grid walk (digital differential
analyzer) along the axis on which it crosses more cells: in each step of one cell along this axis it
crosses at most three cells across. The walk ends at the first step with an intersection.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.math import Vec, select_where
from jaxsim.model.model import Model
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, LocalRays, gather_by_world
from jaxsim.physics.ray.plane_box import box_crossings, ray_box
from jaxsim.transforms.compaction import evaluate_active_lanes
from jaxsim.transforms.materialize import materialize_result
from jaxsim.transforms.tuning import tuning

# part ids: the base; from 1 the four walls; from 5 the triangles
BASE_PART, FIRST_WALL_PART, FIRST_TRIANGLE_PART = 0, 1, 5
_CELLS_PER_STEP = 3  # cells across that a ray crosses in one step
_MIN_CELL_SPEED = 1e-12  # cells per meter below which a ray does not move along an axis
_CELL_SLACK = 1e-3  # margin in cells for crossing a neighbor


class HfieldGrid(NamedTuple):
    """Height field, of one geom or of each of several.

    Attributes:
      rows, cols: number of grid points.
      adr: address of the first height.
      size: half sides along x and y, height of 1, depth of the base [m].
    """

    rows: jax.Array
    cols: jax.Array
    adr: jax.Array
    size: tuple[jax.Array, ...]

    @property
    def step(self) -> tuple[Array, Array]:
        """Return the sides of a cell along x and y [m]."""
        x, y = self.size[:2]
        cols, rows = (jnp.maximum(n - 1, 1).astype(x.dtype) for n in (self.cols, self.rows))
        return 2 * x / cols, 2 * y / rows


@node()
class RayHfields:
    """Height fields of a model.

    Attributes:
      field: field of each geom, 0 for geoms without one.
      grid: all fields, integers `[nhfield]` and sizes `[nhfield, *W]`.
      data: all heights, `[nhfielddata, *W]`.
    """

    field: jax.Array
    grid: HfieldGrid
    data: jax.Array

    def of(self, ray: LocalRays) -> HfieldGrid:
        """Return the fields of the rays' geoms."""
        field = self.field[ray.geom]
        rows, cols, adr = (x[field] for x in (self.grid.rows, self.grid.cols, self.grid.adr))
        return HfieldGrid(rows, cols, adr, gather_by_world(self.grid.size, field, ray.world))

    def height(self, grid: HfieldGrid, row: Array, col: Array, world: Array) -> Array:
        """Return heights at grid points [m]."""
        return grid.size[2] * gather_by_world(self.data, grid.adr + row * grid.cols + col, world)


def ray_hfields(m: Model, field: Array) -> RayHfields:
    """Return the height fields of a model, which is in the layout of the physics."""
    s = m.structure
    rows, cols, adr = (
        jnp.asarray(x, jnp.int32) for x in (s.hfield_nrow, s.hfield_ncol, s.hfield_adr)
    )
    size = tuple(m.hfield_size[:, k] for k in range(4))
    return RayHfields(field, HfieldGrid(rows, cols, adr, size), m.hfield_data)


class _Lane(NamedTuple):
    """Rays in the boxes above the bases, `[n]`.

    Attributes:
      pos, way: ray in the frame of the field.
      enter, leave: its interval in the box [m].
      world: column of the tables.
      grid: the field.
    """

    pos: Vec
    way: Vec
    enter: jax.Array
    leave: jax.Array
    world: jax.Array
    grid: HfieldGrid


def nearest_hfield_hit(fields: RayHfields, ray: LocalRays, limit: Array) -> tuple[Array, Array]:
    """Compute distances to height fields and the parts hit, both of the shape of `limit`.

    Args:
      fields: height fields of the model.
      ray: the rays.
      limit: largest distance of interest [m]; below 0: none.
    """
    # Base box.
    grid = fields.of(ray)
    dist, part = (
        ray_box(_to_base_frame(ray, grid)).dist,
        jnp.full(limit.shape, BASE_PART, jnp.int32),
    )
    # Surface: walk only the rays that enter the box above the base (compacted lanes).
    near, far = _intersect_base_box(ray, grid)
    enter, leave = jnp.maximum(near[0], 0), jnp.minimum(far[0], jnp.minimum(limit, dist))
    lane = _Lane(ray.pos, ray.way, enter, leave, ray.world, grid)
    lane = jax.tree.map(lambda x: jnp.broadcast_to(x, limit.shape).reshape(-1), lane)
    needed = lane.enter <= lane.leave
    lane = lane._replace(  # avoid infinities in rays that miss the box
        enter=jnp.where(needed, lane.enter, 0), leave=jnp.where(needed, lane.leave, 0)
    )
    # Gather the rays that enter this box and walk these only.
    none = jnp.full_like(lane.enter, NO_HIT), jnp.zeros_like(lane.world)
    on_surface, number = evaluate_active_lanes(
        lambda some: _walk(fields, some), needed, lane, tuning().search_lanes, none
    )
    on_surface, number = (x.reshape(limit.shape) for x in (on_surface, number))
    nearer = on_surface < dist
    dist, part = (
        jnp.where(nearer, on_surface, dist),
        jnp.where(nearer, FIRST_TRIANGLE_PART + number, part),
    )
    # Side walls, below the rim of the surface.
    for t, axis in (near, far):
        met = (near[0] <= far[0]) & (t >= 0) & (t < dist) & (axis < 2)
        wall = _wall(ray, t, axis)
        met &= _is_below_rim(fields, grid, ray, jnp.where(met, t, 0), wall)
        dist, part = jnp.where(met, t, dist), jnp.where(met, FIRST_WALL_PART + wall, part)
    return dist, part


def intersect_hfield_triangle(fields: RayHfields, ray: LocalRays, part: Array) -> Hit:
    """Compute the intersections with known parts of height fields."""
    # Evaluate the formulas of base, wall and triangle, and select by the part.
    grid = fields.of(ray)
    found = ray_box(_to_base_frame(ray, grid))
    # Wall: plane of the side.
    wall = part - FIRST_WALL_PART
    of_x, end = wall < 2, jnp.where(wall % 2 > 0, 1, -1).astype(ray.pos.x.dtype)
    x, u = jnp.where(of_x, ray.pos.x, ray.pos.y), jnp.where(of_x, ray.way.x, ray.way.y)
    half = jnp.where(of_x, grid.size[0], grid.size[1])
    t = (end * half - x) / jnp.where(u == 0, 1, u)
    zero = jnp.zeros_like(t)
    normal = Vec(jnp.where(of_x, end, zero), jnp.where(of_x, zero, end), zero)
    found = select_where(part >= FIRST_WALL_PART, Hit(t, normal), found)
    # Triangle of the surface.
    number = jnp.maximum(part - FIRST_TRIANGLE_PART, 0)
    cell, cols = number // 2, jnp.maximum(grid.cols - 1, 1)
    row, col = cell // cols, cell % cols
    corners = _corners(fields, grid, row, col, ray.world)
    a, b, c = (corner - ray.pos for corner in _triangles(corners, number % 2 > 0))
    return select_where(
        part >= FIRST_TRIANGLE_PART, triangle.intersect_triangle(ray.way, a, b, c), found
    )


def _to_base_frame(ray: LocalRays, grid: HfieldGrid) -> LocalRays:
    """Transform rays to the frame of the base box."""
    x, y, _, depth = grid.size
    half = 0.5 * depth
    pos = Vec(ray.pos.x, ray.pos.y, ray.pos.z + half)
    return ray._replace(pos=pos, size=Vec(x, y, half))


def _intersect_base_box(
    ray: LocalRays, grid: HfieldGrid
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return entry and exit of rays in the box above the base, with the faces."""
    x, y, top, _ = grid.size
    half = 0.5 * top
    return box_crossings(Vec(ray.pos.x, ray.pos.y, ray.pos.z - half), ray.way, Vec(x, y, half))


def _wall(ray: LocalRays, t: Array, axis: Array) -> Array:
    """Return the id of the wall that is crossed: 0 and 1 across x, 2 and 3 across y."""
    x, y, _ = ray.at(jnp.where(jnp.isfinite(t), t, 0)).parts
    across = jnp.where(axis == 0, x, y)
    return 2 * jnp.minimum(axis, 1) + (across > 0).astype(jnp.int32)


def _is_below_rim(
    fields: RayHfields, grid: HfieldGrid, ray: LocalRays, t: Array, wall: Array
) -> Array:
    """Return True where points of walls are below the rim of the surface."""
    x, y, z = ray.at(t).parts
    dx, dy = grid.step
    of_x, last = wall < 2, wall % 2 > 0
    # Position along the rim, in cells.
    along = jnp.where(of_x, (y + grid.size[1]) / dy, (x + grid.size[0]) / dx)
    cells = jnp.where(of_x, grid.rows, grid.cols) - 1
    cell = jnp.clip(jnp.floor(along), 0, (cells - 1).astype(along.dtype)).astype(jnp.int32)
    end = jnp.where(last, jnp.where(of_x, grid.cols, grid.rows) - 1, 0)

    def height(k: Array) -> Array:
        row, col = jnp.where(of_x, k, end), jnp.where(of_x, end, k)
        return fields.height(grid, row, col, ray.world)

    # Interpolate the rim's height between two grid points.
    part = along - cell.astype(along.dtype)
    return z < (1 - part) * height(cell) + part * height(cell + 1)


class _CellPath(NamedTuple):
    """Rays in units of cells, by the main axis of the walk and the axis across it.

    Attributes:
      by_x: whether the main axis is x.
      pos, speed: coordinate at the start, and its change per meter, on both axes.
      cells: cells of the grid on both axes.
      begin, number: lowest cell of the ray on the main axis, and number of its cells.
      forward, moves: whether the main coordinate increases, and whether it changes.
      per: distance along the ray per cell of the main axis [m]; 1 for a ray that does not move.
    """

    by_x: jax.Array
    pos: tuple[jax.Array, jax.Array]
    speed: tuple[jax.Array, jax.Array]
    cells: tuple[jax.Array, jax.Array]
    begin: jax.Array
    number: jax.Array
    forward: jax.Array
    moves: jax.Array
    per: jax.Array


def _walk(fields: RayHfields, lane: _Lane) -> tuple[Array, Array]:
    """Walk through the cells; return distance and id of the first triangle hit."""
    path = _convert_to_cells(lane)
    every, way, world = jax.tree.map(lambda x: x[None], (lane.grid, lane.way, lane.world))

    def step(state: tuple) -> tuple:
        k, best, found = state
        low, row, col = _cells_of_step(path, lane, k)
        # Start at the cell, to avoid cancellation over the distance to it.
        start = jax.tree.map(lambda x: x[None], lane.pos + lane.way.scale(low))
        # Intersect both triangles of these cells.
        corners = _corners(fields, every, row, col, world)
        t, cell_triangle = materialize_result(
            _nearest_cell_triangle, every, corners, start, way, low[None], row, col
        )
        # Keep the first hit, within the range.
        nearer = (k < path.number) & (t < best)
        best, found = jnp.where(nearer, t, best), jnp.where(nearer, cell_triangle, found)
        return k + 1, best, found

    def has_active_rays(state: tuple) -> Array:
        k, best, _ = state
        return jnp.any((k < path.number) & (best == NO_HIT))

    best = jnp.full_like(lane.enter, NO_HIT)
    _, best, found = lax.while_loop(
        has_active_rays, step, (jnp.int32(0), best, jnp.zeros_like(path.begin))
    )
    return best, found


def _convert_to_cells(lane: _Lane) -> _CellPath:
    """Return rays in units of cells, with the axis on which they are faster as the main axis."""
    grid = lane.grid
    dx, dy = grid.step
    ux, uy = lane.way.x / dx, lane.way.y / dy
    x, y = (lane.pos.x + grid.size[0]) / dx, (lane.pos.y + grid.size[1]) / dy
    by_x = jnp.abs(ux) >= jnp.abs(uy)

    def swap(one: Array, other: Array) -> tuple[Array, Array]:
        return jnp.where(by_x, one, other), jnp.where(by_x, other, one)

    speed, pos, cells = swap(ux, uy), swap(x, y), swap(grid.cols - 1, grid.rows - 1)
    # Range of cells along the main axis.
    p, u = pos[0], speed[0]
    begin, end = _cells_between(p + lane.enter * u, p + lane.leave * u, cells[0])
    forward, moves = u >= 0, jnp.abs(u) > _MIN_CELL_SPEED
    per = 1 / jnp.where(moves, u, 1)
    return _CellPath(by_x, pos, speed, cells, begin, end - begin + 1, forward, moves, per)


def _cells_of_step(path: _CellPath, lane: _Lane, k: Array) -> tuple[Array, Array, Array]:
    """Return the cells that rays pass in step k of the walk.

    Returns:
      Distance at which the step begins, `[n]`; rows and columns of the cells across the main axis,
      `[cells, n]`, the last one repeated.
    """
    (p, q), (_, v) = path.pos, path.speed
    here = path.begin + jnp.where(path.forward, k, path.number - 1 - k)
    # Interval of the ray in this row of cells.
    offset = here.astype(p.dtype)
    sides = [(offset + side - p) * path.per for side in (-_CELL_SLACK, 1 + _CELL_SLACK)]
    low, high = jnp.minimum(*sides), jnp.maximum(*sides)
    low = jnp.where(path.moves, jnp.clip(low, lane.enter, lane.leave), lane.enter)
    high = jnp.where(path.moves, jnp.clip(high, lane.enter, lane.leave), lane.leave)
    # Cells across the main axis that the ray passes in this step.
    first, last = _cells_between(q + low * v, q + high * v, path.cells[1])
    across = np.arange(_CELLS_PER_STEP, dtype=np.int32)[:, None]
    beside = jnp.minimum(first[None] + across, last[None])
    row = jnp.where(path.by_x[None], beside, here[None])
    col = jnp.where(path.by_x[None], here[None], beside)
    return low, row, col


def _cells_between(one: Array, other: Array, cells: Array) -> tuple[Array, Array]:
    """Return the first and last cell between two coordinates, within the grid, with slack."""

    def cell(at: Array) -> Array:
        return jnp.clip(jnp.floor(at), 0, (cells - 1).astype(at.dtype)).astype(jnp.int32)

    low, high = jnp.minimum(one, other), jnp.maximum(one, other)
    return cell(low - _CELL_SLACK), cell(high + _CELL_SLACK)


def _nearest_cell_triangle(
    grid: HfieldGrid, corners: tuple, start: Vec, way: Vec, low: Array, row: Array, col: Array
) -> tuple[Array, Array]:
    """Return distance to the triangles of cells `[cells, n]`, and the id of the first."""
    ways = []
    for second in (0, 1):
        # Corners relative to the start point.
        abc = (c - start for c in _triangles(corners, jnp.full(row.shape, second > 0)))
        t = low + triangle.ray_triangle(way, *abc)
        place = 2 * (row * (grid.cols - 1) + col) + second
        ways += list(zip(jnp.where(t >= 0, t, NO_HIT), place, strict=True))
    # Pairwise reduction, not a chain, so that fused consumers recompute less.
    while len(ways) > 1:
        one, other = ways.pop(0), ways.pop(0)
        ways.append(select_where(other[0] < one[0], other, one))
    return ways[0]


def _corners(
    fields: RayHfields, grid: HfieldGrid, row: Array, col: Array, world: Array
) -> tuple[tuple[Vec, Vec], tuple[Vec, Vec]]:
    """Return the corners of cells in the field's frame: of the row, and of the next one."""
    dx, dy = grid.step

    def corner(row: Array, col: Array) -> Vec:
        x, y = col.astype(dx.dtype) * dx - grid.size[0], row.astype(dx.dtype) * dy - grid.size[1]
        return Vec(x, y, fields.height(grid, row, col, world))

    lower, upper = ((corner(r, col), corner(r, col + 1)) for r in (row, row + 1))
    return lower, upper


def _triangles(corners: tuple, second: Array) -> tuple[Vec, Vec, Vec]:
    """Return one of the two triangles of cells, counterclockwise from above.

    The first is on the side of the next column, the second on that of the next row.
    """
    (here, right), (up, across) = corners
    return here, select_where(second, across, right), select_where(second, up, across)
