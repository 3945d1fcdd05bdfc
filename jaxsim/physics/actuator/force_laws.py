"""Force laws of actuators: gain times setpoint plus bias, or the law of a servo.

MuJoCo's documentation, Computation: Actuation model; XML reference: actuator/general. The tables
`_DRIVE_LAWS` and `_BIAS_LAWS` have one function per type. An actuator has one output, an
orientation servo three.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import BiasType, DynType, GainType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import ActState
from jaxsim.physics.actuator import dcmotor, muscle, orientation, pid
from jaxsim.physics.actuator.activation import disabled_actuators, early_activation
from jaxsim.physics.actuator.layout import (
    first_control,
    flatten_vectors,
    has_state,
    or_zero,
    output_actuator,
    parameter_columns,
)
from jaxsim.physics.actuator.setpoint import nearest_setpoint
from jaxsim.physics.callback import call_actuator_callback


class ForceInputs(NamedTuple):
    """Inputs of the force laws.

    Attributes:
      ctrl: controls `[nu, *W]`.
      act: activations, after the step of actuators that act early, `[na, *W]`.
      setpoint: the value that a gain multiplies: the last activation or the first control of each
        actuator; for a servo on a circle the angle nearest to its length, `[nactuator, *W]`.
    """

    ctrl: Array
    act: Array
    setpoint: Array


def force_inputs(m: Model, d: Data, ctrl: Array) -> ForceInputs:
    """Compute the inputs of the force laws from controls `[nu, *W]`."""
    # Early activations are integrated before they act.
    act = early_activation(m, d)
    setpoint = nearest_setpoint(m, d, np.arange(m.nactuator), setpoints(m, ctrl, act))
    return ForceInputs(ctrl, act, setpoint)


def setpoints(m: Model, ctrl: Array, act: Array) -> Array:
    """Return the last activation of each actuator with a dyntype, else its first control."""
    # Address of each setpoint among activations and controls.
    stateful = (m.actuator_dyntype != DynType.NONE) & (m.actuator_actnum > 0)
    last = m.actuator_actadr + m.actuator_actnum - 1
    source = np.where(stateful, last, m.na + first_control(m))
    return or_zero(jnp.concatenate([act, ctrl]) if m.na else ctrl, source)


def free_force(m: Model, d: Data, given: ForceInputs) -> Array:
    """Compute each output's force without limits, `[nout, *W]`; 0 if disabled or a plugin's."""
    # Sum of the drive and the bias, each by its type.
    owner = output_actuator(m)
    drives = {k: lambda i, f=f: f(m, d, given, i) for k, f in _DRIVE_LAWS.items()}
    biases = {k: lambda i, f=f: f(m, d, i) for k, f in _BIAS_LAWS.items()}
    force = compute_by_kind(m.actuator_gaintype[owner], drives, d.actuator_length)
    force = force + compute_by_kind(m.actuator_biastype[owner], biases, d.actuator_length)
    return only_active(m, force)


def only_active(m: Model, force: Array) -> Array:
    """Zero the values of outputs of plugins and of disabled actuators."""
    off = (disabled_actuators(m) | (m.actuator_plugin >= 0))[output_actuator(m)]
    return jnp.where(column(off, force), 0, force) if off.any() else force


# Gains and biases: (m, d, outputs [k]) -> [k, *W].


def _fixed(m: Model, d: Data, i: np.ndarray) -> Array:
    return gather_static(m.actuator_gainprm[:, 0], output_actuator(m)[i])


def _affine_law(m: Model, d: Data, prm: Array, i: np.ndarray) -> Array:
    """Compute prm[0] + prm[1] length + prm[2] velocity."""
    a, b, c = (gather_static(prm[:, k], output_actuator(m)[i]) for k in range(3))
    return a + b * gather_static(d.actuator_length, i) + c * gather_static(d.actuator_velocity, i)


def _muscle_gain(m: Model, d: Data, i: np.ndarray) -> Array:
    length, velocity = gather_static(d.actuator_length, i), gather_static(d.actuator_velocity, i)
    prm = parameter_columns(m.actuator_gainprm, output_actuator(m)[i])
    return muscle.active_muscle_force(length, velocity, *_muscle_scale(m, i), prm)


def _muscle_bias(m: Model, d: Data, i: np.ndarray) -> Array:
    prm = parameter_columns(m.actuator_biasprm, output_actuator(m)[i])
    return muscle.passive_muscle_force(
        gather_static(d.actuator_length, i), *_muscle_scale(m, i), prm
    )


def _muscle_scale(m: Model, i: np.ndarray) -> tuple[list[Array], Array]:
    return parameter_columns(m.actuator_lengthrange, i), gather_static(m.actuator_acc0, i)


def _damping(m: Model, d: Data, i: np.ndarray) -> Array:
    """Compute prm[0] + prm[2] velocity."""
    constant, c = (gather_static(m.actuator_biasprm[:, k], output_actuator(m)[i]) for k in (0, 2))
    return constant + c * gather_static(d.actuator_velocity, i)


def _back_emf(m: Model, d: Data, i: np.ndarray) -> Array:
    """Compute the back-EMF of motors; motor biases with another gain have friction only."""
    owner = output_actuator(m)[i]
    force = dcmotor.back_emf(m, d, owner)
    return jnp.where(column(m.actuator_gaintype[owner] == GainType.DCMOTOR, force), force, 0)


def _user_law(m: Model, d: Data, name: str, none: float, i: np.ndarray) -> Array:
    return call_actuator_callback(m, d, name, output_actuator(m)[i], len(i), none)


# Forces that depend on the inputs: (m, d, given, outputs [k]) -> [k, *W].


def _scaled_by_gain(gain: Callable) -> Callable:
    def force(m: Model, d: Data, given: ForceInputs, i: np.ndarray) -> Array:
        return gain(m, d, i) * gather_static(given.setpoint, output_actuator(m)[i])

    return force


def _motor(m: Model, d: Data, given: ForceInputs, i: np.ndarray) -> Array:
    """Multiply the gain by the current, or without inductance by the voltage."""
    # Voltage or current, by the presence of a current state.
    owner = output_actuator(m)[i]
    voltage, current = (
        dcmotor.voltage(m, d, given.ctrl, owner),
        gather_static(given.setpoint, owner),
    )
    inductive = column(has_state(m, ActState.CURRENT)[owner], current)
    return dcmotor.dcmotor_gain(m, d, owner) * jnp.where(inductive, current, voltage)


def _pid(m: Model, d: Data, given: ForceInputs, i: np.ndarray) -> Array:
    return pid.pid_force(m, d, given.ctrl, given.act, output_actuator(m)[i])


def _orientation(m: Model, d: Data, given: ForceInputs, i: np.ndarray) -> Array:
    """Compute the torques of orientation servos, whose outputs are consecutive triples."""
    return flatten_vectors(
        orientation.orientation_torque(m, d, given.ctrl, given.act, output_actuator(m)[i[::3]])
    )


_DRIVE_LAWS = {
    GainType.FIXED: _scaled_by_gain(_fixed),
    GainType.AFFINE: _scaled_by_gain(lambda m, d, i: _affine_law(m, d, m.actuator_gainprm, i)),
    GainType.MUSCLE: _scaled_by_gain(_muscle_gain),
    GainType.DCMOTOR: _motor,
    GainType.SO3: _orientation,
    GainType.PID: _pid,
    GainType.USER: _scaled_by_gain(lambda m, d, i: _user_law(m, d, "act_gain", 1, i)),
}
_BIAS_LAWS = {
    BiasType.NONE: lambda m, d, i: jnp.zeros_like(gather_static(d.actuator_length, i)),
    BiasType.AFFINE: lambda m, d, i: _affine_law(m, d, m.actuator_biasprm, i),
    BiasType.MUSCLE: _muscle_bias,
    BiasType.DCMOTOR: _back_emf,
    BiasType.SO3: _damping,
    BiasType.USER: lambda m, d, i: _user_law(m, d, "act_bias", 0, i),
}
