"""Triangulate the polygons of a mesh file as MuJoCo's OBJ reader does.

A quadrilateral is split along its shorter diagonal. Larger polygons are triangulated by ear
clipping: an ear is the first corner, starting from the last ear, that is not reflex and whose
triangle contains no other corner. The remainder is dropped if no ear exists, and also if the first
ear is the last corner. A polygon with more than 100 corners is dropped as a whole. All decisions
use the single precision in which files are read.
"""

from __future__ import annotations

import numpy as np

_EPSILON = np.finfo(np.float32).eps
_MAX_CORNERS = 100


def triangulate(point: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return a triangulation of polygons.

    Args:
      point: positions of the corners of all polygons, concatenated, (n, 3).
      count: number of corners of each polygon, (npolygon,); fewer than three give no triangle.

    Returns:
      Triangles as indices of corners, in the order of the polygons, (ntriangle, 3).
    """
    first = np.cumsum(count) - count
    if np.all(count == 3):
        return np.arange(len(point)).reshape(-1, 3)
    point = point.astype(np.float32)
    triangles = [first[count == 3, None] + np.arange(3), _quadrilaterals(point, first[count == 4])]
    large = (count > 4) & (count <= _MAX_CORNERS)
    polygons = _Polygons(point, first[large], count[large])
    triangles.append(polygons.cut())
    found = np.concatenate(triangles)
    owner = np.searchsorted(first + count, found.min(axis=1), side="right")
    return found[np.argsort(owner, kind="stable")]


def _quadrilaterals(point: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return the two triangles on either side of the shorter diagonal of each, (2 n, 3)."""

    def squared_length(i: int, j: int) -> np.ndarray:
        edge = point[first + j] - point[first + i]
        return np.sum(edge * edge, axis=1)

    along_02 = squared_length(0, 2) < squared_length(1, 3)
    pairs = np.where(along_02[:, None], (0, 1, 2, 0, 2, 3), (0, 1, 3, 1, 2, 3))
    return (first[:, None] + pairs).reshape(-1, 3)


class _Polygons:
    """Polygons with five or more corners, whose ears are clipped in lockstep.

    Attributes:
      plane: positions of all corners in the two axes in which their polygon is widest, (n, 2).
      corner: the remaining corners of each polygon, padded at the end, (npolygon, widest).
      count: number of remaining corners, (npolygon,).
      whole: number of corners in the file, (npolygon,).
      guess: index of the corner that is tested next, (npolygon,).
    """

    def __init__(self, point: np.ndarray, first: np.ndarray, count: np.ndarray):
        widest = int(count.max(initial=0))
        self.corner = first[:, None] + np.minimum(np.arange(max(widest, 3)), count[:, None] - 1)
        self.count = count.copy()
        self.whole = count
        self.guess = np.zeros(len(first), int)
        # Project each polygon along the dominant axis of the normal at its first nondegenerate
        # corner.
        self.plane = point[:, :2].copy()
        axes = _axes(point, self.corner, count)
        for i, (polygon, size) in enumerate(zip(first, count, strict=True)):
            self.plane[polygon : polygon + size] = point[polygon : polygon + size, axes[i]]

    def cut(self) -> np.ndarray:
        """Return all triangles; those of one polygon stay in the order of clipping."""
        found = [np.zeros((0, 3), int)]
        for size in range(int(self.count.max(initial=0)), 3, -1):
            waiting = np.flatnonzero(self.count == size)
            for trial in range(size):
                tried = waiting
                waiting = self._cut_ears(tried, size, found)
                if trial == size - 1:
                    # MuJoCo's reader has no trials left for a polygon that was complete until the
                    # last one.
                    late = np.setdiff1d(tried, waiting)
                    self.count[late[self.whole[late] == size]] = 0
        found.append(self.corner[self.count == 3, :3])
        return np.concatenate(found)

    def _cut_ears(self, waiting: np.ndarray, size: int, found: list[np.ndarray]) -> np.ndarray:
        """Test one corner of each polygon of a size; return the polygons where it was no ear."""
        self.guess[waiting] %= size
        turn = (self.guess[waiting, None] + np.arange(size)) % size
        corner = self.corner[waiting[:, None], turn]
        ear = _is_ear(self.plane[corner])
        found.append(corner[ear, :3])
        # Remove the tip of the ear; the other corners keep their order.
        cut = waiting[ear]
        keep = np.arange(size - 1) + (np.arange(size - 1) >= turn[ear, 1:2])
        self.corner[cut, : size - 1] = self.corner[cut[:, None], keep]
        self.count[cut] -= 1
        self.guess[waiting[~ear]] += 1
        return waiting[~ear]


def _axes(point: np.ndarray, corner: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the two projection axes of each polygon, (npolygon, 2)."""
    axes = np.tile([1, 2], (len(corner), 1))
    undecided = np.ones(len(corner), bool)
    for k in range(corner.shape[1]):
        at = [corner[np.arange(len(corner)), (k + i) % count] for i in range(3)]
        turn = np.abs(np.cross(point[at[1]] - point[at[0]], point[at[2]] - point[at[1]]))
        here = undecided & (k < count) & np.any(turn > _EPSILON, axis=1)
        x, y, z = turn.T
        along_x = (x > y) & (x > z)
        along_z = ~along_x & (z > x) & (z > y)
        axes[here & ~along_x] = (0, 2)
        axes[here & along_z] = (0, 1)
        undecided &= ~here
    return axes


def _is_ear(corner: np.ndarray) -> np.ndarray:
    """Return whether the first three of some corners form an ear, (n, size, 2) -> (n,)."""
    a, b, c = corner[:, 0], corner[:, 1], corner[:, 2]
    turn = _cross(b - a, c - b)
    reflex = turn * _cross(a, b) * np.float32(0.5) < 0
    inside = _points_inside(corner[:, :3, None], corner[:, None, 3:])
    return ~reflex & ~inside.any(axis=1)


def _points_inside(triangle: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return whether points are inside a triangle by ray crossing, (n, 3, 1, 2), (n, 1, k, 2) ->
    (n, k)."""
    start, end = triangle, np.roll(triangle, 1, axis=1)
    x, y = point[..., 0], point[..., 1]
    straddles = (start[..., 1] > y) != (end[..., 1] > y)
    rise = end[..., 1] - start[..., 1]
    run = (end[..., 0] - start[..., 0]) * (y - start[..., 1])
    cut = run / np.where(rise == 0, np.float32(1), rise) + start[..., 0]
    return np.sum(straddles & (x < cut), axis=1) % 2 == 1


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
