"""Formulas of quaternions (w, x, y, z), once for numpy and JAX; and quaternions as numpy arrays.

The first part is formulas on components, which are numbers or arrays of equal shape, numpy's or
traced ones. Each layer has them in its own layout:

    Quat, Rot (math/rotation.py)       the physics: components [n, *W], guarded derivatives
    quat_* (second part of this file)  the compiler, which does not import JAX: arrays (..., 4)
    functions/quaternion.py            MuJoCo's `mju_` functions: traced arrays (..., 4)
    mjx/math.py                        MJX's functions: one item, (4,)

Normalization and the logarithm differ between numpy and JAX by the guards of their derivatives, and
are written in each layer; so are cross product and rotation of a vector, which the physics traces
in half the time with the operations of math/components.py. This file does not import JAX.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxsim.enums import MINVAL

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])

# Lengths this close to 1 count as 1, as in MuJoCo: unit vectors are preserved bit for bit.
MIN_QUAT_NORM = 1e-14

_PARALLEL = 1e-10  # smaller sines of a z axis count as vertical, as in MuJoCo's compiler
_AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}

# --- formulas on components ---


def cross(a: Iterable, b: Iterable) -> tuple:
    """Return the cross product of two vectors."""
    ax, ay, az = a
    bx, by, bz = b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


def multiply(p: Iterable, q: Iterable) -> tuple:
    """Return the Hamilton product p q: first the rotation q, then p."""
    w, x, y, z = p
    a, b, c, d = q
    return (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )


def matrix_entries(q: Iterable) -> tuple:
    """Return the nine entries, by rows, of the rotation matrix of a unit quaternion."""
    w, x, y, z = q
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    wx, wy, wz = w * x, w * y, w * z
    ww = w * w
    return (
        *(ww + xx - yy - zz, 2 * (xy - wz), 2 * (xz + wy)),
        *(2 * (xy + wz), ww - xx + yy - zz, 2 * (yz - wx)),
        *(2 * (xz - wy), 2 * (yz + wx), ww - xx - yy + zz),
    )


def matrix_quaternions(entries: Iterable) -> tuple[tuple, ...]:
    """Return four multiples of the quaternion of a rotation matrix, whose entries are given by
    rows.

    Row i holds 4 q_i times (w, x, y, z); the row of a large component is the most accurate
    (Shepperd, *Quaternion from rotation matrix*, 1978).
    """
    xx, xy, xz, yx, yy, yz, zx, zy, zz = entries
    # Four times the squares of the components, and the products of pairs of components.
    ww4, xx4, yy4, zz4 = 1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz
    wx4, wy4, wz4 = zy - yz, xz - zx, yx - xy
    xy4, yz4, xz4 = xy + yx, yz + zy, xz + zx
    return (
        (ww4, wx4, wy4, wz4),
        (wx4, xx4, xy4, xz4),
        (wy4, xy4, yy4, yz4),
        (wz4, xz4, yz4, zz4),
    )


def about_axis(xp: Any, axis: Iterable, angle: Any) -> tuple:
    """Return the rotation by `angle` [rad] about a unit axis; `xp` is numpy or jax.numpy."""
    half = 0.5 * angle
    sine = xp.sin(half)
    return xp.cos(half), *(part * sine for part in axis)


def from_euler(xp: Any, angles: Iterable, sequence: str) -> tuple:
    """Return three consecutive rotations [rad]; lower-case axes are those of the moving frame,
    upper-case ones are fixed."""
    quat: tuple = (1.0, 0.0, 0.0, 0.0)
    for angle, letter in zip(angles, sequence, strict=True):
        turn = about_axis(xp, _AXES[letter.lower()], angle)
        quat = multiply(quat, turn) if letter.islower() else multiply(turn, quat)
    return quat


# --- numpy arrays, over any leading axes ---


def quat_multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the product p q: first the rotation q, then p; (..., 4)."""
    return _join_components(*multiply(_split_components(p), _split_components(q)))


