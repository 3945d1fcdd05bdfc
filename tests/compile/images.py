"""Images and other files of bytes that the tests of assets are made of."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image


def png(pixels: np.ndarray, **options) -> bytes:
    """A PNG file of uint8 pixels (gray, with opacity, or in color), or of gray uint16."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png", **options)
    return stream.getvalue()


def with_chunk(data: bytes, kind: bytes, body: bytes) -> bytes:
    """A PNG file with one more chunk after its header."""
    end_of_header = 8 + 25
    checksum = struct.pack(">I", zlib.crc32(kind + body))
    chunk = struct.pack(">I", len(body)) + kind + body + checksum
    return data[:end_of_header] + chunk + data[end_of_header:]


def hf(nrow: int, ncol: int, heights) -> bytes:
    """A height field in MuJoCo's binary form."""
    return struct.pack("<ii", nrow, ncol) + np.asarray(heights, "<f4").tobytes()


def skn(vertex, texcoord, face, bones) -> bytes:
    """A skin; each bone is (name, position, quaternion, vertices, weights)."""
    tables = [np.asarray(vertex, "<f4"), np.asarray(texcoord, "<f4"), np.asarray(face, "<i4")]
    data = struct.pack("<4i", *map(len, tables), len(bones))
    data += b"".join(table.tobytes() for table in tables)
    for name, pos, quat, vertid, weight in bones:
        data += name.encode().ljust(40, b"\0") + np.asarray([*pos, *quat], "<f4").tobytes()
        data += struct.pack("<i", len(vertid)) + np.asarray(vertid, "<i4").tobytes()
        data += np.asarray(weight, "<f4").tobytes()
    return data
