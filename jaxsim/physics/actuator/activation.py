"""Activation dynamics of actuators: rates of change, and integration over one step.

MuJoCo's documentation, Computation: Stateful actuators. The table `_ACTIVATION_LAWS` has one law
per kind of activation (`DynType`, or `ActState` for controllers and motors); it corresponds to the
activation part of `mj_fwdActuation` and to `mj_nextActivation`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import MINVAL, DisableBit, DynType
from jaxsim.model import motor
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import PID_IMAX, ActState
from jaxsim.physics.actuator import dcmotor, muscle, pid
from jaxsim.physics.actuator.layout import act_kind, act_owner, gather_columns, or_zero
from jaxsim.physics.callback import call_actuator_callback


def activation_rate(m: Model, d: Data, ctrl: Array) -> Array:
    """Compute act_dot `[na, *W]` from the controls `[nu, *W]`.

    The rates of activations owned by plugins are 0 here.
    """
    # One law per kind of activation; results in the order of the activations.
    table = {k: lambda i, law=law: law.rate(m, d, ctrl, i) for k, law in _ACTIVATION_LAWS.items()}
    return compute_by_kind(act_kind(m.structure), table, d.act)


def next_activation(m: Model, d: Data) -> Array:
    """Integrate the activation `[na, *W]` over one time step, from `d.act` and `d.act_dot`.

    The rate of a disabled actuator is zero; its limits apply. Corresponds to `mj_nextActivation`.
    """
    if not m.na or m.opt.disableflags & DisableBit.ACTUATION:
        return d.act
    # Disabled actuators: rate zero.
    owner = act_owner(m)
    off = disabled_actuators(m)[owner]
    if off.any():
        d = d.replace(act_dot=jnp.where(column(off, d.act_dot), 0, d.act_dot))
    # Integrate by kind, then clamp to actrange.
    table = {k: lambda i, law=law: law.after(m, d, i) for k, law in _ACTIVATION_LAWS.items()}
    stepped = compute_by_kind(act_kind(m.structure), table, d.act)
    bounded = m.actuator_dyntype[owner] != DynType.DCMOTOR
    limited = m.actuator_actlimited[owner].astype(bool) & bounded
    if limited.any():
        lower, upper = (gather_static(m.actuator_actrange[:, k], owner) for k in range(2))
        stepped = jnp.where(column(limited, stepped), jnp.clip(stepped, lower, upper), stepped)
    return stepped


def early_activation(m: Model, d: Data) -> Array:
    """Return the activations that give force: with actearly those after one time step."""
    ahead = m.actuator_actearly[act_owner(m)].astype(bool)
    return jnp.where(column(ahead, d.act), next_activation(m, d), d.act) if ahead.any() else d.act


def disabled_actuators(m: Model) -> np.ndarray:
    """Return the actuators whose group is disabled, [nactuator] bool."""
    on_a_switch = (m.actuator_group >= 0) & (m.actuator_group <= 30)
    return on_a_switch & ((m.opt.disableactuator >> np.clip(m.actuator_group, 0, 30)) & 1 > 0)


class ActivationLaw(NamedTuple):
    """Dynamics of one kind of activation.

    Attributes:
      rate: `(m, d, controls [nu, *W], activations [k]) -> [k, *W]`.
      after: `(m, d, activations [k]) -> [k, *W]`, the values one step later.
    """

    rate: Callable
    after: Callable


def _euler(m: Model, d: Data, i: np.ndarray) -> Array:
    return gather_static(d.act, i) + m.opt.timestep * gather_static(d.act_dot, i)


def _exact_integration(parameter: int) -> Callable:
    """Return the exact integration of w' = (goal - w) / tau with a constant goal."""

    def after(m: Model, d: Data, i: np.ndarray) -> Array:
        tau = jnp.maximum(MINVAL, gather_static(m.actuator_dynprm[:, parameter], act_owner(m)[i]))
        decay = -tau * jnp.expm1(-m.opt.timestep / tau)
        return gather_static(d.act, i) + decay * gather_static(d.act_dot, i)

    return after


