"""Vertex normals from the faces around each vertex."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.triangles import area_vectors, gather, lengths, units
from jaxsim.enums import MINVAL

_SHARP = 0.8  # cosine of the smallest angle of a sharp edge, as in MuJoCo
# normal of a vertex whose face normals cancel, or are all excluded
_UNDECIDED = np.array([0.0, 0.0, 1.0])
_SHORTEST = MINVAL  # smallest length of a normal with a direction


def vertex_normals(vertex: np.ndarray, face: np.ndarray, smooth: bool) -> np.ndarray:
    """Return the area-weighted mean of the face normals at each vertex, (nvert, 3).

    Unless `smooth`, faces whose normals deviate from the mean by more than the sharp angle are
    excluded, so that edges stay sharp.
    """
    weighted = area_vectors(vertex, face)
    at_corner = np.repeat(weighted[:, None], 3, axis=1)
    total = gather(face, at_corner, len(vertex))
    if not smooth:
        mean = units(total)
        along = np.einsum("fki,fi->fk", mean[face], units(weighted))
        total = gather(face, at_corner * (along >= _SHARP)[:, :, None], len(vertex))
    return decided(total)


def decided(normal: np.ndarray, shortest: float = _SHORTEST) -> np.ndarray:
    """Return the normals (n, 3) scaled to norm 1; degenerate ones become the z axis."""
    length = lengths(normal)
    return np.where(length[:, None] >= shortest, units(normal, length), _UNDECIDED)
