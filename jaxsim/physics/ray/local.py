"""Rays as the geoms see them, and where they meet these."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array, Tree

NEVER = jnp.inf  # how far a ray goes that meets nothing


class Local(NamedTuple):
    """Rays p + t u in the frames of geoms, `[geoms, rays, *W]`; or each with a geom of its own,
    `[1, rays, *W]`.

    Attributes:
      pos: where a ray begins [m].
      way: its direction, of unit length.
      size: MuJoCo's `geom_size` of the geom [m].
      geom: number of the geom.
      world: number of the world, for tables that each world has for itself.
    """

    pos: Vec
    way: Vec
    size: Vec
    geom: jax.Array
    world: jax.Array

    def at(self, t: Array) -> Vec:
        """Points of the rays."""
        return self.pos + self.way.scale(t)


class Hit(NamedTuple):
    """Where rays meet surfaces.

    Attributes:
      dist: how far they go [m]; NEVER: they meet nothing.
      normal: of the surface there, outwards, in the frame of the geom; what it is where nothing is
        met does not count.
    """

    dist: jax.Array
    normal: Vec


def first(*ways: Array) -> Array:
    """The nearest of several distances that is not behind the beginning, else NEVER."""
    nearest = jnp.full_like(ways[0], NEVER)
    for t in ways:
        nearest = jnp.where((t >= 0) & (t < nearest), t, nearest)
    return nearest


def worlds_of(like: Array) -> Array:
    """The number of the world of each ray, `[1, *W]`."""
    if like.ndim == 1:
        return jnp.zeros(1, jnp.int32)
    return jnp.arange(like.shape[-1], dtype=jnp.int32)[None]


def look(table: Tree, index: Array, world: Array) -> Tree:
    """Items of tables `[n]`, `[n, 1]`, or of `[n, worlds]`, each world's for itself."""

    def one(a: Array) -> Array:
        if a.ndim == 2 and a.shape[1] > 1:
            return a.at[index, world].get(mode="clip")
        return a.reshape(-1).at[index].get(mode="clip")

    return jax.tree.map(one, table)
