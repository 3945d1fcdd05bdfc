"""Programs in two tiers: compiled quickly at first, and optimized in the background if worth it.

XLA compiles a CPU program in a third of the time without LLVM's optimizations; the program is then
slower (humanoid, 1,024 worlds: 1.3 to 1.8 times). A fit or a plan often runs for less time than the
optimized program takes to compile. So, as in a just-in-time compiler, the quickly compiled program
runs first. Once it has run for as long as it took to compile, a thread compiles the optimized
program, which takes over at the next call. The results of both agree to rounding errors.
"""

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
        if tier not in TIERS:
            raise ValueError(f"tier: expected one of {', '.join(TIERS)}, got {tier!r}")
        self._lowered, self._name = lowered, name
        self._is_fast = tier != "optimized" and platform_name() == "cpu"
        self._may_be_replaced = self._is_fast and tier == "auto"
        self._run_seconds = self.compile_seconds = 0.0
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
        if not self._may_be_replaced:
            return self._program(*arguments)
        start = time.perf_counter()
        result = jax.block_until_ready(self._program(*arguments))
        self._run_seconds += time.perf_counter() - start
        if self._run_seconds > self.compile_seconds:
            self._may_be_replaced = False
            _start(self._optimize)
        return result

    def _compile(self) -> None:
        """Compile the program that is called first."""
        start = time.perf_counter()
        self._program = self._lowered.compile(FAST_COMPILE_OPTIONS if self._is_fast else None)
        self.compile_seconds = time.perf_counter() - start

    def _optimize(self) -> None:
        """Compile the optimized program, and call it from now on; warn if that fails."""
        try:
            self._program = self._lowered.compile()
        except RuntimeError as error:  # those of XLA are, for example if memory is exhausted
            message = f"{self._name}: the quickly compiled program goes on; optimizing failed"
            warnings.warn(f"{message}: {error}", RuntimeWarning, stacklevel=1)


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
