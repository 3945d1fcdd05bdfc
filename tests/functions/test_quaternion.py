"""Quaternions, poses and spatial vectors against MuJoCo; gradients where they could be singular."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING, SOLVER, STAGE

from jaxsim import functions as f

RNG = np.random.default_rng(0)
MANY = 12


def unit(shape):
    q = RNG.normal(size=shape)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def mat_of(quat):
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)


QUAT, OTHER = unit((MANY, 4)), unit((MANY, 4))
QUAT[0] = 1, 0, 0, 0
QUAT[1] = -1, 0, 0, 0
QUAT[2] = OTHER[2]
QUAT[3] = 0, 0.6, 0, 0.8  # a rotation by 180 degrees
VEC, POS = RNG.normal(size=(2, MANY, 3))
ANGLE = RNG.uniform(-4, 4, size=MANY)
MAT = np.stack([mat_of(q) for q in QUAT])
# rotations about each axis by more than a right angle: every branch of mat_to_quat
for k in range(4):
    MAT[4 + k] = mat_of(np.eye(4)[k] + 0.05 * OTHER[k])
    MAT[4 + k] /= np.cbrt(np.linalg.det(MAT[4 + k]))

# our function, MuJoCo's, the size of its result, the arguments
CASES = {
    "rot_vec_quat": (f.rot_vec_quat, mujoco.mju_rotVecQuat, 3, (VEC, QUAT)),
    "neg_quat": (f.neg_quat, mujoco.mju_negQuat, 4, (QUAT,)),
    "mul_quat": (f.mul_quat, mujoco.mju_mulQuat, 4, (QUAT, OTHER)),
    "mul_quat_axis": (f.mul_quat_axis, mujoco.mju_mulQuatAxis, 4, (QUAT, VEC)),
    "axis_angle": (f.axis_angle_to_quat, mujoco.mju_axisAngle2Quat, 4, (unit((MANY, 3)), ANGLE)),
    "quat_to_vel": (f.quat_to_vel, mujoco.mju_quat2Vel, 3, (QUAT, 0.1 + ANGLE**2)),
    "sub_quat": (f.sub_quat, mujoco.mju_subQuat, 3, (QUAT, OTHER)),
    "quat_to_mat": (f.quat_to_mat, mujoco.mju_quat2Mat, 9, (QUAT,)),
    "mat_to_quat": (f.mat_to_quat, mujoco.mju_mat2Quat, 4, (MAT,)),
    "deriv_quat": (f.deriv_quat, mujoco.mju_derivQuat, 4, (QUAT, VEC)),
    "trn_vec_pose": (f.trn_vec_pose, mujoco.mju_trnVecPose, 3, (POS, QUAT, VEC)),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_equal_mujoco(name):
    ours, theirs, size, given = CASES[name]
    together = ours(*given)
    one_by_one = jax.vmap(ours)(*given)
    for k in range(MANY):
        out = np.zeros(size)
        theirs(out, *(np.ravel(a[k]) if np.ndim(a[k]) else a[k] for a in given))
        np.testing.assert_allclose(np.ravel(together[k]), out, **ROUNDING, err_msg=str(k))
        np.testing.assert_allclose(np.ravel(one_by_one[k]), out, **ROUNDING)


def test_integration():
    found = f.quat_integrate(QUAT, VEC, ANGLE)
    for k in range(MANY):
        quat = QUAT[k].copy()
        mujoco.mju_quatIntegrate(quat, VEC[k], ANGLE[k])
        np.testing.assert_allclose(found[k], quat, **ROUNDING)


@pytest.mark.parametrize("seq", ["xyz", "XYZ", "zyx", "xZx", "YyX"])
def test_euler_angles(seq):
    for k in range(3):
        quat = np.zeros(4)
        mujoco.mju_euler2Quat(quat, VEC[k], seq)
        np.testing.assert_allclose(f.euler_to_quat(VEC[k], seq), quat, **ROUNDING)


def test_euler_angles_need_axes():
    with pytest.raises(ValueError, match="seq: expected three letters of 'xyzXYZ', got 'xyw'"):
        f.euler_to_quat(VEC[0], "xyw")


def test_the_rotation_to_a_direction():
    directions = [*VEC, [0, 0, 3], [0, 0, -2], [0, 0, 0], [1e-13, 0, -1], [0, 1e-5, 1], [1, 0, 0]]
    found = jax.jit(jax.vmap(f.quat_z_to_vec))(np.array(directions, float))
    for vec, ours in zip(np.array(directions, float), found, strict=True):
        quat = np.zeros(4)
        mujoco.mju_quatZ2Vec(quat, vec)
        np.testing.assert_allclose(ours, quat, **ROUNDING, err_msg=str(vec))


def test_the_rotation_in_a_matrix():
    mats = np.stack(
        [
            mat_of(q) @ (np.eye(3) + 0.3 * s @ s.T)
            for q, s in zip(QUAT, RNG.normal(size=(MANY, 3, 3)), strict=True)
        ]
    )
    found = jax.jit(jax.vmap(f.mat_to_rot))(mats, OTHER)
    for k in range(MANY):
        quat = OTHER[k].copy()
        mujoco.mju_mat2Rot(quat, mats[k].ravel())
        # the oracle ends its search at some 1e-9
        np.testing.assert_allclose(mat_of(found[k]), mat_of(quat), **SOLVER)
        U, _, Vt = np.linalg.svd(mats[k])
        np.testing.assert_allclose(mat_of(found[k]), U @ Vt, **STAGE)
    dA, h = RNG.normal(size=(3, 3)), 1e-6
    run = jax.jit(f.mat_to_rot)
    expected = (run(mats[0] + h * dA) - run(mats[0] - h * dA)) / (2 * h)
    slope = jax.jit(lambda: jax.jvp(f.mat_to_rot, (mats[0],), (dA,))[1])()
    np.testing.assert_allclose(slope, expected, **DIFFERENCE)


def test_poses():
    pos, quat = f.mul_pose(POS, QUAT, VEC, OTHER)
    back = f.neg_pose(POS, QUAT)
    for k in range(MANY):
        p, q = np.zeros(3), np.zeros(4)
        mujoco.mju_mulPose(p, q, POS[k], QUAT[k], VEC[k], OTHER[k])
        np.testing.assert_allclose(pos[k], p, **ROUNDING)
        np.testing.assert_allclose(quat[k], q, **ROUNDING)
        mujoco.mju_negPose(p, q, POS[k], QUAT[k])
        np.testing.assert_allclose(back[0][k], p, **ROUNDING)
        np.testing.assert_allclose(back[1][k], q, **ROUNDING)


@pytest.mark.parametrize("force", [True, False])
def test_spatial_vectors(force):
    vec, R = RNG.normal(size=6), mat_of(QUAT[5])
    for turn in (None, R):
        out = np.zeros(6)
        flat = (np.eye(3) if turn is None else turn).ravel()
        mujoco.mju_transformSpatial(out, vec, force, POS[0], POS[1], flat)
        ours = f.transform_spatial(vec, force, POS[0], POS[1], turn)
        np.testing.assert_allclose(ours, out, **ROUNDING)


def test_power_does_not_depend_on_the_frame():
    motion, force = RNG.normal(size=(2, 6))
    moved = [
        f.transform_spatial(v, flag, POS[0], POS[1], mat_of(QUAT[5]))
        for v, flag in ((motion, False), (force, True))
    ]
    np.testing.assert_allclose(moved[0] @ moved[1], motion @ force, **ROUNDING)


def test_the_frame_of_a_contact():
    frame = f.make_frame(jnp.array([0.0, 0.0, 2.0]))
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), **ROUNDING)
    np.testing.assert_allclose(frame[0], [0, 0, 1], **ROUNDING)
    np.testing.assert_allclose(np.linalg.det(frame), 1, **ROUNDING)


def test_gradients_are_finite_at_singular_points():
    null = jnp.array([1.0, 0, 0, 0])
    for function, at in {
        "sub_quat": (lambda q: f.sub_quat(q, null), null),
        "quat_to_vel": (lambda q: f.quat_to_vel(q, 0.1), null),
        "quat_integrate": (lambda v: f.quat_integrate(null, v, 0.1), jnp.zeros(3)),
        "mat_to_quat": (f.mat_to_quat, jnp.eye(3)),
        "quat_z_to_vec": (f.quat_z_to_vec, jnp.array([0.0, 0.0, 1.0])),
        "quat_z_to_vec down": (f.quat_z_to_vec, jnp.array([0.0, 0.0, -1.0])),
    }.values():
        assert np.isfinite(jax.jacrev(function)(at)).all()
