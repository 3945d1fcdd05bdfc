"""Exact line search on the convex cost along a direction.

MuJoCo's documentation, Computation: Solver algorithms. The derivative of the cost along the line
increases monotonically; its root is found by Newton's method safeguarded by bisection.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.physics.solver.solution import SolverSettings
from jaxsim.transforms.pallas import any_lane

_SLOPE_ROUNDING_ULPS = 8  # a slope below this many eps of its terms, which cancel, counts as zero
_STEP_ROUNDING_ULPS = 8  # a relative change of the step below this many eps counts as none


def exact_step(
    line: list,
    limit: int,
    settings: SolverSettings,
    length2: Array,
    decrement2: Array,
    active: Array | None = None,
) -> tuple[Array, Array]:
    """Return the step that minimizes the cost along a Newton direction, and a convergence test.

    Both Newton's methods share it: numbers of a world are `[1, *W]`, or scalars in a kernel.

    Args:
      line: terms of the cost along the direction v, see `line_search`.
      limit: maximum number of evaluations.
      settings: tolerances.
      length2: |v|^2.
      decrement2: the squared Newton decrement -g'v; half of it is the improvement that the
        quadratic model of the cost predicts for the full step.
      active: worlds that are searched, bool; the step of the others is 0. None: all.

    Returns:
      Step length, and True where a world has not converged: more than the tolerance may remain.
    """
    goal = settings.tolerance * settings.ls_tolerance * jnp.sqrt(length2) / settings.scale
    step = line_search(line, limit, goal, active)
    left = remaining_improvement(line, step, settings.scale * 0.5 * decrement2)
    return step, (left > settings.tolerance) & (step > 0)


def line_search(line: list, limit: int, tolerance: Array, active: Array | None = None) -> Array:
    """Return the step that minimizes the cost along the Newton direction.

    Newton's method on the derivative of the cost, safeguarded by the bracket of its root, is exact
    after finitely many steps for piecewise quadratic costs. Its first trial is 1, the Newton step
    of the whole cost. It also ends where the derivative is rounding error, which is often above
    `tolerance` in single precision: where it is small against its terms, or where the next step
    would change the last digits only. Bisection on its sign would take all evaluations.

    Args:
      line: terms of the cost along the direction; each has `derivatives(step)`, which returns the
        first and second derivative with respect to the step, `[1, *W]`.
      limit: maximum number of evaluations.
      tolerance: absolute bound on the derivative `[1, *W]`.
      active: worlds that are searched, `[1, *W]` bool; None: all. Those that have converged have a
        direction of rounding errors, along which a search would take all evaluations.

    Returns:
      Step length `[1, *W]`: the trial with the smallest absolute derivative; 0 without a search.
    """

    def not_converged(state):
        k, *_, active = state
        return (k < limit) & any_lane(active)

    def newton(state):
        k, best, slope, step, low, high, active = state
        # Evaluate slope and curvature at the trial.
        firsts, seconds = zip(*(term.derivatives(step) for term in line), strict=True)
        first, second = sum(firsts), sum(seconds)
        # Keep the flattest trial, and tighten the bracket by the sign of the derivative.
        better = active & (jnp.abs(first) < slope)
        best, slope = jnp.where(better, step, best), jnp.where(better, jnp.abs(first), slope)
        low = jnp.where(active & (first < 0), step, low)
        high = jnp.where(active & (first > 0), step, high)
        # Newton step; outside of the bracket bisect, or double while there is no upper end.
        change = first / second
        trial = step - change
        open_end = jnp.isinf(high)
        middle = jnp.where(open_end, 2 * low + 1, 0.5 * (low + high))
        trial = jnp.where((trial > low) & (trial < high), trial, middle)
        # Stop on convergence, on a step in the last digits, or on a closed bracket.
        eps = jnp.finfo(step.dtype).eps
        rounding = _SLOPE_ROUNDING_ULPS * eps * sum(map(jnp.abs, firsts))
        moves = (jnp.abs(change) > _STEP_ROUNDING_ULPS * eps * step) & (
            open_end | (high - low > eps * high)
        )
        active = active & (slope > jnp.maximum(tolerance, rounding)) & moves
        return k + 1, best, slope, trial, low, high, active

    # Start at the full Newton step with the bracket [0, inf).
    zero = jnp.zeros_like(tolerance)
    none = zero + jnp.inf
    searched = jnp.ones(zero.shape, bool) if active is None else active
    state = (jnp.int32(0), zero, none, zero + 1, zero, none, searched)
    return lax.while_loop(not_converged, newton, state)[1]


def remaining_improvement(line: list, step: Array, gain: Array) -> Array:
    """Return the part of the predicted improvement that may remain after a step, `[1, *W]`.

    Where every row is still on the quadratic piece that the model was made of, the model is the
    cost: the full step ends at the minimum up to rounding, and a step of another length leaves (1 -
    step)^2 of the improvement. Elsewhere nothing is known, and all of it may remain.

    Args:
      line: as in `line_search`; each also has `num_crossed(step)`, the number of rows that are on
        another quadratic piece there, `[1, *W]`.
      step: step length `[1, *W]`.
      gain: predicted improvement by the full step `[1, *W]`.
    """
    num_crossed = sum(term.num_crossed(step) for term in line)
    return jnp.where(num_crossed == 0, (1 - step) ** 2, 1) * gain
