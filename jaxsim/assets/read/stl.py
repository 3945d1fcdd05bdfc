"""Read STL files: triangles with three points each, in binary or text form.

The binary form is an 80-byte title, the number of triangles, and 50 bytes for each of them: a
normal, three points, and two unused bytes, all little-endian. MuJoCo reads only this form; the text
form, which begins with the word `solid`, is read here too. A binary title may begin with `solid` as
well, so the length decides: a file of exactly the length given by its triangle count is binary.
"""

from __future__ import annotations

import re

import numpy as np

from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

MAXFACE = 200_000  # largest number of triangles in a file, as in MuJoCo
MAXCOORD = 2.0**30  # largest coordinate in a file, as in MuJoCo

_HEADER = 84  # bytes before the triangles: title and count
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)


def read_stl(data: bytes) -> Surface:
    """Return the surface in an STL file; corners shared by triangles are not merged.

    Raises:
      AssetError: the data is no STL file, is truncated, or exceeds MuJoCo's limits.
    """
    if not data:
        raise AssetError("the STL file is empty")
    corners = _read_text_form(data) if _is_text(data) else _binary(data)
    # NaN fails the comparison too.
    if not np.all(np.abs(corners) <= MAXCOORD):
        raise AssetError(f"a coordinate is not a number within ±{MAXCOORD:.0f}; scale the mesh")
    vertex = corners.reshape(-1, 3).astype(np.float64)
    return Surface(vertex=vertex, face=np.arange(len(vertex), dtype=np.int32).reshape(-1, 3))


def _is_text(data: bytes) -> bool:
    """Return whether a file that begins like text does not have the exact length of a binary
    file."""
    if data.lstrip()[:5].lower() != b"solid":
        return False
    return len(data) < _HEADER or len(data) != _HEADER + _TRIANGLE.itemsize * _count(data)


def _count(data: bytes) -> int:
    return int(np.frombuffer(data, "<u4", count=1, offset=_HEADER - 4)[0])


def _binary(data: bytes) -> np.ndarray:
    """Return the corners of the triangles, (nface, 3, 3)."""
    if len(data) < _HEADER:
        raise AssetError(f"the STL file has {len(data)} bytes; its header alone takes {_HEADER}")
    count = _count(data)
    _check_count(count)
    expected = _HEADER + _TRIANGLE.itemsize * count
    if len(data) != expected:
        raise AssetError(
            f"the STL file has {len(data)} bytes, but {count} triangles need {expected};"
            " it is truncated or not an STL file"
        )
    return np.frombuffer(data, _TRIANGLE, offset=_HEADER)["corner"]


def _read_text_form(data: bytes) -> np.ndarray:
    """Return the corners of the triangles of the text form, (nface, 3, 3)."""
    if b"endsolid" not in data.lower():
        raise AssetError("the text of the STL file has no 'endsolid'; it is truncated")
    words = _VERTEX.findall(data)
    if len(words) % 3:
        raise AssetError(f"the STL file has {len(words)} vertices, not three for each facet")
    _check_count(len(words) // 3)
    try:
        numbers = np.array(words).astype(np.float32)
    except ValueError as error:
        raise AssetError(f"a vertex of the STL file is not three numbers: {error}") from None
    return numbers.reshape(-1, 3, 3)


def _check_count(count: int) -> None:
    if not 1 <= count <= MAXFACE:
        raise AssetError(
            f"the STL file has {count} triangles; MuJoCo reads from 1 to {MAXFACE}:"
            " decimate the mesh, or split it"
        )
