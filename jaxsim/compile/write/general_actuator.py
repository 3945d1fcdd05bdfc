"""Rewrite a compiled actuator as `<general>`, with all parameters explicit.

A shortcut such as `<position>` determines the parameters of its gain and bias; other values can be
written as `<general>` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from jaxsim.compile.actuator.types import (
    BIASTYPES,
    CHART_BY_NAME,
    CONTROL_INPUTS,
    DYNTYPES,
    GAINTYPES,
)
from jaxsim.compile.context import Compilation
from jaxsim.enums import CtrlInput, DynType, GainType
from jaxsim.mjcf.schema.actuator import GENERAL
from jaxsim.spec import SpecElement

_TYPES: dict[str, Mapping[str, IntEnum]] = {
    "dyntype": DYNTYPES,
    "gaintype": GAINTYPES,
    "biastype": BIASTYPES,
}
_PARAMETERS = ("dynprm", "gainprm", "biasprm")
# Attributes that a shortcut in a default class may have set for actuators of the class.
_OWNED = {*_TYPES, *_PARAMETERS, "actearly", "input", "ctrllimited"}
_RANGES = (("forcerange", "forcelimited"), ("actrange", "actlimited"))


def rewrite_as_general(c: Compilation, i: int, fields: Mapping[str, Any] | None = None) -> None:
    """Rewrite actuator `i` with the values of the compiled model, or of other fields."""
    element = c.elements["actuator"][i]
    f = c.fields if fields is None else fields
    row = GENERAL

    # attributes that shortcuts and general share, including those of classes
    given = {name for layer in element.layers() for name in layer.attrs if name in row.attrs}
    attrs = {name: element.get(name) for name in given if element.row.attribute(name) is not None}
    owned = _OWNED if len(element.layers()) > 1 else set()
    element.tag, element.row = "general", row
    element.attrs = {**attrs, "inheritrange": 0.0}

    for name, words in _TYPES.items():
        element.set(name, _word(words, f[f"actuator_{name}"][i]))
    for name in _PARAMETERS:
        element.set(name, f[f"actuator_{name}"][i])
    element.set("actearly", bool(f["actuator_actearly"][i]))
    for name, flag in _RANGES:
        element.set(name, f[f"actuator_{name}"][i])
        _limit(element, flag, f[f"actuator_{name}"][i], bool(f[f"actuator_{flag}"][i]))
    if f["actuator_dyntype"][i] == DynType.USER:
        element.set("actdim", int(f["actuator_actnum"][i]))
    _controls(c, i, f)

    # remove unset attributes whose values are the defaults
    for name, value in list(element.attrs.items()):
        untouched = name not in given and name not in owned
        if untouched and np.array_equal(value, np.asarray(row.attrs[name].default)):
            element.unset(name)


def _controls(c: Compilation, i: int, f: Mapping[str, Any]) -> None:
    """Write the inputs, and the ranges of their controls."""
    element, spec = c.elements["actuator"][i], int(f["actuator_ctrlspec"][i])
    inputs = [word for word, bit in CONTROL_INPUTS.items() if spec & bit]
    if f["actuator_gaintype"][i] == GainType.SO3:
        inputs = [word for word, chart in CHART_BY_NAME.items() if chart == spec]
    elif spec == CtrlInput.NONE:
        inputs = ["none"]
    if inputs:
        element.set("input", " ".join(inputs))
    adr, count = f["actuator_ctrladr"][i], f["actuator_ctrlnum"][i]
    ranges = f["actuator_ctrlrange"][adr : adr + count]
    limited = f["actuator_ctrllimited"][adr : adr + count]
    if f["actuator_gaintype"][i] != GainType.PID:
        if count:
            element.set("ctrlrange", ranges[0])
            _limit(element, "ctrllimited", ranges[0], bool(limited[0]))
        return
    for word, values in zip(inputs, ranges, strict=True):
        element.set({"pos": "ctrlrange", "vel": "velrange", "ff": "ffrange"}[word], values)
    if "pos" in inputs:
        element.set("ctrllimited", bool(limited[inputs.index("pos")]))


def _limit(element: SpecElement, flag: str, bounds: np.ndarray, on: bool) -> None:
    """Write the flag of a limit, unless its range implies it."""
    if flag in element.attrs or on != bool(bounds[0] < bounds[1]) or bounds.any():
        element.set(flag, on)


def _word(words: Mapping[str, IntEnum], value: int) -> str:
    return next(word for word, kind in words.items() if kind == value)
