"""Orientations from Euler angles, from a direction, and from the polar decomposition of a
matrix."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Quat, Rot, Vec, safe_atan2, select_where
from jaxsim.math.polar import nearest_rotation
from jaxsim.math.quaternion import from_euler


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
    return jnp.stack(from_euler(jnp, jnp.asarray(euler), seq))


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

    Corresponds to `mju_mat2Rot` in MuJoCo. The derivative is that of the polar decomposition: with
    R the result and S = R' mat: dR = R [w], (trace(S) 1 - S) w = the vector of R' dmat - dmat' R.

    Args:
      mat: (3, 3), not singular.
      quat: initial guess, (4,), which only decides the sign of the result; None: the identity.

    Returns:
      (4,).
    """
    found = nearest_rotation(Rot(*jnp.ravel(mat))).to_array(axis=-1)
    cosine = found[0] if quat is None else found @ jnp.asarray(quat)
    return jnp.where(cosine < 0, -found, found)
