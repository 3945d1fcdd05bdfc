"""Saturation of actuators: outputs at a limit, whose force does not depend on velocity.

MuJoCo's documentation, Changelog 4.0: saturated actuators have no implicit derivative.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, weighted_sum
from jaxsim.enums import GainType, JointType, TrnType
from jaxsim.math import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.layout import output_actuator
from jaxsim.physics.actuator.transmission import output_trntype


def saturated_outputs(m: Model, force: Array) -> Array:
    """Return outputs whose force is at the limit of actuator or tendon, `[nout, *W]` bool.

    For an orientation servo the norm of the torque is compared.
    """
    owner = output_actuator(m)
    # Forces scaled to a limit have it as sum or norm up to rounding.
    slack = 1 + max(1e-10, 8 * float(jnp.finfo(force.dtype).eps))
    # Limits of each output.
    own = jnp.asarray(column(m.actuator_forcelimited.astype(bool)[owner], force))
    limits = gather_static(m.actuator_forcerange, owner)
    whole = column(m.actuator_gaintype[owner] == GainType.SO3, force)
    out = own & jnp.where(
        whole, slack * _norm(m, force) >= limits[:, 1], _is_at_limit(force, limits)
    )
    # Limits of the tendon's total force.
    tendon, of_tendon = _force_limited_tendons(m)
    if len(tendon):
        total = slack * weighted_sum(of_tendon.T, force)
        out = out | _outputs_with_flag(
            of_tendon, _is_at_limit(total, gather_static(m.tendon_actfrcrange, tendon))
        )
    return out


def joint_saturated(m: Model, d: Data) -> Array:
    """Return outputs whose joint is at its actuator force limit, `[nout, *W]` bool.

    Joint limits do not apply to actuators of tendons that run over the joint.
    """
    joint, of_joint = _force_limited_joints(m)
    if not len(joint):
        return jnp.zeros_like(d.actuator_length, bool)
    # Total actuator force on the joint.
    whole = gather_static(d.qfrc_actuator, m.jnt_dofadr[joint])
    return _outputs_with_flag(
        of_joint, _is_at_limit(whole, gather_static(m.jnt_actfrcrange, joint))
    )


def _norm(m: Model, force: Array) -> Array:
    """Return the norm over all outputs of each output's actuator, `[nout, *W]`."""
    owner = output_actuator(m)
    if len(owner) == m.nactuator:
        return jnp.abs(force)
    return safe_sqrt(weighted_sum(1.0 * (owner[:, None] == owner), force * force))


def _is_at_limit(x: Array, limits: Array) -> Array:
    """Return True at or beyond the limits `[n, 2, *W]`."""
    return (x <= limits[:, 0]) | (x >= limits[:, 1])


def _outputs_with_flag(member: np.ndarray, flags: Array) -> Array:
    """Return the outputs whose actuator's joint or tendon has its flag set, [nout, *W] bool."""
    return weighted_sum(member, flags.astype(jnp.float32)) > 0


@cache_by_structure
def _force_limited_joints(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return joints that limit actuator forces, and `[nout, k]`: 1 where an output acts on one."""
    scalar = np.isin(s.jnt_type, (JointType.SLIDE, JointType.HINGE))
    joint = np.flatnonzero(s.jnt_actfrclimited.astype(bool) & scalar)
    kind = np.isin(output_trntype(s), (TrnType.JOINT, TrnType.JOINTINPARENT))
    return joint, 1.0 * (kind[:, None] & (s.actuator_trnid[output_actuator(s), :1] == joint))


@cache_by_structure
def _force_limited_tendons(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return tendons that limit actuator forces, and `[nout, k]`: 1 where an output acts on one."""
    tendon = np.flatnonzero(s.tendon_actfrclimited)
    kind = output_trntype(s) == TrnType.TENDON
    return tendon, 1.0 * (kind[:, None] & (s.actuator_trnid[output_actuator(s), :1] == tendon))
