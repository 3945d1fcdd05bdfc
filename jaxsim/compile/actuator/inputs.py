"""Compile the controls of an actuator: its inputs, their ranges, and the limited flags."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.actuator.actuator_type import ActuatorType
from jaxsim.compile.context import Compilation
from jaxsim.compile.limit_flags import is_limited
from jaxsim.enums import CtrlChart, CtrlInput, DynType, GainType
from jaxsim.model import motor
from jaxsim.spec import SpecElement

# Shortcuts that require a control range, which must not be negative.
_ONE_SIDED = ("damper", "adhesion")


class Controls(NamedTuple):
    """The block of controls of one actuator: ranges (n, 2) and limited flags (n,)."""

    ranges: np.ndarray
    limited: np.ndarray


def ctrlspec(c: Compilation, e: SpecElement, t: ActuatorType) -> int:
    """Return the inputs of the actuator: those written, after a check, or those of its gain
    type."""
    pid = CtrlInput.POS | CtrlInput.VEL | CtrlInput.FF
    spec = CtrlInput(t.ctrlspec) if t.gaintype != GainType.SO3 else t.ctrlspec
    match t.gaintype:
        case GainType.PID:
            spec = spec or CtrlInput.POS | CtrlInput.VEL
            if spec & ~pid:
                c.fault(e, "the inputs of a pid are among pos, vel and ff")
            states = t.dyntype == DynType.PID and (t.gainprm[0] != 0 or t.dynprm[1] > 0)
            if states and not spec & CtrlInput.POS:
                c.fault(e, "ki and slewmax need the input pos")
        case GainType.DCMOTOR:
            spec = spec or CtrlInput.VOLTAGE
            if spec & ~(pid | CtrlInput.VOLTAGE) and spec != CtrlInput.NONE:
                c.fault(e, "the inputs of a dcmotor are 'none', or among pos, vel, ff and voltage")
            _check_controller(c, e, t, spec & pid, spec)
        case GainType.SO3:
            spec = spec or CtrlChart.EXPMAP
            if spec not in (CtrlChart.EXPMAP, CtrlChart.QUAT):
                c.fault(e, "the input of an orientation is 'expmap' or 'quat'")
            elif spec == CtrlChart.QUAT and t.dyntype != DynType.NONE:
                c.fault(e, "input='quat' needs dyntype='none'")
        case GainType.FIXED | GainType.AFFINE:
            if spec not in (0, CtrlInput.POS, CtrlInput.VEL, CtrlInput.PRESSURE):
                c.fault(e, "input must be one of pos, vel and pressure, or absent")
        case _:
            if spec:
                c.fault(e, "input has no meaning for this gaintype; remove it")
    return int(spec)


def _check_controller(
    c: Compilation, e: SpecElement, t: ActuatorType, setpoints: int, spec: int
) -> None:
    """Check that the controller of a DC motor has an input to follow."""
    gains = t.gainprm[[motor.KP, motor.KI, motor.KD]]
    if (gains.any() or t.dynprm[motor.SLEW] > 0) and not setpoints:
        c.fault(e, "the controller needs one of the inputs pos, vel and ff")
    elif t.gainprm[motor.KI] != 0 and not spec & CtrlInput.POS:
        c.fault(e, "the controller's integral gain needs the input pos")


def controls_of(c: Compilation, e: SpecElement, t: ActuatorType, spec: int) -> Controls:
    """Return the ranges of the block of controls."""
    first = _range(e, "ctrlrange", "posrange")
    to_act = t.dyntype == DynType.INTEGRATOR
    if t.inherited is not None and not to_act:
        first = t.inherited
    limited = is_limited(c, e, "ctrllimited", "ctrlrange", first, decided=needs_range(e))
    if needs_range(e):
        if not first[0] < first[1]:
            c.fault(e, f"it needs a ctrlrange that rises, got '{first[0]:g} {first[1]:g}'")
        if (first < 0).any() and e.tag in _ONE_SIDED:
            c.fault(e, f"ctrlrange='{first[0]:g} {first[1]:g}' must not be negative")
        limited = True
    if t.gaintype == GainType.PID:
        blocks = []
        for bit, values, on in (
            (CtrlInput.POS, first, limited),
            (CtrlInput.VEL, t.velrange, t.velrange[0] < t.velrange[1]),
            (CtrlInput.FF, t.ffrange, t.ffrange[0] < t.ffrange[1]),
        ):
            if spec & bit:
                blocks.append((values, on))
        ranges = np.array([values for values, _ in blocks], np.float64).reshape(-1, 2)
        return Controls(ranges, np.array([on for _, on in blocks], bool))
    count = 1
    if t.gaintype == GainType.SO3:
        count = 4 if spec == CtrlChart.QUAT else 3
    elif t.gaintype == GainType.DCMOTOR:
        count = 0 if spec == CtrlInput.NONE else int(spec).bit_count()
    return Controls(np.tile(first, (count, 1)).reshape(-1, 2), np.full(count, limited, bool))


def needs_range(e: SpecElement) -> bool:
    """Return whether a shortcut that requires a control range is among the layers of the actuator.

    It enables the control limit without a flag.
    """
    return any(layer.tag in _ONE_SIDED for layer in e.layers())


def _range(e: SpecElement, attr: str, *aliases: str) -> np.ndarray:
    """Return a range given under one of several names; the last one written counts."""
    value = np.zeros(2)
    for layer in e.layers():
        for name in (attr, *aliases):
            given = layer.own(name)
            value = value if given is None else np.array(given, np.float64)
    return value
