"""Rays in the frames of geoms, and intersection results."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import take_clipped
from jaxsim.math import Vec

NO_HIT = jnp.inf  # distance of a ray without a hit


class LocalRays(NamedTuple):
    """Rays p + t u in the frames of geoms.

    Shape `[geoms, rays, *W]`, or `[1, rays, *W]` if each has a geom of its own.

    Attributes:
      pos: origin [m].
      way: unit direction.
      size: MuJoCo's `geom_size` of the geom [m].
      geom: id of the geom.
      world: index of the world, for tables with a batch axis.
    """

    pos: Vec
    way: Vec
    size: Vec
    geom: jax.Array
    world: jax.Array

    def at(self, t: Array) -> Vec:
        """Return points on the rays."""
        return self.pos + self.way.scale(t)


class Hit(NamedTuple):
    """Intersections of rays with surfaces.

    Attributes:
      dist: distance [m]; NEVER: no hit.
      normal: outward normal of the surface, in the geom's frame; arbitrary without a hit.
    """

    dist: jax.Array
    normal: Vec


def nearest_ahead(*ways: Array) -> Array:
    """Return the smallest nonnegative distance, else NEVER."""
    nearest = jnp.full_like(ways[0], NO_HIT)
    for t in ways:
        nearest = jnp.where((t >= 0) & (t < nearest), t, nearest)
    return nearest


def world_indices(like: Array) -> Array:
    """Return the index of each ray's world, `[1, *W]`."""
    if like.ndim == 1:
        return jnp.zeros(1, jnp.int32)
    return jnp.arange(like.shape[-1], dtype=jnp.int32)[None]


def gather_by_world(table: PyTree, index: Array, world: Array) -> PyTree:
    """Gather items of tables `[n]`, `[n, 1]`, or of `[n, worlds]` by each world's column."""

    def one(a: Array) -> Array:
        if a.ndim == 2 and a.shape[1] > 1:
            return take_clipped(a, index, world)
        return take_clipped(a.reshape(-1), index)

    return jax.tree.map(one, table)
