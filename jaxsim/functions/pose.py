"""Poses (position, orientation) and spatial vectors on plain arrays: MuJoCo's `mju_` functions."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.functions.quaternion import mul_quat, neg_quat, rot_vec_quat
from jaxsim.math import Vec
from jaxsim.physics.collision.frame import contact_frame


def mul_pose(pos1: Array, quat1: Array, pos2: Array, quat2: Array) -> tuple[Array, Array]:
    """Return the pose of frame 2, given in frame 1 whose own pose is given.

    Args:
      pos1, quat1: pose of frame 1, (..., 3) [m] and (..., 4).
      pos2, quat2: pose of frame 2 in frame 1.

    Returns:
      pos (..., 3) [m], quat (..., 4).
    """
    return trn_vec_pose(pos1, quat1, pos2), mul_quat(quat1, quat2)


def neg_pose(pos: Array, quat: Array) -> tuple[Array, Array]:
    """Return the inverse of a pose: that of the outer frame, seen from the inner one."""
    back = neg_quat(quat)
    return -rot_vec_quat(pos, back), back


def trn_vec_pose(pos: Array, quat: Array, vec: Array) -> Array:
    """Return a point (..., 3) [m] of the local frame in the frame in which the pose is given."""
    return jnp.asarray(pos) + rot_vec_quat(vec, quat)


def transform_spatial(
    vec: Array,
    flg_force: bool,
    newpos: Array,
    oldpos: Array,
    rotnew2old: Array | None = None,
) -> Array:
    """Return a spatial vector transformed to another point and other axes.

        force:   (torque - (newpos - oldpos) x force, force)
        motion:  (omega, v - (newpos - oldpos) x omega)

    Featherstone, Rigid Body Dynamics Algorithms, section 2.8.

    Args:
      vec: rotation first, (6,): (omega, v), or (torque, force).
      flg_force: whether it is a force; otherwise a motion. Known when traced.
      newpos: the new point, in the old axes, (3,) [m].
      oldpos: the old point, (3,) [m].
      rotnew2old: rotation from the new to the old axes, (3, 3); None: equal axes.

    Returns:
      (6,), in the new axes.
    """
    rotation, translation = jnp.split(jnp.asarray(vec), 2)
    shift = jnp.asarray(newpos) - jnp.asarray(oldpos)
    if flg_force:
        rotation = rotation - jnp.cross(shift, translation)
    else:
        translation = translation - jnp.cross(shift, rotation)
    if rotnew2old is not None:
        rotation, translation = rotation @ rotnew2old, translation @ rotnew2old
    return jnp.concatenate([rotation, translation])


def make_frame(normal: Array) -> Array:
    """Return a contact frame with the given normal; tangents are chosen as for contacts.

    Args:
      normal: (3,), of any length but zero.

    Returns:
      Right-handed, (3, 3): the axes are the rows.
    """
    frame = contact_frame(Vec(*jnp.asarray(normal)).normalize())
    return jnp.stack(frame.parts).reshape(3, 3)
