"""Train the points of a sweep as processes, a few at a time.

A point whose folder has an unfinished run is resumed. Whatever ends the sweep also stops its
trainings; their checkpoints are complete, and the next sweep continues from them.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, NamedTuple

from jaxsim.learn.finished import CONFIG_FILE
from jaxsim.learn.sweep.log import close_log, open_log
from jaxsim.learn.sweep.points import Point, Sweep, resumed_changes

_POLL_SECONDS = 0.1  # seconds between two looks at the trainings
_STOP_SECONDS = 10.0  # seconds that a training has to end after SIGTERM
_NVIDIA_SECONDS = 30.0  # time limit of nvidia-smi


class _Job(NamedTuple):
    """A running training."""

    point: Point
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    gpu: str | None


def train_command(sweep: Sweep, point: Point, options: Sequence[str] = ()) -> list[str]:
    """Return the command that trains a point, from its last checkpoint if there is a run.

    Args:
      sweep: the sweep.
      point: one of its points.
      options: further options of `jaxsim train`.
    """
    train = [sys.executable, "-m", "jaxsim", "train"]
    if os.path.lexists(point.folder / CONFIG_FILE):
        arguments, changes = [str(point.folder), "--resume"], resumed_changes(point)
    else:
        arguments = [str(sweep.file), "--out", str(point.folder)]
        changes = sweep.changes + point.changes
    return train + arguments + [*options] + [x for change in changes for x in ("--set", change)]


def run_points(
    points: Sequence[Point],
    command: Callable[[Point], Sequence[str]],
    say: Callable[[Point, str], None],
    *,
    jobs: int = 1,
    gpus: Sequence[str] = (),
    modules: Path | None = None,
) -> None:
    """Run the commands of some points, and wait for them.

    Args:
      points: the points, in the order in which they start.
      command: (point) -> command, called when the point starts; its output goes to log.txt.
      say: (point, event), called with "started", "ended", or "running": another process trains it.
      jobs: largest number of commands at a time.
      gpus: GPUs to which the commands are assigned cyclically.
      modules: folder with modules of tasks.

    Raises:
      OSError: a command cannot be started, or its log cannot be written.
    """
    waiting = deque(points)
    slots = deque(gpus[i % len(gpus)] if gpus else None for i in range(jobs))
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and slots:
                point, words = waiting[0], command(waiting[0])
                log = open_log(waiting.popleft().folder, words)
                if log is None:
                    say(point, "running")
                    continue
                gpu = slots.popleft()
                environment = _environment(gpu, jobs > len(gpus), modules)
                process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
                )
                running.append(_Job(point, process, log, gpu))
                say(point, "started")
            ended = [job for job in running if job.process.poll() is not None]
            for job in ended:
                running.remove(job)
                slots.append(job.gpu)
                close_log(job.log, job.process.returncode)
                say(job.point, "ended")
            if not ended:
                time.sleep(_POLL_SECONDS)
    finally:
        _stop(running)


def visible_gpus() -> list[str]:
    """Return the NVIDIA GPUs that trainings can use, as CUDA_VISIBLE_DEVICES names them.

    JAX is not asked: it would reserve their memory for this process.
    """
    plugins = entry_points(group="jax_plugins")
    platforms = os.environ.get("JAX_PLATFORMS", "cuda")
    if not any("cuda" in plugin.name for plugin in plugins) or not (
        {"cuda", "gpu"} & set(platforms.split(","))
    ):
        return []
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            query, capture_output=True, text=True, check=True, timeout=_NVIDIA_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return answer.stdout.split()


def _environment(gpu: str | None, shared: bool, modules: Path | None) -> dict[str, str]:
    """Return the environment of a training."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    if gpu is not None:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
        if shared:  # by default the first process would reserve the memory
            environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if modules is not None:
        # A resumed run reads the settings in its own folder, where the module of a task is not.
        paths = [environment.get("PYTHONPATH", ""), str(modules.resolve())]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return environment


def _stop(jobs: Sequence[_Job]) -> None:
    """Stop some trainings, and wait until they have ended."""
    for job in jobs:
        job.process.terminate()
    end = time.monotonic() + _STOP_SECONDS
    for job in jobs:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.process.wait(max(end - time.monotonic(), 0.0))
        if job.process.poll() is None:
            job.process.kill()
            job.process.wait()
        job.log.close()
