"""Motors and controllers: where their parameters stand, and the activations that follow from them.

MuJoCo packs the parameters of a `<dcmotor>` so, by the names of its technical note:

    gainprm  R  K  tempcoef  reftemp  kp  ki  kd  Vmax
    biasprm  cogging amplitude  poles  phase  coulomb  static  stribeck
    dynprm   L/R  di/dt max  thermal R  thermal C  ambient  sigma0  sigma1  slewmax  Imax

K [N m/A] is the geometric mean of torque and back-EMF constant, R [Ohm] the terminal resistance. A
pid and a DC motor have an activation for each of their features that is in use: a parameter that is
positive switches it on. They stand in `act` in the order of `ActState`.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from jaxsim.enums import DynType, GainType

R, K, TEMPCOEF, REFTEMP, KP, KI, KD, VMAX = range(8)  # in gainprm
AMPLITUDE, POLES, PHASE, COULOMB, STATIC, STRIBECK = range(6)  # in biasprm
TAU, RATE, THERMAL_R, THERMAL_C, AMBIENT, SIGMA0, SIGMA1, SLEW, IMAX = range(9)  # in dynprm
# columns of gainprm and of dynprm of a pid; its kp and kv are those of the affine bias
PID_KI = 0
PID_IMAX, PID_SLEW = range(2)


class ActState(IntEnum):
    """What an activation of a controller or motor is; beside `DynType` without an overlap."""

    SLEW = 100  # the setpoint, which moves no faster than slewmax
    INTEGRAL = 101  # of the error of position
    TEMPERATURE = 102  # of the windings, above that of their surroundings [K]
    BRISTLE = 103  # deflection of the bristles of LuGre friction
    CURRENT = 104  # in the windings [A]


# the parameter that, when positive, gives an actuator the activation: field and column
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


def states_of(kind: int, parameter: Callable[[str], Any]) -> tuple[ActState, ...]:
    """Return the activations of an actuator that follow from its parameters.

    Args:
      kind: PID or DCMOTOR; another one has no such activations.
      parameter: its numbers in a field, "actuator_dynprm" or "actuator_gainprm".
    """
    table = STATES.get(DynType(kind), {})
    return tuple(s for s, (field, column) in table.items() if parameter(field)[column] > 0)


def kind_of_states(dyntype: np.ndarray, gaintype: np.ndarray) -> np.ndarray:
    """Return whose activations an actuator has, `[nactuator]`; the gain of a DC motor asks for them
    too."""
    return np.where(gaintype == GainType.DCMOTOR, DynType.DCMOTOR, dyntype)


def actuator_states(value: Callable[[str], Any]) -> np.ndarray:
    """Which activations actuators have, [nactuator, 5] bool; `value(field)` gives the numbers."""
    kinds = kind_of_states(value("actuator_dyntype"), value("actuator_gaintype"))
    out = np.zeros((len(kinds), len(ActState)), bool)
    for i, kind in enumerate(kinds):
        rows = {name: value(name)[i] for name in ("actuator_dynprm", "actuator_gainprm")}
        for state in states_of(kind, rows.__getitem__):
            out[i, state - ActState.SLEW] = True
    return out
