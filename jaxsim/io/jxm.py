"""File format of a compiled model: a JSON header, then arrays; loading it executes no code.

    offset  size
    0       8     magic number, in the manner of PNG: a transfer that alters line ends breaks it
    8       4     version of this format
    12      4     bytes of JSON
    16      8     bytes of the whole file
    24      8     zero
    32      32    BLAKE2b-256 of all other bytes
    64            JSON: {"header": ..., "arrays": [[type, shape, offset], ...]}
                  arrays, each at a multiple of 64 from the start of the file

All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxsim.errors import AssetError

JXM_MAGIC = b"\x89JXM\r\n\x1a\n"
_JXM_VERSION = 4  # 4: loaded coordinates of the hull vertices (hull_vert)

_HEADER = struct.Struct("<8sIIQQ")
_DIGEST = 32
_BODY_OFFSET = _HEADER.size + _DIGEST
_ALIGN = 64
_TYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
)
_RECOMPILE_HINT = "compile the model again and save it with this jaxsim"


def is_jxm(data: bytes) -> bool:
    """Return whether a file begins as a compiled model does."""
    return data[: len(JXM_MAGIC)] == JXM_MAGIC


def pack(header: Any, arrays: Sequence[np.ndarray]) -> bytes:
    """Return the file contents for a JSON-serializable header and some arrays.

    Raises:
      ValueError: an array has a type that the format does not support.
    """
    table: list[tuple[str, tuple[int, ...], int]] = []
    offset = 0
    for array in arrays:
        if array.dtype.name not in _TYPES:
            known = ", ".join(sorted(_TYPES))
            raise ValueError(f"an array of type {array.dtype.name} cannot be saved, only {known}")
        table.append((array.dtype.name, array.shape, offset))
        offset = _align(offset + array.nbytes)
    text = json.dumps({"header": header, "arrays": table}, separators=(",", ":")).encode()
    start = _align(_BODY_OFFSET + len(text))
    file = bytearray(start + offset)
    _HEADER.pack_into(file, 0, JXM_MAGIC, _JXM_VERSION, len(text), len(file), 0)
    file[_BODY_OFFSET : _BODY_OFFSET + len(text)] = text
    for array, (_, _, at) in zip(arrays, table, strict=True):
        raw = _little_endian(array).tobytes()
        file[start + at : start + at + len(raw)] = raw
    file[_HEADER.size : _BODY_OFFSET] = _digest(file)
    return bytes(file)


def unpack(data: bytes) -> tuple[Any, list[np.ndarray]]:
    """Return the header and the arrays of a file; the arrays are read-only views of `data`.

    Raises:
      AssetError: the file is not a compiled model, is damaged, or of another version.
    """
    length = _check_front(data)
    if data[_HEADER.size : _BODY_OFFSET] != _digest(data):
        raise AssetError(
            "damaged: its contents do not match their checksum; fetch or save it again"
        )
    try:
        content = json.loads(data[_BODY_OFFSET : _BODY_OFFSET + length])
        start = _align(_BODY_OFFSET + length)
        arrays = [_array(data, start, *row) for row in content["arrays"]]
        return content["header"], arrays
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AssetError(f"damaged: its header is invalid ({error}); {_RECOMPILE_HINT}") from None


def _check_front(data: bytes) -> int:
    """Check the fixed-size front of the file; return the length of the JSON text."""
    if not is_jxm(data):
        if data[:1] == JXM_MAGIC[:1] and data[1:4] == JXM_MAGIC[1:4]:
            raise AssetError("damaged: a transfer changed its line ends; copy it as a binary file")
        raise AssetError(f"not a model that save_model wrote: it begins with {data[:8]!r}")
    if len(data) < _BODY_OFFSET:
        raise AssetError(f"truncated: it has {len(data)} bytes; fetch or save it again")
    _, version, length, size, _ = _HEADER.unpack_from(data)
    if version > _JXM_VERSION:
        raise AssetError(
            f"written in version {version} of the format, this jaxsim reads version "
            f"{_JXM_VERSION}; "
            "use a newer jaxsim, or compile the model again"
        )
    if version != _JXM_VERSION:
        raise AssetError(
            f"damaged, or written in version {version} of the format; {_RECOMPILE_HINT}"
        )
    if len(data) != size:
        what = "truncated" if len(data) < size else "damaged"
        raise AssetError(
            f"{what}: it has {len(data)} bytes, {size} were written; fetch or save it again"
        )
    return length


def _array(data: bytes, start: int, name: str, shape: list[int], offset: int) -> np.ndarray:
    """Return an array of the file, if it lies within the file."""
    if name not in _TYPES or offset < 0 or any(n < 0 for n in shape):
        raise ValueError(f"array of {name}, {shape} at {offset}")
    flat = np.frombuffer(data, name, math.prod(shape), start + offset)
    return _little_endian(flat).reshape(shape)


def _little_endian(array: np.ndarray) -> np.ndarray:
    """Return the array converted between little-endian and native byte order, in either
    direction."""
    return array if sys.byteorder == "little" else array.byteswap()


def _digest(data: bytes | bytearray) -> bytes:
    """Return the checksum of all bytes except those of the checksum itself."""
    view = memoryview(data)
    digest = hashlib.blake2b(view[: _HEADER.size], digest_size=_DIGEST)
    digest.update(view[_BODY_OFFSET:])
    return digest.digest()


def _align(offset: int) -> int:
    return -(-offset // _ALIGN) * _ALIGN
