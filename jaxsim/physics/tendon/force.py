"""Forces of spatial tendons on bodies, at their points of application.

Generalized forces of tendons follow from their Jacobians; `cfrc_ext` and force sensors need the
forces themselves. Corresponds to the tendon part of `mj_rnePostConstraint` in MuJoCo 4.0.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import ConstraintType, EqType, TrnType
from jaxsim.math import Spatial
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.reflected_inertia import tendon_armature
from jaxsim.physics.constraint.equality import tendon_residual
from jaxsim.physics.constraint.tendon import limit_distance
from jaxsim.physics.passive.damper import tendon_damper
from jaxsim.physics.passive.spring import tendon_spring
from jaxsim.physics.sleep.incidence import tendon_path_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.solver.constraint_force import row_forces
from jaxsim.physics.tendon.bias import tendon_drift
from jaxsim.physics.tendon.path import tendon_legs, tendon_pattern
from jaxsim.physics.tendon.tendon import tendon_wrenches


def tendon_wrench(m: Model, d: Data) -> Spatial | None:
    """Compute torque and force on each body from spatial tendons, `[nbody, *W]`, about the origin.

    Requires `qacc`. None for a model without spatial tendons.
    """
    if not len(tendon_legs(m)):
        return None
    # Unit pulls on points, times the force along the tendon.
    pull = tendon_wrenches(m, d)
    force = pull.force.scale(gather_static(_axial_force(m, d), pull.tendon))
    member = 1.0 * (np.arange(m.nbody)[:, None] == pull.body)
    return weighted_sum(member, Spatial.of(pull.point.cross(force), force))


def _axial_force(m: Model, d: Data) -> Array:
    """Compute the total force along each tendon `[ntendon, *W]` [N]; negative: tension.

    A sleeping tendon has length zero (tendon.py), and no force.
    """
    # All forces along the tendon; inertia counts negative.
    force = (
        tendon_spring(m, d)
        + tendon_damper(m, d)
        + _actuator_tendon_force(m, d)
        + _constraint_tendon_force(m, d)
        - _inertial_tendon_force(m, d)
    )
    return (
        jnp.where(tendon_path_incidence(m).awake(tree_awake(d)), force, 0)
        if can_sleep(m)
        else force
    )


def _actuator_tendon_force(m: Model, d: Data) -> Array:
    actuator = np.flatnonzero(m.actuator_trntype == TrnType.TENDON)
    mine = m.actuator_trnid[actuator, 0] == np.arange(m.ntendon)[:, None]
    output = m.actuator_outadr[actuator]
    force = gather_static(m.actuator_gear[:, 0], output) * gather_static(d.actuator_force, output)
    return weighted_sum(1.0 * mine, force)


def _constraint_tendon_force(m: Model, d: Data) -> Array:
    """Sum the row forces of dry friction, limits and couplings, times their length Jacobian."""
    whole = jnp.zeros_like(d.ten_length)
    # Row forces by type.
    for block, force in row_forces(d):
        on, share = block.ids, force
        if block.type == ConstraintType.LIMIT_TENDON:
            share = force * limit_distance(m, d)[1]
        elif block.type == ConstraintType.EQUALITY and m.eq_type[block.id[0]] == EqType.TENDON:
            _, slope = tendon_residual(m, d, on)
            on = np.concatenate([m.eq_obj1id[on], m.eq_obj2id[on]])
            share = jnp.concatenate([force, -slope * force])
        elif block.type != ConstraintType.FRICTION_TENDON:
            continue
        whole = whole + weighted_sum(1.0 * (on == np.arange(m.ntendon)[:, None]), share)
    return whole


def _inertial_tendon_force(m: Model, d: Data) -> Array:
    """Compute armature (ten_J qacc + d ten_J/dt qvel)."""
    # Length acceleration: J qacc plus drift.
    pattern = tendon_pattern(m)
    acc = pattern.apply(pattern.entries(d.ten_J), d.qacc)
    drift = tendon_drift(m, d)
    return tendon_armature(m) * (acc if drift is None else acc + drift)
