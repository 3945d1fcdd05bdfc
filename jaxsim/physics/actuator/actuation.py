"""Actuator forces: from controls and activations to forces on the dofs.

MuJoCo's documentation, Computation: Actuation model; corresponds to `mj_fwdActuation`. Order:
delayed and clamped controls, activation rates, force laws, plugins, limits of tendons and
actuators, motor friction outside of the limits, moments, limits of joints.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, weighted_sum
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import (
    BiasType,
    DisableBit,
    GainType,
    JointType,
    TrnType,
    WarningType,
)
from jaxsim.math import Vec, safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator import dcmotor, force_laws, orientation, plugins
from jaxsim.physics.actuator.activation import activation_rate, disabled_actuators
from jaxsim.physics.actuator.activation import next_activation as next_activation
from jaxsim.physics.actuator.layout import act_owner, flatten_vectors, output_actuator
from jaxsim.physics.actuator.setpoint import setpoint_controls
from jaxsim.physics.actuator.transmission import moment_pattern, output_trntype
from jaxsim.physics.history.read import delayed_ctrl
from jaxsim.physics.plugin import missing_function as plugin_lack
from jaxsim.physics.sleep.incidence import actuator_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.unsupported import Refusal, make_refusal
from jaxsim.physics.warning import count_warning, find_bad_worlds


def actuation(m: Model, d: Data) -> Data:
    """Compute activation rates, actuator forces and their sum on the dofs.

    actuator_force = gain * (activation or control) + bias,  within the ranges; or a servo's own law
    qfrc_actuator  = moment' actuator_force,                 within the ranges of the joints

    Corresponds to `mj_fwdActuation` in MuJoCo.
    """
    # Actuation disabled: everything is zero.
    if not m.nactuator or m.opt.disableflags & DisableBit.ACTUATION:
        return d.replace(
            act_dot=jnp.zeros_like(d.act),
            actuator_force=jnp.zeros_like(d.actuator_length),
            qfrc_actuator=jnp.zeros_like(d.qvel),
        )
    # Controls, rate-limited or unwrapped as the activations follow them, and activation rates.
    d, ctrl = _control(m, d)
    ctrl = setpoint_controls(m, d, ctrl)
    before = d.act_dot
    d = d.replace(act_dot=activation_rate(m, d, ctrl))
    # Plugins replace the rates of their activations.
    d = d.replace(act_dot=plugins.rates(m, d, force_laws.setpoints(m, ctrl, d.act)))
    force = _add_mechanical_force(m, d, _electrical(m, d, ctrl))
    if can_sleep(m):  # sleeping actuators keep their rates and have no force
        awake = actuator_incidence(m).awake(tree_awake(d))
        force = jnp.where(gather_static(awake, output_actuator(m)), force, 0)
        if m.na and before is not None:
            d = d.replace(act_dot=jnp.where(gather_static(awake, act_owner(m)), d.act_dot, before))
    # Map forces to dofs by the moments.
    pattern = moment_pattern(m)
    qfrc = pattern.apply_transpose(pattern.entries(d.actuator_moment), force)
    return d.replace(actuator_force=force, qfrc_actuator=_clamp_joint_forces(m, d, qfrc))


def limited_force(m: Model, d: Data) -> Array:
    """Return forces within their limits, without friction and cogging of motors; `[nout, *W]`."""
    if not _motors(m).any():
        return d.actuator_force
    return _electrical(m, d, effective_controls(m, d))


def effective_controls(m: Model, d: Data) -> Array:
    """Return the effective controls, `[nu, *W]`: delayed, clamped and rate-limited."""
    return setpoint_controls(m, d, _control(m, d)[1])


def unsupported_actuators(m: Model) -> list[Refusal]:
    """Return the actuators that are not supported."""
    return [
        make_refusal(m, "actuator", int(i), f"{what} not supported")
        for i in np.flatnonzero(m.actuator_plugin >= 0)
        if (what := plugin_lack(m, m.actuator_plugin[i], "actuator"))
    ]


def _control(m: Model, d: Data) -> tuple[Data, Array]:
    """Return the controls `[nu, *W]`, delayed and clamped to their ranges.

    If a control of a world is still invalid, a warning is counted and all its controls are zero, as
    in MuJoCo.
    """
    # Delay first, then clamp.
    ctrl = delayed_ctrl(m, d)
    limited = m.actuator_ctrllimited.astype(bool)
    if limited.any() and not m.opt.disableflags & DisableBit.CLAMPCTRL:
        clipped = jnp.clip(ctrl, m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1])
        ctrl = clipped if limited.all() else jnp.where(column(limited, ctrl), clipped, ctrl)
    bad = find_bad_worlds(ctrl)
    return count_warning(d, WarningType.BADCTRL, bad), jnp.where(bad.where, 0, ctrl)


def _electrical(m: Model, d: Data, ctrl: Array) -> Array:
    """Compute forces `[nout, *W]` within their limits, without mechanical motor forces."""
    # Force law, plugins, limits of tendons, limits of actuators.
    given = force_laws.force_inputs(m, d, ctrl)
    force = force_laws.free_force(m, d, given)
    force = plugins.forces(m, d, force, force_laws.setpoints(m, ctrl, given.act))
    return _within_range(m, _limit_tendons(m, force))


def _limit_tendons(m: Model, force: Array) -> Array:
    """Scale the forces on a tendon so that their sum stays in the tendon's range."""
    # Outputs on tendons with a force range.
    limited = np.flatnonzero(m.tendon_actfrclimited)
    target = m.actuator_trnid[output_actuator(m), 0]
    mine = (limited[:, None] == target) & (output_trntype(m) == TrnType.TENDON)
    if not mine.any():
        return force
    # Sum on each tendon, and the factor that clamps it.
    whole = weighted_sum(1.0 * mine, force)
    lower, upper = (gather_static(m.tendon_actfrcrange[:, k], limited) for k in range(2))
    factor = jnp.where((whole < lower) | (whole > upper), jnp.clip(whole, lower, upper), whole)
    factor = jnp.where(factor == whole, 1, safe_divide(factor, whole))
    # An actuator acts on at most one tendon; the others keep their force.
    own = weighted_sum(1.0 * mine.T, factor)
    return force * jnp.where(column(mine.any(0), own), own, 1)


