"""Attributes of `<dcmotor>` as parameters: from data sheet numbers to the constants of a motor.

Several attributes determine one constant and one attribute several of them, so that a changed
attribute sets no number: the constants are computed again from all attributes
(model/motor_constants.py). A compiled model keeps what its file gives (`actuator_origin`). Where
the constants of the model are no longer those of its file, as after a fit, the attributes are
inferred from the constants, with the dependences of the file: an inductance in henry stays one.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model import motor
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.model.motor_constants import MOTOR_ATTRIBUTES, MotorConstants, motor_constants
from jaxsim.physics.actuator.layout import has_state

_SINGLE = 1e-5  # relative difference of constants that single precision may make
_CHANGE = 1.01  # factor by which an attribute changes to see whether a constant follows
# The attributes that are parameters; `damping` is one of every actuator.
MOTOR_PARAMETERS = {n: count for n, count in MOTOR_ATTRIBUTES.items() if n != "damping"}
_STATE_OF = {
    ("inductance", 0): ActState.CURRENT,
    ("inductance", 1): ActState.CURRENT,
    ("saturation", 2): ActState.CURRENT,
    **{("thermal", k): ActState.TEMPERATURE for k in range(6)},
}

Attributes = dict[str, tuple]


class MotorOrigin(NamedTuple):
    """Attributes of a motor as its file gives them.

    Attributes:
      start: constants before the first element.
      elements: attributes of the elements that give them, the actuator last.
    """

    start: MotorConstants
    elements: tuple[Attributes, ...]

    def with_attribute(self, name: str, value: Any) -> "MotorOrigin":
        """Return it with an attribute changed where it is given last, else added to the actuator.

        Args:
          name: an attribute.
          value: its numbers.
        """
        last = max((k for k, e in enumerate(self.elements) if name in e), default=-1)
        elements = list(self.elements)
        elements[last] = {**elements[last], name: tuple(value)}
        return self._replace(elements=tuple(elements))

    def find_attribute(self, name: str) -> tuple | None:
        """Return the numbers of an attribute, None if no element has it."""
        return next((e[name] for e in reversed(self.elements) if name in e), None)

    def constants(self, xp: Any) -> MotorConstants:
        """Return the constants that follow, computed with the array module `xp`."""
        return motor_constants(xp, self.start, self.elements)


def origin_of(m: Model, i: int) -> MotorOrigin:
    """Return what the file gives for motor `i`; where the model differs from it, what it implies.

    Args:
      m: the model, with known numbers.
      i: the actuator.
    """
    now = _present_constants(m, i)
    table = m.actuator_origin if "actuator_origin" in m.structure else ()
    if not table or len(table[i]) != 2:  # a model made from MuJoCo's
        return _implied(now, MotorOrigin(MotorConstants(), ({},)))
    start, elements = table[i]
    origin = MotorOrigin(MotorConstants(*start), tuple(map(dict, elements)))
    limits = origin.find_attribute("saturation") is not None
    made = origin.constants(np)
    made = made if limits else made._replace(torque=now.torque)
    if np.allclose(made, now, rtol=_SINGLE, atol=0):
        return origin
    return _implied(now, origin)


def attributes_of(m: Model, i: int) -> Attributes:
    """Return the numbers of all attributes of motor `i`: as given, else as its constants imply."""
    origin = origin_of(m, i)
    implied = _implied(_present_constants(m, i), MotorOrigin(MotorConstants(), ({},)))
    found: Attributes = {}
    for name, count in MOTOR_PARAMETERS.items():
        given = origin.find_attribute(name)
        if given is None:
            given = (
                ()
                if name == "motorconst" and origin.find_attribute("nominal")
                else implied.find_attribute(name)
            )
        found[name] = (*(given or ()), *[0.0] * count)[:count]
    return found


def refusal(m: Model, i: int, name: str, component: int) -> str | None:
    """Return why a number of an attribute is no parameter of motor `i`, with the remedy; or None.

    Args:
      m: the model, with known numbers.
      i: the actuator.
      name: the attribute.
      component: index of the number.
    """
    state = _STATE_OF.get((name, component))
    if state is not None and not has_state(m, state)[i]:
        return (
            f"the motor has no {state.name.lower()} as an activation, which '{name}' adds; write "
            "it in the model before it is loaded"
        )
    if name == "saturation" and component < 2 and not m.actuator_forcelimited[i]:
        return "the torque has no bound; write saturation in the model before it is loaded"
    origin, numbers = origin_of(m, i), list(attributes_of(m, i)[name])
    before = origin.with_attribute(name, numbers).constants(np)
    numbers[component] = numbers[component] * _CHANGE if numbers[component] else 1e-3
    after = origin.with_attribute(name, numbers).constants(np)
    if np.array_equal(before, after):
        have = [n for n in MOTOR_PARAMETERS if origin.find_attribute(n) is not None]
        return (
            "no constant of the motor follows from it, as other attributes take precedence; the "
            f"model has {' and '.join(map(repr, have)) or 'none of them'}"
        )
    return None


def motor_fields(
    m: Model,
    motors: Mapping[int, tuple[MotorOrigin, tuple[str, ...]]],
    values: Mapping[str, Any],
    fields: Mapping[str, Any],
) -> dict[str, jax.Array]:
    """Return the fields of actuators with the constants of motors computed again.

    Args:
      m: the model.
      motors: for each motor what is given, and the names of the attributes that change.
      values: values of these attributes, (nactuator, count) or (nactuator,).
      fields: fields of the model that have changed so far.
    """

    def now(field: str) -> jax.Array:
        return jnp.asarray(fields[field] if field in fields else getattr(m, field))

    gain, dyn, bound = map(now, ("actuator_gainprm", "actuator_dynprm", "actuator_forcerange"))
    for i, (origin, changing) in motors.items():
        for name in changing:
            origin = origin.with_attribute(name, jnp.atleast_1d(values[name][i]))
        if origin.find_attribute("damping") is not None:
            damping = (now("actuator_damping")[i], *now("actuator_dampingpoly")[i])
            origin = origin.with_attribute("damping", damping)
        found = origin.constants(jnp)
        gain = gain.at[i, motor.GAIN_CONSTANTS].set(
            _row(gain, found.R, found.K, found.tempcoef, found.reftemp)
        )
        dyn = dyn.at[i, motor.DYN_CONSTANTS].set(
            _row(dyn, found.tau, found.rate, found.thermal_R, found.thermal_C, found.ambient)
        )
        if origin.find_attribute("saturation") is not None:
            bound = bound.at[i].set(_row(bound, -found.torque, found.torque))
    return {"actuator_gainprm": gain, "actuator_dynprm": dyn, "actuator_forcerange": bound}


def _row(like: jax.Array, *numbers: Any) -> jax.Array:
    return jnp.stack([jnp.asarray(x, like.dtype) for x in numbers])


def _present_constants(m: Model, i: int) -> MotorConstants:
    """Return the constants that the model has."""
    gain, dyn, bound = (
        np.asarray(getattr(m, n), np.float64)[i]
        for n in ("actuator_gainprm", "actuator_dynprm", "actuator_forcerange")
    )
    return motor.constants_of(gain, dyn, bound[1])


def _implied(now: MotorConstants, file: MotorOrigin) -> MotorOrigin:
    """Return attributes that give these constants, in the form of those of a file."""
    torque, back = file.find_attribute("motorconst") or (0.0, 0.0)
    ratio = np.sqrt(torque / back) if torque > 0 and back > 0 else 0.0
    henry, _ = file.find_attribute("inductance") or (0.0, 0.0)
    limit, current, _ = file.find_attribute("saturation") or (0.0, 0.0, 0.0)
    by_current = current > 0 and not limit > 0 and now.K > 0
    thermal = (file.find_attribute("thermal") or (0.0,) * 6)[:3]
    R, C = now.thermal_R, now.thermal_C
    parts = (R, C, 0.0)
    if thermal[2] > 0:
        parts = (R, 0.0, R * C) if thermal[0] > 0 else (0.0, C, R * C)
    attributes: Attributes = {
        "motorconst": (now.K * ratio, now.K / ratio) if ratio else (now.K, 0.0),
        "resistance": (now.R,),
        "inductance": (now.tau * now.R, 0.0) if henry > 0 else (0.0, now.tau),
        "saturation": (
            (0.0, now.torque / now.K, now.rate) if by_current else (now.torque, 0.0, now.rate)
        ),
        "thermal": (*parts, now.tempcoef, now.reftemp, now.ambient),
    }
    return MotorOrigin(now, (attributes,))
