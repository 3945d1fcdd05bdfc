"""Adapters to optimizers of other packages: gradients by optax, least squares by optimistix."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.control.solve.levenberg_marquardt import Solution
from jaxsim.control.solve.third_party import minimize_with_optimistix
from jaxsim.identify.residual import Problem


def minimize_with_optax(residual, optimizer: Any, x: jax.Array, *, iterations: int) -> Solution:
    """Descend along the gradient by a transformation of optax; return the best unknowns.

    Args:
      residual: from unknowns (n,) to rows.
      optimizer: a gradient transformation of optax.
      x: the start, (n,).
      iterations: number of steps.
    """

    def cost_of(x):
        r = residual(x)
        return 0.5 * jnp.sum(r * r)

    def advance(carry, _):
        x, state, best, least = carry
        cost, slope = jax.value_and_grad(cost_of)(x)
        cost = jnp.where(jnp.isfinite(cost), cost, jnp.inf)
        best, least = jnp.where(cost < least, x, best), jnp.minimum(cost, least)
        change, state = optimizer.update(jnp.nan_to_num(slope), state, x)
        return (x + change, state, best, least), cost

    carry = (x, optimizer.init(x), x, jnp.full((), jnp.inf, x.dtype))
    (x, _, best, least), history = jax.lax.scan(advance, carry, length=iterations)
    last = cost_of(x)
    better = last < least
    return Solution(
        jnp.where(better, x, best),
        jnp.where(better, last, least),
        history,
        jnp.full((), iterations, jnp.int32),
        jnp.ones((), bool),
        None,
    )


def minimize_problem_with_optimistix(
    problem: Problem, solver: Any, x: jax.Array, *, iterations: int
) -> Solution:
    """Minimize by a least-squares solver of optimistix.

    Args:
      problem: the problem to minimize.
      solver: a solver of optimistix.
      x: the start, (size,).
      iterations: maximal number of iterations.
    """

    # the derivative of the rows is that of the problem in all modes of differentiation
    @jax.custom_jvp
    def residual(x: jax.Array) -> jax.Array:
        return problem.residual(x)

    @residual.defjvp
    def tangent(primals: tuple, tangents: tuple) -> tuple[jax.Array, jax.Array]:
        r, J = problem.jacobian(*primals)
        return r, J @ tangents[0]

    return minimize_with_optimistix(residual, solver, x, iterations=iterations, extra="identify")
