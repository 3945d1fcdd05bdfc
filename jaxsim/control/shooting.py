"""Trajectory optimization by gradients of a whole motion, with any optimizer of optax.

Projected gradient descent (D. Bertsekas, On the Goldstein-Levitin-Polyak gradient projection
method, IEEE Transactions on Automatic Control, 1976): the gradient is backpropagated through all
steps, including contacts, and after each iteration the controls are clipped to their limits.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.motion import check_motion, run_cost
from jaxsim.control.problem import Problem
from jaxsim.control.solve.third_party import relaxed_promotion
from jaxsim.derivative.ctrl_limits import without_ctrl_clamp
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.physics.public.arguments import check_count


class Shot(NamedTuple):
    """Result of shooting.

    Attributes:
      ctrl: the best controls found, (steps, nu).
      cost: cost of their motion, ().
      history: the cost before each iteration and after the last, (iterations + 1,).
      slope: largest absolute entry of the last gradient, without controls that are held at a limit
        (projected gradient), ().
      last: the controls of the next iteration, (steps, nu), to continue from.
      memory: state of the optimizer for the next iteration.
    """

    ctrl: jax.Array
    cost: jax.Array
    history: jax.Array
    slope: jax.Array
    last: jax.Array
    memory: Any


def shoot(
    m: Model,
    d: Data,
    ctrl: jax.Array,
    problem: Problem,
    *,
    optimizer: Any = None,
    memory: Any = None,
    iterations: int = 100,
) -> Shot:
    """Improve controls along the gradient of the cost of their motion.

    For many starts or guesses use `jax.vmap`: the best of several is often much better, because the
    cost of a motion with contacts has many local minima.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: the guess, (steps, nu); clipped to the limits.
      problem: the costs and limits.
      optimizer: of optax; None: `optax.adam(0.05)`.
      memory: state of the optimizer, from an earlier Shot whose `last` is the guess; None: initial.
      iterations: number of iterations; static.

    Returns:
      A Shot.

    Raises:
      ImportError: the extra `control` is not installed.
      ValueError: a shape or precision is wrong.
    """
    check_motion("shoot", m, d, ctrl, problem)
    iterations = check_count("shoot: iterations", iterations)
    optax = require("optax", "control")
    optimizer = optax.adam(0.05) if optimizer is None else optimizer
    lower, upper = (a[None] for a in problem.limits(m))
    free = without_ctrl_clamp(m)
    value_and_grad = jax.value_and_grad(lambda u: run_cost(free, d, u, problem))
    ctrl = jnp.clip(jnp.asarray(ctrl).astype(d.qpos.dtype), lower, upper)

    def iterate(now: tuple, _: None) -> tuple[tuple, jax.Array]:
        u, memory, best, least, _ = now
        cost, gradient = value_and_grad(u)
        better = cost < least
        best, least = jnp.where(better, u, best), jnp.where(better, cost, least)
        slope = _projected_slope(u, gradient, lower, upper)
        # A motion that diverged has no gradient: continue from the best controls.
        gradient = jnp.where(jnp.isfinite(gradient), gradient, 0)
        with relaxed_promotion():
            change, memory = optimizer.update(gradient, memory, u)
        next_ctrl = jnp.where(jnp.isfinite(cost), u, best) + change
        return (jnp.clip(next_ctrl, lower, upper), memory, best, least, slope), cost

    infinite = jnp.full((), jnp.inf, ctrl.dtype)
    memory = optimizer.init(ctrl) if memory is None else memory
    start = (ctrl, memory, ctrl, infinite, infinite)
    (last, memory, best, least, slope), history = lax.scan(
        iterate, start, None, length=iterations + 1
    )
    return Shot(best, least, history, slope, last, memory)


def _projected_slope(
    u: jax.Array, gradient: jax.Array, lower: jax.Array, upper: jax.Array
) -> jax.Array:
    """Return the largest absolute entry of the projected gradient, (): without controls that the
    gradient holds at a limit."""
    held = ((u <= lower) & (gradient > 0)) | ((u >= upper) & (gradient < 0))
    return jnp.max(jnp.where(held, 0, jnp.abs(gradient)), initial=0)
