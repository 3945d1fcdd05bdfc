"""Triangle-box intersection tests.

A box and a triangle are disjoint if their bounds are disjoint, the box is on one side of the
triangle's plane, or in one of the three coordinate planes the box is outside an edge of the
triangle (M. Schwarz and H.-P. Seidel, "Fast parallel surface and solid voxelization on GPUs", ACM
Trans. Graph. 29(6), 2010, section 3). Touching counts as intersection.
"""

from __future__ import annotations

import numpy as np

from jaxsim.math.quaternion import cross_arrays


def overlaps_box(triangle: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return whether each triangle intersects its box, bool (n,).

    Args:
      triangle: corners, (n, 3, 3).
      low: lower corners of the boxes, (n, 3).
      high: upper corners of the boxes, (n, 3).
    """
    found = np.flatnonzero(
        np.all((triangle.max(axis=1) >= low) & (triangle.min(axis=1) <= high), axis=1)
    )
    edge = np.roll(triangle, -1, axis=1) - triangle
    normal = cross_arrays(edge[:, 0], edge[:, 1])
    for test in (_straddles_plane, _inside_edges):
        found = found[test(*(part[found] for part in (triangle, edge, normal, low, high)))]
    out = np.zeros(len(triangle), bool)
    out[found] = True
    return out


def _straddles_plane(
    triangle: np.ndarray, edge: np.ndarray, normal: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return whether the plane of the triangle has corners of the box on both sides.

    The extreme corners along the normal decide.
    """
    side = high - low
    far = np.where(normal > 0, side, 0.0)
    along = _dot(normal, low)
    ahead = along + _dot(normal, far - triangle[:, 0])
    behind = along + _dot(normal, side - far - triangle[:, 0])
    return ahead * behind <= 0


def _inside_edges(
    triangle: np.ndarray, edge: np.ndarray, normal: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return whether, in the projection along each axis, no edge of the triangle has the whole box
    outside."""
    side = high - low
    out = np.ones(len(triangle), bool)
    for axis in range(3):
        b, c = (axis + 1) % 3, (axis + 2) % 3
        # from the other side the edges run clockwise
        sign = np.where(normal[:, axis] >= 0, 1.0, -1.0)
        for i in range(3):
            inward_b, inward_c = -edge[:, i, c] * sign, edge[:, i, b] * sign
            offset = -(inward_b * triangle[:, i, b] + inward_c * triangle[:, i, c])
            offset = offset + np.maximum(0, side[:, b] * inward_b)
            offset = offset + np.maximum(0, side[:, c] * inward_c)
            out &= inward_b * low[:, b] + inward_c * low[:, c] + offset >= 0
    return out


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return scalar products (n,), summed from x to z: for touching planes rounding decides."""
    return a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]
