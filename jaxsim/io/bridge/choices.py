"""Arguments of MJX's calls, for programs that were written for it.

`device` puts arrays there. The others choose among MJX's engines and the sizes of their buffers;
here they have no effect, and a warning says what has.
"""

import sys
import warnings
from typing import Any

import jax

from jaxsim.model.fields import Impl

ROOM = "room for contacts is the model's, for each world: put_model(..., contacts=, pairs=)"
ROWS = "there is room for the rows of all contacts that there is room for"
BUFFERS = {"nconmax": ROOM, "naconmax": ROOM, "naccdmax": ROOM, "njmax": ROWS}


def check_choices(function: str, impl: Any, buffers: dict[str, int | None]) -> None:
    """Says of each choice that it has no effect.

    Args:
      function: what the user called.
      impl: the engine, by name or as an enumeration of MJX's; None or "jax": this one.
      buffers: sizes by name; None: none is asked for.

    Raises:
      TypeError: there is no such argument.
    """
    engine = getattr(impl, "value", impl)
    if engine not in (None, Impl.JAX.value):
        _warn(f"{function}: impl={engine!r} has no effect: the physics is jaxsim's, written in JAX")
    for name, value in buffers.items():
        if name not in BUFFERS:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        if value is not None:
            _warn(f"{function}: {name}={value} has no effect: {BUFFERS[name]}")


def on_device(tree: Any, device: Any) -> Any:
    """Return the arrays on a device; None: where they are."""
    return tree if device is None else jax.device_put(tree, device)


def _warn(sentence: str) -> None:
    """Warn at the line of the user, the first outside of this package."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)
