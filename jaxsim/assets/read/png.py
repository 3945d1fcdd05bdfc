"""Check PNG files as strictly as MuJoCo's reader, with the reason of each rejection.

A file is a signature and chunks, each of them a length, a kind of four letters, a body and a CRC
(PNG specification, third edition). The pixels are one zlib stream in the IDAT chunks: rows of
bytes, each after the number of its filter, or seven smaller images if they are interlaced.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxsim.assets.source.limits import check_limit
from jaxsim.errors import AssetError

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_SAMPLES = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGBA: 4}
_DEPTHS = {
    _GRAY: (1, 2, 4, 8, 16),
    _RGB: (8, 16),
    _PALETTE: (1, 2, 4, 8),
    _GRAY_ALPHA: (8, 16),
    _RGBA: (8, 16),
}
_FILTERS = 5
_ANCILLARY = 0x20  # bit of the first letter of a kind: readers may skip it
_MAXTEXT = 1 << 24  # limit on the bytes of one decompressed text or color profile

# First column and row of each of the interlaced images, and the steps to the next ones.
_PASSES = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


class Head(NamedTuple):
    """The header chunk."""

    width: int
    height: int
    depth: int
    color: int
    compression: int
    filter: int
    interlaced: int

    @property
    def bits(self) -> int:
        """Return the number of bits of a pixel."""
        return self.depth * _SAMPLES[self.color]


@dataclass(frozen=True, eq=False)
class Png:
    """A valid PNG file.

    Attributes:
      head: its header.
      data: the file reduced to the chunks that define its pixels.
    """

    head: Head
    data: bytes


def check_png(data: bytes, nchannel: int = 1) -> Png:
    """Check a PNG file, down to the filters of its rows.

    Args:
      data: contents of the file.
      nchannel: bytes per decoded pixel.

    Raises:
      AssetError: the file is damaged, or its pixels take more memory than the limit.
    """
    if not data.startswith(SIGNATURE):
        raise AssetError("this is no PNG image; convert it to PNG")
    chunks = _chunks(data)
    kind, body = next(chunks)
    if kind != b"IHDR":
        raise AssetError(
            f"the PNG image begins with {_format_kind(kind)}, not with IHDR; it is damaged"
        )
    head = _head(body)
    check_limit("image_bytes", head.width * head.height * max(nchannel, head.bits // 8))
    kept, stream = [_chunk(kind, body)], []
    palette = 0
    for kind, body in chunks:
        if kind == b"IDAT":
            stream.append(body)
        elif kind == b"PLTE":
            palette = _palette(body)
        elif kind in _CHECKS:
            _CHECKS[kind](head, body, palette)
        elif not kind[0] & _ANCILLARY and kind != b"IEND":
            raise AssetError(
                f"the PNG image has a chunk {_format_kind(kind)}, which must not be ignored"
            )
        if kind in (b"PLTE", b"tRNS"):
            kept.append(_chunk(kind, body))
    if head.color == _PALETTE and not palette:
        raise AssetError("the PNG image has no palette; it is damaged")
    packed = b"".join(stream)
    _check_rows(head, packed)
    kept += [_chunk(b"IDAT", packed), _chunk(b"IEND", b"")]
    return Png(head, SIGNATURE + b"".join(kept))


def is_srgb(data: bytes) -> bool:
    """Return whether a PNG file declares its colors as sRGB, in a chunk."""
    return data.startswith(SIGNATURE) and any(kind == b"sRGB" for kind, _ in _chunks(data))


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the kind and body of each chunk, up to the last one."""
    view, start, kind = memoryview(data), len(SIGNATURE), b""
    while kind != b"IEND":
        if start + 12 > len(data):
            raise AssetError("the PNG image has no end; it is truncated")
        length, kind = struct.unpack_from(">I4s", data, start)
        if not kind.isalpha():
            raise AssetError(
                f"a chunk of the PNG image has the kind {_format_kind(kind)}; it is damaged"
            )
        end = start + 12 + length
        if end > len(data):
            raise AssetError(
                f"chunk {_format_kind(kind)} of the PNG image is truncated, or damaged"
            )
        # as in MuJoCo's reader, the checksum of an unknown kind is not verified
        known = kind in _CHECKS or kind in _CRITICAL or not kind[0] & _ANCILLARY
        if known and zlib.crc32(view[start + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            raise AssetError(
                f"chunk {_format_kind(kind)} of the PNG image does not match its checksum"
            )
        yield kind, view[start + 8 : end - 4]
        start = end


def _chunk(kind: bytes, body: bytes | memoryview) -> bytes:
    raw = kind + body
    return struct.pack(">I", len(body)) + raw + struct.pack(">I", zlib.crc32(raw))


def _head(body: memoryview) -> Head:
    if len(body) != 13:
        raise AssetError(f"the header of the PNG image has {len(body)} bytes, not 13")
    head = Head(*struct.unpack(">IIBBBBB", body))
    if not (head.width and head.height):
        raise AssetError(f"the PNG image has {head.height} x {head.width} pixels")
    if head.depth not in _DEPTHS.get(head.color, ()):
        raise AssetError(f"the PNG image has no color type {head.color} with {head.depth} bits")
    if head.compression or head.filter or head.interlaced > 1:
        raise AssetError(
            "the PNG image has an unknown compression, filter or interlace method; it is damaged"
        )
    return head


def _palette(body: memoryview) -> int:
    """Return the number of colors in a palette."""
    count = len(body) // 3
    if not 1 <= count <= 256:
        raise AssetError(f"the palette of the PNG image has {count} colors")
    return count


def _check_rows(head: Head, packed: bytes) -> None:
    """Check that the pixels are complete, with valid filters."""
    sizes = list(_row_sizes(head))
    expected = sum(rows * (1 + size) for rows, size in sizes)
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(packed, expected + 1)
    except zlib.error as error:
        raise AssetError(f"the pixels of the PNG image are damaged: {error}") from None
    if len(raw) != expected or not inflate.eof or inflate.unused_data:
        raise AssetError(
            f"the pixels of the PNG image take {len(raw)} bytes or more, {head.height} x"
            f" {head.width} need {expected}; it is truncated or damaged"
        )
    flat, start = np.frombuffer(raw, np.uint8), 0
    for rows, size in sizes:
        end = start + rows * (1 + size)
        worst = flat[start : end : 1 + size].max(initial=0)
        if worst >= _FILTERS:
            raise AssetError(f"a row of the PNG image has filter {worst}; it is damaged")
        start = end


def _row_sizes(head: Head) -> Iterator[tuple[int, int]]:
    """Yield the number of rows of each image in the stream, and the bytes of a row."""
    passes = _PASSES if head.interlaced else ((0, 0, 1, 1),)
    for x, y, dx, dy in passes:
        columns, rows = -(-(head.width - x) // dx), -(-(head.height - y) // dy)
        if columns > 0 and rows > 0:
            yield rows, -(-columns * head.bits // 8)


# --- other chunks ---


def _length(kind: str, length: int) -> Callable[[Head, memoryview, int], None]:
    def check(head: Head, body: memoryview, palette: int) -> None:
        if len(body) != length:
            raise AssetError(f"chunk {kind} of the PNG image has {len(body)} bytes, not {length}")

    return check


def _check_transparency(head: Head, body: memoryview, palette: int) -> None:
    fits = {
        _PALETTE: len(body) <= palette,
        _GRAY: len(body) == 2,
        _RGB: len(body) == 6,
    }
    if not fits.get(head.color, False):
        raise AssetError("chunk tRNS of the PNG image contradicts its color type")


def _background(head: Head, body: memoryview, palette: int) -> None:
    length = {_PALETTE: 1, _GRAY: 2, _GRAY_ALPHA: 2}.get(head.color, 6)
    if len(body) != length or (head.color == _PALETTE and body[0] >= palette):
        raise AssetError("chunk bKGD of the PNG image contradicts its color type")


def _text_after_keyword(kind: str, body: memoryview) -> bytes:
    """Return the rest of a text chunk after its zero-terminated keyword."""
    keyword, _, rest = bytes(body).partition(b"\0")
    if not 1 <= len(keyword) <= 79:
        raise AssetError(f"chunk {kind} of the PNG image has a keyword of {len(keyword)} letters")
    return rest


def _check_text(head: Head, body: memoryview, palette: int) -> None:
    _text_after_keyword("tEXt", body)


def _packed_text(head: Head, body: memoryview, palette: int) -> None:
    rest = _text_after_keyword("zTXt", body)
    _decompress("zTXt", rest[:1], rest[1:])


def _check_color_profile(head: Head, body: memoryview, palette: int) -> None:
    rest = _text_after_keyword("iCCP", body)
    if not _decompress("iCCP", rest[:1], rest[1:]):
        raise AssetError("chunk iCCP of the PNG image is empty")


def _unicode_text(head: Head, body: memoryview, palette: int) -> None:
    rest = _text_after_keyword("iTXt", body)
    if len(rest) < 3 or rest[1]:
        raise AssetError(
            "chunk iTXt of the PNG image is truncated, or compressed by an unknown method"
        )
    # language, translated keyword, text; the last ones may be missing
    fields = rest[2:].split(b"\0", 2)
    if rest[0]:
        _decompress("iTXt", rest[1:2], b"".join(fields[2:]))


def _decompress(kind: str, method: bytes, data: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(data, _MAXTEXT)
    except zlib.error as error:
        raise AssetError(f"chunk {kind} of the PNG image is damaged: {error}") from None
    if method != b"\0" or not inflate.eof or inflate.unused_data:
        raise AssetError(f"chunk {kind} of the PNG image is truncated, or too large")
    return text


def _check_significant_bits(head: Head, body: memoryview, palette: int) -> None:
    """Check the significant bits of each sample: from 1 to the sample depth."""
    expected = 3 if head.color == _PALETTE else _SAMPLES[head.color]
    depth = 8 if head.color == _PALETTE else head.depth
    if len(body) != expected or not all(1 <= bits <= depth for bits in body):
        raise AssetError("chunk sBIT of the PNG image contradicts its color type")


_CRITICAL = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_CHECKS: dict[bytes, Callable[[Head, memoryview, int], None]] = {
    b"tRNS": _check_transparency,
    b"bKGD": _background,
    b"tEXt": _check_text,
    b"zTXt": _packed_text,
    b"iTXt": _unicode_text,
    b"iCCP": _check_color_profile,
    b"sBIT": _check_significant_bits,
    b"tIME": _length("tIME", 7),
    b"pHYs": _length("pHYs", 9),
    b"gAMA": _length("gAMA", 4),
    b"cHRM": _length("cHRM", 32),
    b"sRGB": _length("sRGB", 1),
    b"cICP": _length("cICP", 4),
    b"mDCV": _length("mDCV", 24),
    b"cLLI": _length("cLLI", 8),
    b"eXIf": lambda head, body, palette: None,
}


def _format_kind(kind: bytes) -> str:
    return repr(kind.decode("latin1"))
