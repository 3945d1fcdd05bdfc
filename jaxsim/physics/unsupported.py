"""Features of a model that the engine does not support; io/unsupported.py lists the checks."""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model


class Refusal(NamedTuple):
    """Unsupported feature of a model.

    Attributes:
      message: the feature, and what to do instead.
      kind: kind of the object concerned, as in `m.names`; None: the model as a whole.
      number: id of that object.
    """

    message: str
    kind: str | None = None
    number: int = 0


def make_refusal(m: Model, kind: str, index: int | np.integer, what: str) -> Refusal:
    """Return a refusal that begins with the object's name."""
    return Refusal(f"{describe_object(m, kind, index)}: {what}", kind, int(index))


def describe_object(m: Model, kind: str, index: int | np.integer) -> str:
    """Return an object for a message: its name, or its id if it has none."""
    names = m.names.get(kind, ())
    name = names[index] if index < len(names) else ""
    return f"{kind} '{name}'" if name else f"{kind} {index}"