def _zero_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    return jnp.zeros_like(gather_static(d.act, i))


def _input(m: Model, ctrl: Array, i: np.ndarray) -> Array:
    """Return the control of each activation; the last activation takes the last control, etc."""
    owner = act_owner(m)[i]
    from_last = (m.actuator_actadr + m.actuator_actnum)[owner] - i
    place = (m.actuator_ctrladr + m.actuator_ctrlnum)[owner] - from_last
    return or_zero(ctrl, np.where(from_last <= m.actuator_ctrlnum[owner], place, m.nu))


def _integrator(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    return _input(m, ctrl, i)


def _filter(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    tau = jnp.maximum(MINVAL, gather_static(m.actuator_dynprm[:, 0], act_owner(m)[i]))
    return (_input(m, ctrl, i) - gather_static(d.act, i)) / tau


def _muscle(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    # Muscle: excitation and time constants.
    prm = gather_static(m.actuator_dynprm, act_owner(m)[i])
    act = gather_static(d.act, i)
    return muscle.muscle_activation_rate(_input(m, ctrl, i), act, (prm[:, 0], prm[:, 1], prm[:, 2]))


def _slew(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    """Return the rate towards the first control, rate-limited by `setpoint_controls`."""
    goal = gather_static(ctrl, m.actuator_ctrladr[act_owner(m)[i]])
    return (goal - gather_static(d.act, i)) / m.opt.timestep


def _integral(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    owner = act_owner(m)[i]
    return pid.integral_rate(m, d, ctrl, owner, _integral_limit(m, owner))


def _integral_after(m: Model, d: Data, i: np.ndarray) -> Array:
    """Integrate the integral state; a motor's is clipped to its limit, a pid's is not."""
    owner = act_owner(m)[i]
    stepped, most = _euler(m, d, i), _integral_limit(m, owner)
    held = column(m.actuator_dyntype[owner] == DynType.DCMOTOR, stepped) & (most > 0)
    return jnp.where(held, jnp.clip(stepped, -most, most), stepped)


def _integral_limit(m: Model, owner: np.ndarray) -> Array:
    # Column of the limit by type.
    place = np.where(m.actuator_dyntype == DynType.PID, PID_IMAX, motor.IMAX)
    return gather_columns(m.actuator_dynprm, owner, place[owner])


def _user_rate(m: Model, d: Data, ctrl: Array, i: np.ndarray) -> Array:
    return call_actuator_callback(m, d, "act_dyn", np.unique(act_owner(m)[i]), len(i), 0)


def _motor_rate(rate: Callable) -> Callable:
    return lambda m, d, ctrl, i: rate(m, d, ctrl, act_owner(m)[i])


def _bristle_after(m: Model, d: Data, i: np.ndarray) -> Array:
    return dcmotor.next_bristle(m, d, gather_static(d.act, i), act_owner(m)[i])


_ACTIVATION_LAWS = {
    DynType.NONE: ActivationLaw(_zero_rate, _euler),
    DynType.INTEGRATOR: ActivationLaw(_integrator, _euler),
    DynType.FILTER: ActivationLaw(_filter, _euler),
    DynType.FILTEREXACT: ActivationLaw(_filter, _exact_integration(0)),
    DynType.MUSCLE: ActivationLaw(_muscle, _euler),
    DynType.USER: ActivationLaw(_user_rate, _euler),
    ActState.SLEW: ActivationLaw(_slew, _euler),
    ActState.INTEGRAL: ActivationLaw(_integral, _integral_after),
    ActState.TEMPERATURE: ActivationLaw(_motor_rate(dcmotor.temperature_rate), _euler),
    ActState.BRISTLE: ActivationLaw(_motor_rate(dcmotor.bristle_rate), _bristle_after),
    ActState.CURRENT: ActivationLaw(
        _motor_rate(dcmotor.current_rate), _exact_integration(motor.TAU)
    ),
}
