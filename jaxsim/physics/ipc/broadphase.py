"""Broad phase: pairs that are near, or may come near during a motion.

All boxes around items are compared with all, and the exact gap is computed for the nearest. A pair
is kept if its gap is below the activation band plus the distance that its sides can approach, so
that no pair that could close is missed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.physics.collision.compact import compact_true, select_deepest
from jaxsim.physics.ipc.gap import Gap, compute_gaps
from jaxsim.physics.ipc.plan import PairGrid
from jaxsim.physics.ipc.scene import IpcScene

_MAX_BAND = 3e-3  # activation distance of surfaces, at most their smaller radius [m]
REST_GAP = 1e-3  # distance at rest, at most their smaller radius [m]
_BOX_PAIR_FACTOR = 4  # capacity for pairs with near boxes, as a multiple of that for near pairs


class NearPairs(NamedTuple):
    """Near pairs of one grid, `[capacity, *W]`.

    Attributes:
      pair: indices in the grid, ascending, int.
      there: mask of used slots, bool.
      gap: their gaps.
      dropped: number of pairs dropped for lack of capacity, int `[1, *W]`.
    """

    pair: jax.Array
    there: jax.Array
    gap: Gap
    dropped: jax.Array


def detect_near_pairs(scene: IpcScene, grid: PairGrid, x: Vec, motion: Vec) -> NearPairs:
    """Return the pairs that are near at x, or may come near during a motion `motion` from there."""
    # Broad phase on boxes.
    apart, reach = _boxes_apart(scene, grid, x, motion.norm())
    meets = column(grid.meets, motion.x)
    number, wide = grid.meets.size, min(grid.meets.size, _BOX_PAIR_FACTOR * grid.capacity)
    shape = (number, *motion.x.shape[1:])
    close = ((apart <= reach) & meets).reshape(shape)
    # Materialize: fused consumers would recompute the box distances.
    close, flat = lax.optimization_barrier((close, apart.reshape(shape)))
    # Narrow phase: exact gaps of the nearest candidates, then those within reach.
    pair, there, left_out = _select_nearest(close, flat, wide)
    found = compute_gaps(scene, grid, pair, x)
    there = there & (
        found.dist < _detection_gap(scene, grid, found) + closing_bound(grid, found, motion)
    )
    # A pair of shells at distance 0 has no normal; fixed geoms have a signed distance.
    if grid.type is None:
        there = there & ((found.dist > 0) | _fixed(scene, found))
    place, filled, dropped = _select_nearest(there, found.dist, grid.capacity)
    pair, found = gather((pair, found), place)
    return NearPairs(jnp.where(filled, pair, 0), filled, found, left_out + dropped)


def _select_nearest(mask: Array, dist: Array, capacity: int) -> tuple[Array, Array, Array]:
    """Select the nearest candidates up to the capacity, in ascending order.

    Returns:
      Indices, mask of used slots, and the number of dropped candidates.
    """
    # Keep the smallest distances, and compact them in index order.
    kept = select_deepest(mask, dist, capacity)
    number, _ = compact_true(kept, np.arange(len(mask)), capacity)
    count = jnp.sum(mask, axis=0, keepdims=True, dtype=jnp.int32)
    there = jnp.asarray(column(np.arange(capacity, dtype=np.int32), count)) < count
    return jnp.where(there, number, 0), there, jnp.maximum(count - capacity, 0)


def detection_band(scene: IpcScene, found: Gap, most: float) -> Array:
    """Return the smallest thickness in each pair, at most `most`, `[n, *W]` [m]."""
    # Minimum of the radii of shell points.
    width = jnp.full_like(found.dist, most)
    for point in found.points:
        soft = gather(jnp.asarray(column(scene.plan.flex >= 0, width)), point)
        width = jnp.where(soft, jnp.minimum(width, gather(scene.radius, point)), width)
    return width


def _detection_gap(scene: IpcScene, grid: PairGrid, found: Gap) -> Array:
    """Return the gap below which pairs at rest are near."""
    thick = [_thickness(scene, points[0]) for points in split_by_side(grid, found.points) if points]
    return sum(thick) + detection_band(scene, found, _MAX_BAND)


def closing_bound(grid: PairGrid, found: Gap, motion: Vec) -> Array:
    """Bound the decrease of each gap during a motion of the points, `[n, *W]`."""
    # Displacement of each point, by side.
    first, second = split_by_side(grid, [gather(motion, p) for p in found.points])
    if not second:
        return first[0].norm()
    both = [(a - b).norm() for a in first for b in second]
    most = both[0]
    for length in both[1:]:
        most = jnp.maximum(most, length)
    return most


def split_by_side(grid: PairGrid, of_points: list | tuple) -> tuple:
    """Split a list over the points of pairs by side; geoms contribute no points."""
    number = grid.first.shape[1]
    return tuple(of_points[:number]), tuple(of_points[number:])


def _thickness(scene: IpcScene, point: Array) -> Array:
    soft = column(scene.plan.flex >= 0, scene.radius)
    return gather(jnp.where(soft, scene.radius, 0), point)


def _fixed(scene: IpcScene, found: Gap) -> Array:
    return gather(jnp.asarray(column(scene.plan.flex < 0, found.dist)), found.points[0])


def _boxes_apart(scene: IpcScene, grid: PairGrid, x: Vec, length: Array) -> tuple[Array, Array]:
    """Return the distances between boxes around items, `[n, m, *W]`, and the allowed ones."""
    # Bounding boxes of both lists.
    low, high, reach = _boxes(scene, grid.first, x, length)
    if grid.type is None:
        low2, high2, reach2 = _boxes(scene, grid.second, x, length)
    else:
        low2, high2 = _geom_boxes(scene, grid)
        reach2 = jnp.zeros_like(low2.x)
    # Separation of axis-aligned boxes: the largest over the three axes.
    sides = zip(low.parts, high.parts, low2.parts, high2.parts, strict=True)
    a, b, c = (
        jnp.maximum(a0[:, None] - b1[None], b0[None] - a1[:, None]) for a0, a1, b0, b1 in sides
    )
    return jnp.maximum(jnp.maximum(a, b), c), reach[:, None] + reach2[None] + _MAX_BAND


def _boxes(scene: IpcScene, items: np.ndarray, x: Vec, length: Array) -> tuple[Vec, Vec, Array]:
    """Return the boxes around items, and their margin: thickness plus motion."""
    # Minimum and maximum over the corners.
    corner = [gather_static(x, items[:, k]) for k in range(items.shape[1])]
    low, high = corner[0], corner[0]
    for c in corner[1:]:
        low = Vec(*map(jnp.minimum, low.parts, c.parts))
        high = Vec(*map(jnp.maximum, high.parts, c.parts))
    # Largest displacement of the corners.
    motion = gather_static(length, items[:, 0])
    for k in range(1, items.shape[1]):
        motion = jnp.maximum(motion, gather_static(length, items[:, k]))
    return low, high, gather_static(scene.radius, items[:, 0]) + motion


def _geom_boxes(scene: IpcScene, grid: PairGrid) -> tuple[Vec, Vec]:
    """Return the boxes around geoms in the world; planes are unbounded."""
    assert scene.geoms.box is not None
    # Half extents of the rotated box.
    center, half = gather_static(scene.geoms.box, grid.second[:, 0])
    rot = gather_static(scene.geoms.rot, grid.second[:, 0])
    reach = Vec(
        *(
            sum(jnp.abs(r) * s for r, s in zip(row.parts, half.parts, strict=True))
            for row in rot.rows
        )
    )
    if grid.type == GeomType.PLANE:
        reach = reach.map(lambda a: jnp.full_like(a, jnp.inf))
    return center - reach, center + reach
