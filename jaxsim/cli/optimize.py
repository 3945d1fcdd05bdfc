"""`jaxsim optimize CONFIG.toml`: optimize controls, report progress, write the motion and a
plot."""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from jaxsim.atomic_write import temporary_name
from jaxsim.batch.trajectory import NotWrittenError, TrajectoryWriter, motion_header
from jaxsim.cli.input.resource_limits import check_writable
from jaxsim.cli.progress import format_bytes
from jaxsim.cli.user_error import InputProblem, convert_drawing_errors
from jaxsim.control.optimization.batched_search import Batch, Found, search
from jaxsim.control.optimization.plot import draw_search
from jaxsim.control.optimization.read import Optimization, read_optimization
from jaxsim.optional import require


def optimize(args: argparse.Namespace) -> int:
    """Optimize the controls of the problem in a configuration file."""
    check_writable("--out", args.out, ".npz")
    check_writable("--plot", args.plot, ".png")
    whole = read_optimization(args.config, tuple(args.changes))
    form = whole.form
    try:
        if form.method == "shoot":
            require("optax", "control")
        if args.plot is not None:
            require("matplotlib.figure", "control")
    except ImportError as error:
        raise InputProblem(str(error)) from None
    seconds = whole.steps * float(whole.m.opt.timestep)
    print(args.config)
    print(f"{'motion':11} {whole.steps} steps, {seconds:.3g} s, of {form.model}")
    print(f"{'method':11} {form.method}, {_format_guesses(form.guesses)}", flush=True)
    found = search(whole, _print_progress, args.tier)
    print(_describe_result(whole, found), flush=True)
    if not np.isfinite(found.after.cost):
        raise InputProblem(
            f"{args.config}: every rollout diverged; try a shorter timestep, another "
            "guess, or a smaller spread"
        )
    if args.out is not None:
        _write_motion(args.out, whole, found)
    if args.plot is not None:
        try:
            with convert_drawing_errors(
                args.plot, f"the motion is in '{args.out}'" if args.out else ""
            ):
                draw_search(args.plot, whole, found)
        except InputProblem as problem:
            if args.out is not None:
                raise
            # what was found is not lost to a drawing of it
            motion = temporary_name(Path(args.plot).with_suffix(".npz"))
            motion = motion.with_name(motion.name.lstrip("."))
            _write_motion(str(motion), whole, found)
            raise InputProblem(f"{problem}; the motion is in '{motion}'") from problem
        print(f"{'wrote':11} {args.plot}")
    return 0


def _format_guesses(number: int) -> str:
    return "one guess" if number == 1 else f"{number} guesses"


def _print_progress(batch: Batch) -> None:
    """Print a line of progress."""
    best, worst = np.min(batch.costs), np.max(batch.costs)
    text = f"iteration {batch.num_iterations:5}  cost {best:<10.6g}"
    if len(batch.costs) > 1:
        text += f" (of the guesses up to {worst:.6g})"
    if batch.smooth:
        text += f"  smooth {batch.smooth:g} m"
    print(f"{text}  {batch.seconds:.1f} s", file=sys.stderr, flush=True)


def _describe_result(whole: Optimization, found: Found) -> str:
    """Return the cost and its terms before and after the optimization."""
    seconds = found.batches[-1].seconds
    rows = [f"{'programs':11} ready in {found.compile_seconds:.1f} s, search {seconds:.1f} s"]
    rows.append(f"{'cost':18} {found.before.cost:>12.6g} -> {found.after.cost:.6g}")
    for name, before in found.before.terms.items():
        after = found.after.terms[name]
        rows.append(f"  {name:16} {np.sum(before):>12.6g} -> {np.sum(after):.6g}")
    return "\n".join(rows)


def _write_motion(path: str, whole: Optimization, found: Found) -> None:
    header = motion_header(whole.m, Path(whole.form.model).name, every=1, worlds=1)
    try:
        with TrajectoryWriter(path, header) as writer:
            writer.append({name: found.after.records[name][:, None] for name in whole.form.record})
    except NotWrittenError as error:
        raise InputProblem(f"--out: {error}") from None
    print(f"{'wrote':11} {path}: {whole.steps} records, {format_bytes(os.path.getsize(path))}")
