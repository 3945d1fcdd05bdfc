"""Corner values of cells, continuous between cells of different size.

Where a leaf borders on a larger one, some of its corners are hanging nodes in the middle of the
other's side or edge. They take the interpolated value of the larger cell: the mean of the corners
of that side or edge. The interpolation is then continuous.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.assets.octree.cells import CHILD_OFFSETS, OctreeCells
from jaxsim.assets.octree.neighbors import NO_NEIGHBOR, neighbors

DistanceFunction = Callable[[np.ndarray], np.ndarray]


def corner_values(tree: OctreeCells, distance: DistanceFunction) -> np.ndarray:
    """Return the distances at the corners of every cell, (n, 8).

    Args:
      tree: a balanced tree.
      distance: signed distance [m] of points (k, 3), (k,).
    """
    plane_index = _distinct_planes(tree)[np.arange(3), tree.corners]
    code = np.ravel_multi_index(tuple(np.moveaxis(plane_index, -1, 0)), 3 * (tree.planes.shape[1],))
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    number = number.reshape(-1, 8)
    hanging, holder, weight = _hanging_corners(tree, plane_index, number)

    value = np.zeros(len(first))
    free = np.ones(len(first), bool)
    free[hanging] = False
    point = tree.planes[np.arange(3), tree.corners.reshape(-1, 3)[first[free]]]
    value[free] = distance(point)

    # From coarse to fine, because the corners of a mean may be hanging themselves.
    level = tree.level[holder]
    for now in np.unique(level):
        at = level == now
        value[hanging[at]] = (value[number[holder[at]]] * weight[at]).sum(axis=1)
    return value[number]


def _distinct_planes(tree: OctreeCells) -> np.ndarray:
    """Return an index for each plane, (3, nplane), equal where planes of a flat box coincide."""
    return np.stack([np.unique(axis, return_inverse=True)[1] for axis in tree.planes])


def _hanging_corners(
    tree: OctreeCells, plane_index: np.ndarray, number: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hanging corners.

    Args:
      tree: the cells.
      plane_index: their corners, in plane indices, (n, 8, 3).
      number: their corners as point ids, (n, 8).

    Returns:
      The ids of the hanging corners, (k,); the larger cell that contains each of them, (k,); the
        weights of that cell's corners in its value, (k, 8).
    """
    leaves = tree.leaves
    beyond = neighbors(tree, leaves)
    row, side = np.nonzero(
        (beyond != NO_NEIGHBOR) & (tree.level[beyond] < tree.level[leaves, None])
    )
    leaf, holder = leaves[row], beyond[row, side]

    # The four corners of each such side, relative to the larger cell.
    corner = _SIDES[side]
    at, holder = plane_index[leaf[:, None], corner].reshape(-1, 3), np.repeat(holder, 4)
    low, high = at == plane_index[holder, 0], at == plane_index[holder, 7]
    matching = ~(low | high)[:, None] | (high[:, None] == CHILD_OFFSETS)
    weight = np.all(matching, axis=2).astype(np.float64)
    count = weight.sum(axis=1)
    hangs = np.flatnonzero(count > 1)  # one: it is a corner of both

    which = number[leaf[:, None], corner].reshape(-1)[hangs]
    which, first = np.unique(which, return_index=True)
    kept = hangs[first]
    return which, holder[kept], weight[kept] / count[kept, None]


# Corners of the sides of a cell, in the order of `neighbors`.
_SIDES = np.array([np.flatnonzero(CHILD_OFFSETS[:, side // 2] == side % 2) for side in range(6)])
