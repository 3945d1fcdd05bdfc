"""`jaxsim sweep CONFIG.toml --over seed=0:8`: train a policy for each combination of settings.

Exit code 1: a training has failed, or is left to another process.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jaxsim.atomic_write import target_of, write_whole
from jaxsim.cli.user_error import InputProblem
from jaxsim.learn.sweep.jobs import run_points, train_command, visible_gpus
from jaxsim.learn.sweep.log import LOG_FILE, read_end
from jaxsim.learn.sweep.points import Point, Sweep, read_sweep
from jaxsim.learn.sweep.table import (
    TABLE_FILE,
    Row,
    format_number,
    format_table,
    read_row,
    write_table,
)

_LOG_LINES = 5  # lines of the log of a failed training that are printed


def sweep_settings(args: argparse.Namespace) -> int:
    """Train the points of a sweep that are not done; return 1 unless all are done."""
    sweep = read_sweep(args.config, args.over, args.changes, args.out)
    points = sweep.points
    if args.only is not None:
        if args.only >= len(points):
            raise InputProblem(
                f"--only: there is no point {args.only}; the last is {points[-1].number}"
            )
        points = points[args.only :][:1]
    if args.slurm:
        return _write_slurm_script(args, sweep)
    report = _Report(sweep)
    if not args.table:
        _train_points(args, sweep, points, report)
    report.read_all()
    print(format_table(report.rows))
    print(f"{'wrote':11} {sweep.folder / TABLE_FILE}")
    done = all(report.rows[point.number].state == "done" for point in points)
    return 0 if done or args.table else 1


class _Report:
    """The table of a sweep, which is written after each change of a point."""

    def __init__(self, sweep: Sweep):
        self._sweep = sweep
        self.read_all()

    def read_all(self) -> None:
        """Read the rows of all points, which other processes may train, and write the table."""
        self.rows = [read_row(point) for point in self._sweep.points]
        write_table(self._sweep.folder / TABLE_FILE, self.rows)

    def say(self, point: Point, event: str) -> None:
        """Print an event of a point, and write the table."""
        row = self.rows[point.number] = read_row(point)
        write_table(self._sweep.folder / TABLE_FILE, self.rows)
        if event == "started":
            text = f"{'started':11} {point.name}"
        elif event == "running":
            text = f"{'running':11} {point.name}: another process trains it"
        elif row.state == "done":
            done = sum(row.state == "done" for row in self.rows)
            text = f"{'done':11} {point.name}: {_describe(row)} ({done} of {len(self.rows)})"
        else:
            code, lines = read_end(point.folder, _LOG_LINES)
            text = f"{row.state:11} {point.name}: {_describe_exit(code)}; "
            text += f"{point.folder / LOG_FILE} ends with"
            text += "".join(f"\n{'':11}   {line}" for line in lines)
        print(text, flush=True)


def _train_points(
    args: argparse.Namespace, sweep: Sweep, points: Sequence[Point], report: _Report
) -> None:
    """Train the points that are not done."""
    todo = [point for point in points if report.rows[point.number].state != "done"]
    gpus = visible_gpus() if todo else []
    jobs = min(args.jobs or max(len(gpus), 1), max(len(todo), 1))
    devices = f"{len(gpus)} GPU{'s' * (len(gpus) > 1)}" if gpus else "the CPU"
    number = f"{len(points)} of {len(sweep.points)} points, {len(points) - len(todo)} done"
    print(f"{'sweep':11} {sweep.folder}: {number}")
    if not todo:
        return
    print(f"{'training':11} {jobs} at a time on {devices}", flush=True)
    task_is_module = any(":" in point.training.task for point in todo)
    try:
        run_points(
            todo,
            partial(train_command, sweep, options=_train_options(args)),
            report.say,
            jobs=jobs,
            gpus=gpus,
            modules=sweep.file.parent if task_is_module else None,
        )
    except BaseException:
        report.read_all()  # states of the trainings that were stopped
        raise


def _describe(row: Row) -> str:
    """Return the result of a point in a few words."""
    mean = f"{format_number(row.score)} +- {format_number(row.sd)}"
    return f"return {mean}, {row.step:,} actions, {row.seconds:.0f} s"


def _describe_exit(code: int | None) -> str:
    """Return the reason why a training has ended."""
    if code is not None and code < 0:
        return f"killed by signal {-code}"
    return f"exit code {code}"


def _train_options(args: argparse.Namespace) -> list[str]:
    """Return the options that a sweep passes on to its trainings."""
    options = ["--tier", args.tier]
    options += [x for folder in args.plugins for x in ("--plugins", folder)]
    options += [x for name, value in args.limit for x in ("--limit", f"{name}={value}")]
    return options if args.cache else [*options, "--no-cache"]


def _write_slurm_script(args: argparse.Namespace, sweep: Sweep) -> int:
    """Write a job array whose task k trains point k."""
    path = Path(args.slurm)
    command = [sys.executable, "-m", "jaxsim", "sweep", str(sweep.file)]
    command += [x for text in args.over for x in ("--over", text)]
    command += [x for text in args.changes for x in ("--set", text)]
    command += ["--out", str(sweep.folder), *_train_options(args)]
    try:
        target_of(path)
    except OSError as error:
        raise InputProblem(f"--slurm: {error.strerror or error}") from None
    write_whole(path, slurm_script(sweep.file.stem, len(sweep.points), command, args.jobs))
    print(f"{'wrote':11} {path}: {len(sweep.points)} tasks; add the options of your cluster, then")
    print(f"{'':11} sbatch {shlex.quote(str(path))}")
    return 0


def slurm_script(name: str, tasks: int, command: Sequence[str], jobs: int | None = None) -> str:
    """Return the script of a Slurm job array.

    Args:
      name: name of the sweep.
      tasks: number of tasks.
      command: the command of the sweep; `--only` and the number of the task are appended.
      jobs: largest number of tasks at a time; None: no limit.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    limit = "" if jobs is None else f"%{jobs}"
    return f"""\
#!/bin/bash
#SBATCH --job-name={name}-sweep
#SBATCH --array=0-{tasks - 1}{limit}
#SBATCH --requeue
# Options of your cluster, such as:
##SBATCH --partition=gpu --gres=gpu:1 --cpus-per-task=8 --mem=16G --time=04:00:00

cd {shlex.quote(str(Path.cwd()))} || exit 1
exec {shlex.join(command)} --only "$SLURM_ARRAY_TASK_ID"
"""
