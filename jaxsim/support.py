"""Functions of a model and a state: MuJoCo's chapters Support and Ray casting.

Mass matrix, Jacobians, constraint rows, contact forces, motions of objects, distances, rays, delay
buffers, total mass, parameters of plugins, and the types of their results. Each function computes
what it needs from `qpos` and `qvel`, unless its docstring names fields that `Data` must carry.
"""

from jaxsim.batch.log import WarningEvent as WarningEvent
from jaxsim.batch.profile import Profile as Profile
from jaxsim.batch.profile import StageTime as StageTime
from jaxsim.batch.profile import profile as profile
from jaxsim.functions.set_inertia import set_inertia as set_inertia
from jaxsim.model.names import actuator_input_name as actuator_input_name
from jaxsim.model.warning import WarningCount as WarningCount
from jaxsim.physics.api import add_m as add_m
from jaxsim.physics.api import angmom_mat as angmom_mat
from jaxsim.physics.api import apply_ft as apply_ft
from jaxsim.physics.api import constraint_rows as constraint_rows
from jaxsim.physics.api import contact_force as contact_force
from jaxsim.physics.api import contact_forces as contact_forces
from jaxsim.physics.api import differentiate_pos as differentiate_pos
from jaxsim.physics.api import full_m as full_m
from jaxsim.physics.api import geom_distance as geom_distance
from jaxsim.physics.api import integrate_pos as integrate_pos
from jaxsim.physics.api import jac as jac
from jaxsim.physics.api import jac_body as jac_body
from jaxsim.physics.api import jac_body_com as jac_body_com
from jaxsim.physics.api import jac_dot as jac_dot
from jaxsim.physics.api import jac_geom as jac_geom
from jaxsim.physics.api import jac_point_axis as jac_point_axis
from jaxsim.physics.api import jac_site as jac_site
from jaxsim.physics.api import jac_subtree_com as jac_subtree_com
from jaxsim.physics.api import local_to_global as local_to_global
from jaxsim.physics.api import mul_jac_t_vec as mul_jac_t_vec
from jaxsim.physics.api import mul_jac_vec as mul_jac_vec
from jaxsim.physics.api import mul_m as mul_m
from jaxsim.physics.api import mul_m2 as mul_m2
from jaxsim.physics.api import normalize_quat as normalize_quat
from jaxsim.physics.api import solve_m as solve_m
from jaxsim.physics.api import solve_m2 as solve_m2
from jaxsim.physics.history.clock import phase as phase
from jaxsim.physics.query.capacities import Capacities as Capacities
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
