"""Build the octree of a surface, with the signed distances at the corners of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.octree.cells import OctreeCells
from jaxsim.assets.octree.corners import DistanceFunction, corner_values
from jaxsim.assets.octree.neighbors import balance_octree
from jaxsim.assets.octree.subdivide import grow_octree

_OCTREE_DEPTH = 6  # levels below the root, as in MuJoCo
_ROOT_MARGIN = 1.1  # size of the root relative to the bounding box


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
        grow_octree(triangle, middle - _ROOT_MARGIN * half, middle + _ROOT_MARGIN * half, depth)
    )
    return Octree(cells, corner_values(cells, distance))
