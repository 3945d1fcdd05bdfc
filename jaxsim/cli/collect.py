"""`jaxsim collect RUN --out FOLDER`: write episodes of a policy as a dataset."""

import argparse
from pathlib import Path

import jax

from jaxsim.batch.processes import gather_numbers
from jaxsim.cli.process.distributed import agreed_errors, check_same_input, is_distributed
from jaxsim.cli.progress import Progress
from jaxsim.cli.user_error import InputProblem
from jaxsim.errors import InputError
from jaxsim.learn.dataset.collect import Collection, collect, prepare_collection
from jaxsim.learn.dataset.collect import Progress as Collected
from jaxsim.learn.dataset.episodes import Exploration
from jaxsim.learn.run import Run, old_run

_BYTES_PER_MB = 10**6


def collect_episodes(args: argparse.Namespace) -> int:
    """Run episodes of the policy of a run, and write them."""
    with agreed_errors():
        devices = jax.local_devices() if is_distributed(args) else None
        run = old_run(args.run, devices=devices)
        collection = _prepare(args, run)
    check_same_input(f"{args.run}, or its task", repr(collection.columns), run.env.m)
    _describe(run, collection)
    bars: list[Progress] = []  # created after the shards are read

    def say(progress: Collected) -> None:
        if not bars:
            bars.append(Progress(progress.total, 1, start=progress.done, unit="episodes"))
        else:
            bars[0].show(progress.done)

    try:
        result = collect(collection, say)
    finally:
        for bar in bars:
            bar.close()
    # All processes: the sums are complete when the slowest has written its last shard.
    rows, diverged = gather_numbers([result.rows, result.diverged]).sum(axis=0, dtype=int)
    blown = f", {diverged} episodes diverged" if diverged else ""
    print(f"{'wrote':11} {args.out}: {args.episodes} episodes, {rows:,} new rows{blown}")
    return 0


def _prepare(args: argparse.Namespace, run: Run) -> Collection:
    try:
        return prepare_collection(
            run,
            Path(args.out),
            args.episodes,
            worlds=args.worlds,
            checkpoint=args.checkpoint,
            policy=args.policy,
            seed=args.seed,
            exploration=Exploration(args.noise, args.random),
            states=args.states,
            resume=args.resume,
            shard_bytes=round(args.shard_size * _BYTES_PER_MB),
        )
    except InputError:  # it names the file
        raise
    except ValueError as error:
        raise InputProblem(f"--{error}") from None


def _describe(run: Run, collection: Collection) -> None:
    columns = ", ".join(f"{c.name}{list(c.shape) or ''}" for c in collection.columns)
    row_bytes = sum(column.row_bytes for column in collection.columns)
    print(f"{'task':11} {run.training.task}: episodes of at most {run.test_worlds.length} actions")
    print(f"{'columns':11} {columns}")
    print(f"{'row':11} {row_bytes} bytes before compression")
    if jax.process_count() > 1:
        print(f"{'processes':11} {jax.process_count()}, each writes its own shards")
