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
    """

    x: jax.Array
    cost: jax.Array
    history: jax.Array
    iterations: jax.Array
    converged: jax.Array


class _Search(NamedTuple):
    x: jax.Array
    cost: jax.Array
    damping: jax.Array
    scale: jax.Array
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
        r, J = derive(s.x)
        r, J = jnp.nan_to_num(r), jnp.nan_to_num(J)
        scale = jnp.maximum(s.scale, jnp.sqrt(jnp.sum(J * J, 0)))
        steps = _steps(r, J, jnp.where(scale > 0, scale, 1), s.damping)
        costs = jax.vmap(cost_of)(s.x[None] + steps)
        best = jnp.argmin(costs)
        cost, better = costs[best], costs[best] < s.cost
        damping = s.damping * jnp.where(better, jnp.asarray(TRIED, x.dtype)[best], WORSE)
        small = better & (s.cost - cost <= tolerance * s.cost)
        return _Search(
            jnp.where(better, s.x + steps[best], s.x),
            jnp.where(better, cost, s.cost),
            jnp.maximum(damping, LEAST),
            scale,
            s.history.at[s.k].set(s.cost),
            s.k + 1,
            small | (damping > MOST) | (s.cost == 0),
        )

    start = _Search(
        x,
        cost_of(x),
        jnp.full((), FIRST, x.dtype),
        jnp.zeros_like(x),
        jnp.full((iterations,), jnp.nan, x.dtype),
        jnp.zeros((), jnp.int32),
        jnp.zeros((), bool),
    )
    end = lax.while_loop(lambda s: ~s.done & (s.k < iterations), advance, start)
    return Solution(end.x, end.cost, end.history, end.k, end.done & jnp.isfinite(end.cost))


def _forward(residual: Callable) -> Callable:
    def both(x):
        r = residual(x)
        return r, r

    def derive(x):
        J, r = jax.jacfwd(both, has_aux=True)(x)
        return r, J

    return derive


def _steps(r: jax.Array, J: jax.Array, scale: jax.Array, damping: jax.Array) -> jax.Array:
    """The steps of the dampings that are tried, (dampings, n)."""
    n = J.shape[1]
    triangle = jnp.linalg.qr(jnp.concatenate([J / scale[None], r[:, None]], 1), mode="r")
    U, S, Vt = jnp.linalg.svd(triangle[:, :n], full_matrices=False)
    projected = U.T @ triangle[:, n]
    tried = jnp.asarray(TRIED, r.dtype)[:, None] * damping
    return -((S * projected)[None] / ((S * S)[None] + tried)) @ Vt / scale[None]
