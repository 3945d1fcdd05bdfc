"""Compile `<dcmotor>`: electrical, thermal and friction parameters, packed as in MuJoCo.

`jaxsim/model/motor.py` lists the address of each parameter.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.actuator.actuator_type import ActuatorType
from jaxsim.compile.context import Compilation
from jaxsim.enums import CtrlInput
from jaxsim.model import motor
from jaxsim.spec import SpecElement


def read_dcmotor(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Read the motor's own attributes into the parameter vectors."""
    _electrical(c, e, t)
    _saturation(c, e, t)
    _thermal(c, e, t)
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


def _electrical(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Set K and R from their attributes or the nominal point, and the electrical time constant."""
    motorconst, nominal = _padded_attribute(e, "motorconst", 2), _padded_attribute(e, "nominal", 3)
    torque, back = (t.gainprm[motor.K], 0.0) if motorconst is None else motorconst
    if min(torque, back) < 0:
        c.fault(e, f"motorconst='{torque:g} {back:g}' must not be negative")
    voltage, stall, speed = np.zeros(3) if nominal is None else nominal
    if e.own("resistance") is not None:
        t.gainprm[motor.R] = e.own("resistance")
    if voltage > 0 and speed > 0 and not back > 0:
        back = _back_emf(
            t.gainprm[motor.R], voltage, stall, speed, _padded_attribute(e, "damping", 3)
        )
    t.gainprm[motor.K] = np.sqrt(torque * back) if torque > 0 and back > 0 else max(torque, back)
    if not t.gainprm[motor.R] > 0 and stall > 0:
        t.gainprm[motor.R] = t.gainprm[motor.K] * voltage / stall
    if not t.gainprm[motor.K] > 0 and t.ctrlspec != CtrlInput.NONE:
        c.fault(e, "the motor constant K must be positive; give motorconst or nominal")
    if not t.gainprm[motor.R] > 0:
        c.fault(e, "the resistance R must be positive; give resistance or nominal")

    inductance = _padded_attribute(e, "inductance", 2)
    if inductance is not None:
        henry, tau = inductance
        if min(henry, tau) < 0:
            c.fault(e, f"inductance='{henry:g} {tau:g}' must not be negative")
        t.dynprm[motor.TAU] = (
            henry / t.gainprm[motor.R] if henry > 0 and t.gainprm[motor.R] > 0 else tau
        )


def _back_emf(
    resistance: float, voltage: float, stall: float, speed: float, damping: np.ndarray | None
) -> float:
    """Return K of a motor that rotates at the no-load speed w under the voltage V, against a
    damping B.

    At that speed the torque balances the damping, K (V - K w) / R = B w. Without R, the stall
    torque T gives R = K V / T. A motor too weak for its damping gets the K of one without damping.
    """
    drag = 0.0 if damping is None else float(damping[0]) * speed
    if drag > 0 and resistance > 0:
        root = voltage**2 - 4 * drag * resistance * speed
        if root > 0:
            return (voltage + np.sqrt(root)) / (2 * speed)
    elif 0 < drag < stall:
        return voltage * (stall - drag) / (stall * speed)
    return voltage / speed


def _saturation(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Set the force range from `saturation`: the torque limit, or the current limit times K."""
    saturation = _padded_attribute(e, "saturation", 3)
    if saturation is None:
        return
    torque, current, rate = saturation
    if torque < 0 < current:
        c.fault(e, f"saturation: a torque of {torque:g} must not be negative")
    if torque <= 0:
        torque = t.gainprm[motor.K] * current
    t.forcerange = np.array([-torque, torque]) if torque > 0 else np.zeros(2)
    t.dynprm[motor.RATE] = rate


def _thermal(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Set thermal resistance and capacitance from two of resistance, capacitance, time constant."""
    thermal = _padded_attribute(e, "thermal", 6)
    if thermal is None:
        return
    resistance, capacitance, timeconst, tempcoef, reftemp, ambient = thermal
    if not (thermal[:3] > 0).any():
        return
    if resistance < 0:
        c.fault(e, f"thermal: a resistance of {resistance:g} must not be negative")
    if timeconst > 0 and resistance > 0:
        capacitance = timeconst / resistance
    elif timeconst > 0 and capacitance > 0:
        resistance = timeconst / capacitance
    if not (resistance > 0 and capacitance > 0):
        c.fault(
            e, "thermal needs two of its first three numbers: resistance, capacitance, timeconst"
        )
        return
    t.dynprm[motor.THERMAL_R : motor.AMBIENT + 1] = resistance, capacitance, ambient
    t.gainprm[motor.TEMPCOEF : motor.REFTEMP + 1] = tempcoef, reftemp


def _padded_attribute(e: SpecElement, attr: str, count: int) -> np.ndarray | None:
    """Return the numbers of an attribute, padded with zeros; None if it was not written."""
    value = e.own(attr)
    if value is None:
        return None
    out = np.zeros(count)
    out[: np.size(value)] = np.atleast_1d(value)
    return out
