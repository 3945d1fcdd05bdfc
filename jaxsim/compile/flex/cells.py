"""Lattice of cells around an interpolated flex: the mass of each node.

The bounding box of the points is divided into `cellcount` cells; a cell of order 1 has 2 nodes
along each axis, one of order 2 has 3, shared with its neighbors. The mass of a node is the integral
of its weight function over the part of the cells that the flex fills,

    m[i] ~ sum over cells of  integral of w_i(x) dx over the filled part (filling.py)

and at least a fiftieth of its mass in full cells. A rod fills its cells evenly, and an elastic
shell the walls of the lattice.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.compile.flex.filling import add_void_density, filling

ORDERS = {"trilinear": 1, "quadratic": 2}

_LEAST_SHARE = 0.02  # least mass of a node, relative to its mass in full cells
_MIN_AXIS_LENGTH, _MAX_AXIS_SKEW = 1e-10, 1e-6  # limits of the axes of a lattice


def node_masses(
    points: LatticePoints,
    box: tuple[np.ndarray, np.ndarray],
    cellcount: np.ndarray,
    order: int,
    shell: bool,
) -> np.ndarray:
    """Return the mass of each node, up to a common factor; 0 for the nodes of empty cells.

    Args:
      points: the flex in its reference pose.
      box: lower and upper corner of the lattice, (3,) each.
      cellcount: cells along each axis, (3,).
      order: 1 or 2.
      shell: whether all mass is on the walls of the lattice.

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
    mixed = np.maximum(add_void_density(content, full), _LEAST_SHARE * full)
    return _gather(mixed, filled, cellcount, order)


def active_nodes(
    points: LatticePoints, node: np.ndarray, cellcount: np.ndarray, order: int
) -> np.ndarray:
    """Return the ids of the nodes of cells that are not empty.

    Args:
      points: the flex, in axes along its lattice.
      node: positions of the nodes in these axes, (nnode, 3).
      cellcount: cells along each axis, (3,).
      order: 1 or 2.
    """
    box = node.min(axis=0), node.max(axis=0)
    if points.dim == 1 or np.prod(cellcount) == 1 or np.any(box[1] <= box[0]):
        return np.arange(len(node))
    _, filled = filling(points, box, cellcount, order, lambda t: mass_shares(t, order), order)
    return np.unique(cell_nodes(cellcount, order)[filled])


def mass_shares(t: np.ndarray, order: int) -> np.ndarray:
    """Return the weights at t in [0, 1] of the nodes along one axis of a cell, (..., order + 1).

    Order 1 is linear interpolation, order 2 the uniform quadratic B-spline: Lagrange polynomials of
    order 2 would give negative masses.
    """
    if order == 1:
        return np.stack([1 - t, t], axis=-1)
    return np.stack([0.5 * (1 - t) ** 2, 0.5 + t * (1 - t), 0.5 * t**2], axis=-1)


def lattice_axes(node: np.ndarray, count: np.ndarray) -> np.ndarray | None:
    """Return directions of the axes of a lattice of nodes (nnode, 3), as columns; None if skew."""
    position = node.reshape(*count, 3)
    ends = (
        np.stack([position[-1, 0, 0], position[0, -1, 0], position[0, 0, -1]]) - position[0, 0, 0]
    )
    length = np.linalg.norm(ends, axis=1, keepdims=True)
    if np.any(length < _MIN_AXIS_LENGTH):
        return None
    axes = (ends / length).T
    return axes if np.allclose(axes.T @ axes, np.eye(3), atol=_MAX_AXIS_SKEW) else None


def cell_nodes(cellcount: np.ndarray, order: int) -> np.ndarray:
    """Return the nodes of each cell, (ncell, (order + 1)^3), both with z running fastest."""
    n = order * cellcount + 1
    stride = np.array([n[1] * n[2], n[2], 1])
    first = order * np.indices(tuple(cellcount)).reshape(3, -1).T @ stride
    local = np.indices((order + 1,) * 3).reshape(3, -1).T @ stride
    return first[:, None] + local


def _full_cells(order: int, cellcount: np.ndarray) -> np.ndarray:
    """Return the integrals of the weights over full unit cells, (ncell, nlocal)."""
    axis = np.array([0.5, 0.5]) if order == 1 else np.array([1.0, 4.0, 1.0]) / 6
    cell = np.einsum("i,j,k->ijk", axis, axis, axis).ravel()
    return np.tile(cell, (int(np.prod(cellcount)), 1))


def _interior_nodes(lattice: np.ndarray) -> np.ndarray:
    """Return a mask of the nodes of a lattice that are on none of its walls, (nnode,)."""
    position = np.indices(tuple(lattice)).reshape(3, -1).T
    return np.all((position > 0) & (position < lattice - 1), axis=1)


def _gather(
    content: np.ndarray, filled: np.ndarray, cellcount: np.ndarray, order: int
) -> np.ndarray:
    """Sum over the cells that share a node, (nnode,)."""
    total = np.zeros(int(np.prod(order * cellcount + 1)))
    np.add.at(total, cell_nodes(cellcount, order)[filled], content[filled])
    return total
