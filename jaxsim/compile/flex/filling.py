"""Integrals over the part of each cell of a lattice that a flex fills.

Tetrahedra are cut along the walls of the cells, so integrals of polynomials are exact, also those
over the inside of a closed surface. The inside of a surface with holes is sampled. The empty part
of a cell that is partly filled has a small density.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.flex.winding_number import cube_samples, cut_cells, is_closed, is_inside

_VOID_DENSITY = 1e-6  # density of the empty part of a partly filled cell
_CHUNK = 4096  # tetrahedra that are integrated at once

# Polynomials on [0, 1]: (...) -> (..., k).
Basis = Callable[[np.ndarray], np.ndarray]


def filling(
    points: LatticePoints,
    box: tuple[np.ndarray, np.ndarray],
    cellcount: np.ndarray,
    order: int,
    basis: Basis,
    degree: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate over the filled part of each cell, as a unit cube.

    Args:
      points: tetrahedra, or the triangles of a surface.
      box: lower and upper corner of the lattice, (3,) each.
      cellcount: cells along each axis, (3,).
      order: order of the interpolation; it sets the sampling density in a surface with holes.
      basis: polynomials along one axis; their products are integrated.
      degree: degree of the polynomials.

    Returns:
      (ncell, k^3), cells and products with z running fastest, and a mask (ncell,) of the cells that
      are not empty.
    """
    low, high = box
    unit = (points.point - low) / (high - low) * cellcount
    if points.dim == 2 and not is_closed(points.element):
        return _sample_enclosed(unit[points.element], cellcount, order, basis)
    tetra, sign = _tetrahedra(unit, points)
    content = _integrals(*_cut_at_cell_walls(tetra, sign, cellcount), cellcount, basis, degree)
    # The basis sums to 1, and its products to the volume.
    return content, np.abs(content.sum(axis=1)) > _VOID_DENSITY


def add_void_density(content: np.ndarray, full: np.ndarray) -> np.ndarray:
    """Add the small density of the empty part of cells to the integrals."""
    return (1 - _VOID_DENSITY) * content + _VOID_DENSITY * full


