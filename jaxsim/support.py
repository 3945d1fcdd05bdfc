"""Functions of a model and a state: MuJoCo's chapters Support and Ray casting.

Mass matrix, Jacobians, constraint rows, contact forces, motions of objects, distances, rays, delay
buffers, total mass, parameters of plugins, compiled programs on disk, and the types of their
results. Each function computes what it needs from `qpos` and `qvel`, unless its docstring names
fields that `Data` must carry.
"""

from jaxsim.batch.log import WarningEvent as WarningEvent
from jaxsim.batch.profile import Profile as Profile
from jaxsim.batch.profile import StageTime as StageTime
from jaxsim.batch.profile import profile as profile
from jaxsim.batch.stored_program import load_or_compile as load_or_compile
from jaxsim.functions.set_inertia import set_inertia as set_inertia
from jaxsim.model.names import actuator_input_name as actuator_input_name
from jaxsim.model.warning import WarningCount as WarningCount
from jaxsim.physics.body import configuration as _configuration
from jaxsim.physics.history.clock import phase as phase
from jaxsim.physics.public.wrapper import make_public
from jaxsim.physics.query import constraint_rows as _rows
from jaxsim.physics.query import contact_force as _contact_force
from jaxsim.physics.query import jacobian as _jacobian
from jaxsim.physics.query import mass_matrix as _mass_matrix
from jaxsim.physics.query.capacities import Capacities as Capacities
from jaxsim.physics.query.geom_distance import geom_distance as geom_distance
from jaxsim.physics.query.geom_sdf import GeomSdf as GeomSdf
from jaxsim.physics.query.geom_sdf import geom_sdf as geom_sdf
from jaxsim.physics.query.history import init_ctrl_history as init_ctrl_history
from jaxsim.physics.query.history import init_sensor_history as init_sensor_history
from jaxsim.physics.query.history import read_ctrl as read_ctrl
from jaxsim.physics.query.history import read_sensor as read_sensor
from jaxsim.physics.query.inside_site import inside_site as inside_site
from jaxsim.physics.query.mass_matrix import MassFactor as MassFactor
from jaxsim.physics.query.matrix.sparse import sparse_actuator_moment as sparse_actuator_moment
from jaxsim.physics.query.matrix.sparse import sparse_flexedge_j as sparse_flexedge_j
from jaxsim.physics.query.matrix.sparse import sparse_m as sparse_m
from jaxsim.physics.query.matrix.sparse import sparse_ten_j as sparse_ten_j
from jaxsim.physics.query.object_motion import local_to_global as _local_to_global
from jaxsim.physics.query.object_motion import object_acceleration as object_acceleration
from jaxsim.physics.query.object_motion import object_velocity as object_velocity
from jaxsim.physics.query.plugin_params import get_plugin_params as get_plugin_params
from jaxsim.physics.query.plugin_params import plugin_state_index as plugin_state_index
from jaxsim.physics.query.plugin_params import set_plugin_params as set_plugin_params
from jaxsim.physics.query.ray import RayHit as RayHit
from jaxsim.physics.query.ray import multi_ray as multi_ray
from jaxsim.physics.query.ray import ray as ray
from jaxsim.physics.query.ray_of_geom import FlexHit as FlexHit
from jaxsim.physics.query.ray_of_geom import SurfaceHit as SurfaceHit
from jaxsim.physics.query.ray_of_geom import ray_flex as ray_flex
from jaxsim.physics.query.ray_of_geom import ray_hfield as ray_hfield
from jaxsim.physics.query.ray_of_geom import ray_mesh as ray_mesh
from jaxsim.physics.query.total_mass import get_total_mass as get_total_mass
from jaxsim.physics.query.total_mass import set_total_mass as set_total_mass

# Configurations: (m, qpos, qvel, dt) and (m, dt, qpos1, qpos2).
integrate_pos = make_public(_configuration.integrate_pos)
differentiate_pos = make_public(_configuration.differentiate_pos)
normalize_quat = make_public(_configuration.normalize_quat)

# Functions of the configuration.
full_m = make_public(_mass_matrix.full_m)
add_m = make_public(_mass_matrix.add_m)
mul_m = make_public(_mass_matrix.mul_m)
mul_m2 = make_public(_mass_matrix.mul_m2)
solve_m = make_public(_mass_matrix.solve_m)
solve_m2 = make_public(_mass_matrix.solve_m2)
jac = make_public(_jacobian.jac)
jac_body = make_public(_jacobian.jac_body)
jac_body_com = make_public(_jacobian.jac_body_com)
jac_geom = make_public(_jacobian.jac_geom)
jac_site = make_public(_jacobian.jac_site)
jac_subtree_com = make_public(_jacobian.jac_subtree_com)
jac_point_axis = make_public(_jacobian.jac_point_axis)
local_to_global = make_public(_local_to_global)
apply_ft = make_public(_jacobian.apply_ft)
angmom_mat = make_public(_jacobian.angmom_mat)

# Functions of the state: positions and velocities.
jac_dot = make_public(_jacobian.jac_dot)
constraint_rows = make_public(_rows.constraint_rows, namespace="jaxsim.support")
mul_jac_vec = make_public(_rows.mul_jac_vec)
mul_jac_t_vec = make_public(_rows.mul_jac_t_vec)

# Functions of the results of a step.
contact_force = make_public(_contact_force.contact_force, namespace="jaxsim.support")
contact_forces = make_public(_contact_force.contact_forces, namespace="jaxsim.support")

__all__ = [
    "Capacities",
    "FlexHit",
    "GeomSdf",
    "MassFactor",
    "Profile",
    "RayHit",
    "StageTime",
    "SurfaceHit",
    "WarningCount",
    "WarningEvent",
    "actuator_input_name",
    "add_m",
    "angmom_mat",
    "apply_ft",
    "constraint_rows",
    "contact_force",
    "contact_forces",
    "differentiate_pos",
    "full_m",
    "geom_distance",
    "geom_sdf",
    "get_plugin_params",
    "get_total_mass",
    "init_ctrl_history",
    "init_sensor_history",
    "inside_site",
    "integrate_pos",
    "jac",
    "jac_body",
    "jac_body_com",
    "jac_dot",
    "jac_geom",
    "jac_point_axis",
    "jac_site",
    "jac_subtree_com",
    "load_or_compile",
    "local_to_global",
    "mul_jac_t_vec",
    "mul_jac_vec",
    "mul_m",
    "mul_m2",
    "multi_ray",
    "normalize_quat",
    "object_acceleration",
    "object_velocity",
    "phase",
    "plugin_state_index",
    "profile",
    "ray",
    "ray_flex",
    "ray_hfield",
    "ray_mesh",
    "read_ctrl",
    "read_sensor",
    "set_inertia",
    "set_plugin_params",
    "set_total_mass",
    "solve_m",
    "solve_m2",
    "sparse_actuator_moment",
    "sparse_flexedge_j",
    "sparse_m",
    "sparse_ten_j",
]
