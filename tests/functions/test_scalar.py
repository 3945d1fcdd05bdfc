"""Muscles, friction pyramids and functions of numbers against MuJoCo, and their gradients."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUGH_DIFFERENCE, ROUNDING

from jaxsim import functions as f

RNG = np.random.default_rng(0)
PRM = np.array([0.75, 1.05, -1, 200, 0.5, 1.6, 1.5, 1.3, 1.2])
RANGE = np.array([0.3, 0.9])


def test_muscle_forces():
    length, vel = RNG.uniform(0.1, 1.4, size=40), 2 * RNG.normal(size=40)
    for scale in (-1, 350):
        prm = PRM.copy()
        prm[2] = scale
        gain = jax.vmap(lambda x, v: f.muscle_gain(x, v, RANGE, 1.3, prm))(length, vel)  # noqa: B023
        bias = jax.vmap(lambda x: f.muscle_bias(x, RANGE, 1.3, prm))(length)  # noqa: B023
        for k in range(40):
            expected = mujoco.mju_muscleGain(length[k], vel[k], RANGE, 1.3, prm)
            np.testing.assert_allclose(gain[k], expected, **ROUNDING)
            expected = mujoco.mju_muscleBias(length[k], RANGE, 1.3, prm)
            np.testing.assert_allclose(bias[k], expected, **ROUNDING)
    at = jnp.array([0.6, -0.4])
    slope = jax.grad(lambda x: f.muscle_gain(x[0], x[1], RANGE, 1.3, PRM))(at)
    h = np.array([1e-6, 0])
    run = lambda x: f.muscle_gain(x[0], x[1], RANGE, 1.3, PRM)  # noqa: E731
    np.testing.assert_allclose(slope[0], (run(at + h) - run(at - h)) / 2e-6, **ROUGH_DIFFERENCE)


@pytest.mark.parametrize("width", [0, 0.3])
def test_muscle_dynamics(width):
    prm = np.array([0.01, 0.04, width])
    ctrl, act = RNG.uniform(-0.2, 1.2, size=(2, 40))
    found = jax.vmap(lambda c, a: f.muscle_dynamics(c, a, prm))(ctrl, act)
    for k in range(40):
        expected = mujoco.mju_muscleDynamics(ctrl[k], act[k], prm)
        np.testing.assert_allclose(found[k], expected, **ROUNDING)


@pytest.mark.parametrize("dim", [3, 4, 6])
def test_pyramids(dim):
    mu = RNG.uniform(0.2, 1, size=dim)  # the oracle's binding takes its size for the dimension
    for _ in range(5):
        force = RNG.normal(size=dim)
        force[0] = abs(force[0]) * 5
        out, back = np.zeros(2 * dim), np.zeros(dim + 1)
        mujoco.mju_encodePyramid(out, np.append(force, 0), mu)
        edges = out[: 2 * (dim - 1)]
        np.testing.assert_allclose(f.encode_pyramid(force, mu), edges, **ROUNDING)
        mujoco.mju_decodePyramid(back, out, mu)
        np.testing.assert_allclose(f.decode_pyramid(edges, mu), back[:dim], **ROUNDING)


def test_a_force_without_friction_is_its_own_pyramid():
    force = np.array([2.5])
    assert f.encode_pyramid(force, np.ones(5)) == force
    assert f.decode_pyramid(force, np.ones(5)) == force


def test_a_force_within_its_pyramid_comes_back():
    mu, force = np.array([0.8, 0.6]), np.array([4.0, 0.5, -0.7])
    back = f.decode_pyramid(f.encode_pyramid(force, mu), mu)
    np.testing.assert_allclose(back, force, **ROUNDING)


def test_a_spring():
    for Kp, Kv in ((10, 1), (1, 10), (4, 4), (0, 2), (0, 0), (3, 0)):
        for pos, vel in ((1.0, 0.5), (-0.3, 2.0)):
            ours = f.spring_damper(pos, vel, float(Kp), float(Kv), 0.7)
            theirs = mujoco.mju_springDamper(pos, vel, Kp, Kv, 0.7)
            np.testing.assert_allclose(ours, theirs, **ROUNDING, err_msg=f"{Kp} {Kv}")
    at = jnp.array([1.0, 0.5, 4.0, 4.0, 0.7])
    assert np.isfinite(jax.grad(lambda x: f.spring_damper(*x))(at)).all()
    at = at.at[2].set(9.0)
    slope, h = jax.grad(lambda x: f.spring_damper(*x))(at), 1e-6
    for k, step in enumerate(h * np.eye(5)):
        expected = (f.spring_damper(*(at + step)) - f.spring_damper(*(at - step))) / (2 * h)
        np.testing.assert_allclose(slope[k], expected, **DIFFERENCE)


def test_numbers():
    for x in (-1, 0, 0.2, 0.7, 1, 3):
        np.testing.assert_allclose(f.sigmoid(float(x)), mujoco.mju_sigmoid(x), **ROUNDING)
    for base in (2, 3, 7):
        found = f.halton(np.arange(20), base)
        expected = [mujoco.mju_Halton(k, base) for k in range(20)]
        np.testing.assert_allclose(found, expected, **ROUNDING)
    with pytest.raises(ValueError, match="halton: base: expected at least 2, got 1"):
        f.halton(3, 1)


def test_single_precision_stays_single():
    one, vec = np.float32(0.5), np.ones(3, np.float32)
    unit, quat = np.eye(3, dtype=np.float32), np.eye(4, dtype=np.float32)[0]
    calls = (
        lambda: f.sigmoid(one),
        lambda: f.spring_damper(one, one, one, one, one),
        lambda: f.euler_to_quat(vec, "xyz"),
        lambda: f.quat_z_to_vec(vec),
        lambda: f.quat_integrate(quat, vec, one),
        lambda: f.sub_quat(quat, quat),
        lambda: f.mul_pose(vec, quat, vec, quat),
        lambda: f.transform_spatial(np.ones(6, np.float32), True, vec, vec, unit),
        lambda: f.make_frame(vec),
        lambda: f.eig3(unit),
        lambda: f.mat_to_quat(unit),
        lambda: f.mat_to_rot(unit),
        lambda: f.chol_factor(unit).L,
        lambda: f.chol_solve(unit, vec),
        lambda: f.chol_update(unit, vec).L,
        lambda: f.chol_factor_band(np.ones(8, np.float32), 4, 2, 0),
        lambda: f.chol_solve_band(np.ones(8, np.float32), np.ones(4, np.float32), 4, 2, 0),
        lambda: f.box_qp(unit, vec, -vec, vec).x,
        lambda: f.muscle_gain(one, one, vec[:2], one, np.ones(9, np.float32)),
        lambda: f.muscle_dynamics(one, one, vec),
        lambda: f.encode_pyramid(vec, vec),
    )
    for call in calls:
        for shape in jax.tree.leaves(jax.eval_shape(call)):
            assert shape.dtype == np.float32
