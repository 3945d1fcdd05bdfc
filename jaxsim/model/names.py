"""Convert between names and ids of bodies, joints, geoms and other objects."""

import operator
from collections.abc import Iterable
from typing import Any

from jaxsim.enums import CtrlChart, CtrlInput, GainType, ObjType
from jaxsim.escape import line
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.spelling import remedy

_MAX_LISTED_NAMES = 20  # names that a message lists


def name2id(m: Model, kind: ObjType | str, name: str) -> int:
    """Return the id of a named object. Corresponds to `mj_name2id` in MuJoCo.

    Args:
      m: the model.
      kind: kind of the object: `ObjType.JOINT` or "joint".
      name: its name.

    Raises:
      ValueError: there is no such kind, or no object of this kind has the name; the message names
        the nearest.

    Example:
      >>> name2id(m, "joint", "hinge")
      0
      >>> name2id(m, "joint", "hing")
      Traceback (most recent call last):
      ValueError: no joint is named 'hing'; did you mean 'hinge'?
    """
    names = _names(m, kind)
    if name and name in names:
        return names.index(name)
    raise ValueError(f"no {_kind(kind)} is named {name!r}{_suggestion(name, filter(None, names))}")


def id2name(m: Model, kind: ObjType | str, index: int) -> str | None:
    """Return the name of an object; None if it is unnamed or does not exist.

    Corresponds to `mj_id2name` in MuJoCo.

    Raises:
      ValueError: there is no such kind.

    Example:
      >>> id2name(m, "body", 1), id2name(m, "body", 7)
      ('arm', None)
    """
    if not hasattr(index, "__index__"):
        raise ValueError(f"id2name: index: expected an integer id, got {brief_value(index)}")
    names = _names(m, kind)
    return names[index] or None if 0 <= index < len(names) else None


def actuator_input_name(m: Model, actuator: int | str, slot: int) -> str | None:
    """Return the name of an input of an actuator.

    Corresponds to `mj_actuatorInputName` in MuJoCo. Setpoints are "pos" and "vel", a feedforward
    "ff"; orientations "rx", "ry", "rz" or "qw", "qx", "qy", "qz"; others "voltage" and "pressure".
    None for an input without a name (`CtrlInput.NONE`), such as the control of a motor, and for a
    slot outside the block.

    Args:
      m: the model.
      actuator: id or name of the actuator.
      slot: index of the input in the actuator's block of `ctrl`, from 0.

    Raises:
      ValueError: there is no such actuator, `actuator` is neither a whole number nor a name, or
        `slot` is no whole number.
    """
    if isinstance(actuator, str):
        index = name2id(m, "actuator", actuator)
    else:
        index = _check_integer("actuator", "a name or a", actuator)
    slot = _check_integer("slot", "a", slot)
    if not 0 <= index < m.nactuator:
        raise ValueError(f"actuator: the model has {m.nactuator}, there is no number {index}")
    signature = int(m.actuator_ctrlspec[index])
    if m.actuator_gaintype[index] == GainType.SO3:
        inputs = _CHART_COMPONENTS[CtrlChart(signature)]
    else:
        inputs = tuple(name for i, name in NAMED_INPUTS if i & signature)
    return inputs[slot] if 0 <= slot < len(inputs) else None


# Coordinates of a commanded orientation.
_CHART_COMPONENTS = {CtrlChart.EXPMAP: ("rx", "ry", "rz"), CtrlChart.QUAT: ("qw", "qx", "qy", "qz")}
NAMED_INPUTS = [
    (i, name.lower()) for name, i in CtrlInput.__members__.items() if i != CtrlInput.NONE
]


def _check_integer(argument: str, what: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(
            f"actuator_input_name: {argument}: expected {what} whole number, got {value!r}"
        )
    return operator.index(value)


def _names(m: Model, kind: ObjType | str) -> tuple[str, ...]:
    known = dict(m.structure.names)
    wanted = _kind(kind)
    if wanted not in known:
        raise ValueError(f"no kind of object is called {wanted!r}{_suggestion(wanted, known)}")
    return known[wanted]


def _kind(kind: ObjType | str) -> str:
    name = kind if isinstance(kind, str) else ObjType(kind).name.lower()
    return "body" if name == "xbody" else name


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return the nearest name, or a list of names, for the end of a message."""
    known = list(known)
    shown = ", ".join(map(line, known[:_MAX_LISTED_NAMES])) or "none"
    return remedy(
        str(name), known, f"; there are: {shown}{', ...' if len(known) > _MAX_LISTED_NAMES else ''}"
    )
