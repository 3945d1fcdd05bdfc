"""Check of the counts in headers of mesh files against the file length, before any allocation.

A header of a few bytes can claim 10^12 vertices. The readers of trimesh allocate the claimed size,
or stop early without an error; such files are rejected here before they are read.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable

from jaxsim.assets.source.limits import check_limit
from jaxsim.errors import AssetError

_PLY_SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}
_GLB_HEADER, _GLB_CHUNK = 12, 8  # bytes before the first chunk, and of its own header


def check_claims(data: bytes, kind: str) -> None:
    """Raise an error for a file whose header claims more than its bytes can hold.

    Args:
      data: contents of the file.
      kind: "ply", "off", "gltf", "glb" or "dae".

    Raises:
      AssetError: the counts do not fit the length, or are no counts.
    """
    check = _CHECKS.get(kind)
    if check is not None:
        check(data)


def _check_ply(data: bytes) -> None:
    head, end, body = data.partition(b"end_header")
    if not end:
        return  # the reader reports the error
    is_text, element = b"format ascii" in head, ""
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    for words in (line.decode("latin-1").split() for line in head.splitlines()):
        if words[:1] == ["element"]:
            element, count = (*words[1:], "", "")[:2]
            counts[element], sizes[element] = _parse_count(f"element {element}", count), 0
        elif words[:1] == ["property"] and element:
            # a list has at least the number of its items
            kind = (*words, "", "", "")[2 if words[1:2] == ["list"] else 1]
            sizes[element] += 2 if is_text else _PLY_SIZES.get(kind, 1)
    items = sum(counts[name] * max(sizes[name], 1) for name in counts)
    claimed = ", ".join(f"{n} of {name}" for name, n in counts.items())
    # the last number of a text may have no blank after it
    _check_claimed_size("PLY", claimed, items - is_text, len(body))


def _check_off(data: bytes) -> None:
    words = re.sub(rb"#[^\n]*", b"", data[:4096]).split()[:4]
    words = words[1:] if words and not words[0].isdigit() and b"OFF" in words[0] else words
    if len(words) < 2:
        return
    vertices, faces = (_parse_count("the OFF file", w.decode("latin-1")) for w in words[:2])
    # three coordinates of a character and a blank each; a face has at least its corner count
    least = 6 * vertices + 2 * faces - 1
    _check_claimed_size("OFF", f"{vertices} vertices, {faces} faces", least, len(data))


def _check_gltf(data: bytes, size: int | None = None) -> None:
    size = len(data) if size is None else size  # includes the buffers
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return  # the reader reports the error
    accessors = tree.get("accessors", []) if isinstance(tree, dict) else []
    for accessor in accessors if isinstance(accessors, list) else []:
        if isinstance(accessor, dict):
            count = _parse_count("an accessor of the glTF file", str(accessor.get("count", 0)))
            if "bufferView" in accessor:
                _check_claimed_size("glTF", f"{count} items of an accessor", count, size)
                continue
            try:  # an accessor without a buffer is zeros, which take no bytes of the file
                check_limit("mesh_vertices", count)
            except AssetError as error:
                raise AssetError(f"the glTF file claims {error}") from None


def _check_glb(data: bytes) -> None:
    start = _GLB_HEADER + _GLB_CHUNK
    if len(data) < start:
        raise AssetError(f"the GLB file has {len(data)} bytes; its header alone takes {start}")
    total, length = struct.unpack_from("<II", data, 8)
    if total > len(data) or start + length > len(data):
        raise AssetError(
            f"the GLB file has {len(data)} bytes, but its header claims {total}, of which its "
            f"first chunk has {length}; it is cut off"
        )
    _check_gltf(data[start : start + length], len(data))


def _check_dae(data: bytes) -> None:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise AssetError("the COLLADA file has a document type, whose entities may grow; remove it")


def _parse_count(what: str, text: str) -> int:
    if not text.isdigit() or len(text) > 18:
        raise AssetError(f"{what} claims {text[:40]!r} items; expected a count")
    return int(text)


def _check_claimed_size(kind: str, claimed: str, least: int, bytes_: int) -> None:
    if least > bytes_:
        raise AssetError(
            f"the {kind} file claims {claimed}, which take {least} bytes at least, and has "
            f"{bytes_}; it is cut off or damaged"
        )


_CHECKS: dict[str, Callable[[bytes], None]] = {
    "ply": _check_ply,
    "off": _check_off,
    "gltf": _check_gltf,
    "glb": _check_glb,
    "dae": _check_dae,
}
