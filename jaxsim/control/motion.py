"""The motion that controls produce, and its cost.

A step of the physics returns the results of the state before it together with the state after it.
`world_with_results` combines the results with the state that they belong to, so that a residual
sees one consistent world.
"""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.control.problem import Problem
from jaxsim.derivative.ctrl_limits import without_ctrl_clamp
from jaxsim.enums import IntegratorType, WarningType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.api import forward, step
from jaxsim.physics.public.arguments import check_data, check_model

_DIVERGENCE_WARNINGS = (
    WarningType.BADQPOS,
    WarningType.BADQVEL,
    WarningType.BADQACC,
    WarningType.BADCTRL,
)


def motion_cost(m: Model, d: Data, ctrl: jax.Array, problem: Problem) -> jax.Array:
    """Return the cost of a motion, (); infinite if it diverges.

    Args:
      m: the model.
      d: the world at the start.
      ctrl: controls, (steps, nu); clipped to the limits.
      problem: the costs and limits.

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
    return run_cost(without_ctrl_clamp(m), d, jnp.clip(ctrl, lower, upper), problem)


def run_cost(m: Model, d: Data, ctrl: jax.Array, problem: Problem) -> jax.Array:
    """Return `motion_cost` of controls that are within their limits."""

    def advance(d: Data, u: jax.Array) -> tuple[Data, tuple]:
        after, residuals, bad = advance_world(m, d, u, problem)
        return after, (residuals, bad)

    _, (residuals, bad) = lax.scan(advance, d, append_zero_control(ctrl))
    return total_cost(problem, residuals, bad)


def append_zero_control(ctrl: jax.Array) -> jax.Array:
    """Return the controls (steps, nu) with one more row of zeros.

    The end of a motion is evaluated by one more step of the same program: its residuals are those
    of the end, and the state after it is ignored.
    """
    return jnp.concatenate([ctrl, jnp.zeros_like(ctrl[:1])])


def advance_world(
    m: Model, d: Data, u: jax.Array, problem: Problem
) -> tuple[Data, tuple, jax.Array]:
    """Return the world after one step, the residuals of the step, and whether it diverged."""
    before = d.replace(ctrl=u)
    after = step(m, before)
    return (
        after,
        problem.residuals(m, world_with_results(m, before, after, forward)),
        step_diverged(before, after),
    )


def step_costs(problem: Problem, residuals: tuple) -> jax.Array:
    """Return the cost of each step and of the end, (steps + 1,), of residuals (steps + 1, n)
    each."""
    running = jax.vmap(problem.cost_of)(tuple(r[:-1] for r in residuals))
    end = problem.cost_of(tuple(r[-1] for r in residuals), terminal=True)
    return jnp.concatenate([running, end[None]])


def total_cost(problem: Problem, residuals: tuple, bad: jax.Array) -> jax.Array:
    """Return the cost of a motion, (); infinite if it diverged."""
    return jnp.where(jnp.any(bad), jnp.inf, jnp.sum(step_costs(problem, residuals)))


def world_with_results(
    m: Model, before: Data, after: Data, forward: Callable[[Model, Data], Data]
) -> Data:
    """Return the world before a step, with the results that the step found for it.

    Args:
      m, before, after: public, or in the form of the physics.
      forward: the forward dynamics in the same form.
    """
    # the results of an RK4 step are those of its last stage
    if m.opt.integrator == IntegratorType.RK4:
        return forward(m, before)
    # State and control before the step; all other fields are results.
    state = (*("time", "time_low", "qpos", "qvel", "act", "history", "history_low"),
             *("plastic", "ctrl"))  # fmt: skip
    return after.replace(**{name: getattr(before, name) for name in state})


def step_diverged(before: Data, after: Data) -> jax.Array:
    """Return whether the step between two worlds was reset because it diverged, () bool."""
    index = jnp.array([int(w) for w in _DIVERGENCE_WARNINGS])
    return jnp.any(after.warning[index] > before.warning[index])


def carry_results(m: Model, d: Data, names: Iterable[str]) -> Data:
    """Return the world with zeros for those of the named results that it does not keep."""
    sizes, dtype = m.structure.sizes, m.qpos0.dtype
    absent = [n for n in names if getattr(d, n) is None]
    return d.replace(**{n: jnp.zeros(Data.fields[n].dims(sizes), dtype) for n in absent})


def check_motion(function: str, m: Model, d: Data, ctrl: jax.Array, problem: Problem) -> None:
    """Raise ValueError if controls, world and problem do not match."""
    check_model(function, m)
    check_data(function, m, d)
    if not isinstance(problem, Problem):
        raise ValueError(f"{function}: problem: expected a Problem, got {brief_value(problem)}")
    if not problem.terms:
        raise ValueError(f"{function}: problem: has no terms; give it some: Problem([Term(...)])")
    shape = jnp.shape(ctrl)
    if len(shape) != 2 or shape[1] != m.nu or shape[0] == 0:
        many = "; for many use jax.vmap" if len(shape) > 2 else ""
        raise ValueError(
            f"{function}: ctrl: expected shape (steps, {m.nu}), got {brief_value(ctrl)}{many}"
        )
