"""Vectorized operations on the corners and faces of a triangle mesh."""

from __future__ import annotations

import numpy as np

from jaxsim.math.quaternion import cross_arrays


def corners(vertex: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first, second and third corner of every face, (nface, 3) each."""
    return vertex[face[:, 0]], vertex[face[:, 1]], vertex[face[:, 2]]


def centers(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return the centroid of every face, (nface, 3)."""
    a, b, c = corners(vertex, face)
    return (a + b + c) / 3


def area_vectors(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return the face normals with the areas as their lengths; outward for counter-clockwise
    faces."""
    a, b, c = corners(vertex, face)
    return 0.5 * cross_arrays(b - a, c - a)


def sum_in_order(x: np.ndarray) -> np.ndarray:
    """Return the sequential sum over the first axis, with the rounding of a loop, unlike
    `np.sum`."""
    return np.cumsum(x, axis=0)[-1]


def row_norms(v: np.ndarray) -> np.ndarray:
    """Return the norms of vectors (n, 3)."""
    return np.sqrt(np.einsum("ni,ni->n", v, v))


def normalize_rows(v: np.ndarray, length: np.ndarray | None = None) -> np.ndarray:
    """Return the vectors (n, 3) scaled to norm 1; zero vectors stay zero."""
    length = row_norms(v) if length is None else length
    return v / np.where(length > 0, length, 1.0)[:, None]


def sum_at_vertices(face: np.ndarray, values: np.ndarray, nvert: int) -> np.ndarray:
    """Return the sums at every vertex, (nvert, 3), of vectors at the face corners, (nface, 3,
    3)."""
    where = face.ravel()
    flat = values.reshape(-1, 3)
    return np.stack([np.bincount(where, flat[:, i], nvert) for i in range(3)], axis=1)
