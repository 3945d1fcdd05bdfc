"""Join the processes of one run: `--distributed`, on JAX's own runtime.

Every process runs the same command. Process 0 alone prints and writes files. A wrong input is
reported once, by the first process that has it, and all processes end with its exit code. If a
process ends while the others compute, their next computation fails, or JAX misses its heartbeats
and aborts them: no process waits for longer than `--heartbeat`.
"""

import argparse
import contextlib
import os
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.processes import gather_numbers, is_writer
from jaxsim.cli.user_error import InputProblem, ProcessProblem
from jaxsim.errors import InputError
from jaxsim.escape import MAX_MESSAGE, line
from jaxsim.optional import MissingExtra

_WRONG_INPUT = 2  # exit code of all processes if the input of one is wrong
_FAILED = 3  # exit code: a process of a run in several processes has failed
_REPORTED_ERRORS = (InputError, InputProblem, MissingExtra, OSError)
_CLUSTERS = "Slurm, Open MPI, Kubernetes or a cloud TPU"


class _AgreedError(Exception):
    """A wrong input, known to all processes; one of them has the message."""


def is_distributed(args: argparse.Namespace) -> bool:
    """Return whether the arguments of a command ask for all devices of all processes."""
    given = (args.coordinator, args.processes, args.process)
    return args.distributed or any(x is not None for x in given)


@contextmanager
def joined_processes(args: argparse.Namespace) -> Iterator[None]:
    """Run the block as one of the processes that the arguments name.

    Nothing may have used a device before. The processes are disconnected at the end, unless this
    one has failed alone: then it must end at once, so that the others notice.

    Raises:
      InputProblem: the arguments are incomplete, or no cluster is detected.
      ProcessProblem: another process has failed.
    """
    _connect(args)
    try:
        with contextlib.ExitStack() as stack:
            if not is_writer():
                silence = stack.enter_context(open(os.devnull, "w"))
                stack.enter_context(contextlib.redirect_stdout(silence))
                stack.enter_context(contextlib.redirect_stderr(silence))
            yield
    except _AgreedError as error:
        jax.distributed.shutdown()
        raise ProcessProblem(str(error), _WRONG_INPUT) from None
    except _REPORTED_ERRORS:
        raise
    except Exception as error:  # noqa: BLE001  (the other processes wait for this one)
        _raise_process_problem(error)
    else:
        jax.distributed.shutdown()


@contextmanager
def agreed_errors() -> Iterator[None]:
    """Leave the block with an error in all processes if it fails in one.

    Otherwise the others would wait for it. All processes must enter the block; it may not compute
    on devices of several processes.
    """
    if jax.process_count() == 1:
        yield
        return
    message = ""
    try:
        yield
    except _REPORTED_ERRORS as error:
        message = str(error) or type(error).__name__
    failed = np.flatnonzero(gather_numbers([bool(message)])[:, 0])
    if not len(failed):
        return
    first = int(failed[0])
    if jax.process_index() != first:
        raise _AgreedError
    raise _AgreedError(message if first == 0 else f"process {first}: {message}")


def check_same_input(what: str, *content: Any) -> None:
    """Leave all processes with an error if some have read another input than process 0.

    Args:
      what: the input, for the message.
      content: its arrays and texts; random keys are left out, as they follow from the arguments.
    """
    if jax.process_count() == 1:
        return
    checksum = 0
    for leaf in jax.tree.leaves(content):
        if isinstance(leaf, str):
            checksum = zlib.crc32(leaf.encode(), checksum)
        elif not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            checksum = zlib.crc32(np.asarray(leaf).tobytes(), checksum)
    checksums = gather_numbers([checksum >> 1])[:, 0]  # of 31 bits
    other = np.flatnonzero(checksums != checksums[0])
    if len(other):
        message = f"{what}: process {other[0]} reads another one than process 0; copy it there"
        raise _AgreedError(message if is_writer() else "")


def _connect(args: argparse.Namespace) -> None:
    """Connect this process with the others."""
    given = {
        "--coordinator": args.coordinator,
        "--processes": args.processes,
        "--process": args.process,
    }
    explicit = any(x is not None for x in given.values())
    if args.processes == 1:
        return  # this process alone, with all its devices
    if explicit:
        for name, value in given.items():
            if value is None:
                raise InputProblem(f"{name}: missing; {', '.join(given)} belong together")
        if args.process >= args.processes:
            raise InputProblem(
                f"--process {args.process}: expected at most {args.processes - 1}, as there are "
                f"{args.processes} processes"
            )
    # Its handler of SIGTERM would replace ours, and the process would go on.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(
            args.coordinator,
            args.processes,
            args.process,
            # Explicit processes own all devices they see, as users start them where they want.
            cluster_detection_method="deactivate" if explicit else None,
            heartbeat_timeout_seconds=args.heartbeat,
        )
    except ValueError as error:
        raise InputProblem(
            f"--distributed: {_CLUSTERS} is not detected ({line(str(error), MAX_MESSAGE)}); "
            "start it there, or give --coordinator HOST:PORT, --processes N and --process I"
        ) from None
    except RuntimeError as error:  # that of XLA, or JAX has been used before
        where = args.coordinator or "the coordinator"
        reason = line(str(error), MAX_MESSAGE)
        raise InputProblem(f"--distributed: cannot connect to {where}: {reason}") from None


def _raise_process_problem(error: Exception) -> NoReturn:
    """Raise the error of a process whose computation has failed, or that has a bug."""
    if jax.process_count() == 1:
        raise error
    who = f"process {jax.process_index()} of {jax.process_count()}"
    if not isinstance(error, jax.errors.JaxRuntimeError) and "Gloo" not in str(error):
        traceback.print_exception(error)
        raise ProcessProblem(f"{who} has failed", _FAILED) from None
    reason = line(str(error), MAX_MESSAGE)
    raise ProcessProblem(
        f"{who}: a computation has failed, most likely because another process has ended, whose "
        f"output has the reason: {reason}",
        _FAILED,
    ) from None
