"""Strict numbers for every test: float64, no rank promotion, no implicit dtype promotion.

Compiled programs are kept in `.cache/jax`, so that a second run of the tests only traces.
"""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest

from jaxsim.errors import UnsupportedError, UnsupportedWarning
from jaxsim.model.model import Model
from jaxsim.physics.public.make_data import make_data
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS, PLATFORMS

TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
# a file to which each file of tests adds what it took (Linux)
MEMORY = os.environ.get("TEST_MEMORY")
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "jax"

# A program in kernels (cpu_fusion.py) takes up to twice as long to trace and compile as one
# without, and saves nothing where it runs a few times. So only files marked `kernels` use them:
# those about them and about code that is written differently for them, steps and rollouts, whole
# models, and what is compared bit by bit. TEST_OPTIMIZED=1 uses them everywhere.
BY_KERNELS = PLATFORMS["cpu"]

# Half of the time of these tests would be XLA's: it optimizes programs that run a few times.
# TEST_OPTIMIZED=1, which `make test-all` sets, compiles as users do; so do some tests of the narrow
# phase, whose decisions must not depend on how a program is compiled.
FAST = " ".join(f"--{name}={value}".lower() for name, value in FAST_COMPILE_OPTIONS.items())
OPTIMIZED = bool(os.environ.get("TEST_OPTIMIZED"))
# Modules are not split for parallel code generation: the other core runs tests of its own.
if not OPTIMIZED:
    whole = "--xla_cpu_parallel_codegen_split_count=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FAST} {whole}"
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
# Small programs too: most are operations of arrays of shapes that many files have, and to read one
# takes half of the time of compiling it.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_platforms", "cpu")
# Stored programs are keyed by all sources: each change would leave a set of them.
os.environ["JAXSIM_STORE_PROGRAMS"] = "0"

# Tracing makes millions of objects that live: to look through all of them again and again took a
# tenth of the time.
gc.set_threshold(100_000, 20, 10)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the marker `short` leaves out as slow; begin with files of long tests.

    At the end of a run one core would wait for another's long file.
    """
    chosen: dict[tuple[str, ...], set[str]] = {}
    for item in items:
        marker, call = item.get_closest_marker("short"), getattr(item, "callspec", None)
        if marker is not None and call is not None:
            chosen.setdefault((item.nodeid.partition("[")[0], *marker.args), set()).add(call.id)
            if call.id not in marker.args:
                item.add_marker(pytest.mark.slow)
    if not any("::" in arg for arg in config.args):
        for (test, *names), found in chosen.items():
            if unknown := set(names) - found:
                raise pytest.UsageError(f"{test}: short names no parameter {sorted(unknown)}")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Freeze imported and collected objects, so the garbage collector skips them.

    Of 700,000 objects a search for garbage takes half a second, and every file ends with one.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def programs_of_one_file(request) -> Iterator[None]:
    """Set how the programs of a file are compiled, and drop them: those of all files are gigabytes.

    XLA compiles in threads of its own. glibc keeps what these threads free for their next use, a
    gigabyte after a large file, until it is returned to the system explicitly.
    """
    kernels = OPTIMIZED or request.node.get_closest_marker("kernels") is not None
    PLATFORMS["cpu"] = BY_KERNELS._replace(fuses_calls=kernels)
    yield
    most = memory("VmHWM") if MEMORY else ""
    jax.clear_caches()
    gc.collect()
    if TRIM is not None:
        TRIM(0)
    if MEMORY:
        with open(MEMORY, "a") as file:
            print(f"{request.node.nodeid}: {most} at most, {memory('VmRSS')} left", file=file)
        Path("/proc/self/clear_refs").write_text("5")  # the most of the next file is its own


def memory(what: str) -> str:
    """Resident memory of this process: now (VmRSS), or the most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    size = next(int(line.split()[1]) for line in lines if line.startswith(what))
    return f"{size / 2**20:.2f} GB"


@pytest.fixture
def refused():
    """Models that cannot be simulated warn when they are loaded, and raise when they step."""

    def messages(make: Callable[[], Model]) -> list[str]:
        with pytest.warns(UnsupportedWarning):
            m = make()
        with pytest.raises(UnsupportedError) as caught:
            make_data(m)
        return [str(problem) for problem in caught.value.problems]

    return messages
