"""Reject runs that exceed the memory or the disk space, or cannot write, before they begin."""

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from jaxsim.atomic_write import target_of
from jaxsim.cli.progress import format_bytes
from jaxsim.cli.user_error import InputProblem
from jaxsim.io.config.memory import memory
from jaxsim.model.data import Data
from jaxsim.model.describe import bytes_per_world
from jaxsim.model.model import Model


def check_states_fit(args: argparse.Namespace, m: Model) -> None:
    """Check that the states of all worlds fit in memory."""
    need, have = args.worlds * bytes_per_world(m), memory()
    if need > have:
        raise InputProblem(
            f"--worlds {args.worlds}: the states alone need {format_bytes(need)}, "
            f"there are only {format_bytes(have)}; at most {int(have // bytes_per_world(m))} fit"
        )


def check_controls_file(path: str) -> None:
    """Check that a file of controls fits in memory; the decompressed size of a small file is
    limited."""
    if os.path.isfile(path) and os.path.getsize(path) > memory():
        need = format_bytes(os.path.getsize(path))
        have = f"{need}, there are only {format_bytes(memory())} of memory"
        raise InputProblem(f"{path}: it has {have}; give --ctrl fewer steps")


def check_controls_fit(args: argparse.Namespace, ctrl: Any) -> None:
    """Check that the controls fit in memory; each device holds all of them."""
    need = jax.device_count() * sum(x.nbytes for x in jax.tree.leaves(ctrl))
    if need > memory():
        raise InputProblem(
            f"{args.ctrl}: the controls need {format_bytes(need)}, there are "
            f"{format_bytes(memory())}; "
            "use fewer --steps, or the same controls in all worlds"
        )


def check_disk_space(args: argparse.Namespace, one: Data, recorded: Sequence[str]) -> None:
    """Check that the records fit on the disk twice: the file is assembled from them at the end."""
    if args.out is None:
        return
    records = args.steps // args.every
    need = 2 * records * args.worlds * sum(getattr(one, name).nbytes for name in recorded)
    free = shutil.disk_usage(target_of(args.out).parent).free
    if need > free:
        raise InputProblem(
            f"--out: writing it needs {format_bytes(need)} of disk, {format_bytes(free)} are free; "
            "record less with --every N"
        )


def check_writable(option: str, path: str | Path | None, ending: str = "") -> None:
    """Check that the file that an option names can be written.

    Args:
      option: the option, `--out`.
      path: the file; None: it was not given.
      ending: required ending of its name.
    """
    if path is None:
        return
    if not str(path).endswith(ending):
        raise InputProblem(f"{option}: '{path}' does not end in {ending}")
    try:
        target_of(path)
    except OSError as error:
        raise InputProblem(f"{option}: {error.strerror or error}") from None
