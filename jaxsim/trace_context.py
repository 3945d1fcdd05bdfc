"""The trace context: all that decides which program is traced, apart from arguments and structure.

One frozen record in one user context of JAX, hence part of JAX's cache keys: what `jax.jit` traced
in one context it never uses in another. A call of the physics keeps the context in which it was
made (transforms/primitive.py), and layouts that depend on thresholds are cached per set of these
(model/structure.py).
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import jax


class TraceContext(NamedTuple):
    """Properties of the program being traced.

    Attributes:
      platform: name of the platform that runs the program; "": JAX's default
        (transforms/platform.py).
      kernels: use the package's own GPU kernels; None: where a GPU supports them.
      differentiated: a derivative is taken (transforms/derivative_context.py).
      fully_asleep: the program only runs on states in which every tree of every world sleeps.
      keeps_candidate_slots: each candidate contact keeps its own slot if the capacity covers them
        all, so that results by slot do not depend on the number of worlds.
      tile: worlds per tile that a caller requests; None: the default (transforms/layout.py).
      tuning: thresholds that differ from the defaults, with their values (transforms/tuning.py).
    """

    platform: str = ""
    kernels: bool | None = None
    differentiated: bool = False
    fully_asleep: bool = False
    keeps_candidate_slots: bool = False
    tile: int | None = None
    tuning: tuple[tuple[str, Any], ...] = ()


# Options of JAX that change a program.
_JAX_OPTIONS = """jax_enable_x64 jax_default_matmul_precision jax_default_prng_impl jax_debug_nans
jax_debug_infs jax_disable_jit jax_threefry_partitionable jax_numpy_dtype_promotion
jax_numpy_rank_promotion jax_num_cpu_devices""".split()

_context = jax.make_user_context(default_value=TraceContext())


def trace_context() -> TraceContext:
    """Return the context of the program being traced."""
    context: TraceContext = _context.value
    return context


def enter_trace_context(context: TraceContext) -> AbstractContextManager:
    """Return a manager inside of which programs are traced in another context."""
    return _context(context)


@contextmanager
def trace_with(**changes: Any) -> Iterator[None]:
    """Change some fields of the trace context inside a `with` statement."""
    with enter_trace_context(trace_context()._replace(**changes)):
        yield


def jax_options() -> tuple[tuple[str, Any], ...]:
    """Return the options of JAX that change a program, with their values in this thread."""
    return tuple((name, getattr(jax.config, name, None)) for name in _JAX_OPTIONS)
