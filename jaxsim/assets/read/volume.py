"""The surface of a Gmsh file, for a mesh made of its triangles or of the skin of its tetrahedra."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.read.gmsh import read_gmsh
from jaxsim.assets.surface import Surface


def read_gmsh_surface(data: bytes) -> Surface:
    """Return the triangles of a Gmsh file, or those around its tetrahedra.

    Raises:
      AssetError: as `read_gmsh`.
    """
    mesh = read_gmsh(data)
    face = mesh.element if mesh.dim == 2 else boundary(mesh.element)
    return Surface(vertex=mesh.point, face=face.astype(np.int32))


def boundary(element: np.ndarray) -> np.ndarray:
    """Return the triangles that one tetrahedron has alone, seen from outside; (n, 4) -> (m, 3)."""
    sides = element[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    _, which, count = np.unique(
        np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return sides[count[which.ravel()] == 1]
