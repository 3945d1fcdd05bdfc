"""Exact line search on the convex cost along a direction."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.constraint.rows import ContactRows
from jaxsim.physics.solver.cost import evaluate
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.tree import total


def line_search(p: Problem, r: list, Jv: list, slope, curvature, limit: int, tolerance):
    """The step that minimizes the cost along the Newton direction.

    The derivative of the cost along the line is increasing. Newton's method on it, kept inside
    the bracket of the root found so far, ends exactly for the piecewise quadratic costs. Its first
    step is 1: the direction is the Newton step of the whole cost.

    Args:
      p: problem.
      r: residuals at the start.
      Jv: change of the residuals per unit step.
      slope: derivative at the start of the part of the cost without constraints, `[1, *W]`.
      curvature: its second derivative, `[1, *W]`.
      limit: evaluations at most.
      tolerance: absolute bound on the derivative `[1, *W]`.

    Returns:
      Step length `[1, *W]`.
    """

    def proceed(state):
        k, *_, busy = state
        return (k < limit) & jnp.any(busy)

    def newton(state):
        k, step, trial, low, high, busy = state
        step = jnp.where(busy, trial, step)
        first, second = slope + curvature * step, curvature
        for block, x, v in zip(p.blocks, r, Jv, strict=True):
            a, b = _along(block, x, v, step)
            first, second = first + a, second + b
        low = jnp.where(busy & (first < 0), step, low)
        high = jnp.where(busy & (first > 0), step, high)
        trial = step - first / second
        middle = jnp.where(jnp.isinf(high), 2 * low + 1, 0.5 * (low + high))
        trial = jnp.where((trial > low) & (trial < high), trial, middle)
        moves = (high - low) > jnp.finfo(step.dtype).eps * jnp.abs(high)
        return k + 1, step, trial, low, high, busy & (jnp.abs(first) > tolerance) & moves

    zero = jnp.zeros_like(slope)
    state = (jnp.int32(0), zero, zero + 1, zero, zero + jnp.inf, slope == slope)
    return lax.while_loop(proceed, newton, state)[1]


def _along(block, r, v, step):
    """First and second derivative of a block's cost with respect to the step, `[1, *W]`."""
    if not isinstance(block, ContactRows):
        piece = evaluate(block, r + step * v)
        return total(-piece.force * v), total(piece.weight * v * v)
    piece = evaluate(block, [x + step * y for x, y in zip(r, v, strict=True)])
    size = len(v)
    first = sum(-f * y for f, y in zip(piece.force, v, strict=True))
    second = sum(piece.weight[j][k] * v[j] * v[k] for j in range(size) for k in range(size))
    return total(first), total(second)