def _within_range(m: Model, force: Array) -> Array:
    """Clamp forces to the ranges of their actuators; for orientations the norm of the torque."""
    # Limits per output; orientations compare the norm of their torque.
    owner = output_actuator(m)
    limited = m.actuator_forcelimited.astype(bool)[owner]
    if not limited.any():
        return force
    whole = m.actuator_gaintype[owner] == GainType.SO3
    lower, upper = (gather_static(m.actuator_forcerange[:, k], owner) for k in range(2))
    inside = jnp.clip(force, lower, upper)
    if (limited & whole).any():
        i = np.flatnonzero(whole)
        torque = Vec(*(gather_static(force, i[k::3]) for k in range(3)))
        torque = orientation.within_norm(torque, gather_static(upper, i[::3]))
        table = {True: lambda _: flatten_vectors(torque), False: lambda i: gather_static(inside, i)}
        inside = compute_by_kind(whole, table, force)
    return jnp.where(column(limited, force), inside, force)


def _add_mechanical_force(m: Model, d: Data, force: Array) -> Array:
    """Add friction and cogging of motors, to which no limit applies."""
    motors, owner = _motors(m), output_actuator(m)
    if not motors.any():
        return force
    table = {
        True: lambda i: gather_static(force, i) + dcmotor.mechanical_force(m, d, owner[i]),
        False: lambda i: gather_static(force, i),
    }
    return compute_by_kind(motors, table, force)


def _motors(m: Model) -> np.ndarray:
    """Return the outputs of enabled motors, [nout] bool."""
    return ((m.actuator_biastype == BiasType.DCMOTOR) & ~disabled_actuators(m))[output_actuator(m)]


def _clamp_joint_forces(m: Model, d: Data, qfrc: Array) -> Array:
    """Add gravity compensation through actuators, and clamp the actuator force of joints."""
    # Joints whose gravity compensation is part of the actuator force.
    joint = m.dof_jntid
    through = m.jnt_actgravcomp[joint].astype(bool)
    if m.flg_gravcomp and through.any():
        qfrc = qfrc + jnp.where(column(through, qfrc), d.qfrc_gravcomp, 0)
    # Force range of scalar joints.
    scalar = np.isin(m.jnt_type, (JointType.SLIDE, JointType.HINGE))
    limited = (m.jnt_actfrclimited.astype(bool) & scalar)[joint]
    if limited.any():
        lower, upper = (gather_static(m.jnt_actfrcrange[:, k], joint) for k in range(2))
        qfrc = jnp.where(column(limited, qfrc), jnp.clip(qfrc, lower, upper), qfrc)
    return qfrc
