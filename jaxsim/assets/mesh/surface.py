"""A surface made ready: welded, with faces and normals, and with its convex hull when asked for.

Nothing here depends on where a mesh is placed or how it is scaled, so that meshes of the same file
share the work. The oracle, too, finds hulls and their polygons before it scales a mesh.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from jaxsim.assets.mesh.hull import Hull, convex_hull
from jaxsim.assets.mesh.normals import vertex_normals
from jaxsim.assets.mesh.polygons import Polygons, polygons
from jaxsim.assets.mesh.weld import welded
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_FEWEST = 4  # vertices of a mesh


class MeshSurface:
    """The surface of one or several meshes, before they are placed.

    A cloud of points takes the faces of its hull. Normals that the surface does not bring are
    averages of the faces' own.
    """

    def __init__(self, surface: Surface, smooth: bool, maxhullvert: int, *, weld: bool = False):
        _check(surface)
        self.source = welded(surface) if weld else surface
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
        """Return the convex hull; found when it is first asked for.

        Raises:
          AssetError: the points have no hull.
        """
        return convex_hull(self.vertex, self.maxhullvert)

    @cached_property
    def polygons(self) -> Polygons:
        """Return the flat sides of the hull."""
        return polygons(self.vertex, self.hull.face)

    @cached_property
    def normal(self) -> np.ndarray:
        """Return the normals, (nnormal, 3); those that the surface brings have the length that they
        have."""
        if self.source.normal is not None:
            return self.source.normal
        return vertex_normals(self.vertex, self.face, self.smooth)

    @cached_property
    def face_normal(self) -> np.ndarray:
        """Return the normals of the faces' corners, (nface, 3).

        Where nothing else is said they go with the vertices. Of several normals for each vertex, as
        a tactile sensor has them, it is the first.
        """
        return self._face_index(self.source.face_normal, len(self.normal))

    @cached_property
    def face_texcoord(self) -> np.ndarray:
        """Return the texture coordinates of the faces' corners, (nface, 3); zeros where there are
        none."""
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
    if nvert < _FEWEST:
        raise AssetError(f"a mesh needs at least {_FEWEST} vertices, got {nvert}")
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
