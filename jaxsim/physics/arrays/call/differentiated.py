"""Whether a derivative is made of what is traced, on which the form of the code depends."""

from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.physics.arrays.platform import platform


def is_real(a: Any) -> bool:
    """Whether something is differentiated, not counted."""
    return jnp.issubdtype(a.dtype, np.floating)


_differentiated = jax.make_user_context(default_value=False)


def differentiated() -> bool:
    """Whether a derivative is made of what is traced: it has no loops of unknown length then."""
    return bool(_differentiated.value)


def for_derivative() -> AbstractContextManager:
    """A context in which functions are traced to be differentiated."""
    return _differentiated(True)


def not_differentiated() -> AbstractContextManager:
    """A context for the inside of a function that has a derivative of its own."""
    return _differentiated(False)


def loops_pay() -> bool:
    """Whether a loop is better than what it writes out: in the kernels of a CPU (cpu_kernels.py),
    where no derivative is made of it, which would keep what each turn begins with."""
    return platform().in_kernels and not differentiated()
