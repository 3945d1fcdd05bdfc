"""The order in which MuJoCo visits the faces of a mesh: that of its bounding volume hierarchy.

A node splits its faces along the longest side of their bounding box, by the centers of their
circumscribed circles; of equal ones the first face is the lower. The traversal visits the upper
half first.
"""

from __future__ import annotations

import numpy as np

from jaxsim.math.quaternion import cross_arrays

_EQUAL_TOLERANCE = 1e-10  # tolerance of equality [m], for values of single precision


def face_order(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return the faces in the order of the traversal.

    Args:
      vertex: positions [m], (nvert, 3).
      face: corners of the faces, (nface, 3).

    Returns:
      Indices of the faces, (nface,).
    """
    corner = np.asarray(vertex, np.float64)[face]
    return tree_order(corner.min(axis=1), corner.max(axis=1), _circumcenters(corner))


def tree_order(low: np.ndarray, high: np.ndarray, center: np.ndarray, leaf: int = 1) -> np.ndarray:
    """Return the traversal order of boxes, by their lower and upper corners and their centers, (n,
    3), with up to `leaf` boxes per leaf of the tree."""
    order: list[int] = []
    waiting = [np.arange(len(low))]
    while waiting:
        here = waiting.pop()
        if len(here) <= leaf:
            order.extend(here)
            continue
        axis = _longest_side(high[here].max(axis=0) - low[here].min(axis=0))
        key = np.round(center[here, axis] / _EQUAL_TOLERANCE)
        here = here[np.lexsort((here, key))]
        waiting += [here[: len(here) // 2], here[len(here) // 2 :]]
    return np.array(order, np.int32)


def _longest_side(side: np.ndarray) -> int:
    """Return the index of the longest of three sides; of equal ones the first."""
    longest = 0
    for axis in (1, 2):
        if side[axis] >= side[longest] + _EQUAL_TOLERANCE:
            longest = axis
    return longest


def _circumcenters(corner: np.ndarray) -> np.ndarray:
    """Return the circumcenters of three points, (n, 3, 3) -> (n, 3); the mean if they are
    collinear."""
    a, b = corner[:, 0] - corner[:, 2], corner[:, 1] - corner[:, 2]
    normal = cross_arrays(a, b)
    square = (normal * normal).sum(axis=1, keepdims=True)
    across = (a * a).sum(axis=1, keepdims=True) * b - (b * b).sum(axis=1, keepdims=True) * a
    flat = square == 0
    center = cross_arrays(across, normal) / np.where(flat, 1, 2 * square) + corner[:, 2]
    return np.where(flat, corner.mean(axis=1), center)
