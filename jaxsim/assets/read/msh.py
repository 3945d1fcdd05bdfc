"""Read MSH files, MuJoCo's binary mesh format (XML reference, asset/mesh).

Four counts as int32, then the points, normals and texture coordinates as float32 and the triangles
as int32, all little-endian. Normals and texture coordinates belong to the points, one each.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_HEADER = 16  # bytes of the four counts
_MAX_COUNT = 2**31 // 12  # larger counts could not be addressed with 32 bits


def read_msh(data: bytes) -> Surface:
    """Return the surface in an MSH file; one without triangles is a point cloud.

    Raises:
      AssetError: the counts contradict each other or the length, or a triangle has an invalid
        index.
    """
    if not data:
        raise AssetError("the MSH file is empty")
    if len(data) < _HEADER:
        raise AssetError(f"the MSH file has {len(data)} bytes; its header alone takes {_HEADER}")
    counts = [int(n) for n in np.frombuffer(data, "<i4", 4)]
    nvertex, nnormal, ntexcoord, nface = counts
    if nvertex < 4 or nface < 0 or nnormal not in (0, nvertex) or ntexcoord not in (0, nvertex):
        raise AssetError(
            f"the MSH file has {nvertex} vertices, {nnormal} normals, {ntexcoord} texture"
            f" coordinates and {nface} faces; it needs 4 vertices or more, and as many normals and"
            " texture coordinates, or none"
        )
    if max(counts) > _MAX_COUNT:
        raise AssetError(f"the MSH file claims {max(counts)} items; it is damaged")
    expected = _HEADER + 12 * (nvertex + nnormal + nface) + 8 * ntexcoord
    if len(data) != expected:
        raise AssetError(
            f"the MSH file has {len(data)} bytes, but its counts need {expected}; it is truncated"
        )
    parts = _Parts(data)
    vertex, normal = parts.take("<f4", nvertex, 3), parts.take("<f4", nnormal, 3)
    texcoord, face = parts.take("<f4", ntexcoord, 2), parts.take("<i4", nface, 3)
    wrong = np.argwhere((face < 0) | (face >= nvertex))
    if len(wrong):
        i, j = wrong[0]
        raise AssetError(f"face {i} of the MSH file has vertex {face[i, j]}; it has {nvertex}")
    return Surface(
        vertex=vertex.astype(np.float64),
        face=face.astype(np.int32),
        normal=normal.astype(np.float64) if nnormal else None,
        face_normal=face.astype(np.int32) if nnormal else None,
        texcoord=texcoord.astype(np.float64) if ntexcoord else None,
        face_texcoord=face.astype(np.int32) if ntexcoord else None,
    )


class _Parts:
    """Consecutive arrays in the bytes of a file."""

    def __init__(self, data: bytes):
        self._data, self._offset = data, _HEADER

    def take(self, dtype: str, rows: int, columns: int) -> np.ndarray:
        """Return the next array, (rows, columns)."""
        table = np.frombuffer(self._data, dtype, rows * columns, self._offset)
        self._offset += table.nbytes
        return table.reshape(rows, columns)
