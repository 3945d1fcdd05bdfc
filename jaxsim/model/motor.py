"""Parameters of DC motors and pid controllers, and the activations that follow from them.

MuJoCo packs the parameters of a `<dcmotor>` in this order, named as in its technical note:

    gainprm  R  K  tempcoef  reftemp  kp  ki  kd  Vmax
    biasprm  cogging amplitude  poles  phase  coulomb  static  stribeck
    dynprm   L/R  di/dt max  thermal R  thermal C  ambient  sigma0  sigma1  slewmax  Imax

K [N m/A] is the geometric mean of torque and back-EMF constant, R [Ohm] the terminal resistance. A
pid or a DC motor has one activation for each feature in use, which a positive parameter switches
on. They are stored in `act` in the order of `ActState`.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from jaxsim.enums import DynType, GainType
from jaxsim.model.motor_constants import MotorConstants

R, K, TEMPCOEF, REFTEMP, KP, KI, KD, VMAX = range(8)  # in gainprm
AMPLITUDE, POLES, PHASE, COULOMB, STATIC, STRIBECK = range(6)  # in biasprm
TAU, RATE, THERMAL_R, THERMAL_C, AMBIENT, SIGMA0, SIGMA1, SLEW, IMAX = range(9)  # in dynprm
# Addresses of the constants of a motor: R, K, tempcoef, reftemp, and tau, rate, thermal R and C,
# ambient.
GAIN_CONSTANTS, DYN_CONSTANTS = slice(R, REFTEMP + 1), slice(TAU, AMBIENT + 1)
# Columns of gainprm and dynprm of a pid; its kp and kv are those of the affine bias.
PID_KI = 0
PID_IMAX, PID_SLEW = range(2)


class ActState(IntEnum):
    """Meaning of an activation of a controller or motor; values do not overlap with `DynType`."""

    SLEW = 100  # setpoint, limited in its rate by slewmax
    INTEGRAL = 101  # integral of the position error
    TEMPERATURE = 102  # temperature of the windings above ambient [K]
    BRISTLE = 103  # deflection of the bristles of LuGre friction
    CURRENT = 104  # winding current [A]


# Parameter that adds the activation when positive: field and column.
STATES: Mapping[DynType, Mapping[ActState, tuple[str, int]]] = {
    DynType.PID: {
        ActState.SLEW: ("actuator_dynprm", PID_SLEW),
        ActState.INTEGRAL: ("actuator_gainprm", PID_KI),
    },
    DynType.DCMOTOR: {
        ActState.SLEW: ("actuator_dynprm", SLEW),
        ActState.INTEGRAL: ("actuator_gainprm", KI),
        ActState.TEMPERATURE: ("actuator_dynprm", THERMAL_R),
        ActState.BRISTLE: ("actuator_dynprm", SIGMA0),
        ActState.CURRENT: ("actuator_dynprm", TAU),
    },
}


def constants_of(gainprm: Any, dynprm: Any, torque: Any) -> MotorConstants:
    """Return the constants of a motor from its parameter vectors and its bound of the torque."""
    r, k, tempcoef, reftemp = gainprm[GAIN_CONSTANTS]
    tau, rate, thermal_r, thermal_c, ambient = dynprm[DYN_CONSTANTS]
    return MotorConstants(
        *(k, r, tau, torque, rate),
        *(thermal_r, thermal_c, ambient, tempcoef, reftemp),
    )


def states_of(kind: int, parameter: Callable[[str], Any]) -> tuple[ActState, ...]:
    """Return the activations of an actuator that follow from its parameters.

    Args:
      kind: PID or DCMOTOR; others have no such activations.
      parameter: returns the row of a field, "actuator_dynprm" or "actuator_gainprm".
    """
    table = STATES.get(DynType(kind), {})
    return tuple(s for s, (field, column) in table.items() if parameter(field)[column] > 0)


def kind_of_states(dyntype: np.ndarray, gaintype: np.ndarray) -> np.ndarray:
    """Return the kind that decides the activations of each actuator, [nactuator]; the gain of a DC
    motor implies them too."""
    return np.where(gaintype == GainType.DCMOTOR, DynType.DCMOTOR, dyntype)


def actuator_states(value: Callable[[str], Any]) -> np.ndarray:
    """Return which activations the actuators have, [nactuator, 5] bool; `value(field)` returns the
    numbers."""
    kinds = kind_of_states(value("actuator_dyntype"), value("actuator_gaintype"))
    out = np.zeros((len(kinds), len(ActState)), bool)
    for i, kind in enumerate(kinds):
        rows = {name: value(name)[i] for name in ("actuator_dynprm", "actuator_gainprm")}
        for state in states_of(kind, rows.__getitem__):
            out[i, state - ActState.SLEW] = True
    return out
