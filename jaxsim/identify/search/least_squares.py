"""Levenberg-Marquardt as one pure function, for many starts side by side.

At x with residual r and Jacobian J the step minimizes |J p + r|^2 + damping |D p|^2, where D has
the largest norms of the columns so far (Moré 1978): from a singular value decomposition
J = U S V' D

    D p = -V S / (S^2 + damping) U' r

The step may be one of other coordinates y(x), in which the residual is closer to a line and which
have bounds: then J is that by y, and as much of a step is tried as the bounds allow.

A step is taken if it is an improvement. The damping follows the ratio of what the cost has fallen
by to what |J p + r|^2 promised (Nielsen 1999). The residual and its derivative are found together
at each place that is tried, whether it is then taken or not: the program has one rollout, whose
derivative is most of its work, and which takes longer to compile than to run.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

FIRST, LEAST, MOST = 1e-3, 1e-10, 1e6  # damping: at the start, and its limits
LESS, MORE = 0.2, 2.0  # how much less there is at most after a step, and more after the first miss
_MAX_BLOCK_RATIO = 4  # how many times as many rows as columns are decomposed at a time
_CONVERGENCE_POWER = 0.8  # power of the precision: relative decrease of the cost that is none

Derive = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Solution(NamedTuple):
    """Where a minimization ended.

    Attributes:
      x: the unknowns, (n,).
      cost: half the sum of the squared residual; infinite where the start has no finite cost, ().
      history: the cost before each iteration, NaN after the last, (iterations,).
      iterations: number of iterations that were done, ().
      converged: no step lowers the cost any more; else the iterations were too few, ().
      triangle: R of a QR decomposition of (J, r) there: R' R has all that J and r say of the
        covariance, (n + 1, n + 1) or as many rows as there are; None if nothing has found J.
    """

    x: jax.Array
    cost: jax.Array
    history: jax.Array
    iterations: jax.Array
    converged: jax.Array
    triangle: jax.Array | None


class _Search(NamedTuple):
    """Where many searches are; leading axes of searches."""

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
) -> Solution:
    """A minimum of half the sum of the squares of a residual.

    It stops where no step lowers the cost by more than rounding, or promises to.

    Args:
      residual: from unknowns (n,) to rows (m,).
      x: the start, (n,).
      jacobian: from unknowns to rows and their derivative (m, n); None: forward differentiation.
      iterations: at most so many.

    Returns:
      A Solution.

    Example:
      >>> from jaxsim.identify import levenberg_marquardt
      >>> end = levenberg_marquardt(lambda x: x**2 - 4.0, jnp.ones(1))
      >>> round(float(end.x[0]), 5), bool(end.converged)
      (2.0, True)
    """
    derive = _forward(residual) if jacobian is None else jacobian
    end = search_many(jax.vmap(derive), x[None], iterations=iterations)
    return jax.tree.map(lambda a: a[0], end)


class Chart(NamedTuple):
    """Coordinates y(x), one of each unknown, in which steps are chosen.

    Attributes:
      slope: from x to dy/dx, (n,) both.
      moved: from x and a change of y to the new x, and the change that it is.
    """

    slope: Callable[[jax.Array], jax.Array]
    moved: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


_IDENTITY_CHART = Chart(jnp.ones_like, lambda x, change: (x + change, change))


def search_many(
    derive: Derive, x: jax.Array, *, iterations: int, chart: Chart = _IDENTITY_CHART
) -> Solution:
    """Searches from many starts, each until it has converged.

    Args:
      derive: from unknowns (starts, n) to rows (starts, m) and their derivatives (starts, m, n).
      x: the starts, (starts, n).
      iterations: at most so many for each.
      chart: the coordinates of steps.

    Returns:
      A Solution with leading axes of starts.
    """
    advance = jax.vmap(functools.partial(_advance, chart))
    rows = jax.eval_shape(derive, x)[0].shape[1]

    def turn(s: _Search) -> _Search:
        return advance(s, *derive(s.tried))

    # the first turn finds the cost and the derivative of the start
    start = jax.vmap(lambda x: _begin(x, rows, iterations))(x)
    end = lax.while_loop(lambda s: jnp.any(~s.done & (s.k <= iterations)), turn, start)
    converged = end.done & jnp.isfinite(end.cost)
    return Solution(end.x, end.cost, end.history, end.k - 1, converged, end.triangle)


def _begin(x: jax.Array, rows: int, iterations: int) -> _Search:
    side = x.size + 1
    number = x.dtype
    return _Search(
        x=x,
        tried=x,
        promised=jnp.zeros((), number),
        cost=jnp.full((), jnp.inf, number),
        damping=jnp.full((), FIRST, number),
        more=jnp.full((), MORE, number),
        scale=jnp.zeros_like(x),
        triangle=jnp.zeros((min(rows, side), side), number),
        history=jnp.full((iterations,), jnp.nan, number),
        k=jnp.zeros((), jnp.int32),
        done=jnp.zeros((), bool),
    )


def _advance(chart: Chart, s: _Search, r: jax.Array, J: jax.Array) -> _Search:
    """Takes what was tried, or not, and says what to try next; a search that is done stays."""
    tolerance = float(jnp.finfo(r.dtype).eps) ** _CONVERGENCE_POWER
    cost = 0.5 * jnp.sum(r * r)
    cost = jnp.where(jnp.isfinite(cost), cost, jnp.inf)
    begun = s.k > 0
    better = cost < s.cost
    gain = s.cost - cost
    small = better & (gain <= tolerance * s.cost)

    # the damping, by how good the promise was
    ratio = jnp.where(better & begun, gain / jnp.maximum(s.promised, jnp.finfo(r.dtype).tiny), 1)
    fewer = jnp.maximum(LESS, 1 - (2 * jnp.minimum(ratio, 1) - 1) ** 3)
    damping = s.damping * jnp.where(begun, jnp.where(better, fewer, s.more), 1)
    damping = jnp.maximum(damping, LEAST)

    # where the search is now, and the next step from there
    take = better | ~begun
    triangle, norms = _triangle(r, J)
    x = jnp.where(take, s.tried, s.x)
    triangle = jnp.where(take, triangle, s.triangle)
    slope = jnp.maximum(chart.slope(x), jnp.finfo(r.dtype).tiny)
    scale = jnp.where(take, jnp.maximum(s.scale, norms / slope), s.scale)
    J, before = triangle[:, :-1] / slope[None], triangle[:, -1]
    step = _step(J, before, jnp.where(scale > 0, scale, 1), damping)
    hoped = _predicted_decrease(J, before, step)
    tried, step = chart.moved(x, step)
    least = jnp.where(take, cost, s.cost)
    # a bound may take from a step all that it promised: that is no end
    ended = (begun & small) | (hoped <= tolerance * least) | (damping > MOST)
    new = _Search(
        x=x,
        tried=tried,
        promised=_predicted_decrease(J, before, step),
        cost=least,
        damping=damping,
        more=jnp.where(take, MORE, 2 * s.more),
        scale=scale,
        triangle=triangle,
        history=s.history.at[jnp.maximum(s.k - 1, 0)].set(jnp.where(begun, s.cost, jnp.nan)),
        k=s.k + 1,
        done=ended | (least == 0) | jnp.isinf(least),
    )
    over = s.done | (s.k > s.history.size)
    return jax.tree.map(lambda old, new: jnp.where(over, old, new), s, new)


def _predicted_decrease(J: jax.Array, r: jax.Array, step: jax.Array) -> jax.Array:
    """By how much the cost would fall if the residual were a line, ()."""
    after = J @ step + r
    return 0.5 * (r @ r - after @ after)


def _forward(residual: Callable) -> Derive:
    def both(x):
        r = residual(x)
        return r, r

    def derive(x):
        J, r = jax.jacfwd(both, has_aux=True)(x)
        return r, J

    return derive


def _triangle(r: jax.Array, J: jax.Array) -> tuple[jax.Array, jax.Array]:
    """R of a QR decomposition of (J, r), and the norms of the columns of J, (n,).

    Rows are decomposed by blocks, and the triangles of the blocks again, as one matrix: a large one
    the library divides among threads, which wait for each other busily (8 of 3500 x 21 took 2.7 s
    beside other work on two cores).
    """
    r, J = jnp.nan_to_num(r), jnp.nan_to_num(J)
    rest = jnp.concatenate([J, r[:, None]], 1)
    side = rest.shape[1]
    while len(rest) > _MAX_BLOCK_RATIO * side:
        count = -(-len(rest) // (_MAX_BLOCK_RATIO * side))
        filled = jnp.pad(rest, ((0, count * _MAX_BLOCK_RATIO * side - len(rest)), (0, 0)))
        blocks = filled.reshape(count, _MAX_BLOCK_RATIO * side, side)
        rest = jnp.linalg.qr(blocks, mode="r").reshape(count * side, side)
    return jnp.linalg.qr(rest, mode="r"), jnp.sqrt(jnp.sum(J * J, 0))


def _step(J: jax.Array, r: jax.Array, scale: jax.Array, damping: jax.Array) -> jax.Array:
    """The step with a damping, (n,)."""
    U, S, Vt = jnp.linalg.svd(J / scale[None], full_matrices=False)
    return -(S * (U.T @ r) / (S * S + damping)) @ Vt / scale
