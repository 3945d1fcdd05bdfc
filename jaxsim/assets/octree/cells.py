"""The cells of an octree: their hierarchy and positions.

Positions are integers in units of the finest cells: two corners are the same point if their numbers
are equal. The coordinates of the planes between cells are computed once for each axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROOT_PARENT = -1
NO_CHILD = -1

# Offsets of the eight corners of a cell, and of its eight children, from its lower corner: x first.
CHILD_OFFSETS = (np.arange(8)[:, None] >> np.arange(3)) & 1


@dataclass(frozen=True, eq=False)
class OctreeCells:
    """Cells of an octree, the root first.

    Attributes:
      planes: coordinates of the planes between the finest cells, (3, 2**depth + 1).
      level: depth of the cell, (n,).
      low: the cell's lower corner, in plane indices, (n, 3).
      child: its eight children, x fastest, or eight times `NO_CHILD`, (n, 8).
    """

    planes: np.ndarray
    level: np.ndarray
    low: np.ndarray
    child: np.ndarray

    @property
    def depth(self) -> int:
        """Return the largest possible level."""
        return (self.planes.shape[1] - 1).bit_length() - 1

    @property
    def size(self) -> np.ndarray:
        """Return the sides of the cells, in plane indices, (n,)."""
        return 1 << (self.depth - self.level)

    @property
    def leaves(self) -> np.ndarray:
        """Return the cells without children, ascending."""
        return np.flatnonzero(self.child[:, 0] == NO_CHILD)

    @property
    def corners(self) -> np.ndarray:
        """Return the corners of every cell, in plane indices, (n, 8, 3)."""
        return self.low[:, None] + CHILD_OFFSETS * self.size[:, None, None]

    @property
    def aabb(self) -> np.ndarray:
        """Return the center and half sizes of every cell, (n, 6)."""
        low, high = bounds(self.planes, self.low, self.size)
        return np.concatenate([(low + high) / 2, (high - low) / 2], axis=1)

    def split(self, cells: np.ndarray) -> OctreeCells:
        """Return the tree with children of some leaves, appended in the order of their parents."""
        child = self.child.copy()
        child[cells] = len(child) + np.arange(8 * len(cells)).reshape(-1, 8)
        return OctreeCells(
            planes=self.planes,
            level=np.concatenate([self.level, np.repeat(self.level[cells] + 1, 8)]),
            low=np.concatenate([self.low, children(self.low[cells], self.size[cells])]),
            child=np.concatenate([child, np.full((8 * len(cells), 8), NO_CHILD)]),
        )


def root(low: np.ndarray, high: np.ndarray, depth: int) -> OctreeCells:
    """Return the box from `low` to `high`, (3,) each, as a tree of one cell."""
    return OctreeCells(
        planes=_planes(low, high, depth),
        level=np.zeros(1, np.int64),
        low=np.zeros((1, 3), np.int64),
        child=np.full((1, 8), NO_CHILD),
    )


def bounds(planes: np.ndarray, low: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of the lower and the upper corner of cells, (n, 3) each."""
    axes = np.arange(3)
    return planes[axes, low], planes[axes, low + size[:, None]]


def children(low: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the lower corners of the eight children of each cell, (8 * n, 3)."""
    return (low[:, None] + CHILD_OFFSETS * (size // 2)[:, None, None]).reshape(-1, 3)


def _planes(low: np.ndarray, high: np.ndarray, depth: int) -> np.ndarray:
    """Return planes by repeated bisection, so that cells of all levels share them bit for bit."""
    planes = np.empty((3, 2**depth + 1))
    planes[:, 0], planes[:, -1] = low, high
    for level in range(depth):
        step = 2 ** (depth - level)
        planes[:, step // 2 :: step] = (planes[:, :-1:step] + planes[:, step::step]) / 2
    return planes
