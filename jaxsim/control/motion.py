"""The motion that controls make, and what it costs.

A step of the physics leaves the results of the state before it beside the state after it. `observe`
puts both in their places, so that a residual sees one consistent world.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.limits import unclamped
from jaxsim.control.problem import Problem
from jaxsim.enums import IntegratorType, WarningType
from jaxsim.model.data import Data
from jaxsim.model.fields import brief
from jaxsim.model.model import Model
from jaxsim.physics.api import forward, step
from jaxsim.physics.arguments import check_data, check_model

DIVERGED = (WarningType.BADQPOS, WarningType.BADQVEL, WarningType.BADQACC, WarningType.BADCTRL)


def motion_cost(
    m: Model, d: Data, ctrl: jax.Array, problem: Problem, *, checkpoint: bool = False
) -> jax.Array:
    """What a motion costs, (); infinite if it diverges.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: controls, (steps, nu); taken within the limits.
      problem: what is to be achieved.
      checkpoint: keep one state a step for reverse derivatives.

    Raises:
      ValueError: a shape or precision is wrong.

    Example:
      >>> from jaxsim.control.problem import Term
      >>> problem = Problem([Term("angle", lambda m, d: d.qpos - 0.5)])
      >>> float(jax.jit(motion_cost)(m, d, jnp.zeros((3, 0)), problem))
      0.5
    """
    check_motion("motion_cost", m, d, ctrl, problem)
    lower, upper = (a[None] for a in problem.limits(m))
    return run_cost(unclamped(m), d, jnp.clip(ctrl, lower, upper), problem, checkpoint)


def run_cost(
    m: Model, d: Data, ctrl: jax.Array, problem: Problem, checkpoint: bool = False
) -> jax.Array:
    """`motion_cost` of controls that are within their limits."""

    def advance(d: Data, u: jax.Array) -> tuple[Data, jax.Array]:
        return advanced(m, d, u, problem)

    body = jax.checkpoint(advance) if checkpoint else advance
    end, costs = lax.scan(body, d, ctrl)
    return jnp.sum(costs) + end_cost(m, end, problem)


def advanced(m: Model, d: Data, u: jax.Array, problem: Problem) -> tuple[Data, jax.Array]:
    """The world after one step, and what the step costs: infinite if the world diverged."""
    before = d.replace(ctrl=u)
    after = step(m, before)
    cost = problem.running(m, observe(m, before, after))
    return after, jnp.where(diverged(before, after), jnp.inf, cost)


def end_cost(m: Model, d: Data, problem: Problem) -> jax.Array:
    """What the end of a motion costs."""
    return problem.terminal(m, observe_end(m, d))


def observe(m: Model, before: Data, after: Data) -> Data:
    """The world before a step, with the results that the step found for it."""
    if m.opt.integrator == IntegratorType.RK4:  # the results of its step are of its last stage
        return forward(m, before)
    return after.replace(
        time=before.time, qpos=before.qpos, qvel=before.qvel, act=before.act, ctrl=before.ctrl
    )


def observe_end(m: Model, d: Data) -> Data:
    """The world at the end of a motion, without a control, with its results."""
    return forward(m, d.replace(ctrl=jnp.zeros_like(d.ctrl)))


def diverged(before: Data, after: Data) -> jax.Array:
    """Whether the step between two worlds was put back to the start, () bool."""
    index = jnp.array([int(w) for w in DIVERGED])
    return jnp.any(after.warning[index] > before.warning[index])


def check_motion(function: str, m: Model, d: Data, ctrl: jax.Array, problem: Problem) -> None:
    """Raises ValueError if controls, world and problem are not of one motion."""
    check_model(function, m)
    check_data(function, m, d)
    if not isinstance(problem, Problem):
        raise ValueError(f"{function}: problem: expected a Problem, got {brief(problem)}")
    if not problem.terms:
        raise ValueError(f"{function}: problem: has no terms; give it some: Problem([Term(...)])")
    shape = jnp.shape(ctrl)
    if len(shape) != 2 or shape[1] != m.nu or shape[0] == 0:
        many = "; for many use jax.vmap" if len(shape) > 2 else ""
        raise ValueError(
            f"{function}: ctrl: expected shape (steps, {m.nu}), got {brief(ctrl)}{many}"
        )
