"""Naming what a model has and the engine has not; each stage lists its own `refusals`."""

import numpy as np

from jaxsim.model import Model


def named(m: Model, kind: str, index: int | np.integer) -> str:
    """An object for a message: its name, or its number if it has none."""
    names = m.names.get(kind, ())
    name = names[index] if index < len(names) else ""
    return f"{kind} '{name}'" if name else f"{kind} {index}"
