"""Orientation servos (`<orientation>`): torque along the shortest rotation.

MuJoCo's documentation, XML reference: actuator/orientation. The three outputs of the transmission
are the components of a torque in the frame of the moving body.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import CtrlChart, DynType, GainType
from jaxsim.math import Quat, Vec, safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure


def orientation_torque(m: Model, d: Data, ctrl: Array, act: Array, i: np.ndarray) -> Vec:
    """Compute kp log(q^-1 q_goal) of servos `i`, `[k, *W]`; the bias adds damping.

    q is the current orientation.

    Args:
      m, d: model and data.
      ctrl: controls `[nu, *W]`.
      act: activations that give force, `[na, *W]`; the goal of integrators.
      i: actuators, `[k]`.
    """
    # Current rotation vector, and the error in the body frame.
    first = m.actuator_outadr[i]
    now = Vec(*(gather_static(d.actuator_length, first + k) for k in range(3)))
    error = (
        Quat.from_rotation_vector(now).conj * _goal_orientation(m, ctrl, act, i)
    ).rotation_vector()
    return error.scale(gather_static(m.actuator_gainprm[:, 0], i))


def within_norm(f: Vec, most: Array) -> Vec:
    """Scale a torque to a norm of at most `most`."""
    norm = f.norm()
    return f.scale(jnp.where(norm > most, safe_divide(most, norm), 1))


def wrap_goals(m: Model, act: Array) -> Array:
    """Wrap goals among the activations `[na, *W]` to rotation vectors of norm at most pi."""
    i = _integrated_servos(m.structure)
    if not len(i):
        return act
    place = m.actuator_actadr[i] + np.arange(3)[:, None]
    goal = Vec(*(gather_static(act, p) for p in place))
    angle = goal.norm()
    turned = angle - 2 * np.pi * jnp.round(angle / (2 * np.pi))
    goal = goal.scale(jnp.where(angle > np.pi, safe_divide(turned, angle), 1))
    source = np.arange(m.na)
    source[place.ravel()] = m.na + np.arange(place.size)
    return gather_static(jnp.concatenate([act, *goal.parts]), source)


def _integrated_servos(s: Structure) -> np.ndarray:
    """Return the servos whose goal is an activation."""
    so3 = s.actuator_gaintype == GainType.SO3
    return np.flatnonzero(so3 & (s.actuator_dyntype == DynType.INTEGRATOR))


def _goal_orientation(m: Model, ctrl: Array, act: Array, i: np.ndarray) -> Quat:
    """Return the goal orientation, from a quaternion (normalized here) or a rotation vector."""
    # From activations or controls; quaternions have a fourth component.
    held = m.actuator_dyntype[i] != DynType.NONE
    given = jnp.concatenate([act, ctrl, jnp.zeros_like(ctrl[:1])])
    first = np.where(held, m.actuator_actadr[i], m.na + m.actuator_ctrladr[i])
    by_quat = m.actuator_ctrlspec[i] == CtrlChart.QUAT
    parts = [
        gather_static(given, np.where(by_quat | (k < 3), first + k, m.na + m.nu)) for k in range(4)
    ]
    by_vector = Quat.from_rotation_vector(Vec(*parts[:3]))
    if not by_quat.any():
        return by_vector
    as_quat, mask = Quat(*parts).normalize(), column(by_quat, parts[0])
    pairs = zip(as_quat.parts, by_vector.parts, strict=True)
    return Quat(*(jnp.where(mask, a, b) for a, b in pairs))
