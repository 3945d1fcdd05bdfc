"""Receding horizon: plan again and again from where the world is.

A planner is a pure function of state and time, with the plan before as a warm start,

    control, plan = planner(d, plan)

so that the loop of plan and step is one `jax.lax.scan`, and many worlds are one `jax.vmap`. The old
plan is moved by the time that has passed since it was made, not by a number of calls: calls may
come at any rate. Beyond its end the last control is held.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.control import sampling
from jaxsim.control.ilqr import ilqr
from jaxsim.control.motion import check_motion
from jaxsim.control.problem import Problem
from jaxsim.control.shooting import shoot
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arguments import check_count
from jaxsim.physics.history.clock import elapsed
from jaxsim.words import remedy


class Running(NamedTuple):
    """What a planner carries from call to call.

    Attributes:
      time: when the plan begins, () [s].
      time_low: what it lacks in single precision, () [s]; None in double.
      guess: the controls (steps, nu), or the knots (n, nu), that the next plan begins from.
      ctrl: the controls of the plan, (steps, nu).
      cost: of its motion, ().
      key: of the random numbers of the next call; not used by `ilqr` and `shoot`.
    """

    time: jax.Array
    time_low: jax.Array | None
    guess: jax.Array
    ctrl: jax.Array
    cost: jax.Array
    key: jax.Array


class Planner(NamedTuple):
    """A planner of a receding horizon, see `receding`.

    Attributes:
      start: (d, key=None) -> Running: no plan yet.
      plan: (d, running) -> (control (nu,), Running).
    """

    start: Callable[..., Running]
    plan: Callable[[Data, Running], tuple[jax.Array, Running]]

    def __call__(self, d: Data, running: Running) -> tuple[jax.Array, Running]:
        """The control for now, and the new plan."""
        return self.plan(d, running)


# how many numbers of the guess there are, and one improvement of it: (guess, ctrl, cost)
def _by_controls(solve: Callable) -> Callable:
    def improve(m: Model, d: Data, guess: jax.Array, problem: Problem, key: jax.Array, how: dict):
        del key
        found = solve(m, d, guess, problem, **how)
        return found.ctrl, found.ctrl, found.cost

    return improve


def _by_knots(solve: Callable) -> Callable:
    def improve(m: Model, d: Data, guess: jax.Array, problem: Problem, key: jax.Array, how: dict):
        found = solve(m, d, guess, problem, key, **how)
        return found.knots, found.ctrl, found.cost

    return improve


METHODS = {
    "ilqr": (False, _by_controls(ilqr)),
    "shoot": (False, _by_controls(shoot)),
    "predictive_sampling": (True, _by_knots(sampling.predictive_sampling)),
    "mppi": (True, _by_knots(sampling.mppi)),
    "cem": (True, _by_knots(sampling.cem)),
}


def receding(
    m: Model,
    problem: Problem,
    *,
    steps: int,
    method: str = "ilqr",
    knots: int = 6,
    **how: Any,
) -> Planner:
    """A planner that looks some steps ahead.

    Args:
      m: the model that it plans with; the world may be another.
      problem: what is to be achieved.
      steps: how far it looks.
      method: "ilqr", "shoot", "predictive_sampling", "mppi" or "cem".
      knots: number of knots of the methods that sample.
      how: of the method, such as `iterations=2`.

    Returns:
      A Planner: `running = planner.start(d, key)`, then `u, running = planner(d, running)`.

    Raises:
      ValueError: there is no such method.
    """
    if method not in METHODS:
        known = "; there are: " + ", ".join(METHODS)
        raise ValueError(f"method: no {method!r}{remedy(str(method), METHODS, known)}")
    steps, knots = check_count("receding: steps", steps), check_count("receding: knots", knots)
    samples, improve = METHODS[method]
    how = how | {"steps": steps} if samples else how
    rows = knots if samples else steps
    if not steps or not rows:
        raise ValueError("receding: steps and knots are at least 1")

    def start(d: Data, key: jax.Array | None = None) -> Running:
        dtype = m.qpos0.dtype
        check_motion("receding", m, d, jnp.zeros((steps, m.nu)), problem)
        return Running(
            jnp.asarray(d.time),
            None if d.time_low is None else jnp.asarray(d.time_low),
            jnp.zeros((rows, m.nu), dtype),
            jnp.zeros((steps, m.nu), dtype),
            jnp.full((), jnp.inf, dtype),
            jax.random.key(0) if key is None else key,
        )

    def plan(d: Data, running: Running) -> tuple[jax.Array, Running]:
        length = steps * m.opt.timestep
        # knots lie from the start to the end of the horizon, controls at the start of each step
        spacing = length / max(knots - 1, 1) if samples else m.opt.timestep
        guess = moved_on(running.guess, elapsed(d, running.time, running.time_low) / spacing)
        key, now = jax.random.split(running.key)
        guess, ctrl, cost = improve(m, d, guess, problem, now, how)
        return ctrl[0], Running(d.time, d.time_low, guess, ctrl, cost, key)

    return Planner(start, plan)


def moved_on(rows: jax.Array, by: jax.Array) -> jax.Array:
    """Rows (n, k) of a plan, `by` rows later, between rows on a line; the last is held.

    Example:
      >>> moved_on(jnp.array([[0.0], [1.0], [4.0]]), jnp.array(0.5))[:, 0].tolist()
      [0.5, 2.5, 4.0]
    """
    n = len(rows)
    at = jnp.clip(jnp.arange(n, dtype=rows.dtype) + by.astype(rows.dtype), 0, n - 1)
    whole = jnp.floor(at)
    before = whole.astype(jnp.int32)
    after = jnp.minimum(before + 1, n - 1)
    part = (at - whole)[:, None]
    return (1 - part) * rows[before] + part * rows[after]
