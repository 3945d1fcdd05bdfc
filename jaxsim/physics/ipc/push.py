"""The multipliers of pairs, and when pairs come and go: an augmented Lagrangian.

A pair whose gap has a linear estimate c, less the gap at rest, costs

    1/2 mu fade^age min(0, c - lambda / mu)^2

and pushes until the gap is that at rest: lambda -> lambda - mu c, where it pushes, else 0. What is
quiet fades, and goes (M. Li et al., Barrier-free augmented Lagrangian contact, 2025,
arXiv:2512.12151; MuJoCo's documentation, XML reference: option/flag/ipc). From step to step the
multipliers stay with the vertices, as the largest of their pairs.

Ages: what pushes becomes 0, or -1 if it was quiet for less than six times; what is quiet counts on
from there, away from zero.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import pick
from jaxsim.physics.ipc.gap import sides
from jaxsim.physics.ipc.plan import Grid

FADES = 0.9  # stiffness each time that a pair is quiet
LATE = 5  # times, after which what has pushed fades, and what was quiet pushes as if new
NEVER = 25  # times that a pair is kept which has not pushed
ONCE = 44  # and one that has
NONE = 2**31 - 1  # a number that no pair has


class Pushes(NamedTuple):
    """Pairs of a grid that may push, `[room, *W]`.

    Attributes:
      pair: numbers in the grid, ascending, int.
      there: which places are taken, bool.
      force: multipliers [N].
      age: int.
    """

    pair: jax.Array
    there: jax.Array
    force: jax.Array
    age: jax.Array


class OfVertices(NamedTuple):
    """What stays from step to step: multipliers and ages of vertices, `[nflexvert, *W]`."""

    force: jax.Array
    age: jax.Array

    def of(self, grid: Grid, pair: Array) -> tuple[Array, Array]:
        """The largest multiplier of the vertices of pairs, and their least age."""
        number = len(self.force)
        force = jnp.zeros(pair.shape, self.force.dtype)
        age = jnp.full(pair.shape, NONE, jnp.int32)
        for point in sides(grid, pair).points:
            vertex, soft = jnp.minimum(point, number - 1), point < number
            force = jnp.maximum(force, jnp.where(soft, pick(self.force, vertex), 0))
            age = jnp.minimum(age, jnp.where(soft, pick(self.age, vertex), NONE))
        return force, age


def begun(vertices: OfVertices, grid: Grid, pair: Array, there: Array) -> Pushes:
    """Pairs with what their vertices remember."""
    return Pushes(pair, there, *vertices.of(grid, pair))


def fade(age: Array) -> Array:
    """How often a pair has faded, int."""
    return jnp.where(age >= 0, age, jnp.maximum(-age - 1 - LATE, 0))


def pushed(of: Pushes, over: Array, stiffness: Array) -> Pushes:
    """The pairs with new multipliers.

    Args:
      of: the pairs.
      over: c of each, `[room, *W]` [m].
      stiffness: mu of each, `[room, *W]` [N/m].
    """
    quiet = over - of.force / stiffness > 0
    force = jnp.where(quiet, 0, of.force - over * stiffness)
    return of._replace(force=jnp.where(of.there, force, 0), age=_older(of.age, ~quiet))


def remembered(vertices: OfVertices, grids: tuple[Grid, ...], all: list[Pushes]) -> OfVertices:
    """The vertices with the largest multipliers of their pairs, one time older."""
    force = jnp.zeros_like(vertices.force)
    for grid, of in zip(grids, all, strict=True):
        for point in sides(grid, of.pair).points:
            force = most_at(force, point, jnp.where(of.there, of.force, 0))
    return OfVertices(force, _older(vertices.age, force > 0))


def merged(of: Pushes, vertices: OfVertices, grid: Grid, pair: Array, comes: Array) -> Pushes:
    """The pairs that stay and those that come.

    Args:
      of: pairs that were there.
      vertices: what their vertices remember.
      grid: the grid.
      pair: numbers of others, `[room, *W]`.
      comes: which of these come, bool; those that are there already stay as they are.
    """
    gone = ((of.force <= 0) & (of.age < -ONCE)) | (of.age > NEVER)
    stays = of.there & ~gone
    known = jnp.any((pair[:, None] == of.pair[None]) & stays[None], axis=1)
    new = begun(vertices, grid, pair, comes & ~known)
    both = [jnp.concatenate(a) for a in zip(of._replace(there=stays), new, strict=True)]
    number = jnp.where(both[1], both[0], NONE)
    number, force, age = lax.sort((number, both[2], both[3]), dimension=0, num_keys=1)
    room = len(of.pair)
    number = number[:room]
    there = number < NONE
    return Pushes(jnp.where(there, number, 0), there, force[:room], age[:room])


def most_at(a: Array, index: Array, values: Array) -> Array:
    """Entries raised to the largest of the values that are for them.

    Args:
      a: `[n, *W]`.
      index: where each value belongs, int `[k, *W]`; beyond the last: nowhere.
      values: `[k, *W]`.
    """
    if a.ndim == 1:
        return a.at[index].max(values, mode="drop")
    worlds = jnp.arange(a.shape[1])[None]
    return a.at[index, jnp.broadcast_to(worlds, index.shape)].max(values, mode="drop")


def _older(age: Array, pushes: Array) -> Array:
    young = jnp.where((age == 0) | (age > LATE), 0, -1)
    return jnp.where(pushes, young, age + jnp.where(age >= 0, 1, -1))
