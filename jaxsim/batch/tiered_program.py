"""Programs in two tiers: compiled quickly at first, and optimized in the background if worth it.

XLA compiles a CPU program in half of the time without LLVM's optimizations; the program is then 5
to 11 times slower. A fit or a plan often runs for less time than the optimized program takes to
compile. So, as in a just-in-time compiler, the quickly compiled program runs first. Once it has run
for as long as it took to compile, a thread compiles the optimized program, which takes over at the
next call. The results of both agree to rounding errors.
"""

import functools
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from jaxsim.io.phase import named_phase

TIERS = ("auto", "fast", "optimized")

_compilations: set[Future] = set()


def check_tier(tier: str) -> None:
    """Raise ValueError if there is no such tier."""
    if tier not in TIERS:
        raise ValueError(f"tier: expected one of {', '.join(TIERS)}, got {tier!r}")


class ReplacedProgram:
    """A quickly compiled program that is replaced by the optimized one once that is worth it.

    Args:
      program: the quickly compiled program.
      compile_seconds: time that it took to compile [s].
      optimize: compiles the optimized program; called in a thread.
      name: what the program does, for the warning if that fails: "compile the fit".
    """

    def __init__(
        self, program: Any, compile_seconds: float, optimize: Callable[[], Any], name: str
    ):
        self.program, self.compile_seconds, self._name = program, compile_seconds, name
        self._optimize: Callable[[], Any] | None = optimize
        self._run_seconds = 0.0

    def __call__(self, *arguments: Any) -> Any:
        """Run the program; wait for its result as long as its time decides."""
        if self._optimize is None:
            return self.program(*arguments)
        start = time.perf_counter()
        result = jax.block_until_ready(self.program(*arguments))
        self._run_seconds += time.perf_counter() - start
        if self._run_seconds > self.compile_seconds:
            optimize, self._optimize = self._optimize, None
            start_in_thread(functools.partial(self._replace, optimize))
        return result

    def _replace(self, optimize: Callable[[], Any]) -> None:
        """Compile the optimized program, and call it from now on; warn if that fails."""
        try:
            self.program = optimize()
        except RuntimeError as error:  # those of XLA are, for example if memory is exhausted
            message = f"{self._name}: the quickly compiled program goes on; optimizing failed"
            warnings.warn(f"{message}: {error}", RuntimeWarning, stacklevel=1)


class AwaitedProgram:
    """A program that a thread still compiles; the first call waits for it.

    Args:
      compiling: the thread's result.
      name: what the thread does, for reports: "compile the learner".
    """

    def __init__(self, compiling: Future, name: str):
        self._compiling, self._name = compiling, name
        self._program: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the program."""
        if self._program is None:
            with named_phase(self._name):
                self._program = self._compiling.result()
        return self._program(*arguments)


def start_in_thread(compile_program: Callable[[], Any]) -> Future:
    """Start a compilation in a thread of its own; return its result, which has errors too."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile")
    done = thread.submit(compile_program)
    thread.shutdown(wait=False)
    _compilations.add(done)
    done.add_done_callback(_compilations.discard)
    return done


def is_compiling() -> bool:
    """Return whether a program is being compiled in the background.

    A process waits for it at its end, unless it leaves by `os._exit`.
    """
    return bool(_compilations)
