"""Exact line search on the convex cost along a direction."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import some

DIGITS = 8  # relative change of the step, in units of rounding, that is none


def line_search(pieces: list, limit: int, tolerance: Array) -> Array:
    """The step that minimizes the cost along the Newton direction.

    The derivative of the cost along the line is increasing. Newton's method on it, kept inside
    the bracket of the root found so far, ends exactly for the piecewise quadratic costs. Its first
    step is 1: the direction is the Newton step of the whole cost. It also ends where Newton's next
    step would change the last digits only: what is left of the derivative is then rounding, often
    more than `tolerance` in single precision, and a bisection on its sign would lead away.

    Args:
      pieces: the cost along the direction as a sum; each part has `derivatives(step)`, the first
        and the second with respect to the step, `[1, *W]`.
      limit: evaluations at most.
      tolerance: absolute bound on the derivative `[1, *W]`.

    Returns:
      Step length `[1, *W]`: of those tried the one of least slope.
    """

    def derivatives(step):
        return [piece.derivatives(step) for piece in pieces]

    def proceed(state):
        k, *_, busy = state
        return (k < limit) & some(busy)

    def newton(state):
        k, best, slope, trial, low, high, busy = state
        step = trial
        first, second = (sum(parts) for parts in zip(*derivatives(step), strict=True))
        better = busy & (jnp.abs(first) < slope)
        best, slope = jnp.where(better, step, best), jnp.where(better, jnp.abs(first), slope)
        low = jnp.where(busy & (first < 0), step, low)
        high = jnp.where(busy & (first > 0), step, high)
        change = first / second
        trial = step - change
        open_end = jnp.isinf(high)
        middle = jnp.where(open_end, 2 * low + 1, 0.5 * (low + high))
        trial = jnp.where((trial > low) & (trial < high), trial, middle)
        eps = jnp.finfo(step.dtype).eps
        moves = (jnp.abs(change) > DIGITS * eps * step) & (open_end | (high - low > eps * high))
        return k + 1, best, slope, trial, low, high, busy & (slope > tolerance) & moves

    zero = jnp.zeros_like(tolerance)
    none = zero + jnp.inf
    state = (jnp.int32(0), zero, none, zero + 1, zero, none, jnp.ones(zero.shape, bool))
    return lax.while_loop(proceed, newton, state)[1]


def remaining(pieces: list, step: Array, gain: Array) -> Array:
    """How much of the improvement that the quadratic model expects a step may have left.

    Where every row still has the quadratic that the model was made of, the model is the cost: the
    full step ends at the minimum, up to the rounding of the solution that it comes from, and a step
    of another length leaves the square of what it lacks. Elsewhere nothing is known, and all of it
    may be left.

    Args:
      pieces: as in `line_search`; each also has `crossed(step)`, the number of rows that have
        another quadratic there, `[1, *W]`.
      step: step length `[1, *W]`.
      gain: the expected improvement by the full step `[1, *W]`.
    """
    crossed = sum(piece.crossed(step) for piece in pieces)
    return jnp.where(crossed == 0, (1 - step) ** 2, 1) * gain
