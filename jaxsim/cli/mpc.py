"""`jaxsim mpc CONFIG.toml`: control a simulated plant by a planner that replans at a fixed rate."""

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.batch.trajectory import NotWrittenError, TrajectoryWriter, motion_header
from jaxsim.cli.user_error import InputProblem
from jaxsim.control.closed_loop.program import LoopProgram
from jaxsim.control.closed_loop.read import ClosedLoop, read_closed_loop
from jaxsim.control.closed_loop.run import run_realtime, run_simulated
from jaxsim.control.closed_loop.run_log import Run, RunLog, summarize
from jaxsim.optional import require

_REPORT_INTERVAL = 1.0  # time between progress lines [s]


def mpc(args: argparse.Namespace) -> int:
    """Run the control loop that a configuration file describes."""
    if args.view:
        require("viser", "view")  # fail before the work, not after it
        if args.out is not None:
            raise InputProblem("--out: not with --view, which runs until Ctrl-C")
    if args.out is not None:
        _make_folder(Path(args.out))
    try:
        loop = read_closed_loop(args.config, tuple(args.changes))
    except ImportError as error:
        raise InputProblem(str(error)) from None
    _print_loop(args.config, loop)
    if args.view:
        return _view(args, loop)
    program = LoopProgram(loop, args.tier)
    print(f"{'programs':11} ready in {program.compile_seconds:.1f} s", flush=True)
    run = (run_realtime if args.realtime else run_simulated)(program, _Progress())
    summary = summarize(loop, run) | {"realtime": args.realtime}
    print(describe_run(summary), flush=True)
    if args.out is not None:
        _write_results(Path(args.out), loop, run, summary)
    return 0


def _view(args: argparse.Namespace, loop: ClosedLoop) -> int:
    """Show the loop in the browser until interrupted."""
    from jaxsim.control.closed_loop.live import LiveLoop, with_view_fields
    from jaxsim.view.browser.holding import no_hold
    from jaxsim.view.browser.server import PortInUse

    program = LoopProgram(with_view_fields(loop), args.tier, no_hold(loop.plant.m))
    print(f"{'programs':11} ready in {program.compile_seconds:.1f} s", flush=True)
    try:
        page = LiveLoop(program, port=args.port)
    except PortInUse as error:
        raise InputProblem(f"--port: {error}") from None
    with page:
        print(f"{args.config} is at {page.viewer.address} until Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the usual way to quit
            page.run()
    return 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputProblem(f"--out: '{folder}': {error.strerror or error}") from None


def _print_loop(config: str, loop: ClosedLoop) -> None:
    form, plant = loop.form, loop.plant.m
    name = form.plant.model or form.model
    steps, dt = loop.every * loop.periods, float(plant.opt.timestep)
    changed = f", {len(form.plant.scale)} parameters scaled" if form.plant.scale else ""
    pushes = f", {len(form.disturbance)} disturbances" if form.disturbance else ""
    print(config)
    print(f"{'plant':11} {name}: {steps} steps of {dt:g} s{changed}{pushes}")
    horizon = f"{form.horizon} steps of {float(loop.planner.m.opt.timestep):g} s"
    rate = f"{1 / loop.period:.4g} Hz, a plan every {loop.every} steps of the plant"
    print(f"{'planner':11} {form.method}, {horizon}, {rate}", flush=True)


class _Progress:
    """Prints a line of progress in regular intervals of the wall clock."""

    def __init__(self) -> None:
        self._begun = self._last = time.perf_counter()

    def __call__(self, simulated: float, log: RunLog) -> None:
        now = time.perf_counter()
        if now - self._last < _REPORT_INTERVAL:
            return
        self._last = now
        text = f"time {simulated:8.3f} s  cost {log.last_costs.sum():<10.6g}"
        text += f" plan {1e3 * log.last_plan_seconds:.2f} ms  late {log.late}"
        print(f"{text}  {now - self._begun:.1f} s", file=sys.stderr, flush=True)


def describe_run(summary: dict[str, Any]) -> str:
    """Return the figures of a run as lines of text."""
    plans, cost = summary["plans"], summary["cost"]
    pace = summary["seconds"] / summary["wall_seconds"]
    rows = [
        f"{'run':11} {summary['seconds']:.4g} s in {summary['wall_seconds']:.4g} s, "
        f"{pace:.3g} x real time"
    ]
    if plans["number"]:
        rows.append(
            f"{'plans':11} {plans['number']}: {plans['median_ms']:.3g} ms (median), "
            f"{plans['p95_ms']:.3g} ms (95 %), {summary['possible_hz']:.4g} Hz possible"
        )
    rows.append(f"{'late':11} {plans['late']}")
    if plans["failed"]:
        rows.append(
            f"{'failed':11} {plans['failed']} plans: each motion tried diverged; try a shorter "
            "timestep, or a smaller sampling.sigma"
        )
    rows.append(f"{'cost/step':18} {cost['mean']:>12.6g}    last fifth {cost['end']:.6g}")
    for name, term in summary["terms"].items():
        rows.append(f"  {name:16} {term['mean']:>12.6g}    last fifth {term['end']:.6g}")
    return "\n".join(rows)


def _write_results(folder: Path, loop: ClosedLoop, run: Run, summary: dict[str, Any]) -> None:
    """Write the motion of the plant, and the figures."""
    name = loop.form.plant.model or loop.form.model
    header = motion_header(loop.plant.m, Path(name).name, every=1, worlds=1)
    try:
        with TrajectoryWriter(folder / "motion.npz", header) as writer:
            writer.append({key: values[:, None] for key, values in run.records.items()})
    except NotWrittenError as error:
        raise InputProblem(f"--out: {error}") from None
    write_whole(folder / "summary.json", json.dumps(_json_value(summary), indent=2) + "\n")
    print(f"{'wrote':11} {folder}: motion.npz, summary.json")


def _json_value(value: Any) -> Any:
    """Return a value that JSON can represent; None for non-finite numbers."""
    if isinstance(value, dict):
        return {key: _json_value(x) for key, x in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value
