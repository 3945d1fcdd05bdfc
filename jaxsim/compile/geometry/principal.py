"""Principal axes of a symmetric 3x3 tensor by Jacobi rotations, as a quaternion.

Each rotation eliminates the largest off-diagonal entry by the smaller of its two angles (Golub and
Van Loan, *Matrix Computations*, 8.5). Moments are in descending order. Axes of a tensor are unique
only up to sign and, for equal moments, up to a rotation; this sequence of rotations from the given
axes, followed by reordering with quarter rotations, gives the same frame as MuJoCo.
"""

from __future__ import annotations

import numpy as np

from jaxsim.enums import MINVAL
from jaxsim.math.quaternion import (
    IDENTITY,
    quat_multiply,
    quat_normalize,
    quat_to_matrix,
)

_CONVERGED = MINVAL  # convergence tolerance of off-diagonal entries, relative to the largest entry
_MAX_ROTATIONS = 500


def principal_axes(
    tensor: np.ndarray, converged: float = _CONVERGED
) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal moments in descending order, (3,), and the quaternion of their frame,
    (4,).

    The columns of the rotation matrix R are the axes: tensor = R diag(moments) R^T.

    Args:
      tensor: symmetric, (3, 3).
      converged: off-diagonal entries that count as zero, relative to the largest entry.
    """
    quat, D = IDENTITY.copy(), tensor
    tolerance = converged * np.abs(tensor).max()
    for _ in range(_MAX_ROTATIONS):
        row, column = max(((1, 2), (0, 2), (0, 1)), key=lambda pair: abs(D[pair]))
        if abs(D[row, column]) <= tolerance:
            break
        # The smaller rotation in the plane of row and column that eliminates their entry.
        ratio = (D[column, column] - D[row, row]) / (2 * D[row, column])
        tangent = (1 if ratio >= 0 else -1) / (abs(ratio) + np.hypot(1, ratio))
        axis = 3 - row - column
        angle = np.arctan(tangent if axis == 1 else -tangent)
        turn = np.zeros(4)
        turn[0], turn[1 + axis] = np.cos(angle / 2), np.sin(angle / 2)
        quat = quat_normalize(quat_multiply(quat, turn))
        R = quat_to_matrix(quat)
        D = R.T @ tensor @ R
    return _sort_descending(np.diag(D).copy(), quat, tolerance)


def _sort_descending(
    moments: np.ndarray, quat: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Exchange neighboring moments that ascend, each by a quarter rotation about the third axis."""
    for first in (0, 1, 0):
        second = first + 1
        if moments[first] + tolerance < moments[second]:
            moments[[first, second]] = moments[[second, first]]
            turn = np.array([np.sqrt(0.5), 0.0, 0.0, 0.0])
            turn[1 + (first + 2) % 3] = np.sqrt(0.5)
            quat = quat_normalize(quat_multiply(quat, turn))
    return moments, quat
