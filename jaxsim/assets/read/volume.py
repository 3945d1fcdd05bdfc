"""The surface of a Gmsh file: its triangles, or the boundary of its tetrahedra."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.read.gmsh import read_gmsh
from jaxsim.assets.surface import Surface


def read_gmsh_surface(data: bytes) -> Surface:
    """Return the triangles of a Gmsh file, or the boundary of its tetrahedra.

    Raises:
      AssetError: the file is invalid, see `read_gmsh`.
    """
    mesh = read_gmsh(data)
    face = mesh.element if mesh.dim == 2 else boundary(mesh.element)
    return Surface(vertex=mesh.point, face=face.astype(np.int32))


def boundary(element: np.ndarray) -> np.ndarray:
    """Return the triangles that belong to a single tetrahedron, oriented outward; (n, 4) -> (m,
    3)."""
    sides = element[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    _, which, count = np.unique(
        np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return sides[count[which.ravel()] == 1]
