"""Standalone pipeline stages with MuJoCo's stage boundaries.

`forward` is

    fwd_position  sensor_pos  fwd_velocity  sensor_vel  fwd_actuation  fwd_acceleration  solve
    sensor_acc

and `step` adds an integrator. The stages of a step (forward.py) have other boundaries: constraint
rows are made after the velocities, on which their reference acceleration depends, and the
unconstrained acceleration is iteration 0 of the solver. The functions here regroup them, so that
each stage computes what its counterpart in MuJoCo does. Intermediate values that no Data carries
are recomputed (recompute.py). Each stage declares its reads and writes with `@stage`.
"""

import jax.numpy as jnp

from jaxsim.enums import IntegratorType
from jaxsim.model.data import ROW_FIELDS, Data
from jaxsim.model.model import Model
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.constraint.efc.row_list import list_rows
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.forward import (
    fwd_constraint,
    make_rows_and_islands,
    smooth_acceleration,
    smooth_force,
    velocity_forces,
)
from jaxsim.physics.forward import fwd_position as _fwd_position
from jaxsim.physics.integrate.integrate import rk4, single_step
from jaxsim.physics.recompute import recompute_missing
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sleep.trees import can_sleep, freeze_sleeping
from jaxsim.physics.stage import stage
from jaxsim.physics.tendon.bias import tendon_bias as _tendon_bias
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity


@stage(
    reads="qpos mocap_pos mocap_quat",
    writes=(
        "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat "
        "subtree_com cdof cinert cam_xpos cam_xmat light_xpos light_xdir "
        "flexvert_xpos flexelem_aabb flexedge_length flexedge_J "
        "ten_wrapadr ten_wrapnum wrap_obj wrap_xpos ten_length ten_J"
    ),
)
def fwd_kinematics(m: Model, d: Data) -> Data:
    """Compute all poses: the stages kinematics, com_pos, camlight, flex and tendon.

    Corresponds to `mj_fwdKinematics` in MuJoCo.
    """
    for part in (kinematics, com_pos, camlight, flex, tendon):
        d = part(m, d)
    return d


@stage(
    reads="qpos qvel plastic eq_active mocap_pos mocap_quat warning warning_lastinfo",
    writes=(
        "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat "
        "cam_xpos cam_xmat light_xpos light_xdir subtree_com cdof cinert crb M qLD qLDiagInv "
        "ten_wrapadr ten_wrapnum wrap_obj wrap_xpos ten_length ten_J "
        "flexvert_xpos flexelem_aabb flexedge_length flexedge_J "
        "actuator_length actuator_moment contact ncon ne nf nl nefc warning warning_lastinfo"
    ),
)
def fwd_position(m: Model, d: Data) -> Data:
    """Compute what depends on positions: poses, inertia matrix, contacts, moments, row counts.

    Corresponds to `mj_fwdPosition` in MuJoCo.
    """
    return make_constraint(m, _fwd_position(m, d))


@stage(
    reads=(
        "qpos qvel eq_active xpos xquat subtree_com cdof ten_length ten_J flexvert_xpos "
        "flexedge_length flexedge_J contact found"
    ),
    writes="contact ne nf nl nefc",
)
def make_constraint(m: Model, d: Data) -> Data:
    """Count the constraint rows of a state, and store the address of the first row of each contact.

    A Data that keeps `efc_J` and related fields receives the rows; their forces follow in `solve`.
    Corresponds to `mj_makeConstraint` in MuJoCo.
    """
    # The rows need velocities, but only results that depend on positions are returned.
    made = make_rows_and_islands(m, com_vel(m, tendon_velocity(m, d)))
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


@stage(
    reads=(
        "qpos qvel plastic xpos xquat xipos ximat geom_xpos geom_xmat site_xpos subtree_com cdof "
        "cinert M ten_length ten_J flexvert_xpos actuator_moment found"
    ),
    writes=(
        "cvel cdof_dot ten_velocity flexedge_velocity actuator_velocity qfrc_bias qfrc_spring "
        "qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_adhesion qfrc_passive"
    ),
)
def fwd_velocity(m: Model, d: Data) -> Data:
    """Compute what depends on velocities: body, tendon, actuator velocity; passive, bias force.

    Corresponds to `mj_fwdVelocity` in MuJoCo.
    """
    return velocity_forces(m, d)


@stage(
    reads=(
        "time qpos qvel act history plastic ctrl qfrc_applied xfrc_applied xpos xquat xipos ximat "
        "geom_xpos geom_xmat subtree_com cdof M ten_length ten_J flexvert_xpos actuator_length "
        "actuator_moment cvel ten_velocity actuator_velocity qfrc_bias qfrc_passive act_dot "
        "actuator_force "
        "qfrc_actuator found inertia"
    ),
    writes="qfrc_smooth qacc_smooth",
)
def fwd_acceleration(m: Model, d: Data) -> Data:
    """Compute the smooth force, and the acceleration without constraints.

        qfrc_smooth = qfrc_passive - qfrc_bias + qfrc_applied + qfrc_actuator + J' xfrc_applied
        M qacc_smooth = qfrc_smooth

    Corresponds to `mj_fwdAcceleration` in MuJoCo.
    """
    new = smooth_force(m, d)
    new = new.replace(qacc_smooth=smooth_acceleration(m, new))
    return freeze_sleeping(m, d, new, ("qacc_smooth",)) if can_sleep(m) else new


