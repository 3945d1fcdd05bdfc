"""Which actuators push at a limit, so that their force does not follow their velocity any more.

MuJoCo's documentation, Changelog 4.0: saturated actuators have no implicit derivative.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GainType, JointType, TrnType
from jaxsim.math import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.actuator.layout import output_actuator
from jaxsim.physics.actuator.transmission import output_trntype
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, take, weighted_sum


def saturated(m: Model, force: Array) -> Array:
    """Outputs at the limit of their actuator or its tendon, `[nout, *W]` bool, by their forces.

    The torque of an orientation is at its limit by its norm.
    """
    owner = output_actuator(m)
    # forces scaled to a limit have it as their sum or norm but for rounding
    slack = 1 + max(1e-10, 8 * float(jnp.finfo(force.dtype).eps))
    own = jnp.asarray(column(m.actuator_forcelimited.astype(bool)[owner], force))
    limits = take(m.actuator_forcerange, owner)
    whole = column(m.actuator_gaintype[owner] == GainType.SO3, force)
    out = own & jnp.where(whole, slack * _norm(m, force) >= limits[:, 1], _outside(force, limits))
    tendon, of_tendon = _on_limited_tendons(m)
    if len(tendon):
        total = slack * weighted_sum(of_tendon.T, force)
        out = out | _any_of(of_tendon, _outside(total, take(m.tendon_actfrcrange, tendon)))
    return out


def joint_saturated(m: Model, d: Data) -> Array:
    """Outputs whose joint is at its limit, `[nout, *W]` bool.

    An actuator of a tendon is not held by the limits of the joints the tendon runs over.
    """
    joint, of_joint = _on_limited_joints(m)
    if not len(joint):
        return jnp.zeros_like(d.actuator_length, bool)
    whole = take(d.qfrc_actuator, m.jnt_dofadr[joint])
    return _any_of(of_joint, _outside(whole, take(m.jnt_actfrcrange, joint)))


def _norm(m: Model, force: Array) -> Array:
    """The norm of all outputs of the actuator of each output, `[nout, *W]`."""
    owner = output_actuator(m)
    if len(owner) == m.nactuator:
        return jnp.abs(force)
    return safe_sqrt(weighted_sum(1.0 * (owner[:, None] == owner), force * force))


def _outside(x: Array, limits: Array) -> Array:
    """At or beyond the limits `[n, 2, *W]`."""
    return (x <= limits[:, 0]) | (x >= limits[:, 1])


def _any_of(member: np.ndarray, flags: Array) -> Array:
    """[nout, *W] bool: the actuator's joint or tendon has its flag set."""
    return weighted_sum(member, flags.astype(jnp.float32)) > 0


@derived
def _on_limited_joints(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Joints that limit the force of actuators, and `[nout, k]`: 1 where an output acts on one."""
    scalar = np.isin(s.jnt_type, (JointType.SLIDE, JointType.HINGE))
    joint = np.flatnonzero(s.jnt_actfrclimited.astype(bool) & scalar)
    kind = np.isin(output_trntype(s), (TrnType.JOINT, TrnType.JOINTINPARENT))
    return joint, 1.0 * (kind[:, None] & (s.actuator_trnid[output_actuator(s), :1] == joint))


@derived
def _on_limited_tendons(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Tendons that limit the force of actuators, and `[nout, k]`, likewise."""
    tendon = np.flatnonzero(s.tendon_actfrclimited)
    kind = output_trntype(s) == TrnType.TENDON
    return tendon, 1.0 * (kind[:, None] & (s.actuator_trnid[output_actuator(s), :1] == tendon))
