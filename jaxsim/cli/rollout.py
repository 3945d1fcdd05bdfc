"""`jaxsim rollout MODEL.xml`: simulate thousands of worlds with a progress bar, a summary, a
file."""

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.batch.processes import is_writer, to_host
from jaxsim.batch.program import BatchProgram, replicate
from jaxsim.batch.scan import check_record
from jaxsim.batch.trajectory import NotWrittenError, TrajectoryWriter, motion_header
from jaxsim.cli.input.controls import initial_data, make_control
from jaxsim.cli.input.resource_limits import (
    check_controls_fit,
    check_disk_space,
    check_states_fit,
    check_writable,
)
from jaxsim.cli.process.distributed import agreed_errors, check_same_input
from jaxsim.cli.progress import Progress, format_bytes
from jaxsim.cli.summary import describe_rollout
from jaxsim.cli.user_error import InputProblem
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.describe import describe
from jaxsim.model.model import Model

_DEFAULT_RECORDED = ("time", "qpos", "qvel", "ctrl")
_MOCAP_FIELDS = ("mocap_pos", "mocap_quat")
_CHUNK_STEPS = 10  # steps between returns to the host


class _Inputs(NamedTuple):
    """The inputs of a rollout, checked."""

    m: Model
    one: Data
    recorded: tuple[str, ...]
    ctrl: Any


def run_rollout(args: argparse.Namespace) -> int:
    """Simulate many worlds of a model."""
    with agreed_errors():
        m, one, recorded, ctrl = _read_inputs(args)
    check_same_input(f"{args.model}, or --ctrl", m, ctrl)

    device = jax.devices()[0]
    print(args.model)
    print(describe(m))
    processes = f", {jax.process_count()} processes" if jax.process_count() > 1 else ""
    print(
        f"{'devices':11} {jax.device_count()} of kind {device.device_kind}{processes}", flush=True
    )

    d = replicate(one, args.worlds, devices=jax.devices())
    program = BatchProgram(m, d, ctrl, size=min(_CHUNK_STEPS, args.steps), record=recorded)
    temporary = program.temporary_bytes / args.worlds
    times = (
        f"loaded in {program.load_seconds:.1f} s"
        if not program.compile_seconds
        else f"traced in {program.trace_seconds:.1f} s, compiled in {program.compile_seconds:.1f} s"
    )
    print(f"{'program':11} {times}, {format_bytes(temporary)} of temporaries per world")
    try:
        _simulate(args, m, program, d)
    except NotWrittenError as error:
        raise InputProblem(f"--out: {error}") from None
    return 0


def _read_inputs(args: argparse.Namespace) -> _Inputs:
    """Return the inputs of a rollout; only the process that writes needs the folder of `--out`."""
    if is_writer():
        check_writable("--out", args.out, ".npz")
    if args.out is not None and args.every > args.steps:
        raise InputProblem(f"--every {args.every}: the rollout has only {args.steps} steps")
    m = load_model(args.model, contacts=args.contacts)
    check_states_fit(args, m)
    one = initial_data(m, args.key)
    recorded = _recorded_fields(args, m, one) if args.out else ()
    if is_writer():
        check_disk_space(args, one, recorded)
    ctrl = make_control(args.ctrl, m, args.worlds, args.steps, args.seed)
    check_controls_fit(args, ctrl)
    return _Inputs(m, one, recorded, ctrl)


def _simulate(args: argparse.Namespace, m: Model, program: BatchProgram, d: Data) -> None:
    progress = Progress(args.steps, args.worlds)
    with _writer(args, m) as writer:
        try:
            for part in program.run(d, args.steps):
                d = jax.block_until_ready(part.d)
                records = _thin_records(part, args.every) if args.out is not None else {}
                if writer is not None:
                    writer.append(records)
                progress.show(part.start + part.steps)
        finally:
            progress.close()
        # before the file is finished: the summary is valid even if the file cannot be written
        print(describe_rollout(m, d, args.steps, progress.seconds), flush=True)
    if writer is not None:
        bytes_written = format_bytes(os.path.getsize(args.out))
        print(f"{'wrote':11} {args.out}: {writer.records} records of each world, {bytes_written}")


def _recorded_fields(args: argparse.Namespace, m: Model, one: Data) -> tuple[str, ...]:
    """Return the fields to record: those that define a motion, and those requested."""
    more = tuple(name.strip() for name in args.record.split(",") if name.strip())
    try:
        check_record(m, one, more)
    except ValueError as error:
        raise InputProblem(f"--record: {str(error).removeprefix('record: ')}") from None
    return tuple(dict.fromkeys((*_DEFAULT_RECORDED, *(_MOCAP_FIELDS if m.nmocap else ()), *more)))


def _thin_records(part, every: int) -> dict[str, np.ndarray]:
    """Return the records of a chunk at every `every`-th step, of the worlds of all processes."""
    first = -(part.start + 1) % every
    records: dict[str, np.ndarray] = to_host({n: x[first::every] for n, x in part.records.items()})
    return records


def _writer(args: argparse.Namespace, m: Model):
    if args.out is None or not is_writer():
        return contextlib.nullcontext()
    header = motion_header(m, Path(args.model).name, args.every, args.worlds)
    return TrajectoryWriter(args.out, header | {"path": str(Path(args.model).resolve())})
