"""Standalone pipeline stages with MuJoCo's stage boundaries.

`forward` is

    fwd_position  sensor_pos  fwd_velocity  sensor_vel  fwd_actuation  fwd_acceleration  solve
    sensor_acc

and `step` adds an integrator. The stages of a step (forward.py) have other boundaries: constraint
rows are made after the velocities, on which their reference acceleration depends, and the
unconstrained acceleration is iteration 0 of the solver. The functions here regroup them, so that
each stage computes what its counterpart in MuJoCo does. Intermediate values that no Data carries
are recomputed (recompute.py). What each reads and writes follows from its stages (stages.py).
"""

import jax.numpy as jnp

from jaxsim.enums import IntegratorType
from jaxsim.model.data import ROW_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.integrate.integrate import rk4, single_step
from jaxsim.physics.pipeline.forward import fwd_position as to_contacts
from jaxsim.physics.pipeline.forward import run_stages
from jaxsim.physics.pipeline.recompute import recompute_missing
from jaxsim.physics.pipeline.stages import KINEMATICS, MAKE_ROWS, VELOCITY
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sleep.trees import can_sleep, freeze_sleeping
from jaxsim.physics.solver.forward_dynamics import (
    fwd_constraint,
    smooth_acceleration,
    smooth_force,
)
from jaxsim.physics.tendon.bias import tendon_bias as tendon_bias_force
from jaxsim.physics.tendon.tendon import tendon_velocity


def fwd_kinematics(m: Model, d: Data) -> Data:
    """Compute all poses: the stages kinematics, com_pos, camlight, flex and tendon.

    Corresponds to `mj_fwdKinematics` in MuJoCo.
    """
    for stage in KINEMATICS:
        d = stage.call(m, d)
    return d


def fwd_position(m: Model, d: Data) -> Data:
    """Compute what depends on positions: poses, inertia matrix, contacts, moments, row counts.

    Corresponds to `mj_fwdPosition` in MuJoCo.
    """
    return make_constraint(m, to_contacts(m, d))


def make_constraint(m: Model, d: Data) -> Data:
    """Count the constraint rows of a state, and store the address of the first row of each contact.

    A Data that keeps `efc_J` and related fields receives the rows; their forces follow in `solve`.
    Corresponds to `mj_makeConstraint` in MuJoCo.
    """
    # The rows need velocities, but only results that depend on positions are returned.
    made = run_stages(m, com_vel(m, tendon_velocity(m, d)), MAKE_ROWS)
    made = list_rows(m, made.replace(qacc=jnp.zeros_like(d.qvel)))
    new: Data = d.replace(**{name: getattr(made, name) for name in MADE})
    if d.contact is None or d.contact.H is None:
        return new
    return new.replace(contact=new.contact.replace(H=d.contact.H))  # follows from accelerations


# Fields of rows that depend on accelerations.
OF_ACCELERATION = ("efc_force", "efc_b", "efc_state")
MADE = (
    *("contact", "ne", "nf", "nl", "nefc", "nisland", "tree_island"),
    *(name for name in ROW_FIELDS if name not in OF_ACCELERATION),
)


def fwd_velocity(m: Model, d: Data) -> Data:
    """Compute what depends on velocities: body, tendon, actuator velocity; passive, bias force.

    Corresponds to `mj_fwdVelocity` in MuJoCo.
    """
    return run_stages(m, d, VELOCITY)


def fwd_acceleration(m: Model, d: Data) -> Data:
    """Compute the smooth force, and the acceleration without constraints.

        qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
        M qacc_smooth = qfrc_smooth

    Corresponds to `mj_fwdAcceleration` in MuJoCo.
    """
    new = smooth_force(m, d)
    new = new.replace(qacc_smooth=smooth_acceleration(m, new))
    return freeze_sleeping(m, d, new, ("qacc_smooth",)) if can_sleep(m) else new


def solve(m: Model, d: Data) -> Data:
    """Compute acceleration and constraint force from `qfrc_smooth` and the constraint rows.

    The rows are made from the poses, the velocity and the list of contacts in `d`, which the caller
    may have changed: a contact acts according to its `dist`, `pos`, `frame`, `friction`, ..., and
    has rows unless its `efc_address` is -1. As in `step`, the solver starts from `qacc_warmstart`.
    Corresponds to `mj_fwdConstraint` in MuJoCo.
    """
    return fwd_constraint(m, d)


def rne_postconstraint(m: Model, d: Data) -> Data:
    """Compute accelerations of bodies and the forces between them: `cacc`, `cfrc_ext`, `cfrc_int`.

    Corresponds to `mj_rnePostConstraint` in MuJoCo.
    """
    return body_forces(m, body_acceleration(m, d))


def tendon_bias(m: Model, d: Data) -> Data:
    """Add the bias force of tendons with armature to `qfrc_bias`; `fwd_velocity` includes it.

    Corresponds to `mj_tendonBias` in MuJoCo.
    """
    force = tendon_bias_force(m, d)
    return d if force is None else d.replace(qfrc_bias=d.qfrc_bias + force)


def euler(m: Model, d: Data) -> Data:
    """Advance the state one time step after `forward`: semi-implicit Euler, implicit damping.

    Corresponds to `mj_Euler` in MuJoCo.
    """
    return single_step(m, _falling_asleep(m, d), IntegratorType.EULER)


def implicit(m: Model, d: Data) -> Data:
    """Advance the state by one time step after `forward`, with forces implicit in velocity.

    The integrator `implicit` takes passive, actuator and bias forces implicitly; any other setting
    runs `implicitfast`, which takes the first two, symmetrized. Corresponds to `mj_implicit` in
    MuJoCo.
    """
    full = m.opt.integrator == IntegratorType.IMPLICIT
    kind = IntegratorType.IMPLICIT if full else IntegratorType.IMPLICITFAST
    return single_step(m, _falling_asleep(m, d), kind)


def rungekutta4(m: Model, d: Data) -> Data:
    """Advance the state by one time step after `forward`, by the classical Runge-Kutta method.

    Corresponds to `mj_RungeKutta` in MuJoCo.
    """
    return rk4(m, _falling_asleep(m, d))


def _falling_asleep(m: Model, d: Data) -> Data:
    """Recompute what the dynamics of trees that fall asleep in this step need."""
    return recompute_missing(m, d, OF_POSITION) if can_sleep(m) else d


OF_POSITION = frozenset(("cdof", "cinert", "crb", "M", "ten_J", "actuator_moment", "found"))
