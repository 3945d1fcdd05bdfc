"""Exact line search on the convex cost along a direction."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array


def line_search(pieces: list, limit: int, tolerance: Array) -> Array:
    """The step that minimizes the cost along the Newton direction.

    The derivative of the cost along the line is increasing. Newton's method on it, kept inside
    the bracket of the root found so far, ends exactly for the piecewise quadratic costs. Its first
    step is 1: the direction is the Newton step of the whole cost.

    Args:
      pieces: the cost along the direction as a sum; each part has `derivatives(step)`, the first
        and the second with respect to the step, `[1, *W]`.
      limit: evaluations at most.
      tolerance: absolute bound on the derivative `[1, *W]`.

    Returns:
      Step length `[1, *W]`.
    """

    def derivatives(step):
        return [piece.derivatives(step) for piece in pieces]

    def proceed(state):
        k, *_, busy = state
        return (k < limit) & jnp.any(busy)

    def newton(state):
        k, step, trial, low, high, busy = state
        step = jnp.where(busy, trial, step)
        first, second = (sum(parts) for parts in zip(*derivatives(step), strict=True))
        low = jnp.where(busy & (first < 0), step, low)
        high = jnp.where(busy & (first > 0), step, high)
        trial = step - first / second
        middle = jnp.where(jnp.isinf(high), 2 * low + 1, 0.5 * (low + high))
        trial = jnp.where((trial > low) & (trial < high), trial, middle)
        moves = (high - low) > jnp.finfo(step.dtype).eps * jnp.abs(high)
        return k + 1, step, trial, low, high, busy & (jnp.abs(first) > tolerance) & moves

    zero = jnp.zeros_like(tolerance)
    state = (jnp.int32(0), zero, zero + 1, zero, zero + jnp.inf, jnp.ones(zero.shape, bool))
    return lax.while_loop(proceed, newton, state)[1]
