"""Signed distance of points from a triangle surface: negative inside.

The sign is given by a pseudonormal at the closest point. At an edge it is the sum of the unit
normals of the adjacent faces, at a vertex it is weighted by their angles: a point is outside if it
is in front, for any angles between the faces (J. A. Baerentzen and H. Aanaes, "Signed distance
computation using the angle weighted pseudonormal", IEEE TVCG 11(3), 2005). If coincident faces
share no vertices, the one that the point is most clearly in front of or behind decides.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.mesh.boxes import BoundingBoxTree
from jaxsim.assets.mesh.closest_point import CORNERS, EDGES, INSIDE, NFEATURE
from jaxsim.assets.mesh.triangles import (
    area_vectors,
    corners,
    normalize_rows,
    row_norms,
    sum_at_vertices,
)


class SurfaceDistance:
    """Distance from a surface of vertices (nvert, 3) [m] and faces (nface, 3) seen from outside."""

    def __init__(self, vertex: np.ndarray, face: np.ndarray):
        self._boxes = BoundingBoxTree(vertex[face])
        self._normal = feature_normals(vertex, face)

    def __call__(self, point: np.ndarray) -> np.ndarray:
        """Return signed distances [m] of points (k, 3), (k,)."""
        distance = np.zeros(len(point))
        for part, found in self._boxes.closest(point):
            normal = self._normal[found.which, found.feature]
            ahead = np.einsum("ki,ki->k", found.offset, normal)
            order = np.lexsort((found.which, -np.abs(ahead), found.row))
            first = order[np.searchsorted(found.row, np.arange(part.stop - part.start))]
            sign = np.where(ahead[first] < 0, -1.0, 1.0)  # in the plane of a flat surface: outside
            distance[part] = sign * row_norms(found.offset[first])
        return distance


def feature_normals(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return the unit normals at the features of every face, (nface, 7, 3)."""
    normal = normalize_rows(area_vectors(vertex, face))
    out = np.empty((len(face), NFEATURE, 3))
    out[:, CORNERS] = _vertex_normals(vertex, face, normal)[face]
    out[:, EDGES] = _edge_normals(face, normal)
    out[:, INSIDE] = normal
    return normalize_rows(out.reshape(-1, 3)).reshape(out.shape)


def _vertex_normals(vertex: np.ndarray, face: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the angle-weighted sums of face normals at each vertex, (nvert, 3)."""
    corner = np.stack(corners(vertex, face), axis=1)
    ahead = normalize_rows((np.roll(corner, -1, axis=1) - corner).reshape(-1, 3))
    behind = normalize_rows((np.roll(corner, 1, axis=1) - corner).reshape(-1, 3))
    cosine = np.einsum("ki,ki->k", ahead, behind)
    angle = np.arccos(np.clip(cosine, -1, 1)).reshape(-1, 3)
    return sum_at_vertices(face, angle[:, :, None] * normal[:, None], len(vertex))


def _edge_normals(face: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the sums of the normals of the two faces at each edge of each face, (nface, 3, 3)."""
    ends = np.sort(np.stack([face, np.roll(face, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    code = ends[:, 0].astype(np.int64) * (int(face.max()) + 1) + ends[:, 1]
    _, edge = np.unique(code, return_inverse=True)
    total = sum_at_vertices(
        edge.reshape(-1, 3), np.repeat(normal[:, None], 3, axis=1), int(edge.max()) + 1
    )
    return total[edge].reshape(-1, 3, 3)
