"""Public physics functions of one world, for use under jit, vmap, grad and scan.

The names are MuJoCo's without the prefix. `step`, `forward`, `inverse`, `constraint_rows`, mass
matrix and Jacobians compute everything they need from the state. A single stage reads the results
of the stages before it: fields that its Data does not carry are recomputed (recompute.py), or the
stage raises an error that names the missing field.
"""

from jaxsim.arrays.array import Array
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics import standalone
from jaxsim.physics.actuator.actuation import actuation as _actuation
from jaxsim.physics.actuator.transmission import transmission as _transmission
from jaxsim.physics.arguments import check_model
from jaxsim.physics.body.applied_force import xfrc_accumulate as _xfrc_accumulate
from jaxsim.physics.body.camlight import camlight as _camlight
from jaxsim.physics.body.configuration import differentiate_pos as _differentiate_pos
from jaxsim.physics.body.configuration import integrate_pos as _integrate_pos
from jaxsim.physics.body.configuration import normalize_quat as _normalize_quat
from jaxsim.physics.body.inertia import com_pos as _com_pos
from jaxsim.physics.body.inertia import crb as _crb
from jaxsim.physics.body.kinematics import kinematics as _kinematics
from jaxsim.physics.body.rne import com_vel as _com_vel
from jaxsim.physics.body.rne import rne as _rne
from jaxsim.physics.body.subtree import subtree_vel as _subtree_vel
from jaxsim.physics.collision.contacts import collision as _collision
from jaxsim.physics.flex.flex import flex as _flex
from jaxsim.physics.forward import forward as _forward
from jaxsim.physics.integrate.check import check_acc as _check_acc
from jaxsim.physics.integrate.check import check_pos as _check_pos
from jaxsim.physics.integrate.check import check_vel as _check_vel
from jaxsim.physics.integrate.split_step import forward_skip as forward_skip
from jaxsim.physics.integrate.split_step import inverse_skip as inverse_skip
from jaxsim.physics.integrate.split_step import step1 as step1
from jaxsim.physics.integrate.split_step import step2 as step2
from jaxsim.physics.integrate.step import SLEEP_FAST_PATH
from jaxsim.physics.integrate.step import step as _step
from jaxsim.physics.inverse import compare_fwd_inv as _compare_fwd_inv
from jaxsim.physics.inverse import inv_constraint as _inv_constraint
from jaxsim.physics.inverse import inverse as _inverse
from jaxsim.physics.passive.energy import energy_pos as _energy_pos
from jaxsim.physics.passive.energy import energy_vel as _energy_vel
from jaxsim.physics.passive.passive import passive as _passive
from jaxsim.physics.public_api import make_public
from jaxsim.physics.query import jacobian as body_jacobian
from jaxsim.physics.query import mass_matrix
from jaxsim.physics.query.constraint_rows import constraint_rows as _constraint_rows
from jaxsim.physics.query.constraint_rows import mul_jac_t_vec as _mul_jac_t_vec
from jaxsim.physics.query.constraint_rows import mul_jac_vec as _mul_jac_vec
from jaxsim.physics.query.constraint_update import constraint_update as _constraint_update
from jaxsim.physics.query.constraint_update import project_constraint as _project_constraint
from jaxsim.physics.query.contact_force import contact_force as _contact_force
from jaxsim.physics.query.contact_force import contact_forces as _contact_forces
from jaxsim.physics.query.geom_distance import geom_distance as _measure_geom_distance
from jaxsim.physics.query.geom_distance import resolve_distance_geoms
from jaxsim.physics.query.island import island as _island
from jaxsim.physics.query.object_motion import local_to_global as _local_to_global
from jaxsim.physics.sensor.sensor import sensor_acc as _sensor_acc
from jaxsim.physics.sensor.sensor import sensor_pos as _sensor_pos
from jaxsim.physics.sensor.sensor import sensor_vel as _sensor_vel
from jaxsim.physics.stage import StageFields, stage
from jaxsim.physics.tendon.tendon import tendon as _tendon

step = make_public(_step, callbacks=True, fast_path=SLEEP_FAST_PATH)
forward = make_public(_forward, callbacks=True)
inverse = make_public(_inverse, callbacks=True, namespace="jaxsim")
compare_fwd_inv = make_public(_compare_fwd_inv)
constraint_rows = make_public(_constraint_rows, namespace="jaxsim.support")
island = make_public(_island)

# Checks of `step` for an invalid state, in order.
check_pos = make_public(_check_pos)
check_vel = make_public(_check_vel)
check_acc = make_public(
    _check_acc, callbacks=True, stage=StageFields(frozenset({"qacc"}), frozenset())
)

# Functions of the results of a step.
contact_force = make_public(_contact_force, namespace="jaxsim.support")
contact_forces = make_public(_contact_forces, namespace="jaxsim.support")

