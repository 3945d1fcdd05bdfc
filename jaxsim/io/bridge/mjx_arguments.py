"""MJX's keyword arguments, accepted for programs written for MJX.

`device` selects the device of the arrays. The others choose an implementation and buffer sizes of
MJX; here they have no effect, and a warning names what to use instead.
"""

import sys
import warnings
from typing import Any

import jax

from jaxsim.model.record.record import Impl

_CONTACT_CAPACITY_HINT = (
    "the contact capacity belongs to the model: put_model(..., contacts=, pairs=)"
)
_ROW_CAPACITY_HINT = "the row capacity covers all contacts within the contact capacity"
_BUFFER_HINTS = {
    "nconmax": _CONTACT_CAPACITY_HINT,
    "naconmax": _CONTACT_CAPACITY_HINT,
    "naccdmax": _CONTACT_CAPACITY_HINT,
    "njmax": _ROW_CAPACITY_HINT,
}


def check_choices(function: str, impl: Any, buffers: dict[str, int | None]) -> None:
    """Warn about each argument of MJX that has no effect.

    Args:
      function: name of the function that the user called.
      impl: MJX's implementation, by name or enumeration; None or "jax": no warning.
      buffers: buffer sizes by name; None: not given.

    Raises:
      TypeError: there is no such argument.
    """
    engine = getattr(impl, "value", impl)
    if engine not in (None, Impl.JAX.value):
        _warn(f"{function}: impl={engine!r} has no effect: the physics is jaxsim's, written in JAX")
    for name, value in buffers.items():
        if name not in _BUFFER_HINTS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if value is not None:
            _warn(f"{function}: {name}={value} has no effect: {_BUFFER_HINTS[name]}")


def move_to_device(tree: Any, device: Any) -> Any:
    """Return the arrays on a device; None: leave them where they are."""
    return tree if device is None else jax.device_put(tree, device)


def _warn(sentence: str) -> None:
    """Warn at the line of the caller, the first frame outside of this package."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)
