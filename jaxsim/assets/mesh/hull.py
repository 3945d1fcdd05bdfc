"""The convex hull of a mesh, by Qhull, and its records in MuJoCo's format.

`mesh_graph` of one mesh (MuJoCo's API reference, "Convex hulls") lists the vertices of the hull,
for each of them its neighbors, and the faces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jaxsim.assets.mesh.triangles import row_norms
from jaxsim.errors import AssetError
from jaxsim.math.quaternion import cross_arrays

if TYPE_CHECKING:
    from scipy.spatial import ConvexHull

_OPTIONS = "Qt"  # faces with more than three vertices are triangulated
_SIMPLEX = 4  # vertices of Qhull's initial simplex, before it counts added ones
_FLAT_TOLERANCE = 1e-7  # extent, relative to the largest, below which a dimension is degenerate
_REVERSED_CORNERS = [1, 0, 2]  # corners of a face with reversed orientation, in MuJoCo's order
_DEGENERACIES = ("at one point", "on one line", "in one plane")
_REMEDIES = (
    "a small sphere",
    "a thin capsule",
    "a primitive shape, such as a thin box; or, to be seen only, contype='0' conaffinity='0' on "
    "the geom and on the mesh inertia='shell'",
)
_MIN_ORIENTED_SINE = (
    1e-8  # sine between a normal and the plane of its face above which its sign is reliable
)

# The directions of `mesh_extrema`: -1, 0, 1 along each axis, the last axis fastest.
_DIRECTIONS = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


@dataclass(frozen=True, eq=False)
class Hull:
    """The convex hull of a set of points.

    Attributes:
      vertex: ids of the points on the hull, ascending, (nhull,).
      face: ids of the points of each triangle, counter-clockwise from outside, (nface, 3).
    """

    vertex: np.ndarray
    face: np.ndarray

    def graph(self, face: np.ndarray) -> np.ndarray:
        """Return the record of `mesh_graph`, (2 + 3 nhull + 6 nface,).

        Args:
          face: the faces, with their corners in the stored order, (nface, 3).
        """
        nvert, nface = len(self.vertex), len(face)
        local = np.searchsorted(self.vertex, face)
        start, end = local.ravel(), np.roll(local, -1, axis=1).ravel()
        order = np.lexsort((end, start))
        degree = np.bincount(start, minlength=nvert)

        # the neighbors of each vertex, terminated by -1
        edges = np.full(nvert + 3 * nface, -1)
        edges[np.arange(3 * nface) + start[order]] = end[order]
        address = np.cumsum(degree + 1) - (degree + 1)
        parts = ([nvert, nface], address, self.vertex, edges, face.ravel())
        return np.concatenate(parts).astype(np.int32)

    def extrema(self, vertex: np.ndarray) -> np.ndarray:
        """Return the extreme hull vertex in each direction, as an index into the hull, (27,).

        For the direction (0, 0, 0) it is the first vertex.
        """
        return np.argmax(vertex[self.vertex] @ _DIRECTIONS.T, axis=0).astype(np.int32)


def convex_hull(vertex: np.ndarray, maxhullvert: int = -1) -> Hull:
    """Return the hull of points (n, 3), with at most `maxhullvert` vertices if that is positive.

    Raises:
      AssetError: the points lie in a plane, on a line, or in one point.
    """
    from scipy.spatial import ConvexHull, QhullError  # late: slow to import, and few models need it

    options = _OPTIONS
    if maxhullvert > 0:
        # Q9 adds the points in the order of their distance, so that a coarse hull fits well.
        options += f" Q9 TA{maxhullvert - _SIMPLEX}"
    try:
        hull = ConvexHull(vertex, qhull_options=options)
    except QhullError as error:
        raise AssetError(_degeneracy_reason(vertex, str(error))) from None
    face = _outward_faces(vertex, hull)
    return Hull(np.unique(face).astype(np.int32), face)


def _degeneracy_reason(vertex: np.ndarray, message: str) -> str:
    """Return why points have no hull: they are coplanar, collinear or coincident, or Qhull's
    message."""
    extent = np.linalg.svd(vertex - vertex.mean(axis=0), compute_uv=False)
    for size, where, remedy in zip(extent, _DEGENERACIES, _REMEDIES, strict=True):
        if size <= _FLAT_TOLERANCE * max(extent[0], np.abs(vertex).max()):
            return f"its vertices lie {where}, and have no convex hull; use {remedy}"
    return f"its convex hull cannot be found ({message.strip().splitlines()[0]}); repair the mesh"


def _outward_faces(vertex: np.ndarray, hull: ConvexHull) -> np.ndarray:
    """Return the faces of a hull, counter-clockwise from outside, (nface, 3).

    For degenerate faces the normal is unreliable: their orientation is opposite to that of a
    neighbor along the common edge.
    """
    face = hull.simplices.astype(np.int32)
    a, b, c = (vertex[face[:, i]] for i in range(3))
    along = np.einsum("ni,ni->n", cross_arrays(b - a, c - a), hull.equations[:, :3])
    inward = along < 0
    face[inward] = face[inward][:, _REVERSED_CORNERS]

    scale = row_norms(b - a) * row_norms(c - a)
    known = np.abs(along) > _MIN_ORIENTED_SINE * scale
    left = list(np.flatnonzero(~known))
    while left:
        ready = [i for i in left if known[hull.neighbors[i]].any()]
        for i in ready:
            adjacent = next(j for j in hull.neighbors[i] if known[j])
            if _edges(face[i]) & _edges(face[adjacent]):
                face[i] = face[i][_REVERSED_CORNERS]
            known[i] = True
        left = [i for i in left if not known[i]] if ready else []
    return face


def _edges(face: np.ndarray) -> set[tuple[int, int]]:
    """Return the directed edges of one face."""
    a, b, c = (int(i) for i in face)
    return {(a, b), (b, c), (c, a)}
