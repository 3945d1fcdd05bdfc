"""Signed distances between the two sides of pairs, and their gradients.

A gap is measured between the middle surfaces of shells, without thickness, also to geoms. The
nearest points minimize the distance, so that changes of their barycentric weights contribute
nothing to first order (envelope theorem):

    d gap = normal . sum(weight_i d x_i)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math import Vec, safe_divide, select_where
from jaxsim.physics.collision.flex.triangle import nearest_shares, weighted_point
from jaxsim.physics.ipc import hull, surface
from jaxsim.physics.ipc.plan import PairGrid
from jaxsim.physics.ipc.scene import IpcScene

_MIN_EDGE_AREA2 = 1e-12  # squared area of two edges [m^4] below which they count as parallel


class Gap(NamedTuple):
    """Gaps of pairs, `[n, *W]`.

    Attributes:
      dist: the gap [m]; for points against geoms negative inside.
      normal: unit vector from the second to the first side.
      points: int, points of the first side and then of the second.
      weights: barycentric weight of each point; on the first side they sum to 1, on the second to
        -1.
    """

    dist: jax.Array
    normal: Vec
    points: tuple[jax.Array, ...]
    weights: tuple[jax.Array, ...]


def compute_gaps(scene: IpcScene, grid: PairGrid, pair: Array, x: Vec) -> Gap:
    """Compute the gaps of chosen pairs with the points at x.

    Args:
      scene: the scene of the step.
      grid: pairs of one kind.
      pair: flat (row-major) indices of pairs in the grid, int `[n, *W]`.
      x: all points, `[npoint, *W]`.
    """
    # Points of both sides, at their present positions.
    pairs = pair_sides(grid, pair)
    return measure_gaps(scene, grid, pairs, [gather(x, p) for p in pairs.points])


def measure_gaps(scene: IpcScene, grid: PairGrid, pairs: "Sides", corner: list[Vec]) -> Gap:
    """Compute the gaps of pairs with given corner positions, `[n, *W]` each."""
    # Point against a geom: signed distance function of its type.
    if grid.type is not None:
        geom = gather(scene.geoms, pairs.second[0])
        if scene.hulls is not None and grid.type == GeomType.MESH:
            dist, normal = hull.hull_distance_and_normal(scene.hulls, geom, corner[0])
        else:
            dist, normal = surface.geom_distance_and_normal(grid.type, geom, corner[0])
        return Gap(dist, normal, pairs.points, (jnp.ones_like(dist),))
    # Point against triangle, or edge against edge: nearest points by their weights.
    weights = _edge_weights(*corner) if grid.kind == "edge_edge" else _triangle_weights(*corner)
    between = weighted_point(weights, tuple(corner))
    dist = between.norm()
    apart = dist > MINVAL  # no direction where the points coincide
    normal = between.scale(jnp.where(apart, 1 / jnp.where(apart, dist, 1), 0))
    return Gap(dist - _corner_radius(scene, pairs.points[0]), normal, pairs.points, weights)


class Sides(NamedTuple):
    """Points of both sides of pairs, int `[n, *W]` each; `hard`: the second side is a geom id."""

    first: tuple[jax.Array, ...]
    second: tuple[jax.Array, ...]
    hard: bool

    @property
    def points(self) -> tuple[jax.Array, ...]:
        """Return all points."""
        return self.first if self.hard else (*self.first, *self.second)


def pair_sides(grid: PairGrid, pair: Array) -> Sides:
    """Look up the two sides of chosen pairs."""
    # Row-major index of the pair to items of both sides.
    m = len(grid.second)
    row, col = lax.div(pair, jnp.int32(m)), lax.rem(pair, jnp.int32(m))

    def look_up(table, index):
        return tuple(gather(jnp.asarray(column(t, pair), jnp.int32), index) for t in table.T)

    return Sides(look_up(grid.first, row), look_up(grid.second, col), grid.type is not None)


def _corner_radius(scene: IpcScene, first: Array) -> Array:
    """Return the radius of corners that belong to spheres and capsules; 0 for other points."""
    fixed = column(scene.plan.flex < 0, scene.radius)
    return gather(jnp.where(fixed, scene.radius, 0), first)


def _triangle_weights(point: Vec, *corner: Vec) -> tuple[Array, ...]:
    weights = nearest_shares(point, corner)
    return (jnp.ones_like(weights[0]), *(-s for s in weights))


def _edge_weights(a0: Vec, a1: Vec, b0: Vec, b1: Vec) -> tuple[Array, ...]:
    """Compute the weights of the nearest points of two segments.

    Ericson, *Real-Time Collision Detection*, section 5.1.9. Parallel edges take the first end of
    the first edge.
    """
    # Normal equations of the closest points.
    u, v, w = a1 - a0, b1 - b0, a0 - b0
    # Nearest points of the two lines, clamped to the first segment.
    uu, vv, uv, uw, vw = u.dot(u), v.dot(v), u.dot(v), u.dot(w), v.dot(w)
    area = uu * vv - uv * uv
    s = jnp.where(area > _MIN_EDGE_AREA2, safe_divide(uv * vw - vv * uw, area), 0)
    s = jnp.clip(s, 0, 1)
    # Nearest point on the second segment; where it is clamped, recompute the first.
    t = safe_divide(uv * s + vw, vv)
    before, after = safe_divide(-uw, uu), safe_divide(uv - uw, uu)
    s = jnp.clip(select_where(t < 0, before, select_where(t > 1, after, s)), 0, 1)
    t = jnp.clip(t, 0, 1)
    return 1 - s, s, t - 1, -t
