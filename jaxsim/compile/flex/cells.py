"""The lattice of cells around an interpolated flex: how much of the mass each node carries.

The box around the points is cut into `cellcount` cells; a cell of order 1 has 2 nodes along each
axis, one of order 2 has 3, shared with its neighbors. A node carries its share of the part of the
cells that the flex fills:

    m[i] ~ sum over cells of  integral of w_i(x) dx over what the flex fills (filling.py)

and not less than a fiftieth of what it has of a full cell. A rod fills its cells evenly, and an
elastic shell the walls of the lattice.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.flex.filling import filling, with_void

ORDERS = {"trilinear": 1, "quadratic": 2}

_LEAST_SHARE = 0.02  # of what a node carries if its cells are full
_SHORTEST, _SKEW = 1e-10, 1e-6  # of the axes of a lattice


def node_masses(
    points: LatticePoints,
    box: tuple[np.ndarray, np.ndarray],
    cellcount: np.ndarray,
    order: int,
    shell: bool,
) -> np.ndarray:
    """What each node carries, up to a common factor; 0 for the nodes of empty cells.

    Args:
      points: the flex, placed.
      box: lower and upper corner of the lattice, (3,) each.
      cellcount: cells along each axis, (3,).
      order: 1 or 2.
      shell: whether the mass is on the walls of the lattice alone.

    Returns:
      (nnode,), nodes with z running fastest.
    """
    low, high = box
    full = _full_cells(order, cellcount)
    even = _gather(full, np.ones(len(full), bool), cellcount, order)
    if shell:
        even = np.ones_like(even) if order == 1 else even
        return np.where(_interior_nodes(order * cellcount + 1), 0.0, even)
    if points.dim == 1 or np.any(high <= low):
        return even
    content, filled = filling(points, box, cellcount, order, lambda t: mass_shares(t, order), order)
    mixed = np.maximum(with_void(content, full), _LEAST_SHARE * full)
    return _gather(mixed, filled, cellcount, order)


def active_nodes(
    points: LatticePoints, node: np.ndarray, cellcount: np.ndarray, order: int
) -> np.ndarray:
    """Numbers of the nodes of cells that are not empty.

    Args:
      points: the flex, in axes along its lattice.
      node: places of the nodes in them, (nnode, 3).
      cellcount: cells along each axis, (3,).
      order: 1 or 2.
    """
    box = node.min(axis=0), node.max(axis=0)
    if points.dim == 1 or np.prod(cellcount) == 1 or np.any(box[1] <= box[0]):
        return np.arange(len(node))
    _, filled = filling(points, box, cellcount, order, lambda t: mass_shares(t, order), order)
    return np.unique(cell_nodes(cellcount, order)[filled])


def mass_shares(t: np.ndarray, order: int) -> np.ndarray:
    """What of a mass at t in [0, 1] each node along one axis of a cell carries, (..., order + 1).

    Linear interpolation, or the uniform quadratic B-spline: Lagrange polynomials of order 2 would
    give negative masses.
    """
    if order == 1:
        return np.stack([1 - t, t], axis=-1)
    return np.stack([0.5 * (1 - t) ** 2, 0.5 + t * (1 - t), 0.5 * t**2], axis=-1)


def lattice_axes(node: np.ndarray, count: np.ndarray) -> np.ndarray | None:
    """Directions of the axes of a lattice of nodes (nnode, 3), as columns; None if it is skew."""
    place = node.reshape(*count, 3)
    ends = np.stack([place[-1, 0, 0], place[0, -1, 0], place[0, 0, -1]]) - place[0, 0, 0]
    length = np.linalg.norm(ends, axis=1, keepdims=True)
    if np.any(length < _SHORTEST):
        return None
    axes = (ends / length).T
    return axes if np.allclose(axes.T @ axes, np.eye(3), atol=_SKEW) else None


def cell_nodes(cellcount: np.ndarray, order: int) -> np.ndarray:
    """Nodes of each cell, (ncell, (order + 1)^3), both with z running fastest."""
    n = order * cellcount + 1
    stride = np.array([n[1] * n[2], n[2], 1])
    first = order * np.indices(tuple(cellcount)).reshape(3, -1).T @ stride
    local = np.indices((order + 1,) * 3).reshape(3, -1).T @ stride
    return first[:, None] + local


def _full_cells(order: int, cellcount: np.ndarray) -> np.ndarray:
    """Integrals of the shares over full unit cells, (ncell, nlocal)."""
    axis = np.array([0.5, 0.5]) if order == 1 else np.array([1.0, 4.0, 1.0]) / 6
    cell = np.einsum("i,j,k->ijk", axis, axis, axis).ravel()
    return np.tile(cell, (int(np.prod(cellcount)), 1))


def _interior_nodes(lattice: np.ndarray) -> np.ndarray:
    """Which nodes of a lattice are on none of its walls, (nnode,)."""
    place = np.indices(tuple(lattice)).reshape(3, -1).T
    return np.all((place > 0) & (place < lattice - 1), axis=1)


def _gather(
    content: np.ndarray, filled: np.ndarray, cellcount: np.ndarray, order: int
) -> np.ndarray:
    """Sums over the cells that share a node, (nnode,)."""
    total = np.zeros(int(np.prod(order * cellcount + 1)))
    np.add.at(total, cell_nodes(cellcount, order)[filled], content[filled])
    return total
