"""Points and elements of shapes given by `count` and `spacing`.

They define built-in meshes and the flexes of `<flexcomp>`. Points of a grid are numbered with z
running fastest, then y, then x, and centered on the origin. A box has points on its surface only,
face by face; disc, cylinder and ellipsoid are a square or box whose points are moved inward along
their rays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxsim.enums import MINVAL


class LatticePoints(NamedTuple):
    """Points and elements of a flex, before placement.

    Attributes:
      dim: vertices of an element minus one.
      point: (npoint, 3) [m].
      element: (nelement, dim + 1) indices of points.
      texcoord: texture coordinates of the points, (npoint, 2), or None; any number of them with
        `corner`.
      corner: (nelement, dim + 1) texture coordinate indices of the elements' corners, or None.
    """

    dim: int
    point: np.ndarray
    element: np.ndarray
    texcoord: np.ndarray | None = None
    corner: np.ndarray | None = None


def lattice_grid(dim: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a line along x, a sheet of triangles in the xy plane, or a block of tetrahedra."""
    if dim == 1:
        return LatticePoints(1, _lattice(count[:1], spacing), _chain(count[0]))
    if dim == 2:
        return _sheet(count, spacing, flipped=False)
    return _block(count, spacing)


def lattice_square(_: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a sheet of triangles."""
    return _sheet(count, spacing, flipped=False)


def lattice_disc(_: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a sheet whose points are moved inward to an ellipse, with diagonals along the rays.

    As in MuJoCo, the points are scaled by the half lengths of the sheet [m] as well.
    """
    sheet = _sheet(count, spacing, flipped=True)
    half = 0.5 * spacing * (count - 1)
    drawn = sheet.point * _inward(sheet.point[:, :2])[:, None] * half
    return sheet._replace(point=drawn)


def lattice_circle(dim: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a closed line; the last point of the count coincides with the first."""
    if dim != 1:
        return lattice_grid(dim, count, spacing)
    n = int(count[0]) - 1
    if n < 3:
        return LatticePoints(1, np.zeros((0, 3)), np.zeros((0, 2), int))
    angle = 2 * np.pi * np.arange(n) / n
    radius = spacing[0] / (2 * np.sin(np.pi / n))
    point = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    start = np.arange(n)
    return LatticePoints(1, point, np.stack([start, (start + 1) % n], axis=1))


def lattice_box(dim: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return the surface of a box: a shell without lid, or tetrahedra that share the center."""
    shell = _Shell(count, spacing, lid=dim != 2, center=dim == 3)
    element = _chain(len(shell.point)) if dim == 1 else shell.elements(dim)
    return LatticePoints(dim, shell.point, element, shell.texcoord)


def lattice_cylinder(dim: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a box whose horizontal sections are deformed to ellipses."""
    points = lattice_box(dim, count, spacing)
    half = np.maximum(0.5 * spacing * (count - 1), _TINY)
    inward = _inward((points.point / half)[:, :2])[:, None]
    return points._replace(point=points.point * np.where([True, True, False], inward, 1.0))


def lattice_ellipsoid(dim: int, count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return a box whose surface is deformed to an ellipsoid."""
    points = lattice_box(dim, count, spacing)
    half = np.maximum(0.5 * spacing * (count - 1), _TINY)
    return points._replace(point=points.point * _inward(points.point / half)[:, None])


_TINY = MINVAL


def _inward(p: np.ndarray) -> np.ndarray:
    """Return the factors that map points of centered cubes to the inscribed spheres."""
    length = np.linalg.norm(p, axis=1)
    return np.where(length > 0, np.abs(p).max(axis=1), 1.0) / np.where(length > 0, length, 1.0)


def _lattice(count: np.ndarray, spacing: np.ndarray) -> np.ndarray:
    """Return the points of a centered lattice along the first axes, (n, 3)."""
    cells = np.indices(tuple(count)).reshape(len(count), -1).T
    point = np.zeros((len(cells), 3))
    point[:, : len(count)] = (cells - 0.5 * (count - 1)) * spacing[: len(count)]
    return point


def _chain(n: int) -> np.ndarray:
    start = np.arange(max(0, n - 1))
    return np.stack([start, start + 1], axis=1)


def _sheet(count: np.ndarray, spacing: np.ndarray, flipped: bool) -> LatticePoints:
    """Return a sheet with two triangles per square; `flipped`: the diagonals of two quadrants point
    inward."""
    nx, ny, nz = count
    ix, iy = np.indices((max(0, nx - 1), max(0, ny - 1))).reshape(2, -1)
    # MuJoCo numbers squares with the vertical count too, so that count must be 1.
    a, b = ix * ny * nz + iy * nz, (ix + 1) * ny * nz + iy * nz
    d, c = a + nz, b + nz
    plain = np.stack([a, b, c, a, c, d], axis=1)
    turned = np.stack([a, b, d, b, c, d], axis=1)
    inward = flipped & ((ix < nx // 2) != (iy < ny // 2))
    element = np.where(inward[:, None], turned, plain).reshape(-1, 3)
    texcoord = np.indices((nx, ny)).reshape(2, -1).T / np.maximum(count[:2] - 1, 1)
    return LatticePoints(2, _lattice(count[:2], spacing), element, texcoord)


# The six tetrahedra of a cube, by the offsets of their corners along x, y and z.
_CUBE = (
    ("000", "010", "100", "011"),
    ("000", "100", "001", "011"),
    ("100", "010", "110", "011"),
    ("100", "110", "111", "011"),
    ("100", "101", "001", "011"),
    ("100", "111", "101", "011"),
)


def _block(count: np.ndarray, spacing: np.ndarray) -> LatticePoints:
    """Return six tetrahedra for each cube of a lattice."""
    stride = np.array([count[1] * count[2], count[2], 1])
    cell = np.indices(tuple(np.maximum(count - 1, 0))).reshape(3, -1).T @ stride
    corner = np.array([[[int(digit) for digit in c] for c in tetra] for tetra in _CUBE]) @ stride
    element = (cell[:, None, None] + corner[None]).reshape(-1, 4)
    plane = np.indices(tuple(count)).reshape(3, -1).T[:, :2]
    texcoord = plane / np.maximum(count[:2] - 1, 1)
    return LatticePoints(3, _lattice(count, spacing), element, texcoord)


# Faces of a box in order: the normal axis, its end, the tangent axes, and the split of a square (a,
# b, c, d) into triangles with outward orientation; the first of each pair is the outer loop.
_FACES = (
    (2, 0, (0, 1), "acbadc"),
    (2, 1, (0, 1), "abcacd"),
    (1, 0, (0, 2), "abcacd"),
    (1, 1, (0, 2), "badbdc"),
    (0, 0, (1, 2), "badbdc"),
    (0, 1, (1, 2), "abcacd"),
)
_INTO_CENTER = "abcadc"  # the split where each triangle is joined to the center


class _Shell:
    """The points on the surface of a box, face by face, without duplicates; optionally the center
    first.

    Texture coordinates are positions on the first face that contains a point.
    """

    def __init__(self, count: np.ndarray, spacing: np.ndarray, lid: bool, center: bool):
        self.count, self.lid, self.center = count, lid, int(center)
        if np.any(count < 2):
            self.point, self.texcoord = np.zeros((0, 3)), np.zeros((0, 2))
            return
        self.index: dict[tuple[int, ...], int] = {}
        texcoord = []
        for axis, end, along, _ in self._faces():
            last = count[list(along)] - 1
            for lattice_index in np.ndindex(*(last + 1)):
                cell = self._cell(axis, end, along, lattice_index)
                if cell not in self.index:
                    self.index[cell] = len(self.index) + self.center
                    texcoord.append(lattice_index / last)
        point = (np.array(list(self.index)) - 0.5 * (count - 1)) * spacing
        self.point = np.concatenate([np.zeros((self.center, 3)), point])
        self.texcoord = np.concatenate([np.zeros((self.center, 2)), texcoord])

    def elements(self, dim: int) -> np.ndarray:
        """Return triangles with outward orientation, or tetrahedra with the center as the first
        point."""
        if np.any(self.count < 2):
            return np.zeros((0, dim + 1), int)
        found = []
        for axis, end, along, outward in self._faces():
            cut = outward if dim == 2 else _INTO_CENTER
            for i, j in np.ndindex(*(self.count[list(along)] - 1)):
                corner = {"a": (i, j), "b": (i + 1, j), "c": (i + 1, j + 1), "d": (i, j + 1)}
                ids = [self.index[self._cell(axis, end, along, corner[letter])] for letter in cut]
                found += [ids[:3], ids[3:]]
        triangles = np.array(found)
        if dim == 2:
            return triangles
        return np.concatenate([np.zeros((len(triangles), 1), int), triangles], axis=1)

    def _faces(self):
        return [face for face in _FACES if self.lid or face[:2] != (2, 1)]

    def _cell(self, axis: int, end: int, along: tuple[int, int], lattice_index) -> tuple[int, ...]:
        cell = [0, 0, 0]
        cell[axis] = int(self.count[axis] - 1) if end else 0
        cell[along[0]], cell[along[1]] = (int(p) for p in lattice_index)
        return tuple(cell)


_LatticeShape = Callable[[int, np.ndarray, np.ndarray], LatticePoints]

LATTICE_SHAPES: dict[str, _LatticeShape] = {
    "grid": lattice_grid,
    "square": lattice_square,
    "disc": lattice_disc,
    "circle": lattice_circle,
    "box": lattice_box,
    "cylinder": lattice_cylinder,
    "ellipsoid": lattice_ellipsoid,
}
