"""Build the octree of a surface: cells that it intersects are split, level by level.

Neighbors are then balanced, and signed distances computed at the corners of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.octree.cells import CHILD_OFFSETS, OctreeCells, bounds, root
from jaxsim.assets.octree.corners import DistanceFunction, corner_values
from jaxsim.assets.octree.neighbors import balance_octree
from jaxsim.assets.octree.overlap import overlaps_box

_OCTREE_DEPTH = 6  # levels below the root, as in MuJoCo
_ROOT_MARGIN = 1.1  # size of the root relative to the bounding box
# pairs of a cell and a triangle that are tested together; they fit in the cache
_MAX_BATCH_PAIRS = 65536


@dataclass(frozen=True, eq=False)
class Octree:
    """Signed distance field in an octree.

    Attributes:
      cells: the cells, the root first.
      value: signed distance [m] at the eight corners of each, x fastest, (n, 8).
    """

    cells: OctreeCells
    value: np.ndarray


def octree(
    triangle: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    distance: DistanceFunction,
    depth: int = _OCTREE_DEPTH,
) -> Octree:
    """Return the octree of a surface.

    Args:
      triangle: corners of the faces, (n, 3, 3).
      low: lower corner of the bounding box of the vertices, (3,).
      high: upper corner, (3,).
      distance: signed distance [m] of points (k, 3), (k,).
      depth: largest number of subdivisions of the root.
    """
    middle, half = (low + high) / 2, (high - low) / 2
    cells = balance_octree(
        _grow(triangle, middle - _ROOT_MARGIN * half, middle + _ROOT_MARGIN * half, depth)
    )
    return Octree(cells, corner_values(cells, distance))


def _grow(triangle: np.ndarray, low: np.ndarray, high: np.ndarray, depth: int) -> OctreeCells:
    """Return the tree over a box whose cells are split wherever they intersect a triangle.

    Args:
      triangle: corners, (n, 3, 3).
      low: lower corner of the box, (3,).
      high: upper corner, (3,).
      depth: the finest level.
    """
    tree = root(low, high, depth)
    cell, which = np.zeros(len(triangle), np.int64), np.arange(len(triangle))
    for _ in range(depth):
        kept = _overlapping_pairs(tree, cell, triangle, which)
        cell, which = cell[kept], which[kept]
        split, rank = np.unique(cell, return_inverse=True)
        if not len(split):
            break
        first = len(tree.level)
        tree = tree.split(split)
        cell, which = _child_pairs(tree, first + 8 * rank, triangle, which)
    return tree


def _overlapping_pairs(
    tree: OctreeCells, cell: np.ndarray, triangle: np.ndarray, which: np.ndarray
) -> np.ndarray:
    """Return which pairs of a cell and a triangle intersect."""
    parts = []
    for start in range(0, len(cell), _MAX_BATCH_PAIRS):
        part = slice(start, start + _MAX_BATCH_PAIRS)
        low, high = bounds(tree.planes, tree.low[cell[part]], tree.size[cell[part]])
        parts.append(overlaps_box(triangle[which[part]], low, high))
    return np.concatenate([np.zeros(0, bool), *parts])


def _child_pairs(
    tree: OctreeCells, first: np.ndarray, triangle: np.ndarray, which: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of a child and a triangle whose bounds overlap.

    Args:
      tree: the cells.
      first: the first of the eight children, one for each pair of their parent with a triangle.
      triangle: corners, (n, 3, 3).
      which: the triangles of the pairs.
    """
    middle = bounds(tree.planes, tree.low[first], tree.size[first])[1]
    # whether the triangle extends below the plane that bisects the parent, and above it
    reach = np.stack(
        [
            triangle.min(axis=1)[which] <= middle,
            triangle.max(axis=1)[which] >= middle,
        ]
    )
    hit = np.ones((len(which), 8), bool)
    for axis in range(3):
        hit &= reach[CHILD_OFFSETS[:, axis], :, axis].T
    pair, slot = np.nonzero(hit)
    return first[pair] + slot, which[pair]
