"""The two programs of a control loop: one makes a plan, the other advances the plant.

Models are constants of the programs; weights, goals, state and plan are arguments, so that a change
of a weight compiles nothing. Both are compiled in two tiers (batch/tiered_program.py). With several
devices the samples of a plan are divided among them, and the plant runs on the first; therefore
state and plan pass between the programs as numpy arrays.
"""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxsim.batch.stored_program import prepare_program
from jaxsim.control.closed_loop.read import STATE_FIELDS, ClosedLoop
from jaxsim.control.motion import advance_world
from jaxsim.control.problem import Problem
from jaxsim.control.receding_horizon import Running
from jaxsim.model.data import Data
from jaxsim.physics.history.clock import elapsed_time
from jaxsim.view.perturb import Perturb, apply_perturb_force

State = dict[str, np.ndarray]
_ROW_MARGIN = 1e-3  # rounding error of a time, in steps of the plan


class Followed(NamedTuple):
    """The part of a plan that the plant follows.

    Attributes:
      time: start time of the plan, () [s].
      time_low: its rounding error in single precision, () [s]; None in double.
      ctrl: controls, (horizon, nu).
    """

    time: Any
    time_low: Any
    ctrl: Any


class LoopProgram:
    """The compiled programs of a control loop.

    Args:
      loop: the loop.
      tier: how the programs are compiled (`prepare_program`).
      held: a perturbation of the user, for the shapes; None: there is none.

    Attributes:
      loop: the loop.
      compile_seconds: time to trace and compile both programs [s].
    """

    def __init__(self, loop: ClosedLoop, tier: str = "auto", held: Perturb | None = None):
        self.loop = loop
        self._placed = NamedSharding(Mesh(np.array(loop.devices), ("all",)), PartitionSpec())
        start = time.perf_counter()
        plan_problem, plant_problem = self.problems()
        running, d = self.start()
        placed = {"in_shardings": self._placed, "out_shardings": self._placed}
        operands: tuple = plan_problem, self.state_of(d), running
        self._plan_program = prepare_program(
            self._plan, operands, name="the planner", tier=tier, options=placed, background=True
        ).program
        operands = plant_problem, d, followed(running), held
        self._advance_program = prepare_program(
            self._advance, operands, name="the plant", tier=tier
        ).program
        self._plan_program(plan_problem, self.state_of(d), running)
        self.compile_seconds = time.perf_counter() - start

    def start(self) -> tuple[Running, Data]:
        """Return the first guess of the planner and the plant at the start."""
        loop = self.loop
        key = jax.random.key(loop.form.seed)
        running = loop.planner.start(loop.d, key, loop.guess)
        return jax.device_put(running, self._placed), jax.tree.map(jnp.asarray, loop.plant.d)

    def problems(self) -> tuple[Problem, Problem]:
        """Return the problems of planner and plant, with arrays as weights."""
        dtype = self.loop.planner.m.qpos0.dtype
        ours = self.loop.planner.problem, self.loop.plant.problem
        planner, plant = jax.tree.map(lambda x: np.asarray(x, dtype), ours)
        return planner, plant

    @staticmethod
    def state_of(d: Data) -> State:
        """Return the state of the plant that the planner starts from."""
        return {n: np.asarray(getattr(d, n)) for n in STATE_FIELDS if getattr(d, n) is not None}

    def plan(self, problem: Problem, state: State, running: Running) -> Running:
        """Return the plan from a state of the plant, after waiting for it."""
        found: Running = self._plan_program(problem, state, running)
        return jax.block_until_ready(found)

    def advance(
        self, problem: Problem, d: Data, running: Running, held: Perturb | None = None
    ) -> tuple[Data, dict[str, Any]]:
        """Advance the plant by one period of the planner.

        Returns:
          The plant, and records of each step: the fields of the file, (every, ...), and "cost",
          (every, terms).
        """
        found: tuple[Data, dict[str, Any]] = self._advance_program(
            problem, d, followed(running), held
        )
        return jax.block_until_ready(found)

    def _plan(self, problem: Problem, state: State, running: Running) -> Running:
        planner = replace(self.loop.planner, problem=problem)
        _, after = planner.plan(self.loop.d.replace(**state), running)
        return after

    def _advance(
        self, problem: Problem, d: Data, plan: Followed, held: Perturb | None
    ) -> tuple[Data, dict[str, Any]]:
        loop, m = self.loop, self.loop.plant.m
        lower, upper = problem.limits(m)

        def advance(d: Data, _: None) -> tuple[Data, dict[str, Any]]:
            middle = d.time + m.opt.timestep / 2  # rounding of the time selects no other step
            d = d.replace(xfrc_applied=loop.disturbances.at(middle))
            if held is not None:
                d = lax.cond(
                    held.active != 0, lambda d: apply_perturb_force(m, d, held), lambda d: d, d
                )
            u = jnp.clip(planned_control(plan, d, loop.planner.m.opt.timestep), lower, upper)
            after, residuals, _diverged = advance_world(m, d, u, problem)
            each = zip(problem.terms, residuals, strict=True)
            costs = jnp.stack([term.cost(r) for term, r in each])
            return after, {n: getattr(after, n) for n in loop.form.record} | {"cost": costs}

        return lax.scan(advance, d, None, length=loop.every)


def followed(running: Running) -> Followed:
    """Return the part of a plan that the plant follows."""
    low = None if running.time_low is None else np.asarray(running.time_low)
    return Followed(np.asarray(running.time), low, np.asarray(running.ctrl))


def planned_control(plan: Followed, d: Data, timestep: jax.Array) -> jax.Array:
    """Return the control that a plan has for the time of a world, (nu,).

    The last control is held beyond the end of the plan.
    """
    passed = elapsed_time(d, plan.time, plan.time_low)
    row = jnp.floor(passed / timestep + _ROW_MARGIN).astype(jnp.int32)
    return plan.ctrl[jnp.clip(row, 0, len(plan.ctrl) - 1)]
