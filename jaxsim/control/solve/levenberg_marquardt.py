"""Nonlinear least squares by the Levenberg-Marquardt method, from one start or from many.

At x with residual r and Jacobian J the step p minimizes

    |J p + r|^2 + damping |D p|^2

where D has the largest norms of the columns of J so far (Moré, The Levenberg-Marquardt algorithm:
implementation and theory, 1978), or their largest for all unknowns. It is solved by a QR
decomposition of the rows of both terms.

The step may be one of other coordinates y(x), in which the residual is closer to linear and which
have bounds: then J is the derivative by y, and steps are limited by the bounds.

A step is accepted if the cost decreases. The damping follows the ratio of the actual decrease to
the decrease that the linear model |J p + r|^2 predicts (Nielsen, Damping parameter in Marquardt's
method, 1999). The residual and its derivative are computed together at each trial point, accepted
or not: the program then contains the residual once, often a rollout or a forward dynamics, which
takes longer to compile than to run.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.transforms.tuning import tuning

# Damping: default of its initial value, and its limits.
_INITIAL_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1e-3, 1e-10, 1e6
_MIN_DAMPING_FACTOR = 0.2  # largest decrease of the damping after an accepted step
_FIRST_DAMPING_INCREASE = 2.0  # factor after the first of several rejected steps
_CONVERGENCE_POWER = 0.8  # exponent of the machine epsilon: relative decrease that counts as none
_MIN_STEP = 4  # smallest relative step, in units of the machine epsilon

Derive = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Solution(NamedTuple):
    """Result of a minimization.

    Attributes:
      x: the unknowns, (n,).
      cost: half the sum of the squared residual; infinite where the start has no finite cost, ().
      history: the cost before each iteration, NaN after the last, (iterations,).
      iterations: number of iterations, ().
      converged: the cost is zero, the step or the last or predicted decrease of the cost is below
        rounding, or the damping reached its limit. False if the iterations were exhausted or no
        finite cost was found, () bool.
      triangle: R of a QR decomposition of (J, r) at `x`, from which the covariance is computed:
        R'R = (J, r)'(J, r); (n + 1, n + 1) or as many rows as there are; None if J was not
        computed.
    """

    x: jax.Array
    cost: jax.Array
    history: jax.Array
    iterations: jax.Array
    converged: jax.Array
    triangle: jax.Array | None


class SearchState(NamedTuple):
    """State of a search, or of many with a leading axis.

    Attributes:
      x: the accepted point, (n,).
      tried: the trial point, (n,).
      promised: decrease of the cost that the linear model predicts for the step to it, ().
      cost: cost of `x`, ().
      damping: damping of the next step, ().
      more: factor of the damping after the next rejected step (Nielsen's nu), ().
      scale: D, the largest norms of the columns so far, (n,).
      triangle: R of a QR decomposition of (J, r) at `x`.
      history: as in Solution.
      k: number of evaluations, ().
      done: whether the search has ended, () bool.
    """

    x: jax.Array
    tried: jax.Array
    promised: jax.Array
    cost: jax.Array
    damping: jax.Array
    more: jax.Array
    scale: jax.Array
    triangle: jax.Array
    history: jax.Array
    k: jax.Array
    done: jax.Array


def levenberg_marquardt(
    residual: Callable[[jax.Array], jax.Array],
    x: jax.Array,
    *,
    jacobian: Derive | None = None,
    iterations: int = 50,
    damping: float = _INITIAL_DAMPING,
    uniform: bool = False,
) -> Solution:
    """Minimize half the sum of the squares of a residual.

    The search stops where no step lowers the cost by more than rounding, or is predicted to. Use
    `jax.vmap` for many starts.

    Args:
      residual: from unknowns (n,) to rows (m,).
      x: the start, (n,).
      jacobian: from unknowns to rows and their derivative (m, n); None: forward mode.
      iterations: maximal number of iterations.
      damping: its initial value.
      uniform: whether D is the same for all unknowns, which have one unit. Then the last unknowns
        of a chain, on which the residual depends little, do not take the largest steps.

    Returns:
      A Solution.

    Example:
      >>> from jaxsim.identify import levenberg_marquardt
      >>> end = levenberg_marquardt(lambda x: x**2 - 4.0, jnp.ones(1))
      >>> round(float(end.x[0]), 5), bool(end.converged)
      (2.0, True)
    """
    derive = functools.partial(value_and_jacobian, residual) if jacobian is None else jacobian
    advance = functools.partial(_advance, _IDENTITY_CHART, uniform)
    rows = jax.eval_shape(derive, x)[0].shape[0]
    s = _initial_search(x, rows, iterations, damping)
    return solutions_of(lax.while_loop(may_continue, lambda s: advance(s, *derive(s.tried)), s))


def value_and_jacobian(
    function: Callable[[jax.Array], jax.Array], x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return a function (n,) -> (k,) and its Jacobian (k, n), from one evaluation in forward
    mode."""

    def jvp_along(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(function, (x,), (direction,))

    values: tuple = jax.vmap(jvp_along, out_axes=(None, 1))(jnp.eye(len(x), dtype=x.dtype))
    return values


class Chart(NamedTuple):
    """Coordinates y(x), one for each unknown, in which steps are chosen.

    Attributes:
      slope: function from x to dy/dx, (n,) both.
      apply_change: function from x and a change of y to the new x, and the change it amounts to.
    """

    slope: Callable[[jax.Array], jax.Array]
    apply_change: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


_IDENTITY_CHART = Chart(jnp.ones_like, lambda x, change: (x + change, change))


def begin_searches(derive: Derive, x: jax.Array, iterations: int) -> SearchState:
    """Return the state of searches from many starts, each of which runs until it has converged.

    Call `continue_searches` while `may_continue`; `solutions_of` has the result. The first call
    evaluates cost and derivative of the starts.

    Args:
      derive: from unknowns (starts, n) to rows (starts, m) and their derivatives (starts, m, n).
      x: the starts, (starts, n).
      iterations: maximal number of iterations of each start.
    """
    rows = jax.eval_shape(derive, x)[0].shape[1]
    return jax.vmap(lambda x: _initial_search(x, rows, iterations, _INITIAL_DAMPING))(x)


def continue_searches(
    derive: Derive, s: SearchState, chart: Chart = _IDENTITY_CHART
) -> SearchState:
    """Evaluate the trial points of all searches, and choose the next ones by steps in a chart."""
    return jax.vmap(functools.partial(_advance, chart, False))(s, *derive(s.tried))


def may_continue(s: SearchState) -> jax.Array:
    """Return whether some search has neither converged nor used its iterations, () bool."""
    return jnp.any(~s.done & (s.k <= s.history.shape[-1]))


def solutions_of(s: SearchState) -> Solution:
    """Return the solutions that searches have found."""
    converged = s.done & jnp.isfinite(s.cost)
    return Solution(s.x, s.cost, s.history, s.k - 1, converged, s.triangle)


def _initial_search(x: jax.Array, rows: int, iterations: int, damping: float) -> SearchState:
    """Return the state before the first evaluation, at which the start itself is tried."""
    side = x.size + 1
    dtype = x.dtype
    return SearchState(
        x=x,
        tried=x,
        promised=jnp.zeros((), dtype),
        cost=jnp.full((), jnp.inf, dtype),
        damping=jnp.full((), damping, dtype),
        more=jnp.full((), _FIRST_DAMPING_INCREASE, dtype),
        scale=jnp.zeros_like(x),
        triangle=jnp.zeros((min(rows, side), side), dtype),
        history=jnp.full((iterations,), jnp.nan, dtype),
        k=jnp.zeros((), jnp.int32),
        done=jnp.zeros((), bool),
    )


def _advance(
    chart: Chart, uniform: bool, s: SearchState, r: jax.Array, J: jax.Array
) -> SearchState:
    """Accept or reject the trial point and compute the next; a finished search is unchanged."""
    tolerance = float(jnp.finfo(r.dtype).eps) ** _CONVERGENCE_POWER
    cost = 0.5 * jnp.sum(r * r)
    cost = jnp.where(jnp.isfinite(cost), cost, jnp.inf)
    begun = s.k > 0
    better = cost < s.cost
    gain = s.cost - cost
    small = better & (gain <= tolerance * s.cost)

    # update the damping by the ratio of actual to predicted decrease
    ratio = jnp.where(better & begun, gain / jnp.maximum(s.promised, jnp.finfo(r.dtype).tiny), 1)
    fewer = jnp.maximum(_MIN_DAMPING_FACTOR, 1 - (2 * jnp.minimum(ratio, 1) - 1) ** 3)
    damping = s.damping * jnp.where(begun, jnp.where(better, fewer, s.more), 1)
    damping = jnp.maximum(damping, _MIN_DAMPING)

    # accept the trial point, and solve for the next step there
    take = better | ~begun
    triangle, norms = _triangle(r, J)
    x = jnp.where(take, s.tried, s.x)
    triangle = jnp.where(take, triangle, s.triangle)
    slope = jnp.maximum(chart.slope(x), jnp.finfo(r.dtype).tiny)
    norms = norms / slope
    norms = jnp.full_like(norms, jnp.max(norms, initial=0)) if uniform else norms
    scale = jnp.where(take, jnp.maximum(s.scale, norms), s.scale)
    J, before = triangle[:, :-1] / slope[None], triangle[:, -1]
    step = _damped_step(J, before, jnp.where(scale > 0, scale, 1), damping)
    # Test the unlimited step: a step that bounds shorten to zero is not convergence.
    hoped = _predicted_decrease(J, before, step)
    rounding = _MIN_STEP * float(jnp.finfo(r.dtype).eps)
    still = jnp.linalg.norm(scale * step) <= rounding * jnp.linalg.norm(scale * slope * x)
    tried, step = chart.apply_change(x, step)
    least = jnp.where(take, cost, s.cost)
    ended = (begun & small) | (hoped <= tolerance * least) | still | (damping > _MAX_DAMPING)
    new = SearchState(
        x=x,
        tried=tried,
        promised=_predicted_decrease(J, before, step),
        cost=least,
        damping=damping,
        more=jnp.where(take, _FIRST_DAMPING_INCREASE, 2 * s.more),
        scale=scale,
        triangle=triangle,
        history=s.history.at[jnp.maximum(s.k - 1, 0)].set(jnp.where(begun, s.cost, jnp.nan)),
        k=s.k + 1,
        done=ended | (least == 0) | jnp.isinf(least),
    )
    over = s.done | (s.k > s.history.size)
    return jax.tree.map(lambda old, new: jnp.where(over, old, new), s, new)


def _predicted_decrease(J: jax.Array, r: jax.Array, step: jax.Array) -> jax.Array:
    """Return the decrease of the cost that the linear model predicts, ()."""
    after = J @ step + r
    return 0.5 * (r @ r - after @ after)


def _triangle(r: jax.Array, J: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return R of a QR decomposition of (J, r), and the norms of the columns of J, (n,).

    Blocks of rows are decomposed, and then their triangles as one matrix. A large matrix would be
    divided among threads that busy-wait for each other (8 of 3500 x 21 took 2.7 s on two loaded
    cores).
    """
    r, J = jnp.nan_to_num(r), jnp.nan_to_num(J)
    rest = jnp.concatenate([J, r[:, None]], 1)
    side = rest.shape[1]
    rows = tuning().qr_rows_per_column * side
    while len(rest) > rows:
        count = -(-len(rest) // rows)
        filled = jnp.pad(rest, ((0, count * rows - len(rest)), (0, 0)))
        blocks = filled.reshape(count, rows, side)
        rest = jnp.linalg.qr(blocks, mode="r").reshape(count * side, side)
    return jnp.linalg.qr(rest, mode="r"), jnp.sqrt(jnp.sum(J * J, 0))


def _damped_step(J: jax.Array, r: jax.Array, scale: jax.Array, damping: jax.Array) -> jax.Array:
    """Return the step p that minimizes |J p + r|^2 + damping |D p|^2, (n,).

    With q = D p the rows are J D^-1 and sqrt(damping) 1. The last column of R of the decomposition
    of these rows and (r, 0) is Q' (r, 0): q = -R^-1 Q' (r, 0).

    Args:
      J, r: Jacobian (m, n) and residual (m,), or the columns of their triangle.
      scale: D, (n,).
      damping: ().
    """
    n = len(scale)
    rows = jnp.concatenate([J / scale[None], r[:, None]], 1)
    unit = jnp.eye(n, n + 1, dtype=J.dtype)
    R = jnp.linalg.qr(jnp.concatenate([rows, jnp.sqrt(damping) * unit]), mode="r")
    return -jax.scipy.linalg.solve_triangular(R[:n, :n], R[:n, n]) / scale