def quat_conjugate(q: np.ndarray) -> np.ndarray:
    """Return the inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def quat_rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotate vectors (..., 3) by unit quaternions (..., 4)."""
    # Two cross products instead of two quaternion products.
    (w, *axis), (vx, vy, vz) = _split_components(q), _split_components(v)
    tx, ty, tz = (2.0 * part for part in cross(axis, (vx, vy, vz)))
    x, y, z = cross(axis, (tx, ty, tz))
    return _join_components(vx + w * tx + x, vy + w * ty + y, vz + w * tz + z)


def quat_to_matrix(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrices (..., 3, 3) of unit quaternions; columns are the rotated
    axes."""
    entries = matrix_entries(_split_components(np.asarray(q, dtype=np.float64)))
    return _join_components(*entries).reshape(*np.shape(q)[:-1], 3, 3)


def quat_normalize(q: np.ndarray) -> np.ndarray:
    """Return q normalized to length 1; a quaternion near zero becomes the identity, as in
    MuJoCo."""
    norm = np.sqrt(np.sum(q * q, axis=-1, keepdims=True))
    scale = np.where((norm < MINVAL) | (np.abs(norm - 1.0) <= MIN_QUAT_NORM), 1.0, norm)
    return np.where(norm < MINVAL, IDENTITY, q / scale)


def quat_from_axis_angle(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation by `angle` [rad] about a unit axis (3,)."""
    return np.array(about_axis(np, axis, angle))


def quat_from_z_axis(z: np.ndarray) -> np.ndarray:
    """Return the smallest rotation from (0, 0, 1) to the direction of z; a half rotation is about
    x."""
    axis = np.array([-z[1], z[0], 0.0])
    sine = np.linalg.norm(axis)
    axis = axis / sine if sine > _PARALLEL else np.array([1.0, 0.0, 0.0])
    return quat_from_axis_angle(axis, np.arctan2(sine, z[2]))


def quat_from_euler(angles: np.ndarray, sequence: str) -> np.ndarray:
    """Return the orientation (4,) after three consecutive rotations, as `from_euler`."""
    return quat_normalize(np.array(from_euler(np, angles, sequence)))


def quat_from_matrix(R: np.ndarray) -> np.ndarray:
    """Return the quaternion of a rotation matrix (3, 3).

    The sign makes w positive if the trace is positive, otherwise the component of the axis with the
    largest diagonal entry, the last of equal ones: the signs are visible in `qpos0` and are
    MuJoCo's.
    """
    xx, yy, zz = np.diag(R)
    leading = 0 if xx + yy + zz > 0 else 3 - int(np.argmax((zz, yy, xx)))
    return quat_normalize(np.array(matrix_quaternions(R.ravel())[leading]))


def quat_to_rotation_vector(q: np.ndarray) -> np.ndarray:
    """Return the rotation vectors (..., 3), axis times angle in (-pi, pi], of unit quaternions."""
    norm = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(norm, q[..., :1])
    angle = np.where(angle > np.pi, angle - 2.0 * np.pi, angle)
    return q[..., 1:] * angle / np.where(norm < MINVAL, 1.0, norm)


def cross_arrays(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products (..., 3); several times faster than np.cross on few vectors."""
    return _join_components(*cross(_split_components(a), _split_components(b)))


def _split_components(a: np.ndarray) -> Iterable[Any]:
    """Return the components of vectors: arrays, or numbers, which are faster for a single
    vector."""
    return a.tolist() if a.ndim == 1 else [a[..., k] for k in range(a.shape[-1])]


def _join_components(*parts) -> np.ndarray:
    """Return the vectors that have these components, all of them numbers or all arrays."""
    if isinstance(parts[0], float):
        return np.array(parts)
    whole = np.empty((*np.broadcast(*parts).shape, len(parts)), np.result_type(*parts))
    for k, part in enumerate(parts):
        whole[..., k] = part
    return whole
