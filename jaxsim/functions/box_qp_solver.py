"""Box-constrained quadratic program, solved by projected Newton steps.

    minimize x'Hx / 2 + g'x,   lower <= x <= upper

Tassa, Mansard, Todorov: Control-limited differential dynamic programming, ICRA 2014, section III.
Each iteration takes a Newton step in the free variables; a variable is clamped if it is at a limit
and its gradient points outward. All step lengths of the line search are evaluated at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.functions.cholesky import chol_factor
from jaxsim.linalg.cholesky import solve_spd

_MAX_NEWTON_STEPS = 30  # limit of Newton steps; the clamped set settles in a few
_NUM_STEP_LENGTHS = 12  # step lengths 1, 1/2, 1/4, ...


class BoxSolution(NamedTuple):
    """The solution of a box-constrained quadratic program.

    Attributes:
      x: the solution, (n,); not finite if H is not positive definite.
      free: which variables are not clamped, (n,) bool.
      rank: number of free variables, () int; -1 if there is no solution: H is not positive
        definite, or the iteration limit was reached.
      factor: lower Cholesky factor of H restricted to the free variables, sorted as in `order`, in
        the first `rank` rows and columns; the rest is the identity, (n, n).
      order: the free variables, ascending, then the others, (n,) int.
    """

    x: jax.Array
    free: jax.Array
    rank: jax.Array
    factor: jax.Array
    order: jax.Array


def box_qp(
    H: Array,
    g: Array,
    lower: Array | None = None,
    upper: Array | None = None,
    x0: Array | None = None,
) -> BoxSolution:
    """Minimize x'Hx / 2 + g'x within a box. Corresponds to `mju_boxQP` in MuJoCo.

    Differentiable while the clamped set does not change: free variables follow H, g and the limits,
    clamped ones follow their limit.

    Args:
      H: symmetric positive definite, (n, n).
      g: (n,).
      lower, upper: limits, (n,) each; may be infinite. None: no limits.
      x0: initial guess, (n,), clipped to the box. None: zero.

    Returns:
      A BoxSolution.

    Example:
      >>> found = box_qp(jnp.eye(2), jnp.array([-3.0, 0.5]), -jnp.ones(2), jnp.ones(2))
      >>> found.x.tolist(), int(found.rank)
      ([1.0, -0.5], 1)
    """
    H, g = jnp.asarray(H), jnp.asarray(g)
    lower = jnp.full_like(g, -jnp.inf) if lower is None else jnp.asarray(lower)
    upper = jnp.full_like(g, jnp.inf) if upper is None else jnp.asarray(upper)
    x, solved = _solve(H, g, lower, upper, jnp.zeros_like(g) if x0 is None else jnp.asarray(x0))
    free = _is_free(x, g + H @ x, lower, upper)
    rank = jnp.where(solved > 0, jnp.sum(free, dtype=jnp.int32), jnp.int32(-1))
    order = jnp.argsort(~free, stable=True)
    among = _free_block(H[order][:, order], free[order])
    return BoxSolution(x, free, rank, chol_factor(among).L, order.astype(jnp.int32))


@jax.custom_jvp
def _solve(H: Array, g: Array, lower: Array, upper: Array, x0: Array) -> tuple[Array, Array]:
    """Return the solution, and 1 if it converged, otherwise 0."""
    lengths = jnp.asarray(0.5 ** np.arange(_NUM_STEP_LENGTHS), g.dtype)
    small = 8 * jnp.finfo(g.dtype).eps * (1 + jnp.max(jnp.abs(g), initial=0))

    def value(x: Array) -> Array:
        return x @ (H @ x / 2 + g)

    def iterate(state: tuple) -> tuple:
        i, x, _, _ = state
        gradient = g + H @ x
        free = _is_free(x, gradient, lower, upper)
        step = free_solve(H, -gradient, free)
        tried = jnp.clip(x[None] + lengths[:, None] * step[None], lower[None], upper[None])
        values = jax.vmap(value)(tried)
        best = jnp.argmin(values)
        better = values[best] <= value(x)
        new = jnp.where(better, tried[best], x)
        settled = jnp.all(jnp.abs(jnp.where(free, gradient, 0)) <= small)
        ended = settled | ~better | ~jnp.any(free) | jnp.all(new == x)
        broken = ~jnp.all(jnp.isfinite(step))
        return i + 1, jnp.where(broken, jnp.nan, new), ended | broken, broken

    false = jnp.zeros((), bool)
    start = (jnp.zeros((), jnp.int32), jnp.clip(x0, lower, upper), false, false)
    end = lax.while_loop(lambda s: ~s[2] & (s[0] < _MAX_NEWTON_STEPS), iterate, start)
    return end[1], (end[2] & ~end[3]).astype(g.dtype)


@_solve.defjvp
def _solve_jvp(primals: tuple, tangents: tuple) -> tuple:
    """Compute the tangent: H_FF dx_F = -(dg + dH x + H dx_C)_F in the free variables F, dx_C =
    dlimit in the clamped ones."""
    H, g, lower, upper, _ = primals
    dH, dg, dlower, dupper, _ = tangents
    x, solved = _solve(*primals)
    free = _is_free(x, g + H @ x, lower, upper)
    held = jnp.where(free, 0, jnp.where(x >= upper, dupper, dlower))
    change = held - free_solve(H, dg + dH @ x + H @ held, free)
    return (x, solved), (change, jnp.zeros_like(solved))


def _is_free(x: Array, gradient: Array, lower: Array, upper: Array) -> Array:
    return ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))


def free_solve(H: Array, b: Array, free: Array) -> Array:
    """Return H_FF^-1 b_F in the free variables, zero in the others.

    Args:
      H: (n, n).
      b: (n,) or (n, k).
      free: (n,) bool.
    """
    mask = free.reshape(len(free), *(1,) * (b.ndim - 1))
    return solve_spd(_free_block(H, free), jnp.where(mask, b, 0))


def _free_block(H: Array, free: Array) -> Array:
    """Return H restricted to the free variables, with the identity elsewhere."""
    both = free[:, None] & free[None, :]
    return jnp.where(both, H, jnp.eye(len(free), dtype=H.dtype))
