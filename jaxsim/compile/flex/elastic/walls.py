"""Elasticity of interpolated shells, whose material is in the walls of the lattice.

A wall element is one side of a cell on the boundary of the lattice, given by its axis, whether it
is on the upper side, and its cell. It resists stretching like a flat membrane in plane stress, and
bending at the four edges that it shares with its neighbors, on the same wall or around a corner.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxsim.compile.flex.elastic.lattice import lagrange
from jaxsim.compile.flex.flex import Flex

_BEND_RECORD = 10  # slots of an edge: two elements, the position in each, stiffness, fold at rest


class Wall(NamedTuple):
    """One wall element: its normal axis, 0 or 1 for its side, and its cell."""

    axis: int
    side: int
    cell: tuple[int, ...]


def walls(cellcount: np.ndarray) -> list[Wall]:
    """Return all wall elements, by ascending id."""
    found = []
    for axis in range(3):
        for side in (0, 1):
            slow, fast = _plane(axis)
            for i, j in np.ndindex(cellcount[slow], cellcount[fast]):
                cell = np.zeros(3, int)
                cell[[axis, slow, fast]] = side * (cellcount[axis] - 1), i, j
                found.append(Wall(axis, side, tuple(int(k) for k in cell)))
    return found


def _plane(axis: int) -> tuple[int, int]:
    """Return the two axes in a wall, the slow one of its nodes first."""
    return (axis + 1) % 3, (axis + 2) % 3


def cell_size(f: Flex) -> np.ndarray:
    """Return the sides of a cell of the lattice [m], (3,)."""
    size: np.ndarray = (f.node_place.max(axis=0) - f.node_place.min(axis=0)) / f.cellcount
    return size


# --- stretching ---


def membrane_stiffness(f: Flex, mu: float, lam: float, thickness: float) -> np.ndarray:
    """Return minus the stiffness of each wall element, (nwall, 3 nlocal, 3 nlocal).

    K[a i, b j] = t * integral of  lam d_i N_a d_j N_b + mu (d_j N_a d_i N_b + delta_ij grad . grad)
    with i and j in the wall: a membrane does not resist displacements out of its plane.

    Args:
      f: the flex.
      mu, lam: Lame's parameters of plane stress [Pa].
      thickness: t [m].
    """
    size = cell_size(f)
    by_axis = [_membrane(axis, size, f.order, mu, lam) for axis in range(3)]
    return np.array([-thickness * by_axis[wall.axis] for wall in walls(f.cellcount)])


def _membrane(axis: int, size: np.ndarray, order: int, mu: float, lam: float) -> np.ndarray:
    """Return the stiffness of a wall of unit thickness, (3 nlocal, 3 nlocal)."""
    plane = _plane(axis)
    place, weight = np.polynomial.legendre.leggauss(order + 1)
    N, D = lagrange(np.linspace(0.0, 1.0, order + 1), 0.5 * (place + 1))
    grad = np.stack([np.einsum("pi,qj->pqij", D, N), np.einsum("pi,qj->pqij", N, D)], axis=-1)
    grad = grad.reshape(len(place) ** 2, -1, 2) / size[list(plane)]
    area = 0.25 * np.outer(weight, weight).ravel() * np.prod(size[list(plane)])
    K = lam * np.einsum("q,qai,qbj->aibj", area, grad, grad)
    K += mu * np.einsum("q,qaj,qbi->aibj", area, grad, grad)
    K += mu * np.einsum("q,qak,qbk,ij->aibj", area, grad, grad, np.eye(2))
    full = np.zeros((grad.shape[1], 3, grad.shape[1], 3))
    full[np.ix_(range(len(full)), plane, range(len(full)), plane)] = K
    return full.reshape(3 * len(full), -1)


def plate_rigidity(young: float, poisson: float, thickness: float) -> float:
    """Return the bending moment per curvature and width of a plate [N m]; infinite on overflow."""
    return young * thickness * thickness * thickness / (12 * (1 - poisson * poisson))


def warp_mode(f: Flex, wall: Wall, young: float, poisson: float, thickness: float) -> np.ndarray:
    """Return the mode by which a wall element resists warping out of its plane, (3 nlocal,).

    A membrane does not resist it. The warp (1 - 2s)(1 - 2t) of a plate of rigidity D has the energy
    of the Rayleigh quotient 4 D (1 - nu) / (side * side); the length of the mode is its root.
    """
    sides = cell_size(f)[list(_plane(wall.axis))]
    rigidity = plate_rigidity(young, poisson, thickness)
    line = 1 - 2 * np.linspace(0.0, 1.0, f.order + 1)
    twist = np.outer(line, line).ravel()
    mode = np.zeros((len(twist), 3))
    mode[:, wall.axis] = twist / np.linalg.norm(twist)
    scaled: np.ndarray = mode.ravel() * np.sqrt(4 * rigidity * (1 - poisson) / np.prod(sides))
    return scaled


# --- bending ---


class _Edge(NamedTuple):
    """Edge between two wall elements: their ids, the position in each, and directions across."""

    numbers: tuple[int, int]
    places: tuple[float, ...]
    axes: tuple[int, int]  # normal axes of the elements
    along: int
    across: tuple[int, int]  # axes that lead away from the edge


def wall_bending(f: Flex, young: float, poisson: float, thickness: float) -> np.ndarray:
    """Return `flex_bending` of an interpolated shell: the number of edges, then their records.

    An edge of length l between elements that extend h away from it resists, with the rigidity D of
    the plate, like a hinge of stiffness D l / h. Normals point along the positive axes.
    """
    size = cell_size(f)
    rigidity = plate_rigidity(young, poisson, thickness)
    edges = list(_edges(f.cellcount))
    numbers = np.zeros((len(edges), _BEND_RECORD))
    for row, edge in zip(numbers, edges, strict=True):
        reach = size[list(edge.across)].mean()
        fold = np.eye(3)[edge.axes[0]] - np.eye(3)[edge.axes[1]]
        row[:] = *edge.numbers, *edge.places, rigidity * size[edge.along] / reach, *fold
    return np.concatenate([[len(edges)], numbers.ravel()])


def _edges(cellcount: np.ndarray) -> Iterator[_Edge]:
    """Yield each edge once, from the element of the smaller id."""
    elements = walls(cellcount)
    number = {wall: i for i, wall in enumerate(elements)}
    for i, wall in enumerate(elements):
        plane = _plane(wall.axis)
        for axis, along in (plane, plane[::-1]):
            for side in (0, 1):
                next_cell = list(wall.cell)
                next_cell[axis] += 2 * side - 1
                inside = 0 <= next_cell[axis] < cellcount[axis]
                other = Wall(wall.axis, wall.side, tuple(next_cell))
                if not inside:  # around the corner, the cell is the same
                    other = Wall(axis, side, wall.cell)
                if i < number[other]:
                    across = axis if inside else wall.axis
                    end = 1 - side if inside else wall.side
                    places = (
                        *_edge_position(wall.axis, axis, side),
                        *_edge_position(other.axis, across, end),
                    )
                    numbers = (i, number[other])
                    yield _Edge(numbers, places, (wall.axis, other.axis), along, (axis, across))


def _edge_position(normal: int, axis: int, end: int) -> tuple[float, float]:
    """Return the middle of the edge at one end of an axis, in the coordinates of the wall."""
    slow, fast = (float(end) if a == axis else 0.5 for a in _plane(normal))
    return slow, fast
