"""Programs in two tiers: compiled quickly at first, and optimized in the background if worth it.

XLA compiles a CPU program in a third of the time without LLVM's optimizations; the program is then
slower (humanoid, 1,024 worlds: 1.3 to 1.8 times). A fit or a plan often runs for less time than the
optimized program takes to compile. So, as in a just-in-time compiler, the quickly compiled program
runs first. Once it has run for as long as it took to compile, a thread compiles the optimized
program, which takes over at the next call. The results of both agree to rounding errors.
"""

import threading
import time
from typing import Any

import jax

from jaxsim.io.phase import named_phase
from jaxsim.transforms.platform import FAST_COMPILE_OPTIONS, platform_name

TIERS = ("auto", "fast", "optimized")

_compilations: set[threading.Thread] = set()


class TieredProgram:
    """A lowered program that can be called before it is optimized.

    Args:
      lowered: the program, `jax.jit(f).lower(*arguments)`.
      name: what the program does, for reports on its compilation: "compile the fit".
      tier: "auto": the quickly compiled program, replaced by the optimized one while it runs;
        "fast" or "optimized": one of them alone, with the same bits in each run. Platforms other
        than CPU always have the optimized program.

    Attributes:
      compile_seconds: time until the program could be called [s].
    """

    def __init__(self, lowered: jax.stages.Lowered, name: str, tier: str = "auto"):
        if tier not in TIERS:
            raise ValueError(f"tier: expected one of {', '.join(TIERS)}, got {tier!r}")
        self._lowered = lowered
        on_cpu = platform_name() == "cpu"
        is_fast = tier != "optimized" and on_cpu
        start = time.perf_counter()
        with named_phase(name):
            self._program = lowered.compile(FAST_COMPILE_OPTIONS if is_fast else None)
        self.compile_seconds = time.perf_counter() - start
        self._run_seconds = 0.0
        self._may_be_replaced = is_fast and tier == "auto"

    def __call__(self, *arguments: Any) -> Any:
        """Run the program and wait for its result."""
        if not self._may_be_replaced:
            return self._program(*arguments)
        start = time.perf_counter()
        result = jax.block_until_ready(self._program(*arguments))
        self._run_seconds += time.perf_counter() - start
        if self._run_seconds > self.compile_seconds:
            self._may_be_replaced = False
            thread = threading.Thread(target=self._optimize, name="optimize")
            _compilations.add(thread)
            thread.start()
        return result

    def _optimize(self) -> None:
        """Compile the optimized program, and call it from now on."""
        try:
            self._program = self._lowered.compile()
        finally:
            _compilations.discard(threading.current_thread())


def is_compiling() -> bool:
    """Return whether a program is being optimized in the background.

    A process waits for it at its end, unless it leaves by `os._exit`.
    """
    return bool(_compilations)
