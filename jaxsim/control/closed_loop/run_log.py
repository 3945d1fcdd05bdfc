"""Records of a control loop: the motion of the plant, its cost, and the times of plans."""

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxsim.control.closed_loop.read import ClosedLoop

_TAIL = 0.2  # last part of a run, whose cost shows whether the goal is reached


class Run(NamedTuple):
    """A run of a control loop.

    Attributes:
      records: recorded fields of the plant after each step, (steps, ...).
      costs: cost of each term at each step of the plant, (steps, terms).
      plan_seconds: time of each plan [s], (plans,).
      plan_costs: cost of each plan, in the planner's model, (plans,).
      late: number of plans that took longer than a period.
      seconds: wall-clock time of the loop [s].
    """

    records: dict[str, np.ndarray]
    costs: np.ndarray
    plan_seconds: np.ndarray
    plan_costs: np.ndarray
    late: int
    seconds: float


class RunLog:
    """Collects the records of a run.

    Args:
      most: number of periods that are kept; None: all.

    Attributes:
      late: number of plans that took longer than a period.
      periods: number of periods, also of those that are not kept.
    """

    def __init__(self, most: int | None = None):
        self._rows: deque[Mapping[str, np.ndarray]] = deque(maxlen=most)
        self._plans: deque[tuple[float, float]] = deque(maxlen=most)
        self.late = self.periods = 0

    def add_plan(self, seconds: float, cost: float) -> None:
        """Add a plan: its time [s] and its cost."""
        self._plans.append((seconds, cost))

    def add_motion(self, records: Mapping[str, Any]) -> None:
        """Add the records of one period."""
        self._rows.append({name: np.asarray(values) for name, values in records.items()})
        self.periods += 1

    @property
    def last_costs(self) -> np.ndarray:
        """Return the mean cost per step of each term in the last period, (terms,)."""
        return np.mean(self._rows[-1]["cost"], axis=0)

    @property
    def last_plan_seconds(self) -> float:
        """Return the time of the last plan [s]; 0: there is none."""
        return self._plans[-1][0] if self._plans else 0.0

    def finish(self, seconds: float) -> Run:
        """Return the run."""
        rows = {n: np.concatenate([row[n] for row in self._rows]) for n in self._rows[0]}
        costs = rows.pop("cost")
        plans = np.array(self._plans).reshape(-1, 2)
        return Run(rows, costs, plans[:, 0], plans[:, 1], self.late, seconds)


def summarize(loop: ClosedLoop, run: Run) -> dict[str, Any]:
    """Return the figures of a run, for JSON.

    Returns:
      "rate_hz": plans per second of the loop. "possible_hz": plans per second of planning.
      "plans": number, "median_ms", "p95_ms", "late", and "failed", whose samples all diverged.
      "cost": mean per step of the whole run and of its last fifth ("end"), and of each term.
    """
    tail = run.costs[-max(1, round(_TAIL * len(run.costs))) :]
    milliseconds = 1e3 * run.plan_seconds
    total = float(np.sum(run.plan_seconds))
    plans = len(run.plan_seconds)

    def means(rows: np.ndarray) -> dict[str, float]:
        return {"mean": float(rows.mean()), "end": float(rows[-len(tail) :].mean())}

    names = [term.name for term in loop.plant.problem.terms]
    return {
        "method": loop.form.method,
        "rate_hz": 1 / loop.period,
        "possible_hz": plans / total if total else None,
        "seconds": len(run.costs) * float(loop.plant.m.opt.timestep),
        "wall_seconds": run.seconds,
        "plans": {
            "number": plans,
            "median_ms": float(np.median(milliseconds)) if plans else None,
            "p95_ms": float(np.percentile(milliseconds, 95)) if plans else None,
            "late": run.late,
            "failed": int(np.sum(~np.isfinite(run.plan_costs))),
        },
        "cost": means(run.costs.sum(axis=1)),
        "terms": {name: means(column) for name, column in zip(names, run.costs.T, strict=True)},
    }
