"""Nonlinear least squares: the Levenberg-Marquardt method, or a solver of optimistix.

    min |r(x)|^2,   step = argmin |J step + r|^2 + lambda s^2 |step|^2

with s the largest entry of the Jacobian J. Each iteration evaluates r and J at one point, accepted
or not, so that the program contains the residuals once: they are often a whole forward dynamics,
which takes long to compile. (Moré, The Levenberg-Marquardt algorithm, 1978.)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.solve.relaxed_promotion import relaxed_promotion
from jaxsim.optional import require

# damping lambda: initial value, factors of change, upper limit
_INITIAL_DAMPING, _DAMPING_DECREASE, _DAMPING_INCREASE, _MAX_DAMPING = 1e-3, 0.1, 8.0, 1e12


class _Iteration(NamedTuple):
    number: jax.Array
    x: jax.Array
    tried: jax.Array
    r: jax.Array
    J: jax.Array
    damping: jax.Array
    ended: jax.Array


def least_squares(
    residuals: Callable[[jax.Array], jax.Array], x: jax.Array, iterations: int, solver: Any = None
) -> jax.Array:
    """Minimize |residuals(x)|^2 from an initial point (n,).

    It ends when the change of x is at the level of rounding.

    Args:
      residuals: (n,) -> (k,).
      x: the initial point, (n,).
      iterations: iteration limit.
      solver: a least-squares solver of optimistix; None: that of this file.

    Raises:
      ImportError: a solver is given, and the extra `control` is not installed.
    """
    if solver is not None:
        return _by_optimistix(residuals, x, iterations, solver)
    n = len(x)
    if n == 0:
        return x
    close = 16 * jnp.finfo(x.dtype).eps
    unit = jnp.eye(n, dtype=x.dtype)

    def iterate(now: _Iteration) -> _Iteration:
        r, J = value_and_jacobian(residuals, now.tried)
        better = (jnp.sum(r * r) < jnp.sum(now.r * now.r)) | (now.number == 0)
        x, r, J = (
            jnp.where(better, new, old) for new, old in ((now.tried, now.x), (r, now.r), (J, now.J))
        )
        factor = jnp.where(
            now.number == 0, 1, jnp.where(better, _DAMPING_DECREASE, _DAMPING_INCREASE)
        )
        damping = jnp.maximum(now.damping * factor, close * close).astype(x.dtype)
        scale = jnp.max(jnp.abs(J), initial=0)
        rows = jnp.sqrt(damping) * jnp.where(scale > 0, scale, 1) * unit
        Q, R = jnp.linalg.qr(jnp.concatenate([J, rows]))
        step = -jax.scipy.linalg.solve_triangular(R, Q[: len(r)].T @ r)
        ended = jnp.max(jnp.abs(step)) <= close * (1 + jnp.max(jnp.abs(x)))
        ended = ended | (damping > _MAX_DAMPING) | ~jnp.all(jnp.isfinite(step))
        return _Iteration(now.number + 1, x, x + step, r, J, damping, ended)

    k = jax.eval_shape(residuals, x).size
    nothing, none = jnp.zeros(k, x.dtype), jnp.zeros((k, n), x.dtype)
    damping, number = jnp.asarray(_INITIAL_DAMPING, x.dtype), jnp.zeros((), jnp.int32)
    start = _Iteration(number, x, x, nothing, none, damping, jnp.zeros((), bool))
    end = lax.while_loop(lambda s: ~s.ended & (s.number < iterations), iterate, start)
    return end.x


def value_and_jacobian(
    function: Callable[[jax.Array], jax.Array], x: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return a function (n,) -> (k,) and its Jacobian (k, n), from one evaluation in forward
    mode."""

    def jvp_along(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(function, (x,), (direction,))

    values: tuple = jax.vmap(jvp_along, out_axes=(None, 1))(jnp.eye(len(x), dtype=x.dtype))
    return values


def _by_optimistix(
    residuals: Callable[[jax.Array], jax.Array], x: jax.Array, iterations: int, solver: Any
) -> jax.Array:
    optimistix = require("optimistix", "control")
    options = {"jac": "fwd"}
    with relaxed_promotion():
        found = optimistix.least_squares(
            lambda x, _: residuals(x), solver, x, options=options, max_steps=iterations, throw=False
        )
    value: jax.Array = found.value
    return value
