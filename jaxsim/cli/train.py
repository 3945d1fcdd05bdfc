"""`jaxsim train CONFIG.toml`: train a policy with a progress bar, curves and resumable checkpoints.

`jaxsim play FOLDER`: evaluate and record episodes of a trained policy.
"""

import argparse
import contextlib
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import jax
import numpy as np

from jaxsim.cli.process.distributed import agreed_errors, check_same_input, is_distributed
from jaxsim.cli.progress import Progress
from jaxsim.cli.user_error import InputProblem
from jaxsim.errors import InputError
from jaxsim.io.phase import named_phase
from jaxsim.learn.curve import CurveRow, read_curve
from jaxsim.learn.run import Report, Run, Watcher, best_seed, new_run, old_run, write_motion
from jaxsim.learn.run import train as run_training
from jaxsim.optional import require


def train_from_file(args: argparse.Namespace) -> int:
    """Train as a configuration specifies, or resume a run."""
    _check_view(args)
    file = Path(args.config)
    devices = jax.devices() if is_distributed(args) else None
    with agreed_errors():
        if args.resume:
            run = old_run(args.out or file, args.changes, devices=devices)
        else:
            folder = args.out or Path("runs") / file.stem
            run = new_run(file, folder, args.changes, devices=devices)
    check_same_input(f"{file}, or its task", repr(run.training), run.env.m)
    check_same_input(str(run.folder / "checkpoints"), repr(run.checkpoints.steps()))
    _describe(run)
    training = run.training
    bars: list[Progress] = []  # created at the first actions, so that compile time does not count

    def say(report: Report) -> None:
        if report.note:
            print(report.note, flush=True)
        elif not bars:
            print(f"{'compiled':11} in {time.monotonic() - began:.1f} s", flush=True)
            bars.append(Progress(training.steps, training.seeds, start=report.step, unit="actions"))
        elif report.rows:
            bars[0].say(_format_evaluation(report.rows))
        else:
            bars[0].show(min(report.step, training.steps))

    began = time.monotonic()
    try:
        with _opened_page(args, run) as page:
            rows = run_training(run, say, tier=args.tier, watch=page)
    finally:
        for bar in bars:
            bar.close()
    if not rows:
        return 0
    last = [row for row in rows if row.step == rows[-1].step]
    if not bars:
        print(f"{'done':11} already; use --set steps=N to continue")
    print(f"{'result':11} {_format_evaluation(last)}")
    print(f"{'wrote':11} {run.folder}: curve.csv, curve.png, motion.npz, checkpoints")
    return 0


def _check_view(args: argparse.Namespace) -> None:
    """Check the arguments of the page before any work."""
    if not args.view:
        for name in ("port", "view_worlds"):
            if getattr(args, name) is not None:
                raise InputProblem(f"--{name.replace('_', '-')}: only with --view")
        return
    require("viser", "view")
    if is_distributed(args):
        raise InputProblem(
            "--view: not with --distributed or --processes, as worlds are on several devices; see "
            "`jaxsim view RUN/motion.npz` after an evaluation"
        )


def _opened_page(args: argparse.Namespace, run: Run) -> AbstractContextManager[Watcher | None]:
    """Return the page of a training, if the arguments ask for one."""
    if not args.view:
        return contextlib.nullcontext()
    from jaxsim.learn.live.training_page import TrainingPage
    from jaxsim.view.browser.server import PortInUse

    rows: Sequence[CurveRow] = ()
    if args.resume:
        with contextlib.suppress(InputError):  # a damaged curve is written again
            rows = read_curve(run.folder / "curve.csv")
    worlds = {} if args.view_worlds is None else {"worlds": args.view_worlds}
    try:
        page = TrainingPage(run, rows=rows, port=args.port, **worlds)
    except PortInUse as error:
        raise InputProblem(f"--port: {error}") from None
    print(f"{'page':11} {page.viewer.address} until the training ends", flush=True)
    return page


def play(args: argparse.Namespace) -> int:
    """Run episodes of a run's policy."""
    run = old_run(args.run)
    step, state = run.restore(args.checkpoint)
    keys = jax.random.split(jax.random.key(args.seed), args.episodes)
    _describe(run)
    with named_phase("compile the evaluation"):
        program = jax.jit(run.evaluate).lower(state, keys).compile()
    with named_phase("play"):
        scores = jax.device_get(program(state, keys))
    print(f"{'checkpoint':11} {step:,} actions")
    means = scores.score.mean(axis=1)
    for seed, score in enumerate(scores.score):
        length, blown = scores.steps[seed].mean(), scores.diverged[seed].sum()
        print(
            f"{f'seed {seed}':11} return {_mean(score)}, {length:.0f} actions"
            + (f", {blown} diverged" if blown else "")
        )
    if args.out:
        chosen = int(np.argmax(means))
        write_motion(Path(args.out), run, scores, chosen, step)
        print(f"{'wrote':11} {args.out}: {args.episodes} episodes of seed {chosen}")
    return 0


def _describe(run: Run) -> None:
    training, env = run.training, run.env
    worlds = training.worlds
    print(f"{'task':11} {training.task}: {env.action_size} actions, ", end="")
    print(f"{env.observation_size} observations, {float(env.dt) * 1e3:.3g} ms per action")
    print(f"{'learner':11} {training.algorithm}, {training.seeds} seeds of {worlds.count} worlds")
    if run.placement is not None:
        count, processes = run.placement.division.mesh.size, jax.process_count()
        print(f"{'devices':11} {count} of {processes} process{'es' * (processes > 1)}")
    print(f"{'folder':11} {run.folder}", flush=True)


def _format_evaluation(rows: Sequence[CurveRow]) -> str:
    """Return an evaluation as one line."""
    scores = np.array([row.score for row in rows])
    text = f"{rows[0].step:,} actions, {rows[0].seconds:.0f} s: return {_mean(scores)}"
    if len(rows) > 1:
        text += f", best {scores.max():.4g} (seed {best_seed(rows)})"
    blown = sum(row.diverged for row in rows)
    return text + (f", {blown} episodes diverged" if blown else "")


def _mean(scores: np.ndarray) -> str:
    return f"{scores.mean():.4g}" + (f" +- {scores.std():.2g}" if len(scores) > 1 else "")
