"""Quaternions in numpy for the compiler: (w, x, y, z), over any leading axes.

The physics has its own in `math/rotation.py`, in jax; the compiler does not import jax.
"""

from __future__ import annotations

import numpy as np

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])

# A length this near to 1 is taken for 1, as in MuJoCo: unit vectors come through bit for bit.
NEARLY = 1e-14


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The product p q: first the rotation q, then p; (..., 4)."""
    pw, pv = p[..., :1], p[..., 1:]
    qw, qv = q[..., :1], q[..., 1:]
    w = pw * qw - np.sum(pv * qv, axis=-1, keepdims=True)
    return np.concatenate([w, pw * qv + qw * pv + _cross(pv, qv)], axis=-1)


def conjugate(q: np.ndarray) -> np.ndarray:
    """The inverse of a unit quaternion."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotates vectors (..., 3) by unit quaternions (..., 4)."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * _cross(u, v)
    return v + w * t + _cross(u, t)


def to_matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of unit quaternions; columns are the rotated axes."""
    w, x, y, z = np.moveaxis(np.asarray(q, dtype=np.float64), -1, 0)
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def normalize(q: np.ndarray) -> np.ndarray:
    """Scaled to norm 1; a quaternion near zero becomes the identity, as in MuJoCo."""
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    scale = np.where((norm < 1e-15) | (np.abs(norm - 1.0) <= NEARLY), 1.0, norm)
    return np.where(norm < 1e-15, IDENTITY, q / scale)


def about(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation by `angle` [rad] about a unit axis (3,)."""
    return np.concatenate([[np.cos(0.5 * angle)], np.sin(0.5 * angle) * axis])


def to_velocity(q: np.ndarray) -> np.ndarray:
    """Rotation vectors (..., 3), axis times angle in (-pi, pi], of unit quaternions."""
    norm = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(norm, q[..., :1])
    angle = np.where(angle > np.pi, angle - 2.0 * np.pi, angle)
    return q[..., 1:] * angle / np.where(norm < 1e-15, 1.0, norm)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products (..., 3); several times faster than np.cross on single vectors."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
