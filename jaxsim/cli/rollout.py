"""`jaxsim rollout MODEL.xml`: thousands of worlds, a progress bar, a summary, a file."""

import argparse
import contextlib
import os
import shutil
from pathlib import Path

import jax
import numpy as np

from jaxsim.batch import BatchProgram, replicate
from jaxsim.cli.controls import make_control
from jaxsim.cli.problem import InputProblem
from jaxsim.cli.progress import Progress, size
from jaxsim.cli.summary import summary
from jaxsim.data import Data
from jaxsim.describe import bytes_per_world, describe
from jaxsim.load import load_model
from jaxsim.make_data import make_data, reset_data_keyframe
from jaxsim.model import Model
from jaxsim.trajectory import TrajectoryWriter

RECORDED = ("time", "qpos", "qvel", "ctrl")
CHUNK = 10  # steps between two visits to the host


def rollout(args: argparse.Namespace) -> int:
    """Simulates many worlds of a model."""
    _check_out(args)
    m = load_model(args.model, contacts=args.contacts)
    ctrl = make_control(args.ctrl, m, args.worlds, args.steps, args.seed)
    one = _start(m, args.key)
    _check_room(args, m)

    device = jax.devices()[0]
    print(args.model)
    print(describe(m))
    print(f"{'devices':11} {jax.device_count()} of kind {device.device_kind}", flush=True)

    d = replicate(one, args.worlds)
    program = BatchProgram(
        m, d, ctrl, size=min(CHUNK, args.steps), record=RECORDED if args.out else ()
    )
    temporary = program.temporary_bytes / args.worlds
    print(f"{'program':11} traced in {program.trace_seconds:.1f} s, ", end="")
    print(f"compiled in {program.compile_seconds:.1f} s, {size(temporary)} of temporaries a world")

    progress = Progress(args.steps, args.worlds)
    with _writer(args, m) as writer:
        try:
            for part in program.run(d, args.steps):
                d = jax.block_until_ready(part.d)
                if writer is not None:
                    writer.append(_thinned(part, args.every))
                progress.show(part.start + part.steps)
        finally:
            progress.close()
    seconds = progress.seconds
    print(summary(m, d, args.steps, seconds))
    if writer is not None:
        bytes_written = size(os.path.getsize(args.out))
        print(f"{'wrote':11} {args.out}: {writer.records} records of each world, {bytes_written}")
    return 0


def _start(m: Model, key: str | None) -> Data:
    d = make_data(m)
    if key is None:
        return d
    try:
        return reset_data_keyframe(m, d, key)
    except ValueError as error:
        raise InputProblem(f"--key: {error}") from None


def _thinned(part, every: int) -> dict[str, np.ndarray]:
    """The records of a chunk at every `every`-th step of the rollout."""
    first = -(part.start + 1) % every
    return {name: np.asarray(x[first::every]) for name, x in part.records.items()}


def _writer(args: argparse.Namespace, m: Model):
    if args.out is None:
        return contextlib.nullcontext()
    header = {
        "model": Path(args.model).name,
        "timestep": float(m.opt.timestep),
        "every": args.every,
        "worlds": args.worlds,
        "nq": m.nq,
        "nv": m.nv,
        "nu": m.nu,
    }
    return TrajectoryWriter(args.out, header)


def _check_out(args: argparse.Namespace) -> None:
    """Says before the run, not after it, that the file cannot be written."""
    if args.out is None:
        return
    out = Path(args.out)
    if out.suffix != ".npz":
        raise InputProblem(f"--out: '{out}' does not end in .npz")
    if out.is_dir():
        raise InputProblem(f"--out: '{out}' is a folder; name a file")
    folder = out.resolve().parent
    if not folder.is_dir():
        raise InputProblem(f"--out: there is no folder '{folder}'; create it first")
    if not os.access(folder, os.W_OK):
        raise InputProblem(f"--out: '{folder}' cannot be written to")
    if args.every > args.steps:
        raise InputProblem(f"--every {args.every}: the rollout has only {args.steps} steps")


def _check_room(args: argparse.Namespace, m: Model) -> None:
    """Refuses what cannot fit in memory or on the disk."""
    need = args.worlds * bytes_per_world(m)
    have = _memory()
    if need > have:
        raise InputProblem(
            f"--worlds {args.worlds}: the states alone need {size(need)}, "
            f"there are {size(have)}; at most {int(have // bytes_per_world(m))} fit"
        )
    if args.out is None:
        return
    records = args.steps // args.every
    need = 2 * records * args.worlds * (1 + m.nq + m.nv + m.nu) * m.qpos0.dtype.itemsize
    free = shutil.disk_usage(Path(args.out).resolve().parent).free
    if need > free:
        raise InputProblem(
            f"--out: writing it needs {size(need)} of disk, {size(free)} are free; "
            "record less with --every N"
        )


def _memory() -> float:
    """Bytes of memory of the devices that simulate."""
    stats = jax.devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return float(stats["bytes_limit"]) * jax.device_count()
    return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
