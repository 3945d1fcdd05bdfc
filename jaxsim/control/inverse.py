"""Controls and forces of a given motion, by inverse dynamics."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.control.motion import carry_results
from jaxsim.control.solve.levenberg_marquardt import value_and_jacobian
from jaxsim.derivative.ctrl_limits import clip_controls, without_ctrl_clamp
from jaxsim.enums import EnableBit, IntegratorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.api import forward, inverse
from jaxsim.physics.public.arguments import check_array, check_data, check_model
from jaxsim.support import differentiate_pos

# results that are read here, and the fields that `inverse` reads and writes
_FORCE_FIELDS = tuple(
    {"qfrc_passive", "qfrc_bias", "qfrc_actuator", "qfrc_smooth", *vars(inverse)["carries"]}
)


class Torque(NamedTuple):
    """Controls for an acceleration.

    Attributes:
      ctrl: controls within the limits, (nu,).
      missing: generalized force that the actuators cannot provide, (nv,) [N or N m]: at dofs
        without an actuator, or because of limits.
    """

    ctrl: jax.Array
    missing: jax.Array


def computed_torque(m: Model, d: Data, qacc: jax.Array) -> Torque:
    """Return the controls that achieve an acceleration, as far as the actuators can.

        qfrc_actuator(ctrl) = inverse(qpos, qvel, qacc) - applied forces

    The actuator force is affine in the controls, so that a linear least-squares problem gives them.
    With `qacc = wanted + Kp (q_wanted - q) + Kd (v_wanted - v)` this is computed torque control.

    Args:
      m: the model; for an actuator with an activation only the present force is used.
      d: the state.
      qacc: the acceleration, (nv,) [m/s^2 or rad/s^2].

    Returns:
      A Torque.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_model("computed_torque", m)
    check_data("computed_torque", m, d)
    check_array("computed_torque", m, "vec", qacc)
    return _controls(m, d, jnp.asarray(qacc).astype(m.qpos0.dtype))


class Violation(NamedTuple):
    """The part of a motion that the physics does not explain, at each of its inner steps.

    Attributes:
      force: generalized force not provided by dynamics, contacts or actuators, (steps - 2, nv).
      ctrl: controls that explain the motion best, (steps - 2, nu).
      worlds: the worlds at the steps with their `qfrc_inverse`, with a leading axis of steps - 2.
    """

    force: jax.Array
    ctrl: jax.Array
    worlds: Data


def violation(m: Model, d: Data, qpos: jax.Array) -> Violation:
    """Return the residual forces, without physical source, that a motion requires.

    A hand-made or recorded motion is analyzed by inverse dynamics: velocities and accelerations are
    differences of the configurations, one time step apart, consistent with the integrator,

        qvel_t = (qpos_t - qpos_t-1) / h,   qacc_t = (qvel_t+1 - qvel_t) / h

    and the force that the actuators cannot provide remains. A motion of the engine with
    semi-implicit integration has no residual. With RK4 the differences are only first order.

    Args:
      m: the model.
      d: a world; its inputs other than controls, such as applied forces, are used.
      qpos: the motion, (steps, nq), with `m.opt.timestep` between configurations.

    Returns:
      A Violation.

    Raises:
      ValueError: a shape or precision is wrong.
    """
    check_model("violation", m)
    check_data("violation", m, d)
    if jnp.ndim(qpos) != 2 or jnp.shape(qpos)[1] != m.nq or jnp.shape(qpos)[0] < 3:
        raise ValueError(
            f"violation: qpos: expected shape (steps, {m.nq}) with at least 3 steps, got "
            f"{brief_value(qpos)}"
        )
    qpos = jnp.asarray(qpos).astype(m.qpos0.dtype)
    h = m.opt.timestep
    if m.opt.integrator != IntegratorType.RK4:  # the acceleration is that of the step
        m = m.replace(opt=m.opt.replace(enableflags=m.opt.enableflags | EnableBit.INVDISCRETE))
    qvel = jax.vmap(lambda a, b: differentiate_pos(m, h, a, b))(qpos[:-1], qpos[1:])
    qacc = (qvel[1:] - qvel[:-1]) / h

    def explain(q: jax.Array, v: jax.Array, a: jax.Array) -> Violation:
        world = carry_results(m, d, _FORCE_FIELDS).replace(qpos=q, qvel=v, qacc=a)
        found = _controls(m, world, a)
        return Violation(found.missing, found.ctrl, inverse(m, world))

    return jax.vmap(explain)(qpos[1:-1], qvel[:-1], qacc)


def _controls(m: Model, d: Data, qacc: jax.Array) -> Torque:
    free, d = without_ctrl_clamp(m), carry_results(m, d, _FORCE_FIELDS)

    def forces(u: jax.Array) -> jax.Array:
        found = forward(free, d.replace(ctrl=u))
        # the smooth force is the sum of all; subtracting the others leaves the applied force
        inner = found.qfrc_passive - found.qfrc_bias + found.qfrc_actuator
        return jnp.concatenate([found.qfrc_actuator, found.qfrc_smooth - inner])

    values, slopes = value_and_jacobian(forces, jnp.zeros_like(d.ctrl))
    at_zero, applied = values[: m.nv], values[m.nv :]
    gain = slopes[: m.nv]
    needed = inverse(m, d.replace(qacc=qacc)).qfrc_inverse - applied - at_zero
    ctrl = clip_controls(m, jnp.linalg.pinv(gain) @ needed)
    return Torque(ctrl, needed - gain @ ctrl)
