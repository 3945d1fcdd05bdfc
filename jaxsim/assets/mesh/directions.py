"""Directions as points of a cube map, divided into grid cells, and fans of slices about a point.

A direction d meets the cube [-1, 1]^3 on the face of its largest component, at the point (u, v):
the next two components, in cyclic order, divided by the size of the largest. Face 2k is where
component k is positive, 2k + 1 where it is negative. Because d is a positive multiple of (1, u, v),
a linear function of d has its extremes over a part of a face at the corners of that part.

A face is divided into r x r cells, numbered (face r + row) r + column; rows go along u. Around a
point of a face, its pole, the square is divided into four sides, and each of these into slices of
equal steps of the tangent: the analog of the cells of the cube, one dimension lower.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CUBE_FACES = 6
FAN_SLICES = 64  # slices of a fan, a quarter of them on each side
ENLARGEMENT = (
    1e-4  # by how much of its size a part is enlarged: far above the rounding of single precision
)
POLE_UNIT = 2.0**-24  # poles are multiples of this, exactly representable in single precision
_OUTSIDE_DEPTH = 1e-7  # depth of a slice that lies outside the cell


class CubeCells(NamedTuple):
    """Cells of a grid.

    Attributes:
      face: (n,).
      u, v: their centers, (n,).
      half: half of their side, enlarged.
    """

    face: np.ndarray
    u: np.ndarray
    v: np.ndarray
    half: float


def cube_cells(number: np.ndarray, r: int) -> CubeCells:
    """Return the cells with these numbers on a cube with r x r cells per face."""
    row_of_cells, column = np.divmod(number, r)
    face, row = np.divmod(row_of_cells, r)
    return CubeCells(face, (2 * row + 1) / r - 1, (2 * column + 1) / r - 1, (1 + ENLARGEMENT) / r)


def quarter_cells(number: np.ndarray, r: int) -> np.ndarray:
    """Return the four cells of the 2r x 2r grid that each cell is divided into, (4 n,)."""
    row_of_cells, column = np.divmod(number, r)
    first = 4 * r * row_of_cells + 2 * column
    return (first[:, None] + np.array([0, 1, 2 * r, 2 * r + 1])).ravel()


def face_components(vector: np.ndarray) -> np.ndarray:
    """Return vectors (n, 3) in the frame of each face, (6, n, 3): components outward, along u,
    along v."""
    seen = [vector[:, [k, (k + 1) % 3, (k + 2) % 3]] for k in range(3)]
    return np.stack([s * [sign, 1, 1] for s in seen for sign in (1, -1)])


def corner_products(seen: np.ndarray, c: CubeCells) -> np.ndarray:
    """Return the products of vectors with the corners of cells.

    Args:
      seen: vectors in the frames of the faces of the cells, (n, k, 3).
      c: n cells.

    Returns:
      (4, n, k).
    """
    out, along_u, along_v = np.moveaxis(seen, -1, 0)
    middle = out + along_u * c.u[:, None] + along_v * c.v[:, None]
    du, dv = c.half * along_u, c.half * along_v
    return np.stack([middle - du - dv, middle - du + dv, middle + du - dv, middle + du + dv])


class Vectors(NamedTuple):
    """Vectors in the frames of faces: components outward, along u and along v, each (n,), and the
    1-norm of the latter two."""

    out: np.ndarray
    u: np.ndarray
    v: np.ndarray
    beside: np.ndarray

    @classmethod
    def of(cls, seen: np.ndarray) -> Vectors:
        """Return vectors (n, 3), component by component."""
        out, u, v = np.ascontiguousarray(seen.T)
        return cls(out, u, v, np.abs(u) + np.abs(v))


def max_corner_product(
    vectors: Vectors, which: np.ndarray, u: np.ndarray, v: np.ndarray, half: float
) -> np.ndarray:
    """Return the largest product of each vector with a corner of its cell about (u, v), (n,)."""
    middle = vectors.out[which] + vectors.u[which] * u + vectors.v[which] * v
    return middle + half * vectors.beside[which]


def slices(pole: np.ndarray, c: CubeCells) -> np.ndarray:
    """Return the corners (1, u, v) of the slices of a fan, each up to the border of its cell.

    Args:
      pole: (u, v).
      c: one cell.

    Returns:
      (FAN_SLICES, 3 corners, 3). Sides in the order +u, -u, +v, -v; then along the other axis.
    """
    on_side = FAN_SLICES // 4
    axis, side = np.divmod(np.repeat(np.arange(4), on_side), 2)
    sign = 1 - 2 * side
    middle = np.array([c.u[0], c.v[0]])
    depth = np.maximum(c.half + sign * (middle - pole)[axis], _OUTSIDE_DEPTH)
    low = np.tile(2 * np.arange(on_side) / on_side - 1, 4) - ENLARGEMENT
    high = low + 2 / on_side + 2 * ENLARGEMENT

    corner = np.empty((FAN_SLICES, 3, 3))
    corner[..., 0] = 1
    corner[..., 1:] = pole
    which = np.arange(FAN_SLICES)
    for k, tangent in ((1, low), (2, high)):
        corner[which, k, 1 + axis] += sign * depth
        corner[which, k, 2 - axis] += depth * tangent
    return corner
