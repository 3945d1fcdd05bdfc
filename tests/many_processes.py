"""Run a program or command in several processes of this machine, as one distributed run."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600.0  # seconds that a run may take on a busy machine
# Compiled quickly; results do not depend on it, apart from rounding.
XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1"
)


class Result(NamedTuple):
    """The end of a process."""

    code: int
    out: str
    err: str


def free_address() -> str:
    """An unused address of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def environment(devices: int) -> dict[str, str]:
    """The environment of a process with some CPU devices."""
    clusters = ("JAX_", "SLURM_", "OMPI_", "KUBERNETES_")  # would be detected
    env = {k: v for k, v in os.environ.items() if not k.startswith(clusters)}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return env | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(devices),
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
        "PYTHONPATH": paths,
        "XLA_FLAGS": XLA_FLAGS,
    }


def start(arguments: Sequence[str], devices: int = 1, cwd: Path = ROOT) -> subprocess.Popen:
    """Start Python with some arguments."""
    return subprocess.Popen(
        [sys.executable, "-u", *map(str, arguments)],
        env=environment(devices),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: Sequence[subprocess.Popen]) -> list[Result]:
    """Wait for the end of all processes."""
    end = time.monotonic() + LIMIT
    results = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=max(end - time.monotonic(), 1.0))
            results.append(Result(process.returncode, out, err))
    finally:
        for process in processes:
            process.kill()
    return results


def start_commands(
    arguments: Sequence[str], count: int, cwd: Path = ROOT
) -> list[subprocess.Popen]:
    """Start `jaxsim` with some arguments in connected processes."""
    joined = ["--coordinator", free_address(), "--processes", str(count), "--process"]
    return [start(["-m", "jaxsim", *arguments, *joined, str(i)], cwd=cwd) for i in range(count)]


def run_commands(arguments: Sequence[str], count: int, cwd: Path = ROOT) -> list[Result]:
    """Run `jaxsim` with some arguments in connected processes."""
    return finish(start_commands(arguments, count, cwd))


def run_code(code: str, count: int) -> list[Result]:
    """Run a program in connected processes; `process`, `processes` and `address` are defined."""
    address = free_address()
    heads = [f"process, processes, address = {i}, {count}, {address!r}\n" for i in range(count)]
    return finish([start(["-c", head + code]) for head in heads])


def wait_until(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    """Wait for a condition."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "the condition did not become true"
        time.sleep(0.05)
