"""Marching cubes: the zero level set of a function sampled on a lattice.

The method is that of W. Lorensen and H. Cline, Marching Cubes, 1987.

Every edge of the lattice with a sign change has a vertex, at the zero of the linear interpolant,
and every cube has the triangles of its case. Vertices and triangles are in the order in which cubes
are visited, along x first, then y, then z; within a cube edges are ordered by number. Everything is
in single precision, as in MarchingCubeCpp (A. Paris), the library that MuJoCo uses.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.sdf.cube_cases import COUNT, TRIANGLES
from jaxsim.math.quaternion import cross_arrays

_EDGES = 12
# Offsets of the edges of a cube, (12, 3), in the order of `cube_cases`.
_ORIGIN = np.array([np.insert([i % 2, i // 2], axis, 0) for axis in range(3) for i in range(4)])


def marching_cubes(field: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the surface between negative and nonnegative values.

    Args:
      field: values on the lattice, (nz, ny, nx), in single precision.

    Returns:
      The vertices in units of the lattice (nvert, 3), float32; the faces (nface, 3),
        counter-clockwise as seen from the positive side; and unit normals of the vertices (nvert,
        3), float32, which are zero where all adjacent faces are degenerate.
    """
    inside = field < 0
    axis, at = _cut_edges(inside)
    vertex = _edge_zeros(field, axis, at)
    number = np.empty((3, *field.shape), np.int32)
    number[axis, at[:, 2], at[:, 1], at[:, 0]] = np.arange(len(at))
    face = _faces(inside, number)
    return vertex, face, _normals(vertex, face)


def _cut_edges(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges with a sign change: their axes (n,), and their lower ends (n, 3)."""
    cut = np.zeros((3, *inside.shape), bool)
    cut[0, :, :, :-1] = inside[:, :, :-1] != inside[:, :, 1:]
    cut[1, :, :-1, :] = inside[:, :-1, :] != inside[:, 1:, :]
    cut[2, :-1, :, :] = inside[:-1, :, :] != inside[1:, :, :]
    axis, k, j, i = np.nonzero(cut)
    at = np.stack([i, j, k], axis=1)

    # The first cube that contains an edge lies before it, unless the lattice ends there.
    before = at > 0
    before[np.arange(len(at)), axis] = False
    _, ny, nx = inside.shape
    cube = (at - before) @ np.array([1, nx, nx * ny])
    others = np.array([[1, 2], [0, 2], [0, 1]])[axis]
    low, high = np.take_along_axis(before, others, axis=1).T
    order = np.argsort(cube * _EDGES + 4 * axis + low + 2 * high)
    return axis[order], at[order]


def _edge_zeros(field: np.ndarray, axis: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the zeros of the linear interpolants along edges, (n, 3), in units of the lattice."""
    start = field[at[:, 2], at[:, 1], at[:, 0]]
    beyond = at.copy()
    beyond[np.arange(len(at)), axis] += 1
    end = field[beyond[:, 2], beyond[:, 1], beyond[:, 0]]
    vertex = at.astype(np.float32)
    vertex[np.arange(len(at)), axis] += start / (start - end)
    return vertex


def _faces(inside: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return the triangles of all cubes, by the indices of the vertices on their edges, (nface,
    3)."""
    nz, ny, nx = inside.shape
    case = np.zeros((nz - 1, ny - 1, nx - 1), np.uint8)
    for corner in range(8):
        x, y, z = corner & 1, corner >> 1 & 1, corner >> 2
        part = inside[z : nz - 1 + z, y : ny - 1 + y, x : nx - 1 + x]
        case |= part.astype(np.uint8) << corner
    k, j, i = np.nonzero((case > 0) & (case < 255))
    case = case[k, j, i]

    # Row by row: the cube of a triangle, and its index among the cube's triangles.
    count = COUNT[case]
    cube = np.repeat(np.arange(len(case)), count)
    index_in_cube = np.arange(len(cube)) - np.repeat(np.cumsum(count) - count, count)
    edges = TRIANGLES[case[cube], index_in_cube]

    # Constant offset of each edge of a cube in the array of vertex indices.
    steps = _ORIGIN @ np.array([1, nx, nx * ny]) + np.arange(_EDGES) // 4 * inside.size
    corner = (k * ny + j) * nx + i
    return number.ravel()[corner[cube][:, None] + steps[edges]]


def _normals(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return the area-weighted unit normals of the vertices."""
    a, b, c = (vertex[face[:, corner]] for corner in range(3))
    weighted = cross_arrays(c - b, a - b)
    total = np.zeros_like(vertex)
    for i in range(3):  # sequentially, because sums in single precision depend on the order
        np.add.at(total[:, i], face.ravel(), np.repeat(weighted[:, i], 3))
    length = np.sqrt(total[:, 0] ** 2 + total[:, 1] ** 2 + total[:, 2] ** 2)[:, None]
    return np.divide(total, length, out=np.zeros_like(total), where=length > 0)
