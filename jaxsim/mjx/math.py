"""Functions of MJX's `math` that programs call, by its names; quaternions are (w, x, y, z)."""

import jax
import jax.numpy as jnp

from jaxsim.functions import quaternion
from jaxsim.math import safe_atan2, safe_sqrt

rotate = quaternion.rot_vec_quat
quat_inv = quaternion.neg_quat
quat_mul = quaternion.mul_quat
quat_mul_axis = quaternion.mul_quat_axis
quat_sub = quaternion.sub_quat
quat_to_mat = quaternion.quat_to_mat
axis_angle_to_quat = quaternion.axis_angle_to_quat
quat_integrate = quaternion.quat_integrate


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


def quat_to_axis_angle(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The axis of the vector part, and the angle about it, between -pi and pi [rad]."""
    axis, sine = normalize_with_norm(q[..., 1:], axis=-1)
    angle = 2 * safe_atan2(sine, q[..., 0])
    return axis, jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)


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
