"""Rotation matrices of the two orientation formats of URDF, rpy and axis, in numpy."""

from __future__ import annotations

import numpy as np


def from_rpy(rpy: np.ndarray) -> np.ndarray:
    """Return the rotation of roll, pitch and yaw [rad] about the fixed axes x, y, z, in this order;
    (3, 3)."""
    R = np.eye(3)
    for axis, angle in enumerate(rpy):
        R = rotation_about_axis(np.eye(3)[axis], float(angle)) @ R
    return R


def rotation_to_axis(axis: np.ndarray) -> np.ndarray:
    """Return the smallest rotation that takes z to the direction of an axis; a half rotation is
    about x."""
    across = np.array([-axis[1], axis[0], 0.0])
    sine = float(np.linalg.norm(across))
    across = across / sine if sine > 0 else np.array([1.0, 0.0, 0.0])
    return rotation_about_axis(across, float(np.arctan2(sine, axis[2])))


def rotation_about_axis(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return the rotation about a unit axis (Rodrigues' formula), (3, 3)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * (K @ K)
