"""Actuator forces: from controls and activations to forces on the dofs.

MuJoCo's documentation, Computation: Actuation model.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import (
    MAXVAL,
    BiasType,
    DisableBit,
    DynType,
    GainType,
    JointType,
    TrnType,
    WarningType,
)
from jaxsim.math import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator import muscle, plugins
from jaxsim.physics.actuator.activation import RATES, act_owner, activation_rate, disabled
from jaxsim.physics.actuator.activation import next_activation as next_activation
from jaxsim.physics.actuator.setpoint import nearest_control, nearest_setpoint
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import by_kind
from jaxsim.physics.arrays.select import column, take, total, weighted_sum
from jaxsim.physics.history.read import delayed_ctrl
from jaxsim.physics.plugin import lack as plugin_lack
from jaxsim.physics.refusal import Refusal, refuse
from jaxsim.physics.sleep.incidence import actuators
from jaxsim.physics.sleep.trees import sleeps, tree_awake
from jaxsim.physics.stage import stage
from jaxsim.physics.warning import count


@stage(
    reads=(
        "time act history tree_asleep ctrl warning actuator_length actuator_moment "
        "actuator_velocity act_dot"
    ),
    writes="warning act_dot actuator_force qfrc_actuator",
)
def actuation(m: Model, d: Data) -> Data:
    """Activation rates, actuator forces and their sum on the dofs.

    actuator_force = gain * (activation or control) + bias,  within the ranges
    qfrc_actuator  = moment' actuator_force,                 within the ranges of the joints
    """
    if not m.nactuator or m.opt.disableflags & DisableBit.ACTUATION:
        return d.replace(
            act_dot=jnp.zeros_like(d.act),
            actuator_force=jnp.zeros_like(d.actuator_length),
            qfrc_actuator=jnp.zeros_like(d.qvel),
        )
    d, ctrl = _control(m, d)
    before = d.act_dot
    d = d.replace(act_dot=activation_rate(m, d, nearest_control(m, d, ctrl)))
    d = d.replace(act_dot=plugins.rates(m, d, _setpoint(m, d, ctrl, early=False)))
    force = _force(m, d, ctrl)
    if sleeps(m):  # one that sleeps goes on as it was, without a force
        awake = actuators(m).awake(tree_awake(d))
        force = jnp.where(awake, force, 0)
        if m.na and before is not None:
            d = d.replace(act_dot=jnp.where(take(awake, act_owner(m)), d.act_dot, before))
    pattern = moment_pattern(m)
    qfrc = pattern.apply_transpose(pattern.entries(d.actuator_moment), force)
    return d.replace(actuator_force=force, qfrc_actuator=_on_dofs(m, d, qfrc))


def free_force(m: Model, d: Data) -> Array:
    """Force of each actuator before its limits and its tendon's, `[nactuator, *W]`.

    Plugins are left out: no integrator is implicit in their forces, as in MuJoCo.
    """
    return _free_force(m, *_control(m, d))


def refusals(m: Model) -> list[Refusal]:
    """What of the actuators is not simulated, named."""
    found = []
    for i in range(m.nactuator):
        lacks = [
            f"{what} {kind(number).name.lower()}"
            for what, kind, number, known in (
                ("dyntype", DynType, m.actuator_dyntype[i], RATES),
                ("gaintype", GainType, m.actuator_gaintype[i], GAINS),
                ("biastype", BiasType, m.actuator_biastype[i], BIASES),
            )
            if number not in known
        ]
        if m.actuator_plugin[i] >= 0:
            what = plugin_lack(m, m.actuator_plugin[i], "actuator")
            lacks += [what] if what else []
        elif not lacks and (m.actuator_ctrlnum[i] != 1 or m.actuator_outnum[i] != 1):
            lacks = ["several controls or outputs"]
        elif not lacks and m.actuator_actnum[i] > 1:
            lacks = ["several activations"]
        found += [refuse(m, "actuator", i, f"{lack} not supported") for lack in lacks]
    return found


def _control(m: Model, d: Data) -> tuple[Data, Array]:
    """The control of each actuator `[nactuator, *W]`, late where it is, within its range.

    If one control of a world is bad even then, MuJoCo counts a warning and takes all as zero.
    """
    ctrl = delayed_ctrl(m, d)
    limited = m.actuator_ctrllimited.astype(bool)
    if limited.any() and not m.opt.disableflags & DisableBit.CLAMPCTRL:
        clipped = jnp.clip(ctrl, m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1])
        ctrl = clipped if limited.all() else jnp.where(column(limited, ctrl), clipped, ctrl)
    bad = total((~(jnp.abs(ctrl) <= MAXVAL)).astype(ctrl.dtype)) > 0
    return count(d, WarningType.BADCTRL, bad), take(jnp.where(bad, 0, ctrl), m.actuator_ctrladr)


def _force(m: Model, d: Data, ctrl: Array) -> Array:
    """Force of each actuator `[nactuator, *W]`."""
    given = _setpoint(m, d, ctrl, early=True)
    force = plugins.forces(m, d, _free_force(m, d, ctrl), given)
    force = _limit_tendons(m, force)
    limited = m.actuator_forcelimited.astype(bool)
    if limited.any():
        lower, upper = m.actuator_forcerange[:, 0], m.actuator_forcerange[:, 1]
        force = jnp.where(column(limited, force), jnp.clip(force, lower, upper), force)
    return force


def _free_force(m: Model, d: Data, ctrl: Array) -> Array:
    gain = by_kind(
        m.actuator_gaintype, {k: lambda i, f=f: f(m, d, i) for k, f in GAINS.items()}, ctrl
    )
    bias = by_kind(
        m.actuator_biastype, {k: lambda i, f=f: f(m, d, i) for k, f in BIASES.items()}, ctrl
    )
    given = nearest_setpoint(m, d, _setpoint(m, d, ctrl, early=True))
    force = gain * given + bias
    off = disabled(m) | (m.actuator_plugin >= 0)
    return jnp.where(column(off, force), 0, force) if off.any() else force


def _setpoint(m: Model, d: Data, ctrl: Array, early: bool) -> Array:
    """What the gain multiplies: the control; of a stateful actuator the activation, or its next
    value if the actuator acts early and `early` asks for it."""
    stateful = m.actuator_dyntype != DynType.NONE
    if not stateful.any():
        return ctrl
    ahead = m.actuator_actearly[act_owner(m)].astype(bool)
    act = d.act
    if early and ahead.any():
        act = jnp.where(column(ahead, act), next_activation(m, d), act)
    last = m.actuator_actadr + m.actuator_actnum - 1
    source = np.where(stateful, last, m.na + np.arange(m.nactuator))
    return take(jnp.concatenate([act, ctrl]), source)


def _limit_tendons(m: Model, force: Array) -> Array:
    """Scales the forces on a tendon so that their sum stays in the tendon's range."""
    limited = np.flatnonzero(m.tendon_actfrclimited)
    on_tendon = m.actuator_trntype == TrnType.TENDON
    mine = (limited[:, None] == m.actuator_trnid[:, 0]) & on_tendon
    if not mine.any():
        return force
    whole = weighted_sum(1.0 * mine, force)
    lower, upper = (take(m.tendon_actfrcrange[:, k], limited) for k in range(2))
    factor = jnp.where((whole < lower) | (whole > upper), jnp.clip(whole, lower, upper), whole)
    factor = jnp.where(factor == whole, 1, safe_divide(factor, whole))
    # an actuator is on one tendon at most; the others keep their force
    own = weighted_sum(1.0 * mine.T, factor)
    return force * jnp.where(column(mine.any(0), own), own, 1)


