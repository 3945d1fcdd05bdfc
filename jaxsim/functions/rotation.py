"""Orientations from Euler angles, from a direction, and from the polar decomposition of a
matrix."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.functions.quaternion import axis_angle_to_quat, mul_quat, quat_integrate, quat_to_mat
from jaxsim.math import Quat, Vec, safe_atan2, select_where

_MAX_POLAR_ITERATIONS = 500  # limit of iterations


def euler_to_quat(euler: Array, seq: str) -> Array:
    """Return the orientation after three consecutive rotations. Corresponds to `mju_euler2Quat` in
    MuJoCo.

    Args:
      euler: the angles, (3,) [rad].
      seq: their axes, three letters: xyz for axes of the moving frame, XYZ for fixed axes. Known
        when traced.

    Returns:
      (4,).

    Raises:
      ValueError: `seq` is not three such letters.
    """
    if not isinstance(seq, str) or len(seq) != 3 or not set(seq) <= set("xyzXYZ"):
        raise ValueError(f"euler_to_quat: seq: expected three letters of 'xyzXYZ', got {seq!r}")
    euler = jnp.asarray(euler)
    quat = jnp.asarray(np.eye(4)[0], euler.dtype)
    for angle, letter in zip(euler, seq, strict=True):
        turn = axis_angle_to_quat(np.eye(3)["xyz".index(letter.lower())].astype(euler.dtype), angle)
        quat = mul_quat(quat, turn) if letter.islower() else mul_quat(turn, quat)
    return quat


def quat_z_to_vec(vec: Array) -> Array:
    """Return the smallest rotation from the z axis to a direction; a half rotation is about x.

    Args:
      vec: (3,), of any length; zero counts as the z axis.

    Returns:
      (4,).
    """
    v = Vec(*jnp.asarray(vec))
    zero = jnp.zeros_like(v.x)
    up = Vec(zero, zero, zero + 1)
    v = v.normalize(fallback=up)
    sine = Vec(v.x, v.y, zero).norm()
    level = sine > MINVAL
    axis = select_where(
        level, Vec(-v.y, v.x, zero).scale(1 / jnp.where(level, sine, 1)), Vec(zero + 1, zero, zero)
    )
    return Quat.from_axis_angle(axis, safe_atan2(sine, v.z)).to_array(axis=-1)


def mat_to_rot(mat: Array, quat: Array | None = None) -> Array:
    """Return the rotation nearest to a matrix, that of its polar decomposition.

    Corresponds to `mju_mat2Rot` in MuJoCo. Müller, Bender, Chentanez, Macklin: A robust method to
    extract the rotational part of deformations, Motion in Games 2016. The derivative is that of the
    polar decomposition: with R the result and S = R' mat: dR = R [w], (trace(S) 1 - S) w = the
    vector of R' dmat - dmat' R.

    Args:
      mat: (3, 3), not singular.
      quat: initial guess, (4,); None: the identity.

    Returns:
      (4,).
    """
    mat = jnp.asarray(mat)
    start = np.eye(4)[0].astype(mat.dtype) if quat is None else jnp.asarray(quat)
    found = lax.stop_gradient(_nearest(lax.stop_gradient(mat), lax.stop_gradient(start)))
    # One more Newton step at the solution, which carries the derivative.
    R = quat_to_mat(found)
    S = lax.stop_gradient(R.T @ mat)
    stiff = jnp.trace(S) * jnp.eye(3, dtype=mat.dtype) - (S + S.T) / 2
    turn = jnp.linalg.inv(stiff) @ _off_balance(R.T @ mat)
    return quat_integrate(found, turn, jnp.ones((), mat.dtype))


def _nearest(mat: Array, start: Array) -> Array:
    """Iterate the rotation until its axes are as near to the columns of the matrix as possible."""

    def iterate(state: tuple) -> tuple:
        count, quat, _ = state
        R = quat_to_mat(quat)
        along = jnp.sum(R * mat)
        # In the rotated frame: the sum of the cross products of axes and columns.
        omega = _off_balance(R.T @ mat) / (jnp.abs(along) + np.finfo(mat.dtype).tiny)
        one = jnp.ones((), mat.dtype)
        return count + 1, quat_integrate(quat, omega, one), jnp.max(jnp.abs(omega))

    def not_converged(state: tuple) -> Array:
        count, _, last = state
        return (count < _MAX_POLAR_ITERATIONS) & (last > 4 * np.finfo(mat.dtype).eps)

    start = start / jnp.linalg.norm(start)
    first = (jnp.zeros((), jnp.int32), start, jnp.ones((), mat.dtype))
    quat: jax.Array = lax.while_loop(not_converged, iterate, first)[1]
    return quat


def _off_balance(A: Array) -> Array:
    """Return the vector w with [w] = A - A'."""
    return jnp.stack([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])
