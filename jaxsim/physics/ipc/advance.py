"""How far points may go on a straight way before a gap closes: conservative advancement.

A gap shrinks no faster than the two sides move against each other, so that steps of the gap over
that speed never overshoot (Li, Kaufman and Jiang, Codimensional incremental potential contact,
2021, section 5.2: additive CCD). A fifth of each gap is left.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, pick
from jaxsim.physics.ipc.gap import measured, sides
from jaxsim.physics.ipc.near import Near, by_side
from jaxsim.physics.ipc.plan import Grid
from jaxsim.physics.ipc.scene import Scene

LEFT = 0.2  # of a gap
TURNS = 32
STILL = 1e-12  # [m]
ROUNDING = 1e-9


class Closing(NamedTuple):
    """What is found of pairs, `[n, *W]`.

    Attributes:
      closes: whether a gap could fall below what is left of it.
      time: when it does, a share of the way; 1: it does not.
    """

    closes: jax.Array
    time: jax.Array


def advance(scene: Scene, grid: Grid, found: Near, x: Vec, way: Vec) -> Closing:
    """When the gaps of pairs close on a way of the points from x."""
    pairs = sides(grid, found.pair)
    corner, ways = ([pick(a, p) for p in pairs.points] for a in (x, way))
    start, speed = found.gap.dist, _speed(scene, grid, found, ways)
    closes = found.there & (speed >= STILL) & (start > 0) & (speed > (1 - LEFT) * start)

    def turn(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, time, busy = state
        there = [c + v.scale(time) for c, v in zip(corner, ways, strict=True)]
        room = measured(scene, grid, pairs, there).dist - LEFT * start
        goes = busy & (room > ROUNDING * start)
        time = jnp.where(goes, time + room / jnp.where(goes, speed, 1), time)
        return number + 1, jnp.minimum(time, 1), goes & (time < 1)

    state = jnp.int32(0), jnp.zeros_like(start), closes
    _, time, _ = lax.while_loop(lambda s: (s[0] < TURNS) & jnp.any(s[2]), turn, state)
    return Closing(closes, jnp.where(closes, time, 1))


def _speed(scene: Scene, grid: Grid, found: Near, ways: list[Vec]) -> Array:
    """How fast a gap can shrink at most; what two items of one shell share does not count."""
    if grid.type is None:
        first, second = by_side(grid, found.gap.points)
        flex = jnp.asarray(column(scene.plan.flex, found.gap.dist), jnp.int32)
        same = (pick(flex, first[0]) == pick(flex, second[0])).astype(ways[0].x.dtype)
        shared = sum(ways[1:], ways[0]).scale(same / len(ways))
        ways = [v - shared for v in ways]
    fastest = [_most([v.norm() for v in of_side]) for of_side in by_side(grid, ways) if of_side]
    return sum(fastest[1:], fastest[0])


def _most(lengths: list[Array]) -> Array:
    most = lengths[0]
    for length in lengths[1:]:
        most = jnp.maximum(most, length)
    return most
