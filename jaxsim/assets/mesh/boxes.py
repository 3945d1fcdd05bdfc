"""Closest-triangle queries over a bounding volume hierarchy.

Each box is split in halves along its longest side, with half of the triangles each, down to single
triangles. All points descend the levels together, as pairs of a point and a candidate box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.closest_point import Triangles

_MAX_BATCH_POINTS = 8192  # points that are queried together; their pairs fit in the cache
_DISTANCE_SLACK = (
    1e-9  # relative rounding tolerance for pruning boxes farther than the best triangle
)
_SURFACE_TOLERANCE = 1e-12  # pruning tolerance for points on the surface, relative to its size
_EQUAL_TOLERANCE = 1e-12  # relative tolerance of equal squared distances
# Largest number of parts of a side; sides above 1 / _MAX_PARTS of the whole are divided.
_MAX_PARTS = 12
_MANY_TRIANGLES = 100_000  # above this number, triangles have fewer sample points


@dataclass(frozen=True, eq=False)
class Closest:
    """Pairs of a point and a closest triangle; those of one point are adjacent.

    Attributes:
      row: the points, ascending; each occurs at least once, (k,).
      which: the triangles, (k,).
      feature: the closest feature of the triangle, (k,); see `closest_point.py`.
      offset: the vectors from the closest point to the query point, (k, 3).
    """

    row: np.ndarray
    which: np.ndarray
    feature: np.ndarray
    offset: np.ndarray


class BoundingBoxTree:
    """Bounding volume hierarchy over triangles (n, 3, 3)."""

    def __init__(self, corner: np.ndarray):
        from scipy.spatial import cKDTree  # late: slow to import, and few models need it

        self.triangles = Triangles.of(corner)
        spot, self._of_spot = _surface_samples(corner)
        self._spots = cKDTree(spot)
        self._leaf, self._levels = _build_levels(corner.min(axis=1), corner.max(axis=1))
        low, high = self._levels[0]
        self._touch = (_SURFACE_TOLERANCE * float(np.max(high - low))) ** 2

    def closest(self, point: np.ndarray) -> Iterator[tuple[slice, Closest]]:
        """Yield the closest triangles of points (k, 3), a block of points at a time."""
        for start in range(0, len(point), _MAX_BATCH_POINTS):
            part = slice(start, min(start + _MAX_BATCH_POINTS, len(point)))
            yield part, self._search(np.ascontiguousarray(point[part].T))

    def _search(self, point: np.ndarray) -> Closest:
        row = np.arange(point.shape[1])
        best = self._guess(point) * (1 + _DISTANCE_SLACK) + self._touch
        box = np.zeros_like(row)
        for low, high in self._levels[1:]:
            row, box = np.repeat(row, 2), (2 * box[:, None] + (0, 1)).ravel()
            kept = np.flatnonzero(
                _squared_gaps(point[:, row], low[:, box], high[:, box]) <= best[row]
            )
            row, box = row[kept], box[kept]
        which = self._leaf[box]
        offset, feature = self.triangles.offset(which, point[:, row])
        square = _square(offset)
        least = np.minimum.reduceat(square, np.searchsorted(row, np.arange(point.shape[1])))
        kept = np.flatnonzero(square <= least[row] * (1 + _EQUAL_TOLERANCE))
        return Closest(row[kept], which[kept], feature[kept], offset[:, kept].T)

    def _guess(self, point: np.ndarray) -> np.ndarray:
        """Return upper bounds of the squared distances, (k,), from the triangle with the nearest
        sample point."""
        near = self._of_spot[self._spots.query(point.T)[1]]
        offset, _ = self.triangles.offset(near, point)
        return _square(offset)


def _surface_samples(corner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return sample points on triangles, (k, 3), and the triangle of each, (k,).

    They are centers of subtriangles; sides are divided in proportion to their length.
    """
    side = np.linalg.norm(np.roll(corner, -1, axis=1) - corner, axis=2).max(axis=1)
    whole = np.ptp(corner.reshape(-1, 3), axis=0).max()
    cuts = (
        np.ceil(side * _MAX_PARTS / (whole if whole > 0 else 1.0)).clip(1, _MAX_PARTS).astype(int)
    )
    while cuts.max() > 1 and (cuts * (cuts + 1) // 2).sum() > _MANY_TRIANGLES:
        cuts = (cuts + 1) // 2
    spots, owners = [], []
    for n in np.unique(cuts):
        which = np.flatnonzero(cuts == n)
        i, j = (part.ravel() for part in np.indices((n, n)))
        i, j = i[i + j < n], j[i + j < n]
        share = (np.stack([i, j, n - 1 - i - j], axis=1) + 1 / 3) / n
        spots.append(np.einsum("si,kij->ksj", share, corner[which]).reshape(-1, 3))
        owners.append(np.repeat(which, len(share)))
    return np.concatenate(spots), np.concatenate(owners)


def _build_levels(
    low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the boxes of all levels.

    Args:
      low: lower corners of the bounds of the triangles, (n, 3).
      high: upper corners.

    Returns:
      The triangle in each of the leaves; lower and upper corners of each level's boxes, (3, 1), (3,
        2), (3, 4) and so on. Some triangles occur twice to fill the last level.
    """
    depth = (len(low) - 1).bit_length()
    order = np.arange(2**depth) * len(low) // 2**depth
    order = order[None]
    middle = low + high
    for _ in range(depth):
        spots = middle[order]
        axis = np.argmax(spots.max(axis=1) - spots.min(axis=1), axis=1)
        along = np.take_along_axis(spots, axis[:, None, None], axis=2)[..., 0]
        order = np.take_along_axis(order, np.argsort(along, axis=1, kind="stable"), axis=1)
        order = order.reshape(2 * len(order), -1)
    leaf = order[:, 0]
    levels = []
    for level in range(depth + 1):
        held = leaf.reshape(2**level, -1)
        levels.append((low[held].min(axis=1).T.copy(), high[held].max(axis=1).T.copy()))
    return leaf, levels


def _squared_gaps(point: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return squared distances of points from boxes, all (3, k); zero inside."""
    gap = np.maximum(np.maximum(low - point, point - high), 0.0)
    return _square(gap)


def _square(v: np.ndarray) -> np.ndarray:
    """Return squared lengths of vectors (3, k)."""
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
