"""Read SKN files, MuJoCo's binary skin format (XML reference, deformable/skin).

Four counts as int32; points, texture coordinates and triangles; then for each bone a name of 40
bytes, the bind pose of its body, and the points it moves with their weights. Numbers are int32 and
float32, little-endian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.errors import AssetError

_HEADER = 16
_NAME = 40  # bytes of a body's name


@dataclass(frozen=True, eq=False)
class Bone:
    """A body that moves points of a skin.

    Attributes:
      body: name of the body.
      pos: bind position of the body [m], (3,).
      quat: bind orientation, (4,).
      vertid: points that it moves, (n,).
      weight: its weight in each of them, (n,).
    """

    body: str
    pos: np.ndarray
    quat: np.ndarray
    vertid: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class Skin:
    """A surface that deforms with the bodies.

    Attributes:
      vertex: bind positions [m], (nvertex, 3).
      texcoord: texture coordinates, (nvertex, 2), or (0, 2).
      face: triangles, (nface, 3).
      bones: the bodies that move it.
    """

    vertex: np.ndarray
    texcoord: np.ndarray
    face: np.ndarray
    bones: tuple[Bone, ...]


def read_skin(data: bytes) -> Skin:
    """Return the skin in an SKN file.

    Raises:
      AssetError: the counts contradict the length of the file.
    """
    if len(data) < _HEADER:
        raise AssetError(f"the SKN file has {len(data)} bytes; its header alone takes {_HEADER}")
    parts = _Parts(data)
    nvertex, ntexcoord, nface, nbone = (int(n) for n in parts.take("<i4", 4))
    if min(nvertex, ntexcoord, nface, nbone) < 0:
        raise AssetError("the SKN file claims a negative count; it is damaged")
    skin = Skin(
        vertex=parts.take("<f4", 3 * nvertex).reshape(-1, 3),
        texcoord=parts.take("<f4", 2 * ntexcoord).reshape(-1, 2),
        face=parts.take("<i4", 3 * nface).reshape(-1, 3),
        bones=tuple(_bone(parts) for _ in range(nbone)),
    )
    if parts.bytes_left:
        raise AssetError(f"the SKN file has {parts.bytes_left} bytes more than its counts ask for")
    return skin


def _bone(parts: _Parts) -> Bone:
    name = parts.take("u1", _NAME).tobytes().split(b"\0", 1)[0].decode(errors="replace")
    pos, quat = parts.take("<f4", 3), parts.take("<f4", 4)
    count = int(parts.take("<i4", 1)[0])
    if count < 0:
        raise AssetError(f"bone '{name}' of the SKN file claims {count} vertices; it is damaged")
    return Bone(name, pos, quat, parts.take("<i4", count), parts.take("<f4", count))


class _Parts:
    """Consecutive arrays in the bytes of a file."""

    def __init__(self, data: bytes):
        self._data, self._offset = data, 0

    @property
    def bytes_left(self) -> int:
        """Return the number of remaining bytes."""
        return len(self._data) - self._offset

    def take(self, dtype: str, count: int) -> np.ndarray:
        """Return the next numbers, (count,)."""
        size = np.dtype(dtype).itemsize * count
        if size > self.bytes_left:
            raise AssetError(
                f"the SKN file ends {size - self.bytes_left} bytes early; it is truncated"
            )
        part = np.frombuffer(self._data, dtype, count, self._offset)
        self._offset += size
        return part
