"""Naming what a model has and the engine has not; each stage lists its own `refusals`."""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model


class Refusal(NamedTuple):
    """One thing in a model that cannot be simulated.

    Attributes:
      message: what it is and what to do instead.
      kind: the kind of object it is about, as in `m.names`; None: the model as a whole.
      number: the id of that object.
    """

    message: str
    kind: str | None = None
    number: int = 0


def refuse(m: Model, kind: str, index: int | np.integer, what: str) -> Refusal:
    """A refusal that begins with the object's name."""
    return Refusal(f"{named(m, kind, index)}: {what}", kind, int(index))


def named(m: Model, kind: str, index: int | np.integer) -> str:
    """An object for a message: its name, or its number if it has none."""
    names = m.names.get(kind, ())
    name = names[index] if index < len(names) else ""
    return f"{kind} '{name}'" if name else f"{kind} {index}"
