"""Functions of plain arrays: MuJoCo's `mju_` functions that JAX does not have.

Quaternions, poses, decompositions, a quadratic program, rays, curves. They need no model. Names are
MuJoCo's without the prefix, in snake case, with `2` read as `to`: `mju_quat2Mat` is `quat_to_mat`.
`docs/reference/functions.md` lists all of them.
"""

from jaxsim.functions.band import band_diag as band_diag
from jaxsim.functions.band import band_mul_mat_vec as band_mul_mat_vec
from jaxsim.functions.band import band_size as band_size
from jaxsim.functions.band import band_to_dense as band_to_dense
from jaxsim.functions.band import dense_to_band as dense_to_band
from jaxsim.functions.band_factor import chol_factor_band as chol_factor_band
from jaxsim.functions.band_factor import chol_solve_band as chol_solve_band
from jaxsim.functions.box_qp_solver import BoxSolution as BoxSolution
from jaxsim.functions.box_qp_solver import box_qp as box_qp
from jaxsim.functions.cholesky import CholFactor as CholFactor
from jaxsim.functions.cholesky import chol_factor as chol_factor
from jaxsim.functions.cholesky import chol_solve as chol_solve
from jaxsim.functions.cholesky import chol_update as chol_update
from jaxsim.functions.eigen3 import Eig3 as Eig3
from jaxsim.functions.eigen3 import eig3 as eig3
from jaxsim.functions.muscle import muscle_bias as muscle_bias
from jaxsim.functions.muscle import muscle_dynamics as muscle_dynamics
from jaxsim.functions.muscle import muscle_gain as muscle_gain
from jaxsim.functions.pose import make_frame as make_frame
from jaxsim.functions.pose import mul_pose as mul_pose
from jaxsim.functions.pose import neg_pose as neg_pose
from jaxsim.functions.pose import transform_spatial as transform_spatial
from jaxsim.functions.pose import trn_vec_pose as trn_vec_pose
from jaxsim.functions.pyramid import decode_pyramid as decode_pyramid
from jaxsim.functions.pyramid import encode_pyramid as encode_pyramid
from jaxsim.functions.quaternion import axis_angle_to_quat as axis_angle_to_quat
from jaxsim.functions.quaternion import deriv_quat as deriv_quat
from jaxsim.functions.quaternion import mat_to_quat as mat_to_quat
from jaxsim.functions.quaternion import mul_quat as mul_quat
from jaxsim.functions.quaternion import mul_quat_axis as mul_quat_axis
from jaxsim.functions.quaternion import neg_quat as neg_quat
from jaxsim.functions.quaternion import quat_integrate as quat_integrate
from jaxsim.functions.quaternion import quat_to_mat as quat_to_mat
from jaxsim.functions.quaternion import quat_to_vel as quat_to_vel
from jaxsim.functions.quaternion import rot_vec_quat as rot_vec_quat
from jaxsim.functions.quaternion import sub_quat as sub_quat
from jaxsim.functions.ray import GeomHit as GeomHit
from jaxsim.functions.ray import ray_geom as ray_geom
from jaxsim.functions.rotation import euler_to_quat as euler_to_quat
from jaxsim.functions.rotation import mat_to_rot as mat_to_rot
from jaxsim.functions.rotation import quat_z_to_vec as quat_z_to_vec
from jaxsim.functions.scalar import halton as halton
from jaxsim.functions.scalar import sigmoid as sigmoid
from jaxsim.functions.scalar import spring_damper as spring_damper
from jaxsim.functions.skin_ray import SkinHit as SkinHit
from jaxsim.functions.skin_ray import ray_skin as ray_skin
