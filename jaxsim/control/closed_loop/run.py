"""Run a control loop in simulated time, or in real time.

In simulated time a plan takes no time: the plant waits for it, and the run is deterministic. In
real time the plant advances with the clock. A plan is made in a second thread from the state at the
start of a period, and is used from the start of the next period at which it is finished; periods
that begin while a plan is being made are counted as late.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from jaxsim.control.closed_loop.program import LoopProgram, State
from jaxsim.control.closed_loop.run_log import Run, RunLog
from jaxsim.control.problem import Problem
from jaxsim.control.receding_horizon import Running
from jaxsim.view.perturb import Perturb

Report = Callable[[float, RunLog], None]  # (time of the plant [s], log)


def run_simulated(program: LoopProgram, report: Report = lambda time, log: None) -> Run:
    """Run a loop in simulated time.

    Args:
      program: the programs of the loop.
      report: called after each period.
    """
    loop, log = program.loop, RunLog()
    plan_problem, plant_problem = program.problems()
    running, d = program.start()
    begun = time.perf_counter()
    for number in range(loop.periods):
        running, seconds = timed_plan(program, plan_problem, program.state_of(d), running)
        log.add_plan(seconds, float(running.cost))
        d, records = program.advance(plant_problem, d, running)
        log.add_motion(records)
        report((number + 1) * loop.period, log)
    return log.finish(time.perf_counter() - begun)


def run_realtime(program: LoopProgram, report: Report = lambda time, log: None) -> Run:
    """Run a loop in real time.

    The plant is never ahead of the clock. If a step of it takes longer than it simulates, the plant
    falls behind: compare `Run.seconds` with the simulated time.

    Args:
      program: the programs of the loop.
      report: called after each period.
    """
    loop = program.loop
    with RealtimeLoop(program) as now:
        begun = time.perf_counter()
        for number in range(loop.periods):
            now.advance()
            report((number + 1) * loop.period, now.log)
            left = begun + (number + 1) * loop.period - time.perf_counter()
            if left > 0:
                time.sleep(left)
        return now.log.finish(time.perf_counter() - begun)


class RealtimeLoop:
    """A plant that advances while plans are made in a second thread; a context manager.

    Args:
      program: the programs of the loop.
      held: a perturbation of the plant by the user, as given to `program`; None: there is none.
      most: number of periods that the log keeps; None: all.

    Attributes:
      running: the plan that the plant follows.
      d: the plant.
      held: the perturbation.
      plan_problem, plant_problem: the problems, whose weights and goals may be replaced.
      log: records of the run.
    """

    def __init__(self, program: LoopProgram, held: Perturb | None = None, most: int | None = None):
        self.program, self.held, self._most = program, held, most
        self.plan_problem, self.plant_problem = program.problems()
        self._thread = PlanThread(program)
        self.reset()

    def reset(self) -> None:
        """Set plant, plan and log to their initial states."""
        self._thread.discard()
        self.running, self.d = self.program.start()
        self.log = RunLog(self._most)

    def advance(self) -> None:
        """Advance the plant by one period."""
        # 1. Take the plan that has finished, and start the next from the present state.
        found = self._thread.take()
        if found is not None:
            self.running, seconds = found
            self.log.add_plan(seconds, float(self.running.cost))
        state = self.program.state_of(self.d)
        if not self._thread.start(self.plan_problem, state, self.running):
            self.log.late += 1
        # 2. Advance the plant.
        self.d, records = self.program.advance(self.plant_problem, self.d, self.running, self.held)
        self.log.add_motion(records)

    def __enter__(self) -> "RealtimeLoop":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.close()


class PlanThread:
    """A thread that makes one plan at a time."""

    def __init__(self, program: LoopProgram):
        self._program = program
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jaxsim planner")
        self._making: Future | None = None

    def start(self, problem: Problem, state: State, running: Running) -> bool:
        """Start a plan; return False if the last one is not finished."""
        if self._making is not None:
            return False
        self._making = self._thread.submit(timed_plan, self._program, problem, state, running)
        return True

    def take(self) -> tuple[Running, float] | None:
        """Return the plan that has finished since the last call, and its time [s]; or None."""
        if self._making is None or not self._making.done():
            return None
        found: tuple[Running, float] = self._making.result()
        self._making = None
        return found

    def discard(self) -> None:
        """Wait for a plan that is being made, and drop it."""
        if self._making is not None:
            self._making.result()
        self._making = None

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)


def timed_plan(
    program: LoopProgram, problem: Problem, state: State, running: Running
) -> tuple[Running, float]:
    """Return a plan, and the time that it took [s]."""
    begun = time.perf_counter()
    found = program.plan(problem, state, running)
    return found, time.perf_counter() - begun
