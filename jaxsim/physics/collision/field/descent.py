"""Gradient descent with backtracking line search for points where two geoms overlap.

With the signed distances A and B the objective is

    A + B + |max(A, B)|

which equals 2 max(A, B) + min(A, B) outside of one of the geoms and min(A, B) inside of both: its
minima are points on the surface of one geom that are deep in the other. One last step on max(A, B)
moves the point inwards; the value of max(A, B) there is the contact distance, so that a point where
inexact distances vanish by chance is no contact. (MuJoCo's documentation, Programming: Extensions,
sdf; `mjc_SDF`.) All initial points of all pairs descend together.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MAXVAL
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.field.pair import Pair, Slopes
from jaxsim.transforms.platform import platform

_MIN_DECREASE_FRACTION = (
    0.1  # Armijo condition: smallest decrease, as a fraction of the linear prediction
)
_MAX_STEP_TRIALS = 15  # step lengths 1, 1/2, ... of the line search; the last is below 1e-4


def descend_gradient(pair: Pair, x: Vec, iterations: int) -> tuple[Vec, Array]:
    """Return the final points of the descent, and max(A, B) there.

    Args:
      pair: the geoms.
      x: initial points `[k, n, *W]` in the frame of the second geom.
      iterations: number of steps before the last one.

    Returns:
      Points, and distances; MAXVAL where the gradient is not finite.
    """

    def step(k, state):
        """Take one step; a point stops for good when the line search fails."""
        x, _, stopped = state
        last = k == iterations
        # Objective and descent direction; stopped points take part in the last step only.
        s = pair.slopes(x)
        value, slope = _objective(s.first, s.second, last), _objective_gradient(s, last)
        number = _is_finite(slope)
        going = number & (last | ~stopped)
        # Line search; the point moves only if the objective does not increase.
        new_x, new = _line_search(pair, x, slope, value, going, last)
        better = going & ~(value < new)
        distance = jnp.where(better, new, jnp.where(number, value, MAXVAL))
        return select_where(better, new_x, x), distance, ~better

    # Broadcast the points to all pairs and worlds, then descend.
    zero = jnp.zeros_like(sum(x.parts) + pair.offset.x + pair.rot.xx)
    x = x.map(lambda c: c + zero)
    x, distance, _ = lax.fori_loop(0, iterations + 1, step, (x, zero, jnp.zeros_like(zero, bool)))
    return x, distance


def _objective(first: Array, second: Array, last: Array) -> Array:
    """Return the objective; in the last step, max(A, B)."""
    larger = jnp.maximum(first, second)
    return jnp.where(last, larger, first + second + jnp.abs(larger))


def _objective_gradient(s: Slopes, last: Array) -> Vec:
    """Return the gradient of the objective; for equal distances the first counts as larger."""
    by_second = s.second > s.first
    larger = select_where(by_second, s.slope2, s.slope1)
    out = jnp.maximum(s.first, s.second) > 0
    return select_where(last, larger, s.slope1 + s.slope2 + larger.scale(jnp.where(out, 1.0, -1.0)))


def _is_finite(v: Vec) -> Array:
    """Return whether a vector is finite."""
    x, y, z = (jnp.abs(c) <= MAXVAL for c in v.parts)
    return x & y & z


def _line_search(
    pair: Pair, x: Vec, slope: Vec, value: Array, going: Array, last: Array
) -> tuple[Vec, Array]:
    """Return the first of x - slope, x - slope / 2, ... that is low enough, or the last one.

    Args:
      pair: the geoms.
      x, slope, value: points, and gradient and value of the objective there.
      going: points that take a step; the others stay.
      last: which objective.
    """
    promised = _MIN_DECREASE_FRACTION * slope.dot(slope)

    def halve(state):
        """Evaluate the next step length."""
        trial, length, at, new, done = state
        at = select_where(done, at, x - slope.scale(length))
        found = jnp.where(done, new, _objective(*pair.distances(at), last))
        done = done | ~(found - value > -length * promised)
        return trial + 1, 0.5 * length, at, found, done

    def go_on(state):
        """Return whether some point still searches."""
        trial, *_, done = state
        return (trial < _MAX_STEP_TRIALS) & ~jnp.all(done)

    state = jnp.int32(0), jnp.ones((), value.dtype), x, value, ~going
    if platform().branches:
        state = lax.while_loop(go_on, halve, state)
    else:
        state = lax.fori_loop(0, _MAX_STEP_TRIALS, lambda _, state: halve(state), state)
    return state[2], state[3]
