"""Derivatives of quaternion difference and integration, and of second order."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tolerance import ROUNDING, STAGE

from jaxsim.derivative import hessian_vector, quat_integrate, sub_quat

RNG = np.random.default_rng(0)


def test_the_difference_of_quaternions():
    quats = RNG.normal(size=(2, 10, 4))
    quats /= np.linalg.norm(quats, axis=-1, keepdims=True)
    quats[1, 0] = quats[0, 0]  # no difference at all
    quats[1, 1] = quats[0, 1] + [1e-9, -1e-9, 2e-9, 0]
    Da, Db = jax.jit(jax.vmap(sub_quat))(*quats)
    for k in range(10):
        a, b = np.zeros((2, 9))
        mujoco.mjd_subQuat(quats[0, k], quats[1, k], a, b)
        np.testing.assert_allclose(Da[k], a.reshape(3, 3), **STAGE, err_msg=str(k))
        np.testing.assert_allclose(Db[k], b.reshape(3, 3), **STAGE, err_msg=str(k))


def test_the_integration_of_quaternions():
    vel, scale = RNG.normal(size=(10, 3)), RNG.uniform(0.01, 2, size=10)
    vel[0] = 0
    vel[1] *= 1e-9
    found = jax.jit(jax.vmap(quat_integrate))(vel, scale)
    for k in range(10):
        q, v, s = np.zeros(9), np.zeros(9), np.zeros(3)
        mujoco.mjd_quatIntegrate(vel[k], scale[k], q, v, s)
        v *= scale[k]  # MuJoCo's Dvel is by scale * vel
        for a, b in zip(found, (q.reshape(3, 3), v.reshape(3, 3), s), strict=True):
            np.testing.assert_allclose(a[k], b, **STAGE, err_msg=str(k))


def test_the_hessian_times_a_vector():
    def f(x):
        return jnp.sum(jnp.sin(x["a"]) * x["b"] ** 3) + x["a"][0] * x["b"][1]

    x = {"a": jnp.asarray(RNG.normal(size=3)), "b": jnp.asarray(RNG.normal(size=3))}
    v = {"a": jnp.asarray(RNG.normal(size=3)), "b": jnp.asarray(RNG.normal(size=3))}
    H = jax.hessian(f)(x)
    for name in x:
        expected = sum(H[name][other] @ v[other] for other in x)
        np.testing.assert_allclose(hessian_vector(f, x, v)[name], expected, **ROUNDING)
