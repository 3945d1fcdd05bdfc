"""Exact line search on the convex cost along a direction."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.constraint.rows import ContactRows
from jaxsim.physics.solver.cost import evaluate
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.tree import total


def line_search(p: Problem, r: list, Jv: list, slope, curvature, limit: int, tolerance):
    """The step that minimizes the cost along a direction.

    The derivative of the cost along the line is increasing. Newton's method on it, kept inside
    the bracket of the root found so far, ends exactly for the piecewise quadratic costs.

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

    def derivatives(step):
        first, second = slope + curvature * step, curvature
        for block, x, v in zip(p.blocks, r, Jv, strict=True):
            a, b = _along(block, x, v, step)
            first, second = first + a, second + b
        return first, second

    def proceed(state):
        k, *_, busy = state
        return (k < limit) & jnp.any(busy)

    def newton(state):
        k, step, low, high, first, second, busy = state
        trial = step - first / second
        inside = (trial > low) & (trial < high)
        middle = jnp.where(jnp.isinf(high), 2 * low + 1, 0.5 * (low + high))
        trial = jnp.where(inside, trial, middle)
        step = jnp.where(busy, trial, step)
        f, s = derivatives(step)
        low = jnp.where(busy & (f < 0), step, low)
        high = jnp.where(busy & (f > 0), step, high)
        first, second = jnp.where(busy, f, first), jnp.where(busy, s, second)
        moved = (high - low) > jnp.finfo(step.dtype).eps * jnp.abs(high)
        busy = busy & (jnp.abs(first) > tolerance) & moved
        return k + 1, step, low, high, first, second, busy

    zero = jnp.zeros_like(slope)
    first, second = derivatives(zero)
    busy = (first < 0) & (jnp.abs(first) > tolerance)
    state = (jnp.int32(0), zero, zero, zero + jnp.inf, first, second, busy)
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
