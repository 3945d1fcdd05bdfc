"""Read arrays from .npz files, numpy's zip archives, without executing anything.

A member `name.npy` is a magic number, a version, a header written as a Python literal, and the data
(numpy documentation, `numpy.lib.format`). The header determines the allocation, so it is first
compared with the length of the member.
"""

from __future__ import annotations

import ast
import math
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from jaxsim.assets.source.archive import Archive
from jaxsim.errors import AssetError

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}  # formats of the header length, by version
_MAXHEADER = 10_000  # limit on header bytes; those of plain arrays take about a hundred
# numeric and string types
_NUMBERS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|[SU]\d{1,7}|\?)")
_BLOCK = 1 << 20

# Exceptions of `ast.literal_eval` for text that is no literal, or is nested too deeply.
_NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def read_npz(path: str | os.PathLike[str], name: str | None = None) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file.

    Args:
      path: the file.
      name: name of a single array to read; None: all.

    Raises:
      ValueError: the file is not an .npz file, is damaged or too large, or has no such array.
      OSError: the file cannot be opened.
    """
    with Path(path).open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path}: not an .npz file, or truncated")
        with Archive(file, f"{path}: damaged .npz file") as archive:
            found = {member.filename.removesuffix(".npy"): member for member in archive.members}
            if name is not None and name not in found:
                others = ", ".join(found) or "nothing"
                raise ValueError(f"{path}: no array named '{name}' in it, only: {others}")
            wanted = found if name is None else {name: found[name]}
            archive.check_size(list(wanted.values()))
            return {name: _array(archive, member, path) for name, member in wanted.items()}


def _array(archive: Archive, member: zipfile.ZipInfo, path: str | os.PathLike[str]) -> np.ndarray:
    with archive.open(member) as stream:
        try:
            header = _header(stream)
            _check_length(header, member.file_size - stream.tell())
        except AssetError as error:
            message = f"damaged .npz file: '{member.filename}': {error}"
            raise AssetError(f"{path}: {message}") from None
        flat = np.empty(math.prod(header.shape), header.dtype)
        raw = flat.view(np.uint8).data if flat.nbytes else memoryview(b"")
        for start in range(0, flat.nbytes, _BLOCK):
            size = min(_BLOCK, flat.nbytes - start)
            raw[start : start + size] = _read_exactly(stream, size)
        stream.read()  # reading to the end verifies the checksum
    return flat.reshape(header.shape, order="F" if header.columns_first else "C")


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    block = stream.read(size)
    if len(block) < size:
        raise EOFError("it ends early")
    return block


class _Header(NamedTuple):
    dtype: np.dtype
    shape: tuple[int, ...]
    columns_first: bool


def _header(stream: BinaryIO) -> _Header:
    """Return the header of an array."""
    front = stream.read(len(_MAGIC) + 2)
    if front[: len(_MAGIC)] != _MAGIC or len(front) < len(_MAGIC) + 2:
        raise AssetError("it is no array of numpy")
    form = _LENGTHS.get(front[len(_MAGIC)])
    if form is None:
        raise AssetError(f"version {front[len(_MAGIC)]} of the format is not known")
    (length,) = struct.unpack(form, stream.read(struct.calcsize(form)))
    if length > _MAXHEADER:
        raise AssetError(f"its header has {length} bytes; the most is {_MAXHEADER}")
    text = stream.read(length).decode("latin1").strip()
    try:
        header = ast.literal_eval(text)
    except _NO_LITERAL:
        header = None
    described = _parse_header(header)
    if described is None:
        raise AssetError(f"its header makes no sense: {text[:80]!r}")
    return described


def _parse_header(header: Any) -> _Header | None:
    """Return the header given by a literal; None if it is no valid header."""
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        return None
    kind, shape = header["descr"], header["shape"]
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        return None
    if not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        raise AssetError(f"it holds {str(kind)[:80]!r}; only numbers and texts are read")
    return _Header(np.dtype(kind), shape, bool(header["fortran_order"]))


def _check_length(header: _Header, length: int) -> None:
    expected = math.prod(header.shape) * header.dtype.itemsize
    # No axis may exceed the index type, even where another one is 0.
    if expected != length or any(n > np.iinfo(np.intp).max for n in header.shape):
        raise AssetError(f"an array {header.shape} of {header.dtype} does not take {length} bytes")
