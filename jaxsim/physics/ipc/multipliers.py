"""Multipliers of pairs, and the life cycle of pairs: an augmented Lagrangian method.

A pair with linearized gap c (less the gap at rest) adds the cost

    1/2 mu fade^age min(0, c - lambda / mu)^2

Multiplier update: lambda <- lambda - mu c for an active pair, else 0, until the gap is that at
rest. Inactive pairs lose stiffness and are removed (M. Li et al., *Barrier-free augmented
Lagrangian contact*, 2025, arXiv:2512.12151; MuJoCo's documentation, XML reference:
option/flag/ipc). From step to step multipliers are stored per vertex, as the largest of its pairs.

Ages: an active pair gets age 0, or -1 if it was inactive for fewer than six iterations; an inactive
pair counts from there, away from zero. A formerly active pair starts to fade after a delay, so that
one that is active in every third iteration keeps its stiffness:

    active    yes  no  no  yes  no  no  no  no  no  no  no
    age        0    1   2  -1   -2  -3  -4  -5  -6  -7  -8
    fade       0    1   2   0    0   0   0   0   0   1   2
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.physics.ipc.gap import pair_sides
from jaxsim.physics.ipc.plan import PairGrid

FADE_FACTOR = 0.9  # stiffness factor per iteration in which a pair is inactive
# iterations: then a formerly active pair starts to fade, and an inactive one counts as new
_FADE_DELAY = 5
_MAX_QUIET_COUNT = 25  # iterations for which a pair that was never active is kept
_QUIET_ONCE_AGE = 44  # iterations for which a formerly active pair is kept
_NO_PAIR = 2**31 - 1  # padding index that no pair has


class ActivePairs(NamedTuple):
    """Pairs of a grid that may be active, `[capacity, *W]`.

    Attributes:
      pair: indices in the grid, ascending, int.
      there: mask of used slots, bool.
      multiplier: multipliers [N].
      age: see the module, int.
    """

    pair: jax.Array
    there: jax.Array
    multiplier: jax.Array
    age: jax.Array


class VertexMultipliers(NamedTuple):
    """State kept from step to step: multiplier and age of each vertex, `[nflexvert, *W]`."""

    multiplier: jax.Array
    age: jax.Array

    def of(self, grid: PairGrid, pair: Array) -> tuple[Array, Array]:
        """Return the largest multiplier of the vertices of pairs, and their smallest age."""
        # Maximum over the vertices that belong to flexes.
        number = len(self.multiplier)
        multiplier = jnp.zeros(pair.shape, self.multiplier.dtype)
        age = jnp.full(pair.shape, _NO_PAIR, jnp.int32)
        for point in pair_sides(grid, pair).points:
            vertex, soft = jnp.minimum(point, number - 1), point < number
            multiplier = jnp.maximum(
                multiplier, jnp.where(soft, gather(self.multiplier, vertex), 0)
            )
            age = jnp.minimum(age, jnp.where(soft, gather(self.age, vertex), _NO_PAIR))
        return multiplier, age


def begin_pairs(
    vertices: VertexMultipliers, grid: PairGrid, pair: Array, there: Array
) -> ActivePairs:
    """Return pairs with the multipliers and ages of their vertices."""
    return ActivePairs(pair, there, *vertices.of(grid, pair))


def fade_count(age: Array) -> Array:
    """Return the number of iterations for which a pair has faded, int."""
    return jnp.where(age >= 0, age, jnp.maximum(-age - 1 - _FADE_DELAY, 0))


def update_multipliers(of: ActivePairs, c: Array, stiffness: Array) -> ActivePairs:
    """Update the multipliers of the pairs.

    Args:
      of: the pairs.
      c: c of each pair, `[capacity, *W]` [m].
      stiffness: mu of each pair, `[capacity, *W]` [N/m].
    """
    # An active pair has c - lambda / mu <= 0.
    inactive = c - of.multiplier / stiffness > 0
    multiplier = jnp.where(inactive, 0, of.multiplier - c * stiffness)
    return of._replace(
        multiplier=jnp.where(of.there, multiplier, 0), age=_increment_age(of.age, ~inactive)
    )


def store_multipliers(
    vertices: VertexMultipliers, grids: tuple[PairGrid, ...], all: list[ActivePairs]
) -> VertexMultipliers:
    """Return the vertices with the largest multipliers of their pairs, and their new ages."""
    multiplier = jnp.zeros_like(vertices.multiplier)
    for grid, of in zip(grids, all, strict=True):
        for point in pair_sides(grid, of.pair).points:
            multiplier = scatter_max(multiplier, point, jnp.where(of.there, of.multiplier, 0))
    return VertexMultipliers(multiplier, _increment_age(vertices.age, multiplier > 0))


def merge_pairs(
    of: ActivePairs, vertices: VertexMultipliers, grid: PairGrid, pair: Array, added: Array
) -> ActivePairs:
    """Merge the pairs that are kept with those that become candidates.

    Args:
      of: current pairs.
      vertices: state of their vertices.
      grid: the grid.
      pair: indices of other pairs, `[capacity, *W]`.
      added: mask of those to add, bool; pairs that are present already keep their state.
    """
    # Drop pairs that were inactive for long.
    gone = ((of.multiplier <= 0) & (of.age < -_QUIET_ONCE_AGE)) | (of.age > _MAX_QUIET_COUNT)
    stays = of.there & ~gone
    # Add candidates that are not present, sort by index, and truncate to the capacity.
    known = jnp.any((pair[:, None] == of.pair[None]) & stays[None], axis=1)
    new = begin_pairs(vertices, grid, pair, added & ~known)
    # Indices of empty slots sort last.
    both = [jnp.concatenate(a) for a in zip(of._replace(there=stays), new, strict=True)]
    number = jnp.where(both[1], both[0], _NO_PAIR)
    number, multiplier, age = lax.sort((number, both[2], both[3]), dimension=0, num_keys=1)
    capacity = len(of.pair)
    number = number[:capacity]
    there = number < _NO_PAIR
    return ActivePairs(jnp.where(there, number, 0), there, multiplier[:capacity], age[:capacity])


def scatter_max(a: Array, index: Array, values: Array) -> Array:
    """Scatter-max: raise entries to the largest of the values scattered to them.

    Args:
      a: `[n, *W]`.
      index: target of each value, int `[k, *W]`; values past the last entry are dropped.
      values: `[k, *W]`.
    """
    if a.ndim == 1:
        return a.at[index].max(values, mode="drop")
    worlds = jnp.arange(a.shape[1])[None]
    return a.at[index, jnp.broadcast_to(worlds, index.shape)].max(values, mode="drop")


def _increment_age(age: Array, active: Array) -> Array:
    # Age of an active pair: 0, or -1 after a short inactivity.
    young = jnp.where((age == 0) | (age > _FADE_DELAY), 0, -1)
    return jnp.where(active, young, age + jnp.where(age >= 0, 1, -1))
