"""Which actuators push at a limit, so that their force does not follow their velocity any more.

MuJoCo's documentation, Changelog 4.0: saturated actuators have no implicit derivative.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType, TrnType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, take, weighted_sum


def saturated(m: Model, d: Data) -> Array:
    """Actuators at their own limit or at that of their joint or tendon, `[nactuator, *W]` bool.

    An actuator of a tendon is not held by the limits of the joints the tendon runs over.
    """
    f = d.actuator_force
    own = jnp.asarray(column(m.actuator_forcelimited.astype(bool), f))
    out = own & _outside(f, m.actuator_forcerange)
    joint, of_joint = _on_limited_joints(m)
    if len(joint):
        whole = take(d.qfrc_actuator, m.jnt_dofadr[joint])
        out = out | _any_of(of_joint, _outside(whole, take(m.jnt_actfrcrange, joint)))
    tendon, of_tendon = _on_limited_tendons(m)
    if len(tendon):
        # forces scaled to a limit add up to it but for rounding
        slack = 1 + max(1e-10, 8 * float(jnp.finfo(f.dtype).eps))
        whole = slack * weighted_sum(of_tendon.T, f)
        out = out | _any_of(of_tendon, _outside(whole, take(m.tendon_actfrcrange, tendon)))
    return out


def _outside(x: Array, limits: Array) -> Array:
    """At or beyond the limits `[n, 2, *W]`."""
    return (x <= limits[:, 0]) | (x >= limits[:, 1])


def _any_of(member: np.ndarray, flags: Array) -> Array:
    """[nactuator, *W] bool: the actuator's joint or tendon has its flag set."""
    return weighted_sum(member, flags.astype(jnp.float32)) > 0


@derived
def _on_limited_joints(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Joints that limit the force of actuators, and `[nactuator, k]`: 1 where one acts on one."""
    scalar = np.isin(s.jnt_type, (JointType.SLIDE, JointType.HINGE))
    joint = np.flatnonzero(s.jnt_actfrclimited.astype(bool) & scalar)
    kind = np.isin(s.actuator_trntype, (TrnType.JOINT, TrnType.JOINTINPARENT))
    return joint, 1.0 * (kind[:, None] & (s.actuator_trnid[:, :1] == joint))


@derived
def _on_limited_tendons(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Tendons that limit the force of actuators, and `[nactuator, k]`, likewise."""
    tendon = np.flatnonzero(s.tendon_actfrclimited)
    kind = s.actuator_trntype == TrnType.TENDON
    return tendon, 1.0 * (kind[:, None] & (s.actuator_trnid[:, :1] == tendon))
