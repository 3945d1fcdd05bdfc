"""Activations of controllers and motors, and the parameters that they follow from.

A pid and a DC motor have an activation for each of their features that is in use: a parameter that
is positive switches it on. They stand in `act` in the order of `ActState`.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from jaxsim.enums import DynType, GainType
from jaxsim.model import motor

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
SWITCHES: Mapping[DynType, Mapping[ActState, tuple[str, int]]] = {
    DynType.PID: {
        ActState.SLEW: ("actuator_dynprm", PID_SLEW),
        ActState.INTEGRAL: ("actuator_gainprm", PID_KI),
    },
    DynType.DCMOTOR: {
        ActState.SLEW: ("actuator_dynprm", motor.SLEW),
        ActState.INTEGRAL: ("actuator_gainprm", motor.KI),
        ActState.TEMPERATURE: ("actuator_dynprm", motor.THERMAL_R),
        ActState.BRISTLE: ("actuator_dynprm", motor.SIGMA0),
        ActState.CURRENT: ("actuator_dynprm", motor.TAU),
    },
}


def states_of(kind: DynType, parameter: Callable[[str], Any]) -> tuple[ActState, ...]:
    """The activations of an actuator that follow from its parameters.

    Args:
      kind: PID or DCMOTOR; another one has no such activations.
      parameter: its numbers in a field, "actuator_dynprm" or "actuator_gainprm".
    """
    table = SWITCHES.get(kind, {})
    return tuple(s for s, (field, column) in table.items() if parameter(field)[column] > 0)


def kind_of_states(dyntype: np.ndarray, gaintype: np.ndarray) -> np.ndarray:
    """[nactuator]: whose activations an actuator has; the gain of a DC motor asks for them too."""
    return np.where(gaintype == GainType.DCMOTOR, DynType.DCMOTOR, dyntype)


def actuator_states(value: Callable[[str], Any]) -> np.ndarray:
    """Which activations actuators have, [nactuator, 5] bool; `value(field)` gives the numbers."""
    kinds = kind_of_states(value("actuator_dyntype"), value("actuator_gaintype"))
    out = np.zeros((len(kinds), len(ActState)), bool)
    for i, kind in enumerate(kinds):
        for state in states_of(kind, lambda field, i=i: value(field)[i]):
            out[i, state - ActState.SLEW] = True
    return out
