"""Modes of cells and walls that a strain constraint limits: eigenvectors of their stiffness.

They are computed by Jacobi's cyclic rotations (Golub and Van Loan, "Matrix Computations", section
8.5), so they are in the order of the diagonal, as in MuJoCo. For equal eigenvalues, as those of a
cube, rounding determines the directions.
"""

from __future__ import annotations

import numpy as np

from jaxsim.enums import MINVAL

_SWEEPS = 200
_TOLERANCE = 1e-12  # root of the sum of squares off the diagonal
_MIN_ROTATED_ENTRY = MINVAL  # an entry that needs no rotation
_RIGID_TOLERANCE = 1e-8  # eigenvalues below this, relative to the largest, are rigid motions


def packed_modes(stiffness: np.ndarray, more: np.ndarray | None = None) -> np.ndarray:
    """Pack the modes of one cell or wall in as many numbers as its matrix has.

    The number of modes comes first, then the modes.

    Args:
      stiffness: minus the stiffness, (n, n).
      more: a mode to be added, (n,).
    """
    modes = _modes(stiffness)
    if more is not None and np.any(more):
        modes = np.concatenate([modes, more[None]])
    numbers = np.zeros(stiffness.size)
    numbers[0] = len(modes)
    numbers[1 : 1 + modes.size] = modes.ravel()
    return numbers


def _modes(stiffness: np.ndarray) -> np.ndarray:
    """Return eigenvectors times the root of their eigenvalues, (nmode, n); no rigid motions."""
    values, vectors = _jacobi(stiffness)
    kept = -values > _RIGID_TOLERANCE * np.abs(values).max(initial=0.0)
    modes: np.ndarray = (vectors[:, kept] * np.sqrt(-values[kept])).T
    return modes


def _jacobi(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues (n,) and eigenvectors, the columns of (n, n), of a symmetric matrix."""
    A, n = matrix.copy(), len(matrix)
    V = np.eye(n)
    for _ in range(_SWEEPS):
        if np.sum(np.square(np.triu(A, 1))) < _TOLERANCE**2:
            break
        for p in range(n):
            for q in range(p + 1, n):
                if abs(A[p, q]) >= _MIN_ROTATED_ENTRY:
                    _rotate(A, V, p, q)
    return np.diag(A).copy(), V


def _rotate(A: np.ndarray, V: np.ndarray, p: int, q: int) -> None:
    """Rotate two axes so that the entry between them becomes zero (Jacobi rotation)."""
    entry = float(A[p, q])
    tau = float(A[q, q] - A[p, p]) / (2.0 * entry)
    t = (1.0 if tau >= 0 else -1.0) / (abs(tau) + np.sqrt(1.0 + tau * tau))
    c = 1.0 / np.sqrt(1.0 + t * t)
    s = t * c
    diagonal = A[p, p] - t * entry, A[q, q] + t * entry
    at_p, at_q = c * A[p] - s * A[q], s * A[p] + c * A[q]
    A[p], A[:, p], A[q], A[:, q] = at_p, at_p, at_q, at_q
    A[p, p], A[q, q] = diagonal
    A[p, q] = A[q, p] = 0.0
    V[:, p], V[:, q] = c * V[:, p] - s * V[:, q], s * V[:, p] + c * V[:, q]