# Stages in the order of a step; those of `alone` combine several stages of forward.py.
fwd_kinematics = make_public(standalone.fwd_kinematics)
fwd_position = make_public(standalone.fwd_position)
kinematics = make_public(_kinematics)
com_pos = make_public(_com_pos)
camlight = make_public(_camlight)
flex = make_public(_flex)
tendon = make_public(_tendon)
crb = make_public(_crb)
collision = make_public(_collision)
make_constraint = make_public(standalone.make_constraint)
transmission = make_public(_transmission)
sensor_pos = make_public(_sensor_pos)
energy_pos = make_public(_energy_pos)
fwd_velocity = make_public(standalone.fwd_velocity)
com_vel = make_public(_com_vel)
passive = make_public(_passive)
tendon_bias = make_public(standalone.tendon_bias)
subtree_vel = make_public(_subtree_vel)
sensor_vel = make_public(_sensor_vel)
energy_vel = make_public(_energy_vel)
fwd_actuation = make_public(_actuation, name="fwd_actuation")
fwd_acceleration = make_public(standalone.fwd_acceleration)
xfrc_accumulate = make_public(_xfrc_accumulate)
solve = make_public(standalone.solve)
rne_postconstraint = make_public(standalone.rne_postconstraint)
sensor_acc = make_public(_sensor_acc)
euler = make_public(standalone.euler)
implicit = make_public(standalone.implicit)
rungekutta4 = make_public(standalone.rungekutta4)
inv_constraint = make_public(_inv_constraint)
# Aliases: MuJoCo has several names for these stages.
fwd_constraint = solve
inv_position = fwd_position
inv_velocity = fwd_velocity
make_m = crb

# Configurations: (m, qpos, qvel, dt) and (m, dt, qpos1, qpos2).
integrate_pos = make_public(_integrate_pos)
differentiate_pos = make_public(_differentiate_pos)
normalize_quat = make_public(_normalize_quat)

# Functions of the configuration.
full_m = make_public(mass_matrix.full_m)
add_m = make_public(mass_matrix.add_m)
mul_m = make_public(mass_matrix.mul_m)
mul_m2 = make_public(mass_matrix.mul_m2)
solve_m = make_public(mass_matrix.solve_m)
solve_m2 = make_public(mass_matrix.solve_m2)
factor_m = make_public(mass_matrix.factor_m)
jac = make_public(body_jacobian.jac)
jac_body = make_public(body_jacobian.jac_body)
jac_body_com = make_public(body_jacobian.jac_body_com)
jac_geom = make_public(body_jacobian.jac_geom)
jac_site = make_public(body_jacobian.jac_site)
jac_subtree_com = make_public(body_jacobian.jac_subtree_com)
jac_point_axis = make_public(body_jacobian.jac_point_axis)
local_to_global = make_public(_local_to_global)
apply_ft = make_public(body_jacobian.apply_ft)
angmom_mat = make_public(body_jacobian.angmom_mat)

# Functions of the state: positions and velocities.
jac_dot = make_public(body_jacobian.jac_dot)
mul_jac_vec = make_public(_mul_jac_vec)
mul_jac_t_vec = make_public(_mul_jac_t_vec)
constraint_update = make_public(_constraint_update)
project_constraint = make_public(_project_constraint)


def geom_distance(
    m: Model,
    d: Data,
    geom1: Int[Array, ""] | int | str,
    geom2: Int[Array, ""] | int | str,
    distmax: Float[Array, ""] | float,
) -> tuple[Float[Array, ""], Float[Array, "6"]]:
    """Compute the smallest signed distance of two geoms, and the nearest points.

    The distance depends on the configuration alone; contact filters do not apply. Corresponds to
    `mj_geomDistance` in MuJoCo.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      geom1, geom2: ids or names of the geoms.
      distmax: largest distance to detect [m].

    Returns:
      dist (), negative in penetration [m]; `distmax` if the geoms are no nearer. fromto (6,): the
      points of the first and of the second geom, in world coordinates [m]; zeros if the distance
      exceeds `distmax`.

    Raises:
      ValueError: a geom does not exist, or is an `sdf` geom whose signed distance is not known.
    """
    check_model("geom_distance", m)
    return _geom_distance(m, d, *resolve_distance_geoms(m, geom1, geom2), distmax)


_geom_distance = make_public(_measure_geom_distance)


def rne(m: Model, d: Data, flg_acc: bool = False) -> Float[Array, "nv"]:
    """Compute inverse dynamics of the bodies alone: M qacc + bias force, without armature.

    Corresponds to `mj_rne` in MuJoCo.

    Args:
      m: the model.
      d: a world after `com_vel`.
      flg_acc: include the acceleration `d.qacc`; False: at zero acceleration.

    Returns:
      Generalized force, (nv,) [N or N m].
    """
    return _rne_acc(m, d) if flg_acc else _rne_bias(m, d)


@stage(reads="cdof cinert cvel cdof_dot qacc qvel")
def _rne_at_qacc(m: Model, d: Data) -> Array:
    return _rne(m, d, d.qacc)


_rne_bias = make_public(_rne)
_rne_acc = make_public(_rne_at_qacc)
