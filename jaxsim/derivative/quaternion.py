"""Derivatives of quaternion difference and integration, in tangent coordinates.

A small change of an orientation q is the rotation vector u of q exp(u), in the frame of q.
"""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.math import Quat, Vec


def sub_quat(qa: Array, qb: Array) -> tuple[jax.Array, jax.Array]:
    """Compute the derivatives of `sub_quat`, the rotation vector between two orientations.

    MuJoCo's `mjd_subQuat`.

    Args:
      qa, qb: orientations, (4,), norm 1.

    Returns:
      Da (3, 3), Db (3, 3): with respect to small rotations of `qa` and of `qb`.
    """
    a, b = (Quat(*jnp.asarray(q)) for q in (qa, qb))

    # Rotation vector of the difference after small rotations of both arguments.
    def difference(ua: Array, ub: Array) -> Array:
        return _rotation_vector((b * _exp(ub)).conj * (a * _exp(ua)))

    zero = jnp.zeros(3, a.w.dtype)
    Da, Db = jax.jacfwd(difference, (0, 1))(zero, zero)
    return Da, Db


def quat_integrate(vel: Array, scale: Array | float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute the derivatives of `quat_integrate`, which rotates an orientation by `scale * vel`.

    MuJoCo's `mjd_quatIntegrate`, whose Dvel is with respect to `scale * vel` instead. The
    derivatives do not depend on the orientation.

    Args:
      vel: angular velocity in the moving frame, (3,) [rad/s].
      scale: duration, () [s].

    Returns:
      Dquat (3, 3), Dvel (3, 3), Dscale (3,): the small rotation of the result with respect to a
      small rotation of the input, to the velocity and to the time.
    """
    vel = jnp.asarray(vel)
    scale = jnp.asarray(scale, vel.dtype)
    # Rotation back to the unperturbed result, so that the logarithm is near zero.
    back = _exp(scale * vel).conj

    def perturbed(u: Array, vel: Array, scale: Array) -> Array:
        return _rotation_vector(back * (_exp(u) * _exp(scale * vel)))

    Dquat, Dvel, Dscale = jax.jacfwd(perturbed, (0, 1, 2))(jnp.zeros_like(vel), vel, scale)
    return Dquat, Dvel, Dscale


def _exp(u: Array) -> Quat:
    return Quat.from_rotation_vector(Vec(*u))


def _rotation_vector(q: Quat) -> Array:
    return jnp.stack(q.rotation_vector().parts)
