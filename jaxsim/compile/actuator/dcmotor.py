"""Compile `<dcmotor>`: electrical, thermal and friction parameters, packed as in MuJoCo.

`jaxsim/model/motor.py` lists the address of each parameter, `jaxsim/model/motor_constants.py` has
the equations of the constants.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.actuator.actuator_type import ActuatorType
from jaxsim.compile.context import Compilation
from jaxsim.enums import CtrlInput
from jaxsim.model import motor
from jaxsim.model.motor_constants import (
    MOTOR_ATTRIBUTES,
    MotorConstants,
    WrittenAttributes,
    motor_constants,
)
from jaxsim.spec import SpecElement


def read_dcmotor(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Read the motor's own attributes into the parameter vectors."""
    given = {name: _padded_attribute(e, name, n) for name, n in MOTOR_ATTRIBUTES.items()}
    written = {name: tuple(map(float, x)) for name, x in given.items() if x is not None}
    before = motor.constants_of(t.gainprm, t.dynprm, 0.0)
    after = motor_constants(np, before, [written])
    _check_motor(c, e, t, written, after)
    t.gainprm[motor.GAIN_CONSTANTS] = after.R, after.K, after.tempcoef, after.reftemp
    t.dynprm[motor.DYN_CONSTANTS] = (
        *(after.tau, after.rate, after.thermal_R, after.thermal_C),
        after.ambient,
    )
    if "saturation" in written:
        t.forcerange = np.array([-after.torque, after.torque]) if after.torque > 0 else np.zeros(2)
    t.motor = (tuple(map(float, before)), ()) if t.motor is None else t.motor
    t.motor = (t.motor[0], (*t.motor[1], tuple(written.items())))
    cogging, lugre, controller = (
        _padded_attribute(e, "cogging", 3),
        _padded_attribute(e, "lugre", 5),
        _padded_attribute(e, "controller", 6),
    )
    if cogging is not None:
        t.biasprm[motor.AMPLITUDE : motor.PHASE + 1] = cogging
    if lugre is not None:
        if lugre[0] <= 0:
            lugre[:] = 0.0
        t.dynprm[motor.SIGMA0 : motor.SIGMA1 + 1] = lugre[:2]
        t.biasprm[motor.COULOMB : motor.STRIBECK + 1] = lugre[2:]
    if controller is not None:
        kp, ki, kd, slewmax, imax, vmax = controller
        t.gainprm[motor.KP : motor.VMAX + 1] = kp, ki, kd, vmax
        t.dynprm[motor.SLEW : motor.IMAX + 1] = slewmax, imax


def _check_motor(
    c: Compilation,
    e: SpecElement,
    t: ActuatorType,
    written: WrittenAttributes,
    found: MotorConstants,
) -> None:
    """Check the attributes, and the constants that follow from them."""
    torque, back = written.get("motorconst", (0.0, 0.0))
    if min(torque, back) < 0:
        c.fault(e, f"motorconst='{torque:g} {back:g}' must not be negative")
    if not found.K > 0 and t.ctrlspec != CtrlInput.NONE:
        c.fault(e, "the motor constant K must be positive; give motorconst or nominal")
    if not found.R > 0:
        c.fault(e, "the resistance R must be positive; give resistance or nominal")
    henry, tau = written.get("inductance", (0.0, 0.0))
    if min(henry, tau) < 0:
        c.fault(e, f"inductance='{henry:g} {tau:g}' must not be negative")
    bound, current, _ = written.get("saturation", (0.0, 0.0, 0.0))
    if bound < 0 < current:
        c.fault(e, f"saturation: a torque of {bound:g} must not be negative")
    thermal = written.get("thermal", (0.0,) * 6)
    if not any(x > 0 for x in thermal[:3]):
        return
    if thermal[0] < 0:
        c.fault(e, f"thermal: a resistance of {thermal[0]:g} must not be negative")
    if not (found.thermal_R > 0 and found.thermal_C > 0):
        c.fault(
            e, "thermal needs two of its first three numbers: resistance, capacitance, timeconst"
        )


def _padded_attribute(e: SpecElement, attr: str, count: int) -> np.ndarray | None:
    """Return the numbers of an attribute, padded with zeros; None if it was not written."""
    value = e.own(attr)
    if value is None:
        return None
    out = np.zeros(count)
    out[: np.size(value)] = np.atleast_1d(value)
    return out
