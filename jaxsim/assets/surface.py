"""A triangle surface as given by a mesh file, before any processing by the compiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles over shared points.

    The numbers are the file's own: no scale, no weld, no change of frame. Normals and texture
    coordinates may have indices of their own, as in OBJ.

    Attributes:
      vertex: (nvert, 3) positions, with the precision of the file widened to float64.
      face: (nface, 3) indices into `vertex`; faces of a closed surface are counter-clockwise from
        outside. No faces: a point cloud.
      normal: (nnormal, 3) unit normals, or None.
      face_normal: (nface, 3) indices into `normal`, or None.
      texcoord: (ntexcoord, 2) texture coordinates, or None.
      face_texcoord: (nface, 3) indices into `texcoord`, or None.
    """

    vertex: np.ndarray
    face: np.ndarray
    normal: np.ndarray | None = None
    face_normal: np.ndarray | None = None
    texcoord: np.ndarray | None = None
    face_texcoord: np.ndarray | None = None
