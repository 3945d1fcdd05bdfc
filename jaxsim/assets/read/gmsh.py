"""Read GMSH files (.msh): points with triangles or tetrahedra.

Versions 2.2 and 4.1 of the format, as text or binary; https://gmsh.info/doc/texinfo/gmsh.html, "MSH
file format". Only the sections of nodes and elements are read, and of elements only triangles (type
2) or tetrahedra (type 4). Of version 4.1, MuJoCo accepts files with one block of nodes, tagged 1,
2, 3, ..., and one block of elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

GMSH_MAGIC = b"$MeshFormat"

# Number of nodes of an element type.
_CORNERS = {2: 3, 4: 4}


@dataclass(frozen=True, eq=False)
class Simplices:
    """Points (npoint, 3), and elements (nelement, 3 or 4) of indices into them."""

    point: np.ndarray
    element: np.ndarray

    @property
    def dim(self) -> int:
        """Return the dimension: 2 for triangles, 3 for tetrahedra."""
        return self.element.shape[1] - 1


def read_gmsh(data: bytes) -> Simplices:
    """Read the contents of a GMSH file; raise AssetError if they are invalid."""
    try:
        return _read(data)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        if isinstance(error, AssetError):
            raise
        raise AssetError(f"not a valid GMSH file: {error}") from None


def read_gmsh_surface(data: bytes) -> Surface:
    """Return the triangles of a GMSH file, or the boundary of its tetrahedra.

    Raises:
      AssetError: the file is invalid, see `read_gmsh`.
    """
    mesh = read_gmsh(data)
    face = mesh.element if mesh.dim == 2 else _boundary(mesh.element)
    return Surface(vertex=mesh.point, face=face.astype(np.int32))


def _boundary(element: np.ndarray) -> np.ndarray:
    """Return the triangles that belong to a single tetrahedron, oriented outward; (n, 4) -> (m,
    3)."""
    sides = element[:, [[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]]].reshape(-1, 3)
    _, which, count = np.unique(
        np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return sides[count[which.ravel()] == 1]


def _read(data: bytes) -> Simplices:
    head = _section(data, "MeshFormat").split(None, 3)
    if len(head) < 3:
        raise AssetError("$MeshFormat needs a version, a file type and a data size")
    version, kind = head[0].decode(errors="replace"), head[1]
    key = (version, kind == b"1")
    if key not in _READERS:
        raise AssetError(f"GMSH version {version} is not supported; save it as 4.1 or 2.2")
    nodes, elements = _READERS[key]
    point = nodes(_section(data, "Nodes"))
    found = elements(_section(data, "Elements"))
    if len(found) != 1:
        both = "both triangles and" if found else "no triangles and no"
        raise AssetError(f"there are {both} tetrahedra; save the elements of one kind")
    return Simplices(point, _renumber_nodes(len(point), *found.values()))


def _section(data: bytes, name: str) -> bytes:
    start, end = data.find(f"${name}".encode()), data.find(f"$End{name}".encode())
    if start < 0 or end < start:
        raise AssetError(f"section ${name} or its end is missing")
    return data[data.index(b"\n", start) + 1 : end]


def _renumber_nodes(npoint: int, element: np.ndarray) -> np.ndarray:
    """Return the elements with 0-based nodes, in the order of the file; as in MuJoCo, their tags
    are ignored."""
    unknown = (element < 1) | (element > npoint)
    if unknown.any():
        raise AssetError(f"an element has node {element[unknown][0]}, which is not in the file")
    return element - 1


# --- version 2.2 ---

Elements = dict[int, np.ndarray]


def _nodes_text_2(section: bytes) -> np.ndarray:
    numbers = np.array(section.split(), np.float64)
    count = int(numbers[0])
    return numbers[1 : 1 + 4 * count].reshape(count, 4)[:, 1:]


def _elements_text_2(section: bytes) -> Elements:
    lines = section.splitlines()
    count = int(lines[0])
    found: dict[int, list[list[int]]] = {2: [], 4: []}
    if len(lines) < 1 + count:
        raise AssetError(f"there are {len(lines) - 1} of {count} elements")
    for line in lines[1 : 1 + count]:
        numbers = [int(word) for word in line.split()]
        kind, ntags = numbers[1], numbers[2]
        if kind not in found:
            raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
        nodes = numbers[3 + ntags :]
        if len(nodes) != _CORNERS[kind]:
            raise AssetError(f"element {numbers[0]} has {len(nodes)} nodes")
        found[kind].append(nodes)
    return _concatenate_blocks(found)


def _nodes_binary_2(section: bytes) -> np.ndarray:
    count, rest = section.split(b"\n", 1)
    table = np.frombuffer(rest, [("tag", "<i4"), ("x", "<f8", 3)], int(count))
    return table["x"].astype(np.float64)


def _elements_binary_2(section: bytes) -> Elements:
    count, rest = section.split(b"\n", 1)
    found: dict[int, list[np.ndarray]] = {2: [], 4: []}
    left, offset = int(count), 0
    while left > 0:
        kind, number, ntags = (int(n) for n in np.frombuffer(rest, "<i4", 3, offset))
        if kind not in found or number < 1:
            raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
        width = 1 + ntags + _CORNERS[kind]
        block = np.frombuffer(rest, "<i4", number * width, offset + 12).reshape(number, width)
        found[kind].append(block[:, 1 + ntags :].astype(int))
        offset += 12 + 4 * number * width
        left -= number
    return _concatenate_blocks(found)


# --- version 4.1 ---


def _nodes_text_4(section: bytes) -> np.ndarray:
    words = section.split()
    number = _check_nodes([int(word) for word in words[:8]])
    _check_tags(np.array(words[8 : 8 + number], int))
    return np.array(words[8 + number : 8 + 4 * number], np.float64).reshape(number, 3)


def _elements_text_4(section: bytes) -> Elements:
    words = section.split()
    kind, number = _check_elements([int(word) for word in words[:8]])
    width = 1 + _CORNERS[kind]
    block = np.array(words[8 : 8 + number * width], int).reshape(number, width)
    return {kind: block[:, 1:]}


def _nodes_binary_4(section: bytes) -> np.ndarray:
    number = _check_nodes(_header_4(section))
    _check_tags(np.frombuffer(section, "<u8", number, 52))
    point = np.frombuffer(section, "<f8", 3 * number, 52 + 8 * number)
    return point.reshape(number, 3).astype(np.float64)


def _elements_binary_4(section: bytes) -> Elements:
    kind, number = _check_elements(_header_4(section))
    width = 1 + _CORNERS[kind]
    block = np.frombuffer(section, "<u8", number * width, 52).reshape(number, width)
    return {kind: block[:, 1:].astype(int)}


def _header_4(section: bytes) -> list[int]:
    """Return the eight header numbers of a section and of its first block."""
    parts = (("<u8", 4, 0), ("<i4", 3, 32), ("<u8", 1, 44))
    return [int(n) for dtype, count, at in parts for n in np.frombuffer(section, dtype, count, at)]


def _check_nodes(header: list[int]) -> int:
    """Return the number of nodes, from the header of their section."""
    blocks, total, first, last, dim, _, _, number = header
    if blocks != 1 or total != number:
        raise AssetError(f"the {total} nodes are in {blocks} blocks; only one is supported")
    if (first, last) != (1, number):
        raise AssetError(f"the nodes have tags {first} to {last}; they must be 1 to {number}")
    if dim not in (1, 2, 3):
        raise AssetError(f"the nodes are of an entity of dimension {dim}; it must be 1, 2 or 3")
    return number


def _check_elements(header: list[int]) -> tuple[int, int]:
    """Return the type and number of the elements, from the header of their section."""
    blocks, total, _, _, dim, _, kind, number = header
    if blocks != 1 or total != number:
        raise AssetError(f"the {total} elements are in {blocks} blocks; only one is supported")
    if kind not in _CORNERS:
        raise AssetError(f"element type {kind} is not supported; only 2 and 4 are")
    if dim != _CORNERS[kind] - 1:
        raise AssetError(f"elements of type {kind} cannot be of an entity of dimension {dim}")
    return kind, number


def _check_tags(tags: np.ndarray) -> None:
    if not np.array_equal(tags, np.arange(1, len(tags) + 1)):
        raise AssetError("the tags of the nodes are not 1, 2, 3, ... in this order")


def _concatenate_blocks(found: dict[int, list]) -> Elements:
    return {
        kind: np.concatenate([np.atleast_2d(rows) for rows in blocks])
        for kind, blocks in found.items()
        if blocks
    }


_READERS = {
    ("2.2", False): (_nodes_text_2, _elements_text_2),
    ("2.2", True): (_nodes_binary_2, _elements_binary_2),
    ("4.1", False): (_nodes_text_4, _elements_text_4),
    ("4.1", True): (_nodes_binary_4, _elements_binary_4),
}