def _sample_enclosed(
    triangle: np.ndarray, cellcount: np.ndarray, order: int, basis: Basis
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate over the inside of an open surface, by sampling.

    A cell that it does not cut is empty if its center is outside.
    """
    cell = np.indices(tuple(cellcount)).reshape(3, -1).T
    kept = cut_cells(triangle, cell, cellcount) | is_inside(cell + 0.5, triangle)
    quad_point, weight = cube_samples(order + 1)
    N = basis(quad_point)
    value = np.einsum("q,qi,qj,qk->qijk", weight, N[:, 0], N[:, 1], N[:, 2])
    hit = np.zeros((len(cell), len(quad_point)))
    point = (cell[kept, None] + quad_point).reshape(-1, 3)
    hit[kept] = is_inside(point, triangle).reshape(-1, len(quad_point))
    return hit @ value.reshape(len(quad_point), -1), kept


def _tetrahedra(unit: np.ndarray, points: LatticePoints) -> tuple[np.ndarray, np.ndarray]:
    """Return tetrahedra that make up the inside, (n, 4, 3), and the sign of each, (n,).

    A surface is joined to the center of its box; outside of it the signed tetrahedra cancel.
    """
    corner = unit[points.element]
    if points.dim == 2:
        apex = np.broadcast_to(0.5 * (unit.min(axis=0) + unit.max(axis=0)), (len(corner), 1, 3))
        corner = np.concatenate([apex, corner], axis=1)
    volume = np.linalg.det(corner[:, 1:] - corner[:, :1])
    sign = np.ones(len(corner)) if points.dim == 3 else np.sign(volume)
    if points.dim == 2 and volume.sum() < 0:
        sign = -sign  # the surface is oriented inwards
    return corner, sign


def _cut_at_cell_walls(
    tetra: np.ndarray, sign: np.ndarray, cellcount: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Cut tetrahedra along the walls between cells."""
    for axis in range(3):
        for wall in range(1, int(cellcount[axis])):
            height = tetra[:, :, axis] - wall
            across = (height.min(axis=1) < 0) & (height.max(axis=1) > 0)
            if across.any():
                parts, of = _split_at_zero(tetra[across], height[across])
                tetra = np.concatenate([tetra[~across], parts])
                sign = np.concatenate([sign[~across], sign[across][of]])
    return tetra, sign


def _split_at_zero(tetra: np.ndarray, height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut tetrahedra in two where the height is zero.

    Returns:
      The parts (n, 4, 3), and the index of the tetrahedron that each is a part of.
    """
    order = np.argsort(height, axis=1)
    height = np.take_along_axis(height, order, axis=1)
    tetra = np.take_along_axis(tetra, order[:, :, None], axis=1)
    below = (height < 0).sum(axis=1)
    parts, of = [], []
    for n in (1, 2, 3):
        which = np.flatnonzero(below == n)
        if len(which):
            pieces = _PIECES[n](_Crossing(tetra[which], height[which]))
            parts += pieces
            of += [which] * len(pieces)
    return np.concatenate(parts), np.concatenate(of)


class _Crossing:
    """Tetrahedra with corners in order of height, and the points where edges cross zero."""

    def __init__(self, corner: np.ndarray, height: np.ndarray):
        self.corner, self.height = corner, height

    def __call__(self, i: int, j: int | None = None) -> np.ndarray:
        """Return corner i, or the point of zero height between corners i and j; (n, 3)."""
        if j is None:
            return self.corner[:, i]
        at = self.height[:, i] / (self.height[:, i] - self.height[:, j])
        return self.corner[:, i] + at[:, None] * (self.corner[:, j] - self.corner[:, i])


def _prism(lower: list[np.ndarray], upper: list[np.ndarray]) -> list[np.ndarray]:
    """Return three tetrahedra that fill the prism between two triangles."""
    a, b, c = lower
    d, e, f = upper
    return [np.stack(t, axis=1) for t in ((a, b, c, f), (a, b, f, e), (a, e, f, d))]


def _cut_one_below(p: _Crossing) -> list[np.ndarray]:
    cut = [p(0, 1), p(0, 2), p(0, 3)]
    return [np.stack([p(0), *cut], axis=1), *_prism(cut, [p(1), p(2), p(3)])]


def _cut_two_below(p: _Crossing) -> list[np.ndarray]:
    under = _prism([p(0), p(0, 2), p(0, 3)], [p(1), p(1, 2), p(1, 3)])
    return under + _prism([p(2), p(0, 2), p(1, 2)], [p(3), p(0, 3), p(1, 3)])


def _cut_three_below(p: _Crossing) -> list[np.ndarray]:
    cut = [p(0, 3), p(1, 3), p(2, 3)]
    return [np.stack([p(3), *cut], axis=1), *_prism(cut, [p(0), p(1), p(2)])]


_PIECES = {1: _cut_one_below, 2: _cut_two_below, 3: _cut_three_below}


def _integrals(
    tetra: np.ndarray, sign: np.ndarray, cellcount: np.ndarray, basis: Basis, degree: int
) -> np.ndarray:
    """Integrate products of the basis over the tetrahedra in each cell, (ncell, k^3)."""
    content = np.zeros((int(np.prod(cellcount)), len(basis(np.zeros(()))) ** 3))
    quad_point, weight = _tetrahedron_quadrature((3 * degree + 2) // 2)
    for start in range(0, len(tetra), _CHUNK):
        corner = tetra[start : start + _CHUNK]
        middle = corner.mean(axis=1)
        cell = np.clip(np.floor(middle).astype(int), 0, cellcount - 1)
        volume = np.abs(np.linalg.det(corner[:, 1:] - corner[:, :1])) * sign[start : start + _CHUNK]
        x = np.einsum("qc,ncd->nqd", quad_point, corner) - cell[:, None]
        N = basis(x)
        value = np.einsum(
            "q,nqi,nqj,nqk->nijk", weight, N[:, :, 0], N[:, :, 1], N[:, :, 2], optimize=True
        )
        index = np.ravel_multi_index(tuple(cell.T), tuple(cellcount))
        np.add.at(content, index, volume[:, None] * value.reshape(len(corner), -1))
    return content


def _tetrahedron_quadrature(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a quadrature of a tetrahedron, exact to degree 2n - 1: products of Gauss-Jacobi rules.

    Stroud, Approximate Calculation of Multiple Integrals, section 2.5.

    Returns:
      Barycentric coordinates (n^3, 4), and weights (n^3,) for a determinant of 1, with the sum 1/6.
    """
    from scipy.special import roots_jacobi  # imported here, as it is slow and few models need it

    rules = [roots_jacobi(n, power, 0) for power in (2, 1, 0)]
    a, b, c = (0.5 * (1 + nodes) for nodes, _ in rules)
    wa, wb, wc = (
        weights / 2.0 ** (power + 1) for (_, weights), power in zip(rules, (2, 1, 0), strict=True)
    )
    x, y, z = (grid.ravel() for grid in np.meshgrid(a, b, c, indexing="ij"))
    weight = np.einsum("i,j,k->ijk", wa, wb, wc).ravel()
    quad_point = np.stack([x, y * (1 - x), z * (1 - x) * (1 - y)], axis=1)
    return np.concatenate([1 - quad_point.sum(axis=1, keepdims=True), quad_point], axis=1), weight