def _on_dofs(m: Model, d: Data, qfrc: Array) -> Array:
    """Adds gravity compensation that acts through the actuators, and limits the force of joints."""
    joint = m.dof_jntid
    through = m.jnt_actgravcomp[joint].astype(bool)
    if m.flg_gravcomp and through.any():
        qfrc = qfrc + jnp.where(column(through, qfrc), d.qfrc_gravcomp, 0)
    scalar = np.isin(m.jnt_type, (JointType.SLIDE, JointType.HINGE))
    limited = (m.jnt_actfrclimited.astype(bool) & scalar)[joint]
    if limited.any():
        lower, upper = (take(m.jnt_actfrcrange[:, k], joint) for k in range(2))
        qfrc = jnp.where(column(limited, qfrc), jnp.clip(qfrc, lower, upper), qfrc)
    return qfrc


# gains and biases: (m, d, ids) -> [k, *W]; an actuator of these kinds has one output


def _fixed(m: Model, d: Data, i: np.ndarray) -> Array:
    return take(m.actuator_gainprm[:, 0], i)


def _affine(prm: Array, d: Data, i: np.ndarray) -> Array:
    """prm[0] + prm[1] length + prm[2] velocity."""
    a, b, c = (take(prm[:, k], i) for k in range(3))
    return a + b * take(d.actuator_length, i) + c * take(d.actuator_velocity, i)


def _muscle_gain(m: Model, d: Data, i: np.ndarray) -> Array:
    length, velocity = take(d.actuator_length, i), take(d.actuator_velocity, i)
    lengthrange, acc0 = _muscle_scale(m, i)
    prm = _columns(m.actuator_gainprm, i)
    return muscle.gain(length, velocity, lengthrange, acc0, prm)


def _muscle_bias(m: Model, d: Data, i: np.ndarray) -> Array:
    length = take(d.actuator_length, i)
    lengthrange, acc0 = _muscle_scale(m, i)
    return muscle.bias(length, lengthrange, acc0, _columns(m.actuator_biasprm, i))


def _muscle_scale(m: Model, i: np.ndarray) -> tuple[list[Array], Array]:
    return _columns(m.actuator_lengthrange, i), take(m.actuator_acc0, i)


def _columns(prm: Array, i: np.ndarray) -> list:
    return [take(prm[:, k], i) for k in range(prm.shape[1])]


GAINS = {
    GainType.FIXED: _fixed,
    GainType.AFFINE: lambda m, d, i: _affine(m.actuator_gainprm, d, i),
    GainType.MUSCLE: _muscle_gain,
}
BIASES = {
    BiasType.NONE: lambda m, d, i: jnp.zeros_like(take(m.actuator_biasprm[:, 0], i)),
    BiasType.AFFINE: lambda m, d, i: _affine(m.actuator_biasprm, d, i),
    BiasType.MUSCLE: _muscle_bias,
}
