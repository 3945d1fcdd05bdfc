"""The search for points where two geoms overlap: descent by line search, from all starts at once.

With the distances A and B, it descends on

    A + B + |max(A, B)|

which is 2 max(A, B) + min(A, B) outside of one of the geoms and min(A, B) inside of both: it leads
to points on the surface of one geom that are deep in the other. One last step on max(A, B) takes
the point inwards; what max(A, B) is there counts as the distance, so that a point in which inexact
distances agree by chance is no contact. (MuJoCo's documentation, Programming: Extensions, sdf.)
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MAXVAL
from jaxsim.math import Vec, select
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.collision.field.pair import Pair, Slopes

DECREASE = 0.1  # least decrease in a step, in parts of what the slope promises
TRIALS = 15  # lengths of a step: 1, 1/2, ... times the slope; the last is below 1e-4


def descend(pair: Pair, x: Vec, iterations: int) -> tuple[Vec, Array]:
    """Where the search ends, and max(A, B) there.

    Args:
      pair: the geoms.
      x: starting points `[k, n, *W]` in the frame of the second geom.
      iterations: steps before the last one.

    Returns:
      Points, and distances; MAXVAL where the slope is no number.
    """

    def step(k, state):
        x, _, stopped = state
        last = k == iterations
        s = pair.slopes(x)
        value, slope = _objective(s.first, s.second, last), _slope(s, last)
        number = _is_number(slope)
        going = number & (last | ~stopped)
        new_x, new = _line_search(pair, x, slope, value, going, last)
        better = going & ~(value < new)
        distance = jnp.where(better, new, jnp.where(number, value, MAXVAL))
        return select(better, new_x, x), distance, ~better

    zero = jnp.zeros_like(sum(x.parts) + pair.offset.x + pair.turn.xx)
    x = x.map(lambda c: c + zero)
    x, distance, _ = lax.fori_loop(0, iterations + 1, step, (x, zero, jnp.zeros_like(zero, bool)))
    return x, distance


def _objective(first: Array, second: Array, last: Array) -> Array:
    larger = jnp.maximum(first, second)
    return jnp.where(last, larger, first + second + jnp.abs(larger))


def _slope(s: Slopes, last: Array) -> Vec:
    """Slope of the objective; where the distances are equal, that of the first counts as larger."""
    by_second = s.second > s.first
    larger = select(by_second, s.slope2, s.slope1)
    out = jnp.maximum(s.first, s.second) > 0
    return select(last, larger, s.slope1 + s.slope2 + larger.scale(jnp.where(out, 1.0, -1.0)))


def _is_number(v: Vec) -> Array:
    x, y, z = (jnp.abs(c) <= MAXVAL for c in v.parts)
    return x & y & z


def _line_search(
    pair: Pair, x: Vec, slope: Vec, value: Array, going: Array, last: Array
) -> tuple[Vec, Array]:
    """The first of the points x - slope, x - slope / 2, ... that is low enough, or the last one.

    Args:
      pair: the geoms.
      x, slope, value: points, and slope and value of the objective there.
      going: points that take a step; the others stay.
      last: which objective.
    """
    promised = DECREASE * slope.dot(slope)

    def halve(state):
        trial, length, at, new, done = state
        at = select(done, at, x - slope.scale(length))
        found = jnp.where(done, new, _objective(*pair.distances(at), last))
        done = done | ~(found - value > -length * promised)
        return trial + 1, 0.5 * length, at, found, done

    def go_on(state):
        trial, *_, done = state
        return (trial < TRIALS) & ~jnp.all(done)

    state = jnp.int32(0), jnp.ones((), value.dtype), x, value, ~going
    if platform().branches:
        state = lax.while_loop(go_on, halve, state)
    else:
        state = lax.fori_loop(0, TRIALS, lambda _, state: halve(state), state)
    return state[2], state[3]
