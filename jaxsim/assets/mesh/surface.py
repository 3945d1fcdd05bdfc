"""A processed surface: welded, with faces and normals, and its convex hull on demand.

Nothing here depends on placement or scale, so that meshes of the same file share the work. MuJoCo,
too, computes hulls and their polygons before it scales a mesh.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from jaxsim.assets.mesh.hull import Hull, convex_hull
from jaxsim.assets.mesh.normals import vertex_normals
from jaxsim.assets.mesh.polygons import Polygons, polygons
from jaxsim.assets.mesh.weld import weld_vertices
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_MIN_VERTICES = 4  # smallest number of vertices of a mesh


class MeshSurface:
    """The surface of one or several meshes, before placement.

    A point cloud gets the faces of its hull. Missing normals are averages of the face normals.
    """

    def __init__(self, surface: Surface, smooth: bool, maxhullvert: int, *, weld: bool = False):
        _check(surface)
        if weld:
            vertex, index = weld_vertices(surface.vertex)
            face = index[surface.face].astype(np.int32)
            surface = dataclasses.replace(surface, vertex=vertex, face=face)
        self.source = surface
        self.smooth = smooth
        self.maxhullvert = maxhullvert

    @property
    def vertex(self) -> np.ndarray:
        """Return the positions, (nvert, 3)."""
        return self.source.vertex

    @cached_property
    def face(self) -> np.ndarray:
        """Return the vertices of the faces, (nface, 3)."""
        return self.source.face if len(self.source.face) else self.hull.face

    @cached_property
    def hull(self) -> Hull:
        """Return the convex hull; computed on first use.

        Raises:
          AssetError: the points have no hull.
        """
        return convex_hull(self.vertex, self.maxhullvert)

    @cached_property
    def polygons(self) -> Polygons:
        """Return the flat polygons of the hull."""
        return polygons(self.vertex, self.hull.face)

    @cached_property
    def normal(self) -> np.ndarray:
        """Return the normals, (nnormal, 3); given ones keep their length."""
        if self.source.normal is not None:
            return self.source.normal
        return vertex_normals(self.vertex, self.face, self.smooth)

    @cached_property
    def face_normal(self) -> np.ndarray:
        """Return the normal indices of the faces' corners, (nface, 3).

        By default they equal the vertex indices. Of several normals per vertex, as for a tactile
        sensor, the first one is used.
        """
        return self._face_index(self.source.face_normal, len(self.normal))

    @cached_property
    def face_texcoord(self) -> np.ndarray:
        """Return the texture coordinate indices of the faces' corners, (nface, 3); zeros if there
        are none."""
        return self._face_index(self.source.face_texcoord, len(self.texcoord))

    @property
    def texcoord(self) -> np.ndarray:
        """Return the texture coordinates, (ntexcoord, 2)."""
        return np.zeros((0, 2)) if self.source.texcoord is None else self.source.texcoord

    def _face_index(self, given: np.ndarray | None, count: int) -> np.ndarray:
        if given is not None and len(given) == len(self.face):
            return given
        return self.face * (count // len(self.vertex))


def _check(surface: Surface) -> None:
    nvert = len(surface.vertex)
    if nvert < _MIN_VERTICES:
        raise AssetError(f"a mesh needs at least {_MIN_VERTICES} vertices, got {nvert}")
    if not np.isfinite(surface.vertex).all():
        at = np.argwhere(~np.isfinite(surface.vertex))[0]
        raise AssetError(f"coordinate {at[1]} of vertex {at[0]} is not a finite number")
    for what, index, count in (
        ("vertex", surface.face, nvert),
        ("normal", surface.face_normal, _length(surface.normal)),
        ("texture coordinate", surface.face_texcoord, _length(surface.texcoord)),
    ):
        if index is None:
            continue
        outside = np.argwhere((index < 0) | (index >= count))
        if len(outside):
            at, corner = outside[0]
            raise AssetError(
                f"face {at} has {what} {index[at, corner]}, but they run from 0 to {count - 1}"
            )
    if (
        surface.texcoord is not None
        and surface.face_texcoord is None
        and len(surface.texcoord) != nvert
    ):
        raise AssetError(
            f"it has {len(surface.texcoord)} texture coordinates for {nvert} vertices;"
            " give one for each vertex"
        )


def _length(array: np.ndarray | None) -> int:
    return 0 if array is None else len(array)
