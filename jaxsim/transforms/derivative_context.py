"""The part of the trace context that records whether a derivative is taken of the traced code.

Code under differentiation avoids loops of unknown length, which have no reverse mode, and loops
that update an array, whose carry reverse mode would save for every iteration.
"""

from contextlib import AbstractContextManager
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.trace_context import trace_context, trace_with
from jaxsim.transforms.platform import platform


def is_real(a: Any) -> bool:
    """Return whether an array has a floating-point dtype, hence a tangent."""
    return jnp.issubdtype(a.dtype, np.floating)


def is_differentiated() -> bool:
    """Return whether a derivative is taken of the code being traced; no `while` loops then."""
    return trace_context().differentiated


def trace_for_derivative() -> AbstractContextManager:
    """Return a context in which functions are traced to be differentiated."""
    return trace_with(differentiated=True)


def not_differentiated() -> AbstractContextManager:
    """Return a context for the inside of a function that has a derivative rule of its own."""
    return trace_with(differentiated=False)


def prefer_loops() -> bool:
    """Return whether a loop is faster than its unrolled form.

    This holds in the fused kernels of a CPU (cpu_fusion.py) unless a derivative is taken, which
    would save the carry of each iteration.
    """
    return platform().fuses_calls and not is_differentiated()
