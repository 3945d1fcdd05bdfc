"""Inside test for surfaces of triangles by winding numbers, also for surfaces with holes.

The winding number of a surface around a point is the sum of the solid angles of its triangles over
4 pi: 1 inside a closed surface and 0 outside; with holes it varies smoothly, and one half is the
border. Solid angles follow van Oosterom and Strackee, "The solid angle of a plane triangle", 1983.
"""

from __future__ import annotations

import numpy as np

_INSIDE_THRESHOLD = 0.5 - 1e-9  # a point on the surface is inside
_TOUCH_DEPTH = 1e-9  # depth up to which overlapping bodies count as separate
_CHUNK = 1 << 17  # pairs of a point and a triangle at once


def is_closed(triangle: np.ndarray) -> bool:
    """Return whether triangles (n, 3) of vertex ids have each edge once in each direction."""
    edge = triangle[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    forward = np.sort(edge[:, 0] * (triangle.max() + 1) + edge[:, 1])
    backward = np.sort(edge[:, 1] * (triangle.max() + 1) + edge[:, 0])
    return bool(np.array_equal(forward, backward) and np.all(np.diff(forward) > 0))


def cube_samples(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss points of the octants of a unit cube, n along each axis of an octant.

    Returns:
      Positions (nsample, 3), and their weights (nsample,).
    """
    node, weight = np.polynomial.legendre.leggauss(n)
    node = np.concatenate([0.25 * (node + 1), 0.25 * (node + 1) + 0.5])
    weight = np.tile(0.25 * weight, 2)
    gauss_points = np.stack(np.meshgrid(node, node, node, indexing="ij"), axis=-1).reshape(-1, 3)
    return gauss_points, np.einsum("i,j,k->ijk", weight, weight, weight).ravel()


def cut_cells(triangle: np.ndarray, cell: np.ndarray, cellcount: np.ndarray) -> np.ndarray:
    """Return a mask of unit cubes, with lower corners (m, 3), that triangles (n, 3, 3) cut, (m,).

    Separating axis theorem: two convex bodies are separate if their projections on a face normal or
    on a product of edges are. A triangle that only touches a cube does not cut it, except along an
    axis with a single cube, where nothing is outside of the lattice: there the walls are cut.
    """
    found = np.zeros(len(cell), bool)
    edge = np.roll(triangle, -1, axis=1) - triangle
    products = np.cross(edge[:, :, None], np.eye(3)).reshape(len(triangle), 9, 3)
    normal = np.cross(edge[:, 0], edge[:, 1])[:, None]
    box = np.broadcast_to(np.eye(3), (len(triangle), 3, 3))
    axis = np.concatenate([box, normal, products], axis=1)
    shadow = np.einsum("nck,nak->nac", triangle, axis)
    low, high = shadow.min(axis=2), shadow.max(axis=2)
    reach = 0.5 * np.abs(axis).sum(axis=2)
    size = np.linalg.norm(axis, axis=2)
    along_single = np.any(
        (np.abs(axis) > (1 - _TOUCH_DEPTH) * size[:, :, None]) & (cellcount == 1), axis=2
    )
    tells = (size > _TOUCH_DEPTH) & ~along_single  # a product of parallel edges is zero
    slack = _TOUCH_DEPTH * size
    for i, corner in enumerate(cell):
        middle = axis @ (corner + 0.5)
        apart = (low - middle >= reach - slack) | (middle - high >= reach - slack)
        found[i] = not np.all(np.any(apart & tells, axis=1))
    return found


def is_inside(point: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Return whether triangles (n, 3, 3) enclose points (m, 3), (m,)."""
    return np.abs(winding_number(point, triangle)) >= _INSIDE_THRESHOLD


def winding_number(point: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Return the winding number of triangles (n, 3, 3) around points (m, 3), (m,).

    Products of the vectors from points to corners are expanded into matrix products of points by
    corners.
    """
    total = np.zeros(len(point))
    corner = np.moveaxis(triangle, 1, 0)  # (3, n, 3)
    after = np.roll(corner, -1, axis=0)
    volume = np.sum(corner[0] * np.cross(corner[1], corner[2]), axis=1)
    area = np.cross(corner, after).sum(axis=0)
    square, cosine = np.sum(corner * corner, axis=2), np.sum(corner * after, axis=2)
    step = max(1, _CHUNK // max(1, len(triangle)))
    for start in range(0, len(point), step):
        p = point[start : start + step]
        own = np.sum(p * p, axis=1, keepdims=True)
        near = [p @ c.T for c in corner]
        length = [
            np.sqrt(np.maximum(q - 2 * n + own, 0)) for q, n in zip(square, near, strict=True)
        ]
        dots = [cosine[k] - near[k] - near[(k + 1) % 3] + own for k in range(3)]
        top = volume - p @ area.T
        bottom = length[0] * length[1] * length[2] + dots[0] * length[2]
        bottom += dots[1] * length[0] + dots[2] * length[1]
        total[start : start + step] = np.arctan2(top, bottom).sum(axis=1)
    return total / (2 * np.pi)
