"""Vertex normals from the faces around each vertex."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.triangles import area_vectors, gather, lengths, units
from jaxsim.enums import MINVAL

_SHARP = 0.8  # cosine of the angle from which on an edge is sharp, the oracle's
_UNDECIDED = np.array([0.0, 0.0, 1.0])  # normal of a vertex whose faces cancel, or all differ
_SHORTEST = MINVAL  # length from which on a normal has a direction


def vertex_normals(vertex: np.ndarray, face: np.ndarray, smooth: bool) -> np.ndarray:
    """Return the means of the normals of the faces at a vertex, weighted by area, (nvert, 3).

    Unless `smooth`, faces that turn away from the mean of all by more than the sharp angle are left
    out, so that an edge stays an edge.
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
    """Return the normals (n, 3) scaled to norm 1; the z axis stands for those without direction."""
    length = lengths(normal)
    return np.where(length[:, None] >= shortest, units(normal, length), _UNDECIDED)
