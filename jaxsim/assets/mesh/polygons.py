"""The flat polygons of a hull: its triangles, merged where neighbors are coplanar.

Triangles are coplanar if their normals, as polar angles rounded to hundredths of a radian, are
equal: MuJoCo's criterion, determined by experiment. It is coarse, but contacts are at the outlines,
which consist of hull vertices in any case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.mesh.polygon_order import table_order
from jaxsim.assets.mesh.triangles import area_vectors, normalize_rows
from jaxsim.math.quaternion import cross_arrays

_NORMAL_CELL_ANGLE = 0.01  # cell size of normals [rad]
_POLE_TOLERANCE = 1e-7  # distance of |z| from 1 below which a normal has no azimuth


@dataclass(frozen=True, eq=False)
class Polygons:
    """Polygons that cover the hull of a mesh.

    Attributes:
      normal: outward unit normals, (npoly, 3).
      num: number of vertices of each polygon, (npoly,).
      vertex: ids of the vertices in the mesh, counter-clockwise, polygon by polygon.
      mapnum: number of polygons at each vertex of the mesh, (nvert,).
      map: ids of these polygons, vertex by vertex.
    """

    normal: np.ndarray
    num: np.ndarray
    vertex: np.ndarray
    mapnum: np.ndarray
    map: np.ndarray

    def outlines(self, mirrored: bool) -> np.ndarray:
        """Return `vertex`, or for a mirrored mesh each polygon reversed from its first vertex."""
        if not mirrored:
            return self.vertex
        first, num = (np.repeat(x, self.num) for x in (np.cumsum(self.num) - self.num, self.num))
        return self.vertex[first + (first - np.arange(len(self.vertex))) % num]


def polygons(vertex: np.ndarray, face: np.ndarray) -> Polygons:
    """Return the polygons of a hull, in MuJoCo's order.

    Args:
      vertex: positions, (nvert, 3).
      face: faces of the hull, counter-clockwise from outside, (nface, 3). An outline begins with
        the first of its edges in this list.
    """
    from scipy.sparse import coo_matrix  # late: slow to import, and few models need it
    from scipy.sparse.csgraph import connected_components

    start, end = face.ravel(), np.roll(face, -1, axis=1).ravel()
    twin = _reverse_edges(start, end, len(vertex))
    side = np.repeat(np.arange(len(face)), 3)
    beyond = np.where(twin >= 0, side[twin], -1)

    # Connected components of coplanar faces are polygons; their outlines are the edges between
    # components.
    cell = _cells(normalize_rows(area_vectors(vertex, face)))
    plane = _planes(cell)
    inner = (beyond >= 0) & (plane[side] == plane[beyond])
    links = coo_matrix((inner[inner], (side[inner], beyond[inner])), shape=(len(face),) * 2)
    npoly, label = connected_components(links, directed=False)
    label = _polygon_of_face(plane, label, npoly)
    start, end, label = start[~inner], end[~inner], label[side[~inner]]

    order = _outline_order(start, end, label, npoly, len(vertex))
    start, label = start[order], label[order]
    num = np.bincount(label, minlength=npoly)
    return Polygons(
        normal=_newell(vertex[start], label, num),
        num=num.astype(np.int32),
        vertex=start.astype(np.int32),
        mapnum=np.bincount(start, minlength=len(vertex)).astype(np.int32),
        map=label[np.lexsort((label, start))].astype(np.int32),
    )


def _reverse_edges(start: np.ndarray, end: np.ndarray, nvert: int) -> np.ndarray:
    """Return for each directed edge the reverse edge, -1 if there is none."""
    key = start.astype(np.int64) * nvert + end
    back = end.astype(np.int64) * nvert + start
    order = np.argsort(key)
    place = np.minimum(np.searchsorted(key, back, sorter=order), len(key) - 1)
    found = order[place]
    return np.where(key[found] == back, found, -1)


def _cells(normal: np.ndarray) -> np.ndarray:
    """Return azimuth and polar angle of normals (n, 3) in cells, (n, 2)."""
    x, y, z = (normal + 0.0).T
    azimuth = np.where(1 - np.abs(z) < _POLE_TOLERANCE, 0.0, np.arctan2(y, x))
    polar = np.arccos(np.clip(z, -1, 1))
    return np.rint(np.stack([azimuth, polar], axis=1) / _NORMAL_CELL_ANGLE).astype(np.int64)


def _planes(cell: np.ndarray) -> np.ndarray:
    """Return for each normal the index of its cell in the table of all cells."""
    _, first, place = np.unique(cell, axis=0, return_index=True, return_inverse=True)
    by_insertion = np.argsort(first)
    order = by_insertion[table_order(cell[first[by_insertion]])]
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[place.ravel()]


def _polygon_of_face(plane: np.ndarray, label: np.ndarray, npoly: int) -> np.ndarray:
    """Return the polygon of each face, ordered by planes, and within a plane by their first
    faces."""
    _, first = np.unique(label, return_index=True)
    place = np.empty(npoly, label.dtype)
    place[np.lexsort((first, plane[first]))] = np.arange(npoly)
    return place[label]


def _outline_order(
    start: np.ndarray, end: np.ndarray, label: np.ndarray, npoly: int, nvert: int
) -> np.ndarray:
    """Return the consecutive order of the edges of the outlines, polygon by polygon."""
    key = label.astype(np.int64) * nvert + start
    order = np.argsort(key, kind="stable")
    follower = order[np.searchsorted(key, label.astype(np.int64) * nvert + end, sorter=order)]
    num = np.bincount(label, minlength=npoly)
    first = np.cumsum(num) - num

    # all polygons at once, one edge per iteration
    _, current = np.unique(label, return_index=True)
    place = np.zeros(len(start), np.int64)
    for step in range(num.max(initial=0)):
        alive = step < num
        place[first[alive] + step] = current[alive]
        current = follower[current]
    return place


def _newell(point: np.ndarray, label: np.ndarray, num: np.ndarray) -> np.ndarray:
    """Return the unit normals of polygons from all their vertices (Newell's method), (npoly, 3)."""
    after = np.arange(1, len(point) + 1)
    after[np.cumsum(num) - 1] = np.cumsum(num) - num
    arm = point - point[(np.cumsum(num) - num)[label]]
    twice = cross_arrays(arm, arm[after])
    return normalize_rows(
        np.stack([np.bincount(label, twice[:, i], len(num)) for i in range(3)], axis=1)
    )
