"""Quaternions (w, x, y, z) in numpy for the compiler, over any leading axes.

The physics has its own in `math/rotation.py`, in jax; the compiler does not import jax.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxsim.enums import MINVAL

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])

# Lengths this close to 1 count as 1, as in MuJoCo: unit vectors are preserved bit for bit.
MIN_QUAT_NORM = 1e-14


def quat_multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the product p q: first the rotation q, then p; (..., 4)."""
    pw, px, py, pz = _split_components(p)
    qw, qx, qy, qz = _split_components(q)
    x, y, z = _cross(px, py, pz, qx, qy, qz)
    return _join_components(
        pw * qw - (px * qx + py * qy + pz * qz),
        pw * qx + qw * px + x,
        pw * qy + qw * py + y,
        pw * qz + qw * pz + z,
    )


def quat_conjugate(q: np.ndarray) -> np.ndarray:
    """Return the inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def quat_rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotate vectors (..., 3) by unit quaternions (..., 4)."""
    w, qx, qy, qz = _split_components(q)
    vx, vy, vz = _split_components(v)
    x, y, z = _cross(qx, qy, qz, vx, vy, vz)
    tx, ty, tz = 2.0 * x, 2.0 * y, 2.0 * z
    x, y, z = _cross(qx, qy, qz, tx, ty, tz)
    return _join_components(vx + w * tx + x, vy + w * ty + y, vz + w * tz + z)


def quat_to_matrix(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrices (..., 3, 3) of unit quaternions; columns are the rotated
    axes."""
    w, x, y, z = _split_components(np.asarray(q, dtype=np.float64))
    entries = (
        *(w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )
    return _join_components(*entries).reshape(*np.shape(q)[:-1], 3, 3)


def quat_normalize(q: np.ndarray) -> np.ndarray:
    """Return q normalized to length 1; a quaternion near zero becomes the identity, as in
    MuJoCo."""
    norm = np.sqrt(np.sum(q * q, axis=-1, keepdims=True))
    scale = np.where((norm < MINVAL) | (np.abs(norm - 1.0) <= MIN_QUAT_NORM), 1.0, norm)
    return np.where(norm < MINVAL, IDENTITY, q / scale)


def quat_about_axis(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation by `angle` [rad] about a unit axis (3,)."""
    return np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis])


def quat_to_rotation_vector(q: np.ndarray) -> np.ndarray:
    """Return the rotation vectors (..., 3), axis times angle in (-pi, pi], of unit quaternions."""
    norm = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(norm, q[..., :1])
    angle = np.where(angle > np.pi, angle - 2.0 * np.pi, angle)
    return q[..., 1:] * angle / np.where(norm < MINVAL, 1.0, norm)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products (..., 3); several times faster than np.cross on few vectors."""
    return _join_components(*_cross(*_split_components(a), *_split_components(b)))


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


def _cross(ax, ay, az, bx, by, bz) -> tuple:
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
