"""Reads GMSH files (.msh): points with triangles or tetrahedra.

Versions 2.2 and 4.1 of the format, as text or binary; https://gmsh.info/doc/texinfo/gmsh.html,
"MSH file format". Only the sections of nodes and elements are read, and of elements only triangles
(type 2) and tetrahedra (type 4); where a file has both, the tetrahedra count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.errors import AssetError

MAGIC = b"$MeshFormat"

# Element types: nodes of an element.
_CORNERS = {2: 3, 4: 4}
# Nodes of element types that a binary file must step over.
_ALL_CORNERS = {1: 2, 2: 3, 3: 4, 4: 4, 5: 8, 6: 6, 7: 5, 8: 3, 9: 6, 11: 10, 15: 1}


@dataclass(frozen=True, eq=False)
class Simplices:
    """Points (npoint, 3), and elements (nelement, 3 or 4) of indices into them."""

    point: np.ndarray
    element: np.ndarray

    @property
    def dim(self) -> int:
        """2 for triangles, 3 for tetrahedra."""
        return self.element.shape[1] - 1


def read_gmsh(data: bytes) -> Simplices:
    """Reads the contents of a GMSH file; raises AssetError where it is not understood."""
    try:
        return _read(data)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        if isinstance(error, AssetError):
            raise
        raise AssetError(f"not a sound GMSH file: {error}") from None


def _read(data: bytes) -> Simplices:
    head = _section(data, "MeshFormat").split(None, 3)
    if len(head) < 3:
        raise AssetError("$MeshFormat needs a version, a file type and a data size")
    version, kind = head[0].decode(errors="replace"), head[1]
    key = (version, kind == b"1")
    if key not in _READERS:
        raise AssetError(f"GMSH version {version} is not supported; save it as 4.1 or 2.2")
    nodes, elements = _READERS[key]
    tags, point = nodes(_section(data, "Nodes"))
    found = elements(_section(data, "Elements"))
    kept = next((found[kind] for kind in (4, 2) if len(found.get(kind, ()))), None)
    if kept is None:
        raise AssetError("there are no triangles and no tetrahedra")
    return Simplices(point, _numbered(tags, kept))


def _section(data: bytes, name: str) -> bytes:
    start, end = data.find(f"${name}".encode()), data.find(f"$End{name}".encode())
    if start < 0 or end < start:
        raise AssetError(f"section ${name} or its end is missing")
    return data[data.index(b"\n", start) + 1 : end]


def _numbered(tags: np.ndarray, element: np.ndarray) -> np.ndarray:
    """Elements by places of nodes in the file instead of their tags."""
    order = np.argsort(tags, kind="stable")
    place = np.searchsorted(tags[order], element)
    known = place < len(tags)
    known[known] = tags[order][place[known]] == element[known]
    if not known.all():
        raise AssetError(f"an element has node {element[~known][0]}, which is not in the file")
    return order[place]


# --- version 2.2 ---

Nodes = tuple[np.ndarray, np.ndarray]
Elements = dict[int, np.ndarray]


def _nodes_text_2(section: bytes) -> Nodes:
    numbers = np.array(section.split(), np.float64)
    table = numbers[1:].reshape(int(numbers[0]), 4)
    return table[:, 0].astype(int), table[:, 1:]


def _elements_text_2(section: bytes) -> Elements:
    lines = section.splitlines()
    found: dict[int, list[list[int]]] = {2: [], 4: []}
    for line in lines[1 : 1 + int(lines[0])]:
        numbers = [int(word) for word in line.split()]
        kind, ntags = numbers[1], numbers[2]
        if kind not in found:
            raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
        nodes = numbers[3 + ntags :]
        if len(nodes) != _CORNERS[kind]:
            raise AssetError(f"element {numbers[0]} has {len(nodes)} nodes")
        found[kind].append(nodes)
    return _arrays(found)


def _nodes_binary_2(section: bytes) -> Nodes:
    count, rest = section.split(b"\n", 1)
    table = np.frombuffer(rest, [("tag", "<i4"), ("x", "<f8", 3)], int(count))
    return table["tag"].astype(int), table["x"].astype(np.float64)


def _elements_binary_2(section: bytes) -> Elements:
    count, rest = section.split(b"\n", 1)
    found: dict[int, list[np.ndarray]] = {2: [], 4: []}
    left, place = int(count), 0
    while left > 0:
        kind, number, ntags = (int(n) for n in np.frombuffer(rest, "<i4", 3, place))
        if kind not in found or number < 1:
            raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
        width = 1 + ntags + _CORNERS[kind]
        block = np.frombuffer(rest, "<i4", number * width, place + 12).reshape(number, width)
        found[kind].append(block[:, 1 + ntags :].astype(int))
        place += 12 + 4 * number * width
        left -= number
    return _arrays(found)


# --- version 4.1 ---


def _nodes_text_4(section: bytes) -> Nodes:
    words = section.split()
    _one_block(int(words[0]))
    number = int(words[7])
    tags = np.array(words[8 : 8 + number], int)
    point = np.array(words[8 + number : 8 + 4 * number], np.float64)
    return tags, point.reshape(number, 3)


def _elements_text_4(section: bytes) -> Elements:
    words = np.array(section.split(), int)
    found: dict[int, list[np.ndarray]] = {2: [], 4: []}
    place = 4
    for _ in range(words[0]):
        kind, number = int(words[place + 2]), int(words[place + 3])
        width = 1 + _corners(kind)
        block = words[place + 4 : place + 4 + number * width].reshape(number, width)
        if kind in found:
            found[kind].append(block[:, 1:])
        place += 4 + number * width
    return _arrays(found)


def _nodes_binary_4(section: bytes) -> Nodes:
    _one_block(int(np.frombuffer(section, "<u8", 4)[0]))
    number = int(np.frombuffer(section, "<u8", 1, 44)[0])
    tags = np.frombuffer(section, "<u8", number, 52).astype(int)
    point = np.frombuffer(section, "<f8", 3 * number, 52 + 8 * number)
    return tags, point.reshape(number, 3).astype(np.float64)


def _elements_binary_4(section: bytes) -> Elements:
    found: dict[int, list[np.ndarray]] = {2: [], 4: []}
    blocks, place = int(np.frombuffer(section, "<u8", 4)[0]), 32
    for _ in range(blocks):
        kind = int(np.frombuffer(section, "<i4", 3, place)[2])
        number = int(np.frombuffer(section, "<u8", 1, place + 12)[0])
        width = 1 + _corners(kind)
        block = np.frombuffer(section, "<u8", number * width, place + 20).reshape(number, width)
        if kind in found:
            found[kind].append(block[:, 1:].astype(int))
        place += 20 + 8 * number * width
    return _arrays(found)


def _one_block(blocks: int) -> None:
    if blocks != 1:
        raise AssetError(f"the nodes are in {blocks} blocks; only one is supported")


def _corners(kind: int) -> int:
    if kind not in _ALL_CORNERS:
        raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
    return _ALL_CORNERS[kind]


def _arrays(found: dict[int, list]) -> Elements:
    return {
        kind: np.concatenate([np.atleast_2d(rows) for rows in blocks])
        for kind, blocks in found.items()
        if len(blocks)
    }


_READERS = {
    ("2.2", False): (_nodes_text_2, _elements_text_2),
    ("2.2", True): (_nodes_binary_2, _elements_binary_2),
    ("4.1", False): (_nodes_text_4, _elements_text_4),
    ("4.1", True): (_nodes_binary_4, _elements_binary_4),
}
