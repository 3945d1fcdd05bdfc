"""The array functions of MJX's `math`, by its names; quaternions are (w, x, y, z)."""

import jax
import jax.numpy as jnp

from jaxsim.math import Quat, Vec, safe_atan2, safe_sqrt
from jaxsim.math.components import Components


def norm(x: jax.Array, axis: int | None = None) -> jax.Array:
    """Length of a vector; its derivative is zero where it is zero."""
    return safe_sqrt(jnp.sum(x * x, axis=axis))


def normalize_with_norm(x: jax.Array, axis: int | None = None) -> tuple[jax.Array, jax.Array]:
    """A vector of length 1, and the length it had; of the zero vector, itself."""
    length = norm(x, axis)
    whole = length if axis is None else jnp.expand_dims(length, axis)
    return x / jnp.where(whole == 0, 1.0, whole), length


def normalize(x: jax.Array, axis: int | None = None) -> jax.Array:
    """A vector of length 1; of the zero vector, itself."""
    return normalize_with_norm(x, axis)[0]


def rotate(vec: jax.Array, quat: jax.Array) -> jax.Array:
    """A vector (..., 3) turned by a unit quaternion (..., 4)."""
    return _array(_quat(quat).rotate(_vec(vec)))


def quat_inv(q: jax.Array) -> jax.Array:
    """The opposite rotation of a unit quaternion."""
    return _array(_quat(q).conj)


def quat_mul(u: jax.Array, v: jax.Array) -> jax.Array:
    """First v, then u."""
    return _array(_quat(u) * _quat(v))


def quat_mul_axis(q: jax.Array, axis: jax.Array) -> jax.Array:
    """The product of a quaternion and a vector, (..., 4)."""
    pure = _vec(axis)
    return _array(_quat(q) * Quat(jnp.zeros_like(pure.x), *pure.parts))


def quat_sub(u: jax.Array, v: jax.Array) -> jax.Array:
    """The rotation vector that leads from v to u, in the frame of v [rad]."""
    return _array((_quat(v).conj * _quat(u)).rotation_vector())


def quat_to_mat(q: jax.Array) -> jax.Array:
    """The rotation matrix (..., 3, 3) of a unit quaternion."""
    parts = _array(_quat(q).matrix())
    return parts.reshape(*parts.shape[:-1], 3, 3)


def quat_to_axis_angle(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The axis of the vector part, and the angle about it, between -pi and pi [rad]."""
    axis, sine = normalize_with_norm(q[..., 1:], axis=-1)
    angle = 2 * safe_atan2(sine, q[..., 0])
    return axis, jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)


def axis_angle_to_quat(axis: jax.Array, angle: jax.Array) -> jax.Array:
    """The rotation by an angle [rad] about a unit vector."""
    return _array(Quat.from_axis_angle(_vec(axis), angle))


def quat_integrate(q: jax.Array, v: jax.Array, dt: jax.Array) -> jax.Array:
    """A rotation that goes on for `dt` with an angular velocity in its own frame [rad/s]."""
    return _array((_quat(q) * Quat.from_rotation_vector(_vec(v).scale(dt))).normalize())


def sign(x: jax.Array) -> jax.Array:
    """-1 below zero, else 1."""
    return jnp.where(x < 0, -1, 1)


def motion_cross(u: jax.Array, v: jax.Array) -> jax.Array:
    """The rate of a motion v (..., 6) that moves with u; rotation first."""
    turn, push = jnp.cross(u[..., :3], v[..., :3]), jnp.cross(u[..., :3], v[..., 3:])
    return jnp.concatenate([turn, push + jnp.cross(u[..., 3:], v[..., :3])], axis=-1)


def motion_cross_force(v: jax.Array, f: jax.Array) -> jax.Array:
    """The rate of a force f (..., 6) that moves with v; rotation first."""
    turn = jnp.cross(v[..., :3], f[..., :3]) + jnp.cross(v[..., 3:], f[..., 3:])
    return jnp.concatenate([turn, jnp.cross(v[..., :3], f[..., 3:])], axis=-1)


def _quat(q: jax.Array) -> Quat:
    return Quat.from_array(jnp.asarray(q), axis=-1)


def _vec(v: jax.Array) -> Vec:
    return Vec.from_array(jnp.asarray(v), axis=-1)


def _array(value: Components) -> jax.Array:
    return jnp.stack(jnp.broadcast_arrays(*value.parts), axis=-1)
