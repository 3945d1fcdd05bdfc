"""Setpoints of servos on a circle, which may be wound by any number of revolutions.

MuJoCo's documentation, XML reference: actuator/general/joint. The length is that of a rotation,
(-pi, pi] times the gear; the servo drives towards the angle nearest to it that represents the same
rotation about its axis as the setpoint.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import BiasType, DynType, GainType, JointType, TrnType
from jaxsim.math import safe_sqrt
from jaxsim.model import motor
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.motor import PID_SLEW, ActState
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.layout import (
    act_owner,
    activation_of,
    ctrl_owner,
    first_control,
    gather_columns,
    has_state,
)

_FILTER_DYNTYPES = (DynType.FILTER, DynType.FILTEREXACT)
# types whose activation is the setpoint
_SETPOINT_DYNTYPES = (DynType.INTEGRATOR, *_FILTER_DYNTYPES)
_SERVO_DYNTYPES = (DynType.NONE, *_SETPOINT_DYNTYPES)


def nearest_setpoint(m: Model, d: Data, i: np.ndarray, given: Array) -> Array:
    """Unwrap setpoints `[k, *W]` of servos `i` on a circle to the angle nearest to their length.

    Setpoints of other actuators are unchanged.
    """
    return _unwrap_to_nearest(m, i, given, d.actuator_length, m.actuator_outadr[i])


def nearest_activation(m: Model, d: Data, act: Array) -> Array:
    """Unwrap activations `[na, *W]` that are setpoints on a circle, so that they stay bounded."""
    owner = _owners_of_types(act_owner(m), m.structure, _SETPOINT_DYNTYPES)
    return _unwrap_to_nearest(m, owner, act, d.actuator_length, m.actuator_outadr[owner])


def setpoint_controls(m: Model, d: Data, ctrl: Array) -> Array:
    """Return the controls `[nu, *W]` that activations follow.

    Controls of filters and rate-limited setpoints on a circle are unwrapped to the angle nearest to
    the activation; a rate-limited setpoint stays within its step from the last value, the
    activation.
    """
    owner = ctrl_owner(m)
    # First controls that are rate-limited or filtered on a circle.
    first = np.arange(m.nu) == first_control(m)[owner]
    slow = first & has_state(m, ActState.SLEW)[owner]
    turned = first & (slow | np.isin(m.actuator_dyntype[owner], _FILTER_DYNTYPES))
    ctrl = _unwrap_to_nearest(m, np.where(turned, owner, -1), ctrl, d.act, m.actuator_actadr[owner])
    if not slow.any():
        return ctrl
    # Clip to the largest step from the last value.
    index = np.where(m.actuator_gaintype == GainType.PID, PID_SLEW, motor.SLEW)
    most = gather_columns(m.actuator_dynprm, owner, index[owner]) * m.opt.timestep
    last = activation_of(m, d.act, owner, ActState.SLEW)
    return jnp.where(column(slow, ctrl), jnp.clip(ctrl, last - most, last + most), ctrl)


def has_circular_setpoints(m: Model) -> Array | None:
    """Return where activations are setpoints on a circle, `[1, *W]` bool; None: never."""
    period = _revolution_period(m, _owners_of_types(act_owner(m), m.structure, _SETPOINT_DYNTYPES))
    return None if period is None else (period > 0).any(axis=0, keepdims=True)


def _unwrap_to_nearest(
    m: Model, owner: np.ndarray, angle: Array, goal: Array, index: np.ndarray
) -> Array:
    """Unwrap angles of actuators `owner` (-1: none) to the nearest to `goal` at index `index`."""
    period = _revolution_period(m, owner)
    if period is None:
        return angle
    # Number of revolutions to the nearest equivalent angle.
    here = period > 0
    turns = jnp.round(
        (angle - gather_static(goal, np.maximum(index, 0))) / jnp.where(here, period, 1)
    )
    return angle - jnp.where(here, period * turns, 0)


def _revolution_period(m: Model, owner: np.ndarray) -> Array | None:
    """Return one revolution of actuators `owner` in units of their length, `[n, *W]`.

    It is 0 for others than servos on a circle; None if there are no such servos.
    """
    # Servos on ball joints, or between sites without translation.
    ball, site = _ball_joint_servos(m.structure), _site_pair_servos(m.structure)
    served = (owner >= 0) & (ball | site)[owner]
    if not served.any():
        return None
    actuator = np.maximum(owner, 0)
    # A revolution in units of length is 2 pi times the rotational gear.
    gear = gather_static(m.actuator_gear, m.actuator_outadr[actuator])
    moves = (gear[:, 0] != 0) | (gear[:, 1] != 0) | (gear[:, 2] != 0)
    first, last = (safe_sqrt(sum(gear[:, k + j] ** 2 for j in range(3))) for k in (0, 3))
    turn = jnp.where(column(ball[actuator], first), first, jnp.where(moves, 0, last))
    gain, bias = (
        gather_static(p, actuator) for p in (m.actuator_gainprm[:, 0], m.actuator_biasprm[:, 1])
    )
    pid = column(m.actuator_gaintype[actuator] == GainType.PID, gain)  # a pid has one kp for both
    return jnp.where(column(served, turn) & (pid | (gain == -bias)), 2 * np.pi * turn, 0)


def _owners_of_types(owner: np.ndarray, s: Structure, kinds: tuple[DynType, ...]) -> np.ndarray:
    """Return the actuators `owner` of these types, -1 for others."""
    return np.where(np.isin(s.actuator_dyntype[owner], kinds), owner, -1)


def _is_servo(s: Structure) -> np.ndarray:
    """Return position servos: fixed gain with a bias affine in the length; or a pid."""
    fixed = (s.actuator_gaintype == GainType.FIXED) & (s.actuator_biastype == BiasType.AFFINE)
    return fixed & np.isin(s.actuator_dyntype, _SERVO_DYNTYPES) | (
        s.actuator_gaintype == GainType.PID
    )


@cache_by_structure
def _ball_joint_servos(s: Structure) -> np.ndarray:
    """Return the servos on ball joints, [nactuator] bool."""
    on_joint = np.isin(s.actuator_trntype, (TrnType.JOINT, TrnType.JOINTINPARENT))
    joint = np.where(on_joint, s.actuator_trnid[:, 0], -1)
    is_ball = np.append(s.jnt_type == JointType.BALL, False)
    return _is_servo(s) & is_ball[joint]


@cache_by_structure
def _site_pair_servos(s: Structure) -> np.ndarray:
    """Return the servos between two sites, [nactuator] bool."""
    return _is_servo(s) & (s.actuator_trntype == TrnType.SITE) & (s.actuator_trnid[:, 1] >= 0)
