"""A picture of a search: its progress, the terms of the cost, the motion and the controls, as
PNG."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.atomic_write import whole_file
from jaxsim.control.optimization.batched_search import Found
from jaxsim.control.optimization.read import Optimization
from jaxsim.escape import MAX_NAME, mathtext
from jaxsim.optional import require

_MAX_NAMED_LINES = 12  # largest number of lines of a panel with names


def draw_search(path: str | os.PathLike[str], whole: Optimization, found: Found) -> None:
    """Draw a search.

    Args:
      path: the PNG file; it is written completely or not at all.
      whole: the optimization.
      found: its result.

    Raises:
      ImportError: matplotlib is missing; names the extra.
    """
    figure = require("matplotlib.figure", "control").Figure(figsize=(11, 8), layout="constrained")
    way, terms, motion, controls = figure.subplots(2, 2).flat
    _plot_costs(way, found)
    dt = float(whole.m.opt.timestep)
    time = dt * np.arange(whole.steps + 1)
    _lines(terms, time[:-1], {n: c[:-1] for n, c in found.after.terms.items()}, "cost of a step")
    start = np.asarray(whole.d.qpos)[None]
    qpos = np.concatenate([start, found.after.records["qpos"]])
    _lines(motion, time, {f"qpos {i}": q for i, q in enumerate(qpos.T)}, "qpos")
    names = dict(whole.m.structure.names).get("actuator", ())
    rows = {(names[i] if i < len(names) else "") or f"ctrl {i}": u
            for i, u in enumerate(found.ctrl.T)}  # fmt: skip
    _lines(controls, time[:-1], rows, "ctrl", drawstyle="steps-post")
    name = Path(whole.locations.file).name
    figure.suptitle(f"{mathtext(name, MAX_NAME)}: cost {found.after.cost:.6g}")
    with whole_file(path) as part:
        figure.savefig(part, dpi=120)


def _plot_costs(axes: Any, found: Found) -> None:
    """Draw the cost of every guess over time."""
    seconds = [0.0, *(b.seconds for b in found.batches)]
    start = np.full_like(found.batches[0].costs, found.before.cost)
    costs = np.stack([start, *(b.costs for b in found.batches)])
    axes.plot(seconds[1:], costs[1:], color="0.7", linewidth=0.8)
    axes.plot(seconds, np.min(costs, axis=1), "o-", markersize=3)
    if np.all(costs[np.isfinite(costs)] > 0):
        axes.set_yscale("log")
    axes.set(xlabel="seconds of the search", ylabel="cost, and that of each guess")


def _lines(axes: Any, time: np.ndarray, rows: dict[str, np.ndarray], label: str, **how) -> None:
    for name, values in rows.items():
        axes.plot(time, values, label=mathtext(name), linewidth=1.2, **how)
    if 0 < len(rows) <= _MAX_NAMED_LINES:
        axes.legend(fontsize=8)
    axes.set(xlabel="time [s]", ylabel=label)
