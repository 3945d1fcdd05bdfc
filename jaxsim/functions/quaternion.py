"""Quaternions (w, x, y, z) as plain arrays: MuJoCo's `mju_` functions.

An orientation is a unit quaternion. Leading axes are batch axes, if all arguments have them.
"""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Quat, Vec
from jaxsim.math.quaternion import matrix_quaternions


def rot_vec_quat(vec: Array, quat: Array) -> Array:
    """Return a vector (..., 3), rotated by an orientation (..., 4)."""
    return _array(_quat(quat).rotate(_vec(vec)))


def neg_quat(quat: Array) -> Array:
    """Return the conjugate, (..., 4): the inverse of an orientation."""
    return _array(_quat(quat).conj)


def mul_quat(quat1: Array, quat2: Array) -> Array:
    """Return the product (..., 4): `quat2` first, then `quat1`."""
    return _array(_quat(quat1) * _quat(quat2))


def mul_quat_axis(quat: Array, axis: Array) -> Array:
    """Return the product of a quaternion (..., 4) and (0, axis), with `axis` (..., 3)."""
    return _array(_quat(quat) * _pure_quat(_vec(axis)))


def axis_angle_to_quat(axis: Array, angle: Array) -> Array:
    """Return the rotation by an angle (...) [rad] about a unit vector (..., 3), as a quaternion."""
    return _array(Quat.from_axis_angle(_vec(axis), jnp.asarray(angle)))


def quat_to_vel(quat: Array, dt: Array) -> Array:
    """Return the angular velocity (..., 3) [rad/s] that rotates by `quat` (..., 4) in a time `dt`
    (...) [s].

    The velocity has the same components in the frames before and after the rotation, of which the
    shorter way is taken.
    """
    return _array(_quat(quat).rotation_vector().scale(1 / jnp.asarray(dt)))


def sub_quat(qa: Array, qb: Array) -> Array:
    """Return the rotation vector r (..., 3) [rad], in the frame of `qb`, with qb * quat(r) = qa."""
    return _array((_quat(qb).conj * _quat(qa)).rotation_vector())


def quat_to_mat(quat: Array) -> Array:
    """Return the rotation matrix (..., 3, 3) of an orientation (..., 4)."""
    parts = _quat(quat).matrix().parts
    return jnp.stack(parts, axis=-1).reshape(*jnp.shape(quat)[:-1], 3, 3)


def mat_to_quat(mat: Array) -> Array:
    """Return the orientation (..., 4) of a rotation matrix (..., 3, 3).

    The sign makes w positive if the trace is positive, otherwise the component of the axis with the
    largest diagonal entry, the last of equal ones, as in MuJoCo.
    """
    entries = [mat[..., i, j] for i in range(3) for j in range(3)]
    xx, yy, zz = entries[0::4]
    about_x = (xx > yy) & (xx > zz)
    about_y = yy > zz
    leading = jnp.where(xx + yy + zz > 0, 0, jnp.where(about_x, 1, jnp.where(about_y, 2, 3)))
    choices = zip(*matrix_quaternions(entries), strict=True)
    parts = (jnp.select([leading == k for k in range(4)], column) for column in choices)
    return _array(Quat(*parts).normalize())


def deriv_quat(quat: Array, vel: Array) -> Array:
    """Return the time derivative (..., 4) of an orientation with angular velocity `vel` (..., 3)
    [rad/s].

    The velocity is in world axes.
    """
    return _array((_pure_quat(_vec(vel)) * _quat(quat)).scale(0.5))


def quat_integrate(quat: Array, vel: Array, scale: Array) -> Array:
    """Return an orientation (..., 4) after rotating with `vel` (..., 3) [rad/s] for `scale` (...)
    [s].

    The velocity is in the moving frame.
    """
    turn = Quat.from_rotation_vector(_vec(vel).scale(jnp.asarray(scale)))
    return _array((_quat(quat) * turn).normalize())


def _quat(a: Array) -> Quat:
    return Quat.from_array(jnp.asarray(a), axis=-1)


def _vec(a: Array) -> Vec:
    return Vec.from_array(jnp.asarray(a), axis=-1)


def _pure_quat(v: Vec) -> Quat:
    return Quat(jnp.zeros_like(v.x), *v.parts)


def _array(value: Quat | Vec) -> Array:
    return value.to_array(axis=-1)
