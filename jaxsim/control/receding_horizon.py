"""Receding horizon: repeated planning from the current state.

A planner is a pure function of state and time, with the previous plan as a warm start,

    control, plan = planner(d, plan)

so that the loop of plan and step is one `jax.lax.scan`, and many worlds are one `jax.vmap`. The
previous plan is shifted by the time elapsed since it was made, not by a number of calls: calls may
come at any rate. Beyond its end the last control is held.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control import sampling
from jaxsim.control.iterative_lqr import ilqr
from jaxsim.control.motion import check_motion
from jaxsim.control.problem import Problem
from jaxsim.control.shooting import shoot
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.history.clock import elapsed_time
from jaxsim.physics.public.arguments import check_count
from jaxsim.spelling import check_options, remedy


class Running(NamedTuple):
    """State of a planner between calls.

    Attributes:
      time: start time of the plan, () [s].
      time_low: rounding error of `time` in single precision, () [s]; None in double.
      guess: the controls (steps, nu), or the knots (n, nu), that initialize the next plan.
      ctrl: the controls of the plan, (steps, nu).
      cost: cost of its motion, ().
      key: random key of the next call; not used by `ilqr` and `shoot`.
    """

    time: jax.Array
    time_low: jax.Array | None
    guess: jax.Array
    ctrl: jax.Array
    cost: jax.Array
    key: jax.Array


# eq=False: `jax.jit(planner)` caches its program by identity, as for a function
@dataclass(frozen=True, eq=False)
class Planner:
    """A planner of a receding horizon, see `receding`.

    A function `(d, running) -> (control, running)`, for `jax.jit`, `jax.vmap` and `jax.lax.scan`.
    It can be pickled if the residuals of its problem can.

    Attributes:
      m: the model that it plans with.
      problem: the costs and limits.
      steps: length of the horizon.
      method: name of the method.
      knots: number of knots of sampling methods.
      options: options of the method.
    """

    m: Model
    problem: Problem
    steps: int
    method: str = "ilqr"
    knots: int = 6
    options: Mapping[str, Any] = field(default_factory=dict)

    def start(
        self, d: Data, key: jax.Array | None = None, guess: jax.Array | None = None
    ) -> Running:
        """Return the initial plan.

        Args:
          d: the world at the start.
          key: random key; None: that of seed 0.
          guess: controls (steps, nu) that initialize the first plan, clipped to the limits; None:
            zeros.
            Sampling methods accept knots (knots, nu) too, and fit their knots to controls.

        Raises:
          ValueError: a shape or precision is wrong.
        """
        m, dtype = self.m, self.m.qpos0.dtype
        check_motion("receding", m, d, jnp.zeros((self.steps, m.nu)), self.problem)
        rows = jnp.zeros((self._rows, m.nu), dtype) if guess is None else self._rows_of(guess)
        return Running(
            jnp.asarray(d.time),
            None if d.time_low is None else jnp.asarray(d.time_low),
            rows,
            self._controls(rows),
            jnp.full((), jnp.inf, dtype),
            jax.random.key(0) if key is None else key,
        )

    def plan(self, d: Data, running: Running) -> tuple[jax.Array, Running]:
        """Return the current control, (nu,), and the new plan."""
        m, samples = self.m, PLANNING_METHODS[self.method].samples
        length = self.steps * m.opt.timestep
        # knots span the horizon from start to end, controls apply from the start of each step
        spacing = length / max(self.knots - 1, 1) if samples else m.opt.timestep
        guess = shift_plan(running.guess, elapsed_time(d, running.time, running.time_low) / spacing)
        key, now = jax.random.split(running.key)
        if samples:
            found = PLANNING_METHODS[self.method].solve(
                m, d, guess, self.problem, now, steps=self.steps, **self.options
            )
            guess = found.knots
        else:
            found = PLANNING_METHODS[self.method].solve(m, d, guess, self.problem, **self.options)
            guess = found.ctrl
        return found.ctrl[0], Running(d.time, d.time_low, guess, found.ctrl, found.cost, key)

    def __call__(self, d: Data, running: Running) -> tuple[jax.Array, Running]:
        """Return the current control, (nu,), and the new plan."""
        return self.plan(d, running)

    @property
    def _rows(self) -> int:
        """Return the number of rows of a guess."""
        return self.knots if PLANNING_METHODS[self.method].samples else self.steps

    def _basis(self) -> np.ndarray:
        """Return the matrix (steps, rows) from the rows of a guess to controls."""
        if not PLANNING_METHODS[self.method].samples:
            return np.eye(self.steps)
        return sampling.spline_basis(
            self.knots, self.steps, self.options.get("interpolation", "cubic")
        )

    def _controls(self, rows: jax.Array) -> jax.Array:
        """Return the controls (steps, nu) of the rows of a guess, within the limits."""
        lower, upper = (a[None] for a in self.problem.limits(self.m))
        return jnp.clip(jnp.asarray(self._basis(), rows.dtype) @ rows, lower, upper)

    def _rows_of(self, guess: jax.Array) -> jax.Array:
        """Return the rows of a given guess: the guess itself, or knots fitted to controls."""
        shape, nu = jnp.shape(guess), self.m.nu
        allowed = dict.fromkeys([(self._rows, nu), (self.steps, nu)])
        if shape not in allowed:
            expected = " or ".join(map(str, allowed))
            raise ValueError(f"start: guess: expected shape {expected}, got {brief_value(guess)}")
        rows = jnp.asarray(guess).astype(self.m.qpos0.dtype)
        if shape[0] != self._rows:  # fit knots by least squares
            rows = jnp.asarray(np.linalg.pinv(self._basis()), rows.dtype) @ rows
        lower, upper = (a[None] for a in self.problem.limits(self.m))
        return jnp.clip(rows, lower, upper)


class Method(NamedTuple):
    """A planning method.

    Attributes:
      solve: (m, d, guess, problem, **options) -> plan; with `key` after `problem` if it samples.
      samples: whether its guess is knots of a spline rather than controls.
      options: names of its options.
    """

    solve: Callable[..., Any]
    samples: bool
    options: tuple[str, ...]


def _keywords(function: Callable) -> tuple[str, ...]:
    """Return the keyword-only parameters of a function."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


