"""Quaternions and rotation matrices against MuJoCo's functions, and their laws."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING, SAME

from jaxsim.enums import MINVAL
from jaxsim.math import Quat, Rot, Vec

N = 40
RNG = np.random.default_rng(0)
UNIT = RNG.normal(size=(2, N, 4))
UNIT /= np.linalg.norm(UNIT, axis=-1, keepdims=True)
VECTOR = RNG.normal(size=(N, 3))
P, Q = (Quat.from_array(jnp.asarray(q)) for q in UNIT)
V = Vec.from_array(jnp.asarray(VECTOR))


def oracle(function, size: int, *arguments) -> np.ndarray:
    """MuJoCo's function of each item: it writes `size` numbers."""
    rows = []
    for item in zip(*arguments, strict=True):
        out = np.zeros(size)
        function(out, *item)
        rows.append(out)
    return np.array(rows)


def close(ours, theirs) -> None:
    np.testing.assert_allclose(ours.to_array(), theirs, **ROUNDING)


def test_products_equal_those_of_mujoco():
    close(P * Q, oracle(mujoco.mju_mulQuat, 4, *UNIT))
    close(P.conj, oracle(mujoco.mju_negQuat, 4, UNIT[0]))
    close(P.rotate(V), oracle(mujoco.mju_rotVecQuat, 3, VECTOR, UNIT[0]))
    close(P.matrix(), oracle(mujoco.mju_quat2Mat, 9, UNIT[0]))


def test_inverse_and_composition():
    """q* q is the null rotation, and composition is the product of the matrices."""
    null = np.tile([1.0, 0, 0, 0], (N, 1))
    close(P.conj * P, null)
    close((P * Q).matrix(), (P.matrix() @ Q.matrix()).to_array())
    close((P * Q).rotate(V), P.rotate(Q.rotate(V)).to_array())
    close(P.matrix() @ V, P.rotate(V).to_array())
    close(P.matrix().T @ P.matrix(), np.tile(np.eye(3).ravel(), (N, 1)))


def test_matrices_are_those_of_numpy():
    A, B = (np.asarray(q.matrix().to_array()).reshape(N, 3, 3) for q in (P, Q))
    close(P.matrix() @ Q.matrix(), (A @ B).reshape(N, 9))
    close(P.matrix() @ V, np.einsum("nij,nj->ni", A, VECTOR))
    close(P.matrix().T, A.transpose(0, 2, 1).reshape(N, 9))
    R = P.matrix()
    close(Rot.from_cols(*R.cols), R.to_array())
    close(Rot.from_rows(*R.rows), R.to_array())
    np.testing.assert_array_equal(R.cols[1].to_array(), A[:, :, 1])
    np.testing.assert_array_equal(R.rows[1].to_array(), A[:, 1])
    np.testing.assert_allclose(np.linalg.det(A), 1, **ROUNDING)


def test_rotation_vectors_equal_those_of_mujoco():
    angle = np.linalg.norm(VECTOR, axis=1)
    axis = VECTOR / angle[:, None]
    expected = oracle(mujoco.mju_axisAngle2Quat, 4, axis, angle)
    close(Quat.from_rotation_vector(V), expected)
    close(Quat.from_axis_angle(Vec.from_array(jnp.asarray(axis)), jnp.asarray(angle)), expected)
    seconds = np.ones(N)
    close(P.rotation_vector(), oracle(mujoco.mju_quat2Vel, 3, UNIT[0], seconds))
    turned = UNIT[0].copy()
    for quat, v in zip(turned, VECTOR, strict=True):
        mujoco.mju_quatIntegrate(quat, v, 1.0)
    close((P * Quat.from_rotation_vector(V)).normalize(), turned)


@pytest.mark.parametrize("size", [0.0, 1e-14, 1e-9, 1e-5, 9.9e-5, 1.01e-4, 0.1, 3.1])
def test_the_rotation_vector_comes_back(size):
    """Angles of all sizes below 180 degrees, on both sides of the switch to the series."""
    v = Vec.from_array(jnp.asarray(size * VECTOR / np.linalg.norm(VECTOR, axis=1, keepdims=True)))
    q = Quat.from_rotation_vector(v)
    np.testing.assert_allclose(q.dot(q), 1, **SAME)
    back = q.rotation_vector().to_array()
    np.testing.assert_allclose(back, v.to_array(), rtol=1e-12, atol=1e-15 + 1e-14 * size)
    np.testing.assert_allclose((-q).rotation_vector().to_array(), back, rtol=1e-12, atol=MINVAL)


def test_beyond_half_a_turn_the_short_way_comes_back():
    long = Vec(jnp.array([4.0]), jnp.zeros(1), jnp.zeros(1))
    back = Quat.from_rotation_vector(long).rotation_vector()
    np.testing.assert_allclose(back.x, 4 - 2 * np.pi, **ROUNDING)


@pytest.mark.parametrize("size", [0.0, 1e-7, 9e-5, 2.0])
def test_derivative_of_the_rotation_vector_and_back(size):
    """At the null rotation, where angle and axis have no derivative, and away from it."""
    at, step = size * jnp.array([0.6, 0, 0.8]), jnp.array([0.3, -1.0, 0.7])

    def there(a):
        q = Quat.from_rotation_vector(Vec(*a[:, None]))
        back = q.rotation_vector()
        return jnp.concatenate([*q.parts, *back.parts])

    _, slope = jax.jvp(there, (at,), (step,))
    h = 1e-6
    np.testing.assert_allclose(
        slope, (there(at + h * step) - there(at - h * step)) / (2 * h), **DIFFERENCE
    )
    np.testing.assert_allclose(jax.jacrev(there)(at) @ step, slope, **ROUNDING)


def test_the_derivative_at_the_null_rotation_is_half_the_vector():
    """d exp(v/2) = (0, dv/2): the textbook's value."""
    jacobian = jax.jacfwd(lambda v: Quat.from_rotation_vector(Vec(*v[:, None])).to_array()[0])
    expected = np.vstack([np.zeros(3), 0.5 * np.eye(3)])
    np.testing.assert_array_equal(jacobian(jnp.zeros(3)), expected)


def test_normalization_equals_that_of_mujoco():
    """A quaternion shorter than the least becomes the null rotation, with derivative zero."""
    length = np.array([0.0, 1e-20, 1e-16, 1e-14, 0.5, 3.0])
    quat = length[:, None] * UNIT[0, : len(length)]
    expected = quat.copy()
    for q in expected:
        mujoco.mju_normalize4(q)
    ours = Quat.from_array(jnp.asarray(quat)).normalize()
    close(ours, expected)
    jacobian = jax.jacrev(lambda q: Quat(*q).normalize().to_array(0))
    assert np.array_equal(jacobian(jnp.zeros(4)), np.zeros((4, 4)))
    assert np.isfinite(jacobian(jnp.asarray(quat[4]))).all()
