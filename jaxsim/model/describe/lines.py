"""Names, numbers and truncated lists in descriptions."""

from collections.abc import Iterable, Sequence

import jax
import numpy as np

from jaxsim.enums import JointType
from jaxsim.escape import line
from jaxsim.model.model import Model

_MAX_LISTED_ROWS = 12  # entries of a list that are shown
DOF_AXES = {
    JointType.FREE: ("x", "y", "z", "turn x", "turn y", "turn z"),
    JointType.BALL: ("turn x", "turn y", "turn z"),
    JointType.SLIDE: ("",),
    JointType.HINGE: ("",),
}


def dof_labels(m: Model) -> list[str]:
    """Return the name of each dof: its joint and axis."""
    return [
        f"{name_of(m, 'joint', j)} {axis}".rstrip()
        for j in range(m.njnt)
        for axis in DOF_AXES[JointType(int(m.jnt_type[j]))]
    ]


def name_of(m: Model, kind: str, index: int) -> str:
    """Return the name of an object on one line, or its kind and number."""
    names: Sequence[str] = dict(m.structure.names).get(kind, ())
    own = names[index] if index < len(names) else ""
    return line(own) or f"{kind} {index}"


def format_numbers(values: jax.Array | np.ndarray) -> str:
    """Return numbers as text, four digits each."""
    return " ".join(map(format_number, values))


def format_number(value: float | jax.Array) -> str:
    """Return a number as text, four digits."""
    return f"{float(value):.4g}"


def truncate_lines(lines: Iterable[str]) -> list[str]:
    """Return the first `_MAX_LISTED_ROWS` lines, and a line with the number of those left out."""
    every = [*lines]
    more = len(every) - _MAX_LISTED_ROWS
    return every if more <= 1 else [*every[:_MAX_LISTED_ROWS], f"... and {more} more"]
