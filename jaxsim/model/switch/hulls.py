"""Compare mesh vertices of convex hulls with those from which the structure was derived."""

from typing import Any

import numpy as np

from jaxsim.model.structure import Structure, cache_by_structure

_SINGLE_PRECISION_TOLERANCE = (
    1e-6  # relative to the size of a mesh: closer vertices count as equal in any precision
)


def hulls_differ(s: Structure, mesh_vert: Any) -> bool:
    """Return whether given vertices `(..., nmeshvert, 3)` are not the loaded ones."""
    vertex, point, tolerance = loaded_hulls(s)
    off = np.abs(np.asarray(mesh_vert)[..., vertex, :] - point) > tolerance[:, None]
    return bool(off.any())


@cache_by_structure
def loaded_hulls(s: Structure) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the vertices of hulls as they were loaded.

    Returns:
      vertex: rows of `mesh_vert`, (n,), ascending.
      point: their coordinates, (n, 3) [m].
      tolerance: smallest difference that counts as a change of a coordinate, (n,) [m].
    """
    vertex = np.unique(s.hull_vertid)
    point = s.hull_vert.view(np.float32).astype(np.float64)
    mesh = np.searchsorted(s.mesh_vertadr, vertex, side="right") - 1
    size = np.zeros(s.nmesh)
    np.maximum.at(size, mesh, np.abs(point).max(axis=1, initial=0))
    return vertex, point, _SINGLE_PRECISION_TOLERANCE * size[mesh]
