"""Table of the stages of a step: function, reads, writes, MuJoCo's counterpart, condition.

The rows are in the order of a step, which forward.py runs. From the table follow also the public
stages (`jaxsim.stages`), which fields a Data must carry for them (`make_data(keep=[...])`), the
stages by which a missing value is recomputed (recompute.py), the rows of a profile
(`jaxsim.support.profile`), and the reference page. `tests/physics/pipeline/test_stages.py` derives
the reads and writes of every row from its traced program and compares.

A function that is made of stages declares only what the stages in it do not: see `combined_fields`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jaxsim.enums import EnableBit
from jaxsim.physics.actuator.actuation import actuation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission
from jaxsim.physics.body.applied_force import xfrc_accumulate
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import bias, com_vel, rne
from jaxsim.physics.body.subtree import subtree_vel
from jaxsim.physics.collision.contact_list import rebuild_collision_result
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.constraint.make import make_rows
from jaxsim.physics.flex.flex import flex, flex_velocity
from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive
from jaxsim.physics.pipeline.row import StageFields, StageRow, combined_fields
from jaxsim.physics.pipeline.sleeping import (
    count_awake,
    freeze_forces,
    number_islands,
    wake_equalities,
    wake_moved_trees,
    wake_tendons,
)
from jaxsim.physics.query.contact_force import contact_force, contact_forces
from jaxsim.physics.query.jacobian import jac_of_poses
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sensor.sensor import sensor_acc, sensor_pos, sensor_vel
from jaxsim.physics.solver.forward_dynamics import fwd_constraint, smooth_force
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity


def _stage(function: Callable, mujoco: str, fields: str, **more: Any) -> StageRow:
    """Return the row of a function: its counterpart, "reads -> writes", attributes of StageRow."""
    name = more.pop("name", function.__name__)
    return StageRow(name, StageFields.of(fields), function, mujoco, **more)


def _combined(
    name: str, mujoco: str, fields: str = "", stages: tuple[StageRow, ...] = ()
) -> StageRow:
    """Return the row of a function that is made of stages, and defined above this module.

    Args:
      name: of the function.
      mujoco: function of MuJoCo with the same result.
      fields: what it reads besides, and its results; without results: those of the stages.
      stages: those that it calls and whose reads it has, in order.
    """
    own = StageFields.of(fields)
    total = combined_fields(*stages).then(StageFields(own.reads))
    return StageRow(name, replace(total, writes=own.writes or total.writes), mujoco=mujoco)


# Fields that several rows read.
_STATE = "time qpos qvel act history plastic"
_POSITION_INPUTS = "eq_active mocap_pos mocap_quat"
_WARNINGS = "warning warning_lastinfo"
# Inertia and smooth force of a step, with their derivatives (integrate/system.py).
_SYSTEM = (
    f"{_STATE} ctrl xpos xquat xipos ximat geom_xpos geom_xmat subtree_com cdof M ten_length ten_J "
    "flexvert_xpos actuator_length actuator_moment cvel ten_velocity actuator_velocity inertia"
)

POSITION = (
    _stage(
        kinematics,
        "mj_kinematics",
        (
            "qpos mocap_pos mocap_quat -> xpos xquat xmat xipos ximat xanchor xaxis geom_xpos "
            "geom_xmat site_xpos site_xmat"
        ),
        timer="POS_KINEMATICS",
        sleeping=wake_moved_trees,
    ),
    _stage(
        com_pos,
        "mj_comPos",
        "xmat xipos ximat xanchor xaxis -> subtree_com cdof cinert",
        timer="POS_KINEMATICS",
    ),
    _stage(
        camlight,
        "mj_camlight",
        "xpos xquat subtree_com -> cam_xpos cam_xmat light_xpos light_xdir",
        timer="POS_KINEMATICS",
        objects="ncam nlight",
    ),
    _stage(
        flex,
        "mj_flex",
        "xpos xquat subtree_com cdof -> flexvert_xpos flexelem_aabb flexedge_length flexedge_J",
        timer="POS_KINEMATICS",
        objects="nflex",
    ),
    _stage(
        tendon,
        "mj_tendon",
        (
            "qpos tree_asleep geom_xpos geom_xmat site_xpos subtree_com cdof -> ten_wrapadr "
            "ten_wrapnum wrap_obj wrap_xpos ten_length ten_J"
        ),
        timer="POS_KINEMATICS",
        objects="ntendon",
        sleeping=wake_tendons,
    ),
    _stage(crb, "mj_crb", "cdof cinert ten_J -> crb M qLD qLDiagInv inertia", timer="POS_INERTIA"),
    _stage(
        collision,
        "mj_collision",
        (
            f"qpos qvel plastic tree_asleep {_WARNINGS} xquat geom_xpos geom_xmat subtree_com "
            f"cdof flexvert_xpos flexelem_aabb -> tree_asleep {_WARNINGS} contact ncon found"
        ),
        timer="POS_COLLISION",
        sleeping=wake_equalities,
    ),
    _stage(
        transmission,
        "mj_transmission",
        (
            "qpos tree_asleep xquat site_xpos site_xmat subtree_com cdof ten_length ten_J "
            "actuator_length found -> actuator_length actuator_moment"
        ),
        timer="POS_KINEMATICS",
        objects="nactuator",
        sleeping=count_awake,
    ),
)

POSITION_OUTPUTS = (
    _stage(
        sensor_pos,
        "mj_sensorPos",
        (
            "time qpos history plastic tree_asleep xpos xquat xmat xipos ximat geom_xpos "
            "geom_xmat site_xpos site_xmat cam_xpos cam_xmat subtree_com ten_length "
            "actuator_length sensordata readings -> sensordata readings"
        ),
        objects="nsensor",
    ),
    _stage(
        energy_pos,
        "mj_energyPos",
        "time qpos plastic xipos ten_length flexedge_length energy -> energy",
        flag=EnableBit.ENERGY,
    ),
)

VELOCITY = (
    _stage(tendon_velocity, "", "qvel ten_J -> ten_velocity", timer="VELOCITY"),
    _stage(actuator_velocity, "", "qvel actuator_moment -> actuator_velocity", timer="VELOCITY"),
    _stage(com_vel, "mj_comVel", "qvel cdof -> cvel cdof_dot", timer="VELOCITY"),
    _stage(
        flex_velocity,
        "",
        "subtree_com flexvert_xpos cvel -> flexedge_velocity",
        timer="VELOCITY",
        objects="nflex",
    ),
    _stage(
        passive,
        "mj_passive",
        (
            "qpos qvel plastic xpos xquat xipos ximat geom_xpos geom_xmat subtree_com cdof M "
            "ten_length ten_J flexvert_xpos cvel ten_velocity found -> qfrc_spring qfrc_damper "
            "qfrc_gravcomp qfrc_fluid qfrc_adhesion qfrc_passive frames"
        ),
        timer="VELOCITY",
    ),
    _stage(
        bias,
        "",
        "qvel site_xpos subtree_com cdof cinert ten_J cvel cdof_dot -> qfrc_bias",
        timer="VELOCITY",
        sleeping=freeze_forces,
    ),
)

MAKE_ROWS = (
    _stage(
        make_rows,
        "mj_makeConstraint",
        (
            "qpos qvel tree_asleep eq_active xpos xquat subtree_com cdof ten_length ten_J "
            "flexvert_xpos flexedge_length flexedge_J contact cvel cdof_dot ten_velocity found "
            "-> contact ne nf nl nefc rows"
        ),
        timer="POS_MAKE",
        sleeping=number_islands,
    ),
)

VELOCITY_OUTPUTS = (
    _stage(
        sensor_vel,
        "mj_sensorVel",
        (
            "time qpos qvel history tree_asleep xpos xipos ximat geom_xpos geom_xmat site_xpos "
            "site_xmat cam_xpos subtree_com cinert M ten_length cvel ten_velocity "
            "actuator_velocity sensordata readings found -> subtree_linvel subtree_angmom "
            "sensordata readings"
        ),
        objects="nsensor",
    ),
    _stage(energy_vel, "mj_energyVel", "qvel M energy -> energy", flag=EnableBit.ENERGY),
)

# After the control callback.
DYNAMICS = (
    _stage(
        actuation,
        "mj_fwdActuation",
        (
            f"time act history tree_asleep ctrl {_WARNINGS} actuator_length actuator_moment "
            f"actuator_velocity act_dot -> {_WARNINGS} act_dot actuator_force qfrc_actuator"
        ),
        name="fwd_actuation",
        timer="ACTUATION",
    ),
    _stage(
        smooth_force,
        "",
        (
            "tree_asleep qfrc_applied xfrc_applied xipos subtree_com cdof qfrc_bias "
            "qfrc_passive qfrc_actuator qfrc_smooth -> qfrc_smooth"
        ),
    ),
    _stage(
        fwd_constraint,
        "mj_fwdConstraint",
        (
            f"{_SYSTEM} {_WARNINGS} qacc_warmstart tree_asleep cinert contact cdof_dot act_dot "
            f"actuator_force qfrc_actuator qfrc_smooth qacc_smooth found rows -> {_WARNINGS} "
            "solver_niter solver contact efc_type efc_id efc_J efc_pos efc_margin "
            "efc_frictionloss efc_KBIP efc_vel efc_diagA efc_R efc_D efc_aref efc_b efc_state "
            "efc_force qacc_smooth qfrc_constraint qacc rows forces"
        ),
        timer="CONSTRAINT",
    ),
)

ACCELERATION_OUTPUTS = (
    _stage(
        sensor_acc,
        "mj_sensorAcc",
        (
            "time qvel history plastic tree_asleep xfrc_applied xpos xquat xipos geom_xpos "
            "geom_xmat site_xpos site_xmat cam_xpos subtree_com cdof cinert ten_length ten_J "
            "cvel cdof_dot ten_velocity actuator_force qfrc_actuator qacc sensordata readings "
            "found rows forces -> cacc cfrc_int cfrc_ext sensordata readings"
        ),
        objects="nsensor",
    ),
)

# A step: to positions, to velocities, control callback, to accelerations.
TO_POSITION = POSITION + POSITION_OUTPUTS
TO_VELOCITY = VELOCITY + MAKE_ROWS + VELOCITY_OUTPUTS
TO_ACCELERATION = DYNAMICS + ACCELERATION_OUTPUTS
SENSORS = frozenset(("sensor_pos", "sensor_vel", "sensor_acc"))

_STEP = {row.name: row for row in TO_POSITION + TO_VELOCITY + TO_ACCELERATION}


def stages_named(names: str) -> tuple[StageRow, ...]:
    """Return the rows of stages of a step, by their names separated by spaces."""
    return tuple(_STEP[name] for name in names.split())


# Functions of the results of a step.
_BODY_FORCES = (
    _stage(body_acceleration, "", "qvel cdof cdof_dot qacc -> cacc"),
    _stage(
        body_forces,
        "",
        (
            "qvel plastic tree_asleep xfrc_applied xpos xquat xipos geom_xpos geom_xmat "
            "site_xpos subtree_com cinert ten_length ten_J cvel cdof_dot ten_velocity "
            "actuator_force qacc cacc found rows forces -> cfrc_int cfrc_ext"
        ),
    ),
)
_CONTACT_FORCE = "qvel xmat xanchor xaxis subtree_com flexvert_xpos contact cvel qacc"
_RESULTS = (
    *_BODY_FORCES,
    _stage(
        subtree_vel, "mj_subtreeVel", "subtree_com cinert cvel -> subtree_linvel subtree_angmom"
    ),
    _stage(rne, "mj_rne", "qvel cdof cinert cvel cdof_dot"),
    _stage(xfrc_accumulate, "mj_xfrcAccumulate", "xfrc_applied xipos subtree_com cdof"),
    _stage(rebuild_collision_result, "", "contact -> found"),
    _stage(jac_of_poses, "", "xmat xanchor xaxis subtree_com"),
    _stage(contact_force, "mj_contactForce", _CONTACT_FORCE),
    _stage(contact_forces, "", _CONTACT_FORCE),
)

# Stages with MuJoCo's boundaries (standalone.py).
KINEMATICS = stages_named("kinematics com_pos camlight flex tendon")
_make_constraint = _combined(
    "make_constraint",
    "mj_makeConstraint",
    "-> contact ne nf nl nefc",
    stages=stages_named("tendon_velocity com_vel make_rows"),
)
_ADVANCED = f"{_STATE} qacc_warmstart {_WARNINGS}"
_EULER = (
    f"{_STATE} ctrl {_WARNINGS} xpos xquat subtree_com cdof M ten_length ten_J flexvert_xpos "
    "actuator_velocity act_dot qfrc_smooth qfrc_constraint qacc readings frames inertia"
)
_STANDALONE = (
    _combined("fwd_kinematics", "mj_fwdKinematics", stages=KINEMATICS),
    _combined("fwd_position", "mj_fwdPosition", stages=(*POSITION, _make_constraint)),
    _make_constraint,
    _combined("fwd_velocity", "mj_fwdVelocity", stages=VELOCITY),
    _combined(
        "fwd_acceleration",
        "mj_fwdAcceleration",
        f"{_SYSTEM} act_dot actuator_force found -> qfrc_smooth qacc_smooth",
        stages=stages_named("smooth_force"),
    ),
    _combined(
        "solve",
        "mj_fwdConstraint",
        f"-> {_WARNINGS} solver_niter solver contact qacc_smooth qfrc_constraint qacc",
        stages=stages_named("fwd_constraint"),
    ),
    _combined("rne_postconstraint", "mj_rnePostConstraint", stages=_BODY_FORCES),
    _combined(
        "tendon_bias",
        "mj_tendonBias",
        "qvel site_xpos subtree_com ten_J cvel cdof_dot qfrc_bias -> qfrc_bias",
    ),
    _combined("euler", "mj_Euler", f"{_EULER} -> {_ADVANCED}"),
    _combined(
        "implicit",
        "mj_implicit",
        f"{_EULER} {_SYSTEM} cinert cdof_dot actuator_force qfrc_actuator -> {_ADVANCED}",
    ),
    _combined(
        "rungekutta4",
        "mj_RungeKutta",
        (
            f"{_STATE} ctrl qfrc_applied xfrc_applied {_POSITION_INPUTS} {_WARNINGS} xpos xquat "
            "xmat subtree_com cdof ten_length ten_J flexvert_xpos actuator_length "
            f"actuator_velocity act_dot qacc readings -> {_ADVANCED}"
        ),
    ),
)

# Inverse dynamics (inverse.py) and constraint rows (query/).
_INVERSE = (
    _combined(
        "inverse",
        "mj_inverse",
        (
            f"{_STATE} ctrl xfrc_applied {_POSITION_INPUTS} {_WARNINGS} actuator_force "
            f"qfrc_actuator qacc_smooth qacc sensordata energy -> {_WARNINGS} qfrc_constraint "
            "qfrc_inverse sensordata energy"
        ),
    ),
    _combined(
        "compare_fwd_inv",
        "mj_compareFwdInv",
        (
            f"{_SYSTEM} qfrc_applied xfrc_applied cinert nefc cdof_dot qfrc_bias qfrc_passive "
            "qfrc_actuator qfrc_constraint qacc qfrc_inverse found rows -> solver_fwdinv "
            "qfrc_inverse"
        ),
    ),
    _combined("inv_constraint", "mj_invConstraint", "qacc rows -> qfrc_constraint"),
    _combined(
        "constraint_rows",
        "",
        f"{_STATE} qacc_warmstart ctrl qfrc_applied xfrc_applied {_POSITION_INPUTS} qacc",
    ),
    _combined("constraint_update", "mj_constraintUpdate", f"{_STATE} ctrl {_POSITION_INPUTS}"),
    _combined("project_constraint", "mj_projectConstraint", f"{_STATE} ctrl {_POSITION_INPUTS}"),
    _combined("island", "mj_island", f"qpos qvel plastic {_POSITION_INPUTS}"),
    _combined("rne_at_qacc", "mj_rne", "qvel cdof cinert cvel cdof_dot qacc"),
    _combined("check_acc", "mj_checkAcc", "qacc"),
)

STAGES = _STEP | {row.name: row for row in (*_RESULTS, *_STANDALONE, *_INVERSE)}