def _plan_by_controls(solve: Callable) -> Method:
    return Method(solve, False, _keywords(solve))


def _plan_by_knots(solve: Callable) -> Method:
    options = (*_keywords(solve), *sampling.SAMPLING_OPTIONS)
    return Method(solve, True, tuple(name for name in options if name != "steps"))


PLANNING_METHODS = {
    "ilqr": _plan_by_controls(ilqr),
    "shoot": _plan_by_controls(shoot),
    "predictive_sampling": _plan_by_knots(sampling.predictive_sampling),
    "mppi": _plan_by_knots(sampling.mppi),
    "cem": _plan_by_knots(sampling.cem),
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
    """Return a planner with a receding horizon.

    Args:
      m: the model that it plans with; the simulated world may have another.
      problem: the costs and limits.
      steps: length of the horizon.
      method: "ilqr", "shoot", "predictive_sampling", "mppi" or "cem".
      knots: number of knots of sampling methods.
      how: options of the method, such as `iterations=2`.

    Returns:
      A Planner: `running = planner.start(d, key)`, then `u, running = planner(d, running)`.

    Raises:
      TypeError: the method has no such option; the message suggests the nearest.
      ValueError: there is no such method, or a count is wrong.
    """
    if method not in PLANNING_METHODS:
        known = "; there are: " + ", ".join(PLANNING_METHODS)
        raise ValueError(f"method: no {method!r}{remedy(str(method), PLANNING_METHODS, known)}")
    check_options(f"receding: {method}", how, PLANNING_METHODS[method].options)
    steps, knots = check_count("receding: steps", steps), check_count("receding: knots", knots)
    if not steps or not knots:
        raise ValueError("receding: steps and knots are at least 1")
    return Planner(m, problem, steps, method, knots, how)


def shift_plan(rows: jax.Array, by: jax.Array) -> jax.Array:
    """Return the rows (n, k) of a plan shifted by `by` rows, linearly interpolated; the last is
    held.

    Example:
      >>> shift_plan(jnp.array([[0.0], [1.0], [4.0]]), jnp.array(0.5))[:, 0].tolist()
      [0.5, 2.5, 4.0]
    """
    n = len(rows)
    at = jnp.clip(jnp.arange(n, dtype=rows.dtype) + by.astype(rows.dtype), 0, n - 1)
    whole = jnp.floor(at)
    before = whole.astype(jnp.int32)
    after = jnp.minimum(before + 1, n - 1)
    part = (at - whole)[:, None]
    return (1 - part) * rows[before] + part * rows[after]
