"""Programs in two tiers: compiled quickly at first, and optimized in the background if worth it.

XLA compiles a CPU program in a third of the time without LLVM's optimizations; the program is then
slower (humanoid, 1,024 worlds: 1.3 to 1.8 times). A fit or a plan often runs for less time than the
optimized program takes to compile. So, as in a just-in-time compiler, the quickly compiled program
runs first. Once it has run for as long as it took to compile, a thread compiles the optimized
program, which takes over at the next call. The results of both agree to rounding errors.
"""

import functools
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from jaxsim.io.phase import named_phase
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS, platform_name

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
            _start(functools.partial(self._replace, optimize))
        return result

    def _replace(self, optimize: Callable[[], Any]) -> None:
        """Compile the optimized program, and call it from now on; warn if that fails."""
        try:
            self.program = optimize()
        except RuntimeError as error:  # those of XLA are, for example if memory is exhausted
            message = f"{self._name}: the quickly compiled program goes on; optimizing failed"
            warnings.warn(f"{message}: {error}", RuntimeWarning, stacklevel=1)


class TieredProgram:
    """A lowered program that can be called before it is optimized.

    Args:
      lowered: the program, `jax.jit(f).lower(*arguments)`.
      name: what the program does, for reports on its compilation: "compile the fit".
      tier: "auto": the quickly compiled program, replaced by the optimized one while it runs;
        "fast" or "optimized": one of them alone, with the same bits in each run. Platforms other
        than CPU always have the optimized program.
      background: compile in a thread; the first call waits for it. Other programs can be traced
        meanwhile.

    Attributes:
      compile_seconds: time to compile the program that can be called first [s]; 0 until then.
    """

    def __init__(
        self,
        lowered: jax.stages.Lowered,
        name: str,
        tier: str = "auto",
        *,
        background: bool = False,
    ):
        check_tier(tier)
        self._lowered, self._name = lowered, name
        self._is_fast = tier != "optimized" and platform_name() == "cpu"
        self._may_be_replaced = self._is_fast and tier == "auto"
        self.compile_seconds = 0.0
        self._program: Any = None
        self._waiting: Future | None = None
        if background:
            self._waiting = _start(self._compile)
        else:
            with named_phase(name):
                self._compile()

    def __call__(self, *arguments: Any) -> Any:
        """Run the program and wait for its result."""
        if self._waiting is not None:
            with named_phase(self._name):
                self._waiting.result()
            self._waiting = None
        return self._program(*arguments)

    def _compile(self) -> None:
        """Compile the program that is called first."""
        start = time.perf_counter()
        program = self._lowered.compile(FAST_COMPILE_OPTIONS if self._is_fast else None)
        self.compile_seconds = time.perf_counter() - start
        self._program = program
        if self._may_be_replaced:
            optimize = self._lowered.compile
            self._program = ReplacedProgram(program, self.compile_seconds, optimize, self._name)


def _start(compile_program: Callable[[], None]) -> Future:
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