@stage(
    reads=(
        "time qpos qvel act history plastic qacc_warmstart ctrl xpos xquat xipos ximat geom_xpos "
        "geom_xmat subtree_com cdof cinert M ten_length ten_J flexvert_xpos actuator_length "
        "actuator_moment contact cvel cdof_dot ten_velocity actuator_velocity act_dot "
        "actuator_force qfrc_actuator qfrc_smooth "
        "found inertia rows warning warning_lastinfo"
    ),
    writes=(
        "solver_niter solver contact qacc_smooth qfrc_constraint qacc warning warning_lastinfo"
    ),
)
def solve(m: Model, d: Data) -> Data:
    """Compute acceleration and constraint force from `qfrc_smooth` and the constraint rows.

    The rows are made from the poses, the velocity and the list of contacts in `d`, which the caller
    may have changed: a contact acts according to its `dist`, `pos`, `frame`, `friction`, ..., and
    has rows unless its `efc_address` is -1. As in `step`, the solver starts from `qacc_warmstart`.
    Corresponds to `mj_fwdConstraint` in MuJoCo.
    """
    return fwd_constraint(m, d)


@stage(
    reads=(
        "qvel plastic xfrc_applied xpos xquat xipos geom_xpos geom_xmat site_xpos subtree_com "
        "cdof cinert ten_length ten_J cvel cdof_dot ten_velocity actuator_force qacc found rows "
        "forces"
    ),
    writes="cacc cfrc_int cfrc_ext",
)
def rne_postconstraint(m: Model, d: Data) -> Data:
    """Compute accelerations of bodies and the forces between them: `cacc`, `cfrc_ext`, `cfrc_int`.

    Corresponds to `mj_rnePostConstraint` in MuJoCo.
    """
    return body_forces(m, body_acceleration(m, d))


@stage(reads="qvel site_xpos subtree_com ten_J cvel cdof_dot qfrc_bias", writes="qfrc_bias")
def tendon_bias(m: Model, d: Data) -> Data:
    """Add the bias force of tendons with armature to `qfrc_bias`; `fwd_velocity` includes it.

    Corresponds to `mj_tendonBias` in MuJoCo.
    """
    force = _tendon_bias(m, d)
    return d if force is None else d.replace(qfrc_bias=d.qfrc_bias + force)


@stage(
    reads=(
        "time qpos qvel act history plastic ctrl xpos xquat subtree_com cdof M ten_length ten_J "
        "flexvert_xpos actuator_velocity act_dot qfrc_smooth qfrc_constraint qacc readings frames "
        "inertia warning warning_lastinfo"
    ),
    writes="time qpos qvel act history plastic qacc_warmstart warning warning_lastinfo",
)
def euler(m: Model, d: Data) -> Data:
    """Advance the state one time step after `forward`: semi-implicit Euler, implicit damping.

    Corresponds to `mj_Euler` in MuJoCo.
    """
    return single_step(m, _falling_asleep(m, d), IntegratorType.EULER)


@stage(
    reads=(
        "time qpos qvel act history plastic ctrl xpos xquat xipos ximat geom_xpos geom_xmat "
        "subtree_com cdof cinert M ten_length ten_J flexvert_xpos actuator_length "
        "actuator_moment cvel cdof_dot ten_velocity actuator_velocity act_dot actuator_force "
        "qfrc_actuator qfrc_smooth qfrc_constraint qacc readings frames inertia "
        "warning warning_lastinfo"
    ),
    writes="time qpos qvel act history plastic qacc_warmstart warning warning_lastinfo",
)
def implicit(m: Model, d: Data) -> Data:
    """Advance the state by one time step after `forward`, with forces implicit in velocity.

    The integrator `implicit` takes passive, actuator and bias forces implicitly; any other setting
    runs `implicitfast`, which takes the first two, symmetrized. Corresponds to `mj_implicit` in
    MuJoCo.
    """
    full = m.opt.integrator == IntegratorType.IMPLICIT
    kind = IntegratorType.IMPLICIT if full else IntegratorType.IMPLICITFAST
    return single_step(m, _falling_asleep(m, d), kind)


@stage(
    reads=(
        "time qpos qvel act history plastic ctrl qfrc_applied xfrc_applied eq_active mocap_pos "
        "mocap_quat warning warning_lastinfo xpos xquat xmat subtree_com cdof ten_length ten_J "
        "flexvert_xpos actuator_length actuator_velocity act_dot qacc readings"
    ),
    writes="time qpos qvel act history plastic qacc_warmstart warning warning_lastinfo",
)
def rungekutta4(m: Model, d: Data) -> Data:
    """Advance the state by one time step after `forward`, by the classical Runge-Kutta method.

    Corresponds to `mj_RungeKutta` in MuJoCo.
    """
    return rk4(m, _falling_asleep(m, d))


def _falling_asleep(m: Model, d: Data) -> Data:
    """Recompute what the dynamics of trees that fall asleep in this step need."""
    return recompute_missing(m, d, OF_POSITION) if can_sleep(m) else d


OF_POSITION = frozenset(("cdof", "cinert", "crb", "M", "ten_J", "actuator_moment", "found"))
