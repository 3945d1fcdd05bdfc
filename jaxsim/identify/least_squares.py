"""Levenberg-Marquardt as one pure function, to be used under jit, and under vmap for many starts.

At x with residual r and Jacobian J the step minimizes |J p + r|^2 + damping |D p|^2, where D has
the largest norms of the columns so far (Moré 1978). From one singular value decomposition
J = U S V' D all dampings are cheap: D p = -V S / (S^2 + damping) U' r, and several are tried side
by side, as worlds of one rollout. The best one is taken if it is an improvement.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

TRIED = (1 / 32, 1 / 4, 2.0, 32.0)  # dampings of an iteration, beside the last one that was best
WORSE = 512.0  # how much more damping there is after none was better
FIRST, LEAST, MOST = 1e-2, 1e-10, 1e6  # damping: at the start, and its limits
CONVERGED = 0.8  # power of the precision: relative decrease of the cost that is none


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
    x: jax.Array
    cost: jax.Array
    damping: jax.Array
    scale: jax.Array
    triangle: jax.Array
    history: jax.Array
    k: jax.Array
    done: jax.Array


def levenberg_marquardt(
    residual: Callable[[jax.Array], jax.Array],
    x: jax.Array,
    *,
    jacobian: Callable[[jax.Array], tuple[jax.Array, jax.Array]] | None = None,
    iterations: int = 50,
) -> Solution:
    """A minimum of half the sum of the squares of a residual.

    It stops where no step lowers the cost by more than rounding.

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
    tolerance = float(jnp.finfo(x.dtype).eps) ** CONVERGED

    def cost_of(x):
        r = residual(x)
        cost = 0.5 * jnp.sum(r * r)
        return jnp.where(jnp.isfinite(cost), cost, jnp.inf)

    def advance(s: _Search) -> _Search:
        steps = _steps(s.triangle, jnp.where(s.scale > 0, s.scale, 1), s.damping)
        costs = jax.vmap(cost_of)(s.x[None] + steps)
        best = jnp.argmin(costs)
        cost, better = costs[best], costs[best] < s.cost
        begun = s.k > 0
        factor = jnp.where(better, jnp.asarray(TRIED, x.dtype)[best], WORSE)
        damping = s.damping * jnp.where(begun, factor, 1)
        small = better & (s.cost - cost <= tolerance * s.cost)
        at = jnp.where(better, s.x + steps[best], s.x)
        triangle, norms = _triangle(*derive(at))
        return _Search(
            at,
            jnp.where(better, cost, s.cost),
            jnp.maximum(damping, LEAST),
            jnp.maximum(s.scale, norms),
            triangle,
            s.history.at[jnp.maximum(s.k - 1, 0)].set(jnp.where(begun, s.cost, jnp.nan)),
            s.k + 1,
            (begun & small) | (damping > MOST) | (cost == 0) | jnp.isinf(cost) & ~begun,
        )

    side = x.size + 1
    rows = min(jax.eval_shape(residual, x).size, side)
    # all of the state depends on x: vmap of a loop traces it again for each part that begins not to
    zero = jnp.where(jnp.isnan(x[0]), 0, 0 * x[0])
    # the first turn takes no step: it finds the cost and the Jacobian of the start
    start = _Search(
        x,
        zero + jnp.inf,
        zero + FIRST,
        zero + jnp.zeros_like(x),
        zero + jnp.zeros((rows, side), x.dtype),
        zero + jnp.full((iterations,), jnp.nan, x.dtype),
        zero.astype(jnp.int32),
        zero != 0,
    )
    end = lax.while_loop(lambda s: ~s.done & (s.k <= iterations), advance, start)
    converged = end.done & jnp.isfinite(end.cost)
    return Solution(end.x, end.cost, end.history, end.k - 1, converged, end.triangle)


def _forward(residual: Callable) -> Callable:
    def both(x):
        r = residual(x)
        return r, r

    def derive(x):
        J, r = jax.jacfwd(both, has_aux=True)(x)
        return r, J

    return derive


def _triangle(r: jax.Array, J: jax.Array) -> tuple[jax.Array, jax.Array]:
    """R of a QR decomposition of (J, r), and the norms of the columns of J, (n,)."""
    r, J = jnp.nan_to_num(r), jnp.nan_to_num(J)
    both = jnp.concatenate([J, r[:, None]], 1)
    return jnp.linalg.qr(both, mode="r"), jnp.sqrt(jnp.sum(J * J, 0))


def _steps(triangle: jax.Array, scale: jax.Array, damping: jax.Array) -> jax.Array:
    """The steps of the dampings that are tried, (dampings, n)."""
    U, S, Vt = jnp.linalg.svd(triangle[:, :-1] / scale[None], full_matrices=False)
    projected = U.T @ triangle[:, -1]
    tried = jnp.asarray(TRIED, scale.dtype)[:, None] * damping
    return -((S * projected)[None] / ((S * S)[None] + tried)) @ Vt / scale[None]
