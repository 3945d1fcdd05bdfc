"""How a description names and cuts: names of objects and dofs, numbers, the first of a list."""

from collections.abc import Iterable, Sequence

import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.model import Model

ROWS = 12  # of a list that are shown
AXES = {
    JointType.FREE: ("x", "y", "z", "turn x", "turn y", "turn z"),
    JointType.BALL: ("turn x", "turn y", "turn z"),
    JointType.SLIDE: ("",),
    JointType.HINGE: ("",),
}


def dofs(m: Model) -> list[str]:
    """What each dof is, by its joint."""
    return [
        f"{name_of(m, 'joint', j)} {axis}".rstrip()
        for j in range(m.njnt)
        for axis in AXES[JointType(int(m.jnt_type[j]))]
    ]


def name_of(m: Model, kind: str, index: int) -> str:
    """The name of an object, or its kind and number."""
    names: Sequence[str] = m.names.get(kind, ())
    own = names[index] if index < len(names) else ""
    return own or f"{kind} {index}"


def numbers(values: np.ndarray) -> str:
    """Some numbers, in four digits each."""
    return " ".join(map(number, values))


def number(value: float) -> str:
    """A number, in four digits."""
    return f"{float(value):.4g}"


def shown(lines: Iterable[str]) -> list[str]:
    """The first of some lines, and how many there are more."""
    every = [*lines]
    more = len(every) - ROWS
    return every if more <= 1 else [*every[:ROWS], f"... and {more} more"]
