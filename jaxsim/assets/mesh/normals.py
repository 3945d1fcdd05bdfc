"""Vertex normals from the faces around each vertex."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.triangles import area_vectors, normalize_rows, row_norms, sum_at_vertices
from jaxsim.enums import MINVAL

_SHARP_COSINE = 0.8  # cosine of the smallest angle of a sharp edge, as in MuJoCo
# normal of a vertex whose face normals cancel, or are all excluded
_DEFAULT_NORMAL = np.array([0.0, 0.0, 1.0])
_MIN_NORMAL_LENGTH = MINVAL  # smallest length of a normal with a direction


def vertex_normals(vertex: np.ndarray, face: np.ndarray, smooth: bool) -> np.ndarray:
    """Return the area-weighted mean of the face normals at each vertex, (nvert, 3).

    Unless `smooth`, faces whose normals deviate from the mean by more than the sharp angle are
    excluded, so that edges stay sharp.
    """
    weighted = area_vectors(vertex, face)
    at_corner = np.repeat(weighted[:, None], 3, axis=1)
    total = sum_at_vertices(face, at_corner, len(vertex))
    if not smooth:
        mean = normalize_rows(total)
        along = np.einsum("fki,fi->fk", mean[face], normalize_rows(weighted))
        total = sum_at_vertices(face, at_corner * (along >= _SHARP_COSINE)[:, :, None], len(vertex))
    return normalize_or_z(total)


def normalize_or_z(normal: np.ndarray, shortest: float = _MIN_NORMAL_LENGTH) -> np.ndarray:
    """Return the normals (n, 3) scaled to norm 1; degenerate ones become the z axis."""
    length = row_norms(normal)
    return np.where(length[:, None] >= shortest, normalize_rows(normal, length), _DEFAULT_NORMAL)
