r"""Tables of candidate support vertices of a hull, which replace the search along its edges.

The support vertex in a direction d is the vertex with the largest product v . d. Directions are
points of a cube map, divided into cells (directions.py):

    face of the cube: 8 x 8 cells      a cell, in 4 x 4 parts       a part as a fan
    +---+---+---+---+                  +---+---+---+---+            +-----------+
    |   |   | 3 |   |                  | a   a | b | b |            | \   |   / |
    +---+---+---+---+                  + a   a +---+---+            |   \ | /   |
    |   |   |   |   |                  | a   a | b | c |            |--- pole --|
    +---+---+---+---+                  +---+---+---+---+            |   / | \   |
    |   |   |   |   |                  | d   d | e   e |            | /   |   \ |
    +---+---+---+---+                  +---+---+---+---+            +-----------+

A vertex is a candidate of a cell if it is extreme in some direction of the cell; the support vertex
is among the few candidates of the cell of d. A vertex is no candidate if one neighbor is farther at
all corners of the cell, and so everywhere in it (a product is linear over a cell). The tables are
made in three steps:

1. Subdivide (`_subdivide`): candidates are refined from coarse cells to fine ones, so that each
   vertex is tested only where it was a candidate before. Each cell of the grid is subdivided until
   its lists are short.
2. Fans (`_make_fan`): this fails where a face of the hull has many corners, such as the cap of a
   cylinder: all of them are candidates in any cell that contains the face's normal. There a fan
   about the normal, the pole, replaces the cell: in each of its slices few of them remain.
3. Prune (`_prune_candidates`): in lists that are still long, vertices are dropped that are nowhere
   in the cell farther by more than `COORDINATE_ROUNDING` than another candidate. Coordinates of
   vertices are in single precision, which is not more accurate than this; lists that are short
   without it are exact.

physics/collision/convex/hull/support.py looks a direction up in these tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.assets.mesh.directions import (
    CUBE_FACES,
    ENLARGEMENT,
    FAN_SLICES,
    POLE_UNIT,
    CubeCells,
    Vectors,
    corner_products,
    cube_cells,
    face_components,
    max_corner_product,
    quarter_cells,
    slices,
)
from jaxsim.assets.mesh.triangles import area_vectors

CELLS_PER_EDGE = 8  # cells along an edge of the cube
_MAX_CELL_PARTS = 32  # largest number of parts along the side of a cell, a power of two
CELL_CODE_BITS = 3  # bits of log2 of the parts along a side in the code of a cell
CELL_CODE_BASE = 2**CELL_CODE_BITS
COORDINATE_ROUNDING = (
    2e-7  # relative to the largest coordinate: three roundings in single precision
)
# Target list lengths, for hulls of up to _MAX_SMALL_HULL vertices and for larger ones.
_SHORT_LIST, _LONG_LIST = 8, 16
_MAX_SMALL_HULL = 256
_FAN_REACH = 1.5  # distance of the pole of a fan from its cell, in half sides
_LISTS_PER_BATCH = 64  # lists that are pruned together
_ONE_BY_ONE = 4  # neighbors tested one by one, after which few vertices are left


class SupportMap(NamedTuple):
    """Tables of one hull.

    Attributes:
      cell: code of each cell of the grid: its first part times CELL_CODE_BASE, plus log2 of the
        parts along its side, (6 CELLS_PER_EDGE^2,).
      part: for each part the address of its candidates, or -1 - its fan, (nparts,).
      pole: poles of the fans, multiples of POLE_UNIT, (nfans, 2).
      slice: addresses of the candidates of the slices, (nfans, FAN_SLICES).
      candidate: ids of vertices, list after list, (n,).
      most: length of the longest list.
    """

    cell: np.ndarray
    part: np.ndarray
    pole: np.ndarray
    slice: np.ndarray
    candidate: np.ndarray
    most: int


class _Points(NamedTuple):
    """Vertices and edges of a hull in the frames of the faces of the cube.

    Attributes:
      seen: vertices, (6, n, 3).
      edge: vectors to each vertex from its neighbors, vertex after vertex: `Vectors` of (6 nedge,).
      degree: number of neighbors, (n,).
      start: address of the edges of a vertex, (n,).
      spot: points where the normals of the triangles meet the faces, (6, ntriangle, 2); nan: none.
      along_u: triangles by the first coordinate of their spots, (6, ntriangle).
      sorted_u: that coordinate, (6, ntriangle).
      area: squared areas of the triangles, (ntriangle,).
      rounding: distance below which vertices count as equally far [m].
    """

    seen: np.ndarray
    edge: Vectors
    degree: np.ndarray
    start: np.ndarray
    spot: np.ndarray
    along_u: np.ndarray
    sorted_u: np.ndarray
    area: np.ndarray
    rounding: float


class _Leaf(NamedTuple):
    """A part of the final subdivision: cell `number` of the grid of r x r, and its lists.

    It has one list, or FAN_SLICES of them for a fan about `pole`.
    """

    r: int
    number: int
    lists: list[np.ndarray]
    pole: np.ndarray | None = None


def support_map(vertex: np.ndarray, graph: np.ndarray) -> SupportMap:
    """Return the tables of a hull.

    Args:
      vertex: vertices of the mesh, (nvert, 3).
      graph: its hull, as in `mesh_graph`; trailing values are ignored.
    """
    # Vertices, neighbors and triangles of the hull from MuJoCo's record.
    nvert, nface = int(graph[0]), int(graph[1])
    ends = np.cumsum([nvert, nvert, nvert + 3 * nface, 3 * nface])
    address, on_hull, neighbor, triangle, _ = np.split(graph[2:], ends)
    point = vertex[on_hull].astype(np.float64)
    degree = np.diff(np.append(address, nvert + 3 * nface)) - 1
    end = neighbor[neighbor >= 0]
    # Where the normals of the triangles meet the faces of the cube: possible poles of fans.
    normal = area_vectors(vertex.astype(np.float64), triangle.reshape(-1, 3))
    out = face_components(normal)
    spot = out[..., 1:] / np.where(out[..., :1] > 0, out[..., :1], np.nan)
    points = _Points(
        seen=face_components(point),
        edge=Vectors.of(
            face_components(np.repeat(point, degree, axis=0) - point[end]).reshape(-1, 3)
        ),
        degree=degree,
        start=np.cumsum(degree) - degree,
        spot=spot,
        along_u=np.argsort(spot[..., 0], axis=1),
        sorted_u=np.sort(spot[..., 0], axis=1),
        area=np.einsum("ni,ni->n", normal, normal),
        rounding=COORDINATE_ROUNDING * float(np.abs(point).max()),
    )
    leaves = _subdivide(points, _SHORT_LIST if nvert <= _MAX_SMALL_HULL else _LONG_LIST)
    return _build_tables(leaves, on_hull)


def _subdivide(p: _Points, aim: int) -> list[_Leaf]:
    """Subdivide the cube until no list exceeds the target length, or the parts are the finest."""
    leaves: list[_Leaf] = []
    every = np.arange(len(p.degree))
    # Pairs of a vertex and a cell: at first all vertices in each face of the cube.
    vertex, number, r = np.tile(every, CUBE_FACES), np.repeat(np.arange(CUBE_FACES), len(every)), 1
    while len(vertex):
        # Keep the vertices that are candidates of their cell.
        kept = _is_candidate(p, vertex, cube_cells(number, r))
        vertex, number = vertex[kept], number[kept]
        if r >= CELLS_PER_EDGE:
            # Cells with short lists become leaves; the finest ones whatever their length.
            order = np.argsort(number, kind="stable")
            vertex, number = vertex[order], number[order]
            most = aim if r < CELLS_PER_EDGE * _MAX_CELL_PARTS else len(every)
            made, left = _split_leaf_cells(p, vertex, number, r, aim, most)
            leaves += made
            again = np.isin(number, left)
            vertex, number = vertex[again], number[again]
        # Divide the other cells into four each.
        vertex, number, r = np.repeat(vertex, 4), quarter_cells(number, r), 2 * r
    return leaves


def _is_candidate(p: _Points, vertex: np.ndarray, c: CubeCells) -> np.ndarray:
    """Return whether no neighbor of a vertex is farther at all corners of a cell, (n,)."""
    edges, degree = p.degree.sum(), p.degree[vertex]
    edge = c.face * edges + p.start[vertex]
    kept = np.ones(len(vertex), bool)
    # Test the first neighbors one by one, which rejects most vertices.
    tested = np.arange(len(vertex))
    for k in range(_ONE_BY_ONE):
        tested = tested[degree[tested] > k]
        kept[tested] = (
            max_corner_product(p.edge, edge[tested] + k, c.u[tested], c.v[tested], c.half) >= 0
        )
        tested = tested[kept[tested]]
    # All other neighbors of the remaining vertices at once.
    tested = tested[degree[tested] > _ONE_BY_ONE]
    if len(tested):
        more = degree[tested] - _ONE_BY_ONE
        before = np.cumsum(more) - more
        others = np.repeat(edge[tested] + _ONE_BY_ONE - before, more) + np.arange(more.sum())
        u, v = (np.repeat(a[tested], more) for a in (c.u, c.v))
        reach = max_corner_product(p.edge, others, u, v, c.half)
        kept[tested] = np.minimum.reduceat(reach, before) >= 0
    return kept


def _split_leaf_cells(
    p: _Points, vertex: np.ndarray, number: np.ndarray, r: int, aim: int, most: int
) -> tuple[list[_Leaf], list[int]]:
    """Return the cells of one grid whose lists are short enough, and the numbers of the others.

    Args:
      p: the hull.
      vertex, number: candidates and their cells, sorted by cell.
      r: cells along an edge.
      aim: target length of lists.
      most: largest length of a leaf's list.
    """
    found, first, count = np.unique(number, return_index=True, return_counts=True)
    # Short lists are exact.
    leaves = [
        _Leaf(r, found[k], [vertex[first[k] : first[k] + count[k]]])
        for k in np.flatnonzero(count <= aim)
    ]
    left = []
    long = np.flatnonzero(count > aim)
    long = long[np.argsort(count[long])]  # so that the lists of a batch have similar lengths
    for k in range(0, len(long), _LISTS_PER_BATCH):
        # Products of the candidates with the corners of their cells; -inf pads the lists.
        batch = long[k : k + _LISTS_PER_BATCH]
        slot = np.arange(count[batch].max())
        filled = slot < count[batch, None]
        listed = vertex[np.where(filled, first[batch, None] + slot, 0)]
        c = cube_cells(found[batch], r)
        value = corner_products(p.seen[c.face[:, None], listed], c)
        kept = _prune_candidates(np.where(filled, value, -np.inf), p.rounding, most)
        # Lists that are still long become fans where these are shorter.
        for i, cell in enumerate(found[batch]):
            leaf = _Leaf(r, cell, [listed[i, kept[i]]])
            if len(leaf.lists[0]) > aim:
                one = CubeCells(c.face[i : i + 1], c.u[i : i + 1], c.v[i : i + 1], c.half)
                leaf = _make_fan(p, listed[i, filled[i]], leaf, one, aim, most) or leaf
            if max(map(len, leaf.lists)) <= most:
                leaves.append(leaf)
            else:
                left.append(cell)
    return leaves, left


def _make_fan(
    p: _Points, vertex: np.ndarray, cell: _Leaf, c: CubeCells, aim: int, most: int
) -> _Leaf | None:
    """Return a fan that replaces a cell, about the normal of the largest triangle, if it is
    shorter."""
    # Pole: the normal of the largest triangle that faces the cell.
    here = _triangles_facing(p, c)
    if not len(here):
        return None
    facing = here[np.argmax(p.area[here])]
    pole = np.rint(p.spot[c.face[0], facing] / POLE_UNIT)

    # Finer cells suffice where few corners lie in the plane of that triangle
    seen = p.seen[c.face[0], vertex]
    height = seen[:, 0] + seen[:, 1:] @ (pole * POLE_UNIT)
    in_plane = height >= height.max() - 3 * p.rounding
    if in_plane.sum() <= aim // 2 and cell.r < CELLS_PER_EDGE * _MAX_CELL_PARTS:
        return None

    # Prune the candidates in each slice; the fan counts only if all its lists are shorter.
    value = np.moveaxis(slices(pole * POLE_UNIT, c), 1, 0) @ seen.T
    shorter = min(most, len(cell.lists[0]) - 1)
    kept = _prune_candidates(value, p.rounding, shorter)
    if kept.sum(axis=1).max() > shorter:
        return None
    return _Leaf(cell.r, cell.number, [vertex[k] for k in kept], pole)


def _triangles_facing(p: _Points, c: CubeCells) -> np.ndarray:
    """Return the triangles whose normals meet the face in or near one cell, in ascending order."""
    face, reach = c.face[0], _FAN_REACH * c.half
    wide = (1 + ENLARGEMENT) * reach  # conservative against rounding
    first, end = np.searchsorted(p.sorted_u[face], [c.u[0] - wide, c.u[0] + wide])
    near = p.along_u[face, first:end]
    u, v = p.spot[face, near].T
    return np.sort(near[(np.abs(u - c.u) <= reach) & (np.abs(v - c.v) <= reach)])


def _prune_candidates(value: np.ndarray, rounding: float, most: int) -> np.ndarray:
    """Return a pruned candidate set: no dropped one is anywhere farther by more than `rounding`.

    Args:
      value: extents of the candidates at the corners of parts, (corners, nparts, n); -inf: none.
      rounding: in the unit of `value`.
      most: if a list becomes longer than this, it is not pruned further.

    Returns:
      bool (nparts, n).
    """
    score = value.sum(axis=0)
    kept = np.zeros(score.shape, bool)
    part = np.arange(len(score))
    # Keep the best candidate of each part, and drop all that it dominates at every corner.
    for _ in range(most):
        best = np.argmax(score, axis=1)
        some = score[part, best] > -np.inf
        if not some.any():
            return kept
        kept[part, best] |= some
        level = value[:, part, best][..., None] + rounding
        near = value[0] <= level[0]
        for at_corner, limit in zip(value[1:], level[1:], strict=True):
            near &= at_corner <= limit
        score[near] = -np.inf
    return kept | (score > -np.inf)


def _build_tables(leaves: list[_Leaf], on_hull: np.ndarray) -> SupportMap:
    """Return the tables of a subdivision; equal lists are stored once."""
    # Cell of the grid, and block of its parts, of each leaf.
    r = np.array([leaf.r for leaf in leaves])
    parts_per_side = r // CELLS_PER_EDGE
    row, column = np.divmod(np.array([leaf.number for leaf in leaves]), r)
    row, inner_row = np.divmod(row, parts_per_side)
    column, inner_column = np.divmod(column, parts_per_side)
    cell = row * CELLS_PER_EDGE + column
    # Parts per side of a cell: those of its finest leaf.
    sides = np.ones(CUBE_FACES * CELLS_PER_EDGE * CELLS_PER_EDGE, np.int64)
    np.maximum.at(sides, cell, parts_per_side)
    first = np.cumsum(sides * sides) - sides * sides
    # Store the lists, and write the address of each, or its fan, to all parts that the leaf covers.
    lists = _Lists()
    part = np.empty((sides * sides).sum(), np.int32)
    pole, fans = [], []
    where = np.stack([cell, parts_per_side, inner_row, inner_column], axis=1).tolist()
    for leaf, (k, fine, i, j) in zip(leaves, where, strict=True):
        adr = [lists.address(a) for a in leaf.lists]
        if leaf.pole is not None:
            pole.append(leaf.pole)
            fans.append(adr)
        n = sides[k]
        block = part[first[k] : first[k] + n * n].reshape(n, n)
        q = n // fine
        value = adr[0] if leaf.pole is None else -len(fans)
        block[i * q : (i + 1) * q, j * q : (j + 1) * q] = value

    return SupportMap(
        cell=(first * CELL_CODE_BASE + np.log2(sides).astype(np.int64)).astype(np.int32),
        part=part,
        pole=np.array(pole, np.int32).reshape(-1, 2),
        slice=np.array(fans, np.int32).reshape(-1, FAN_SLICES),
        candidate=on_hull[np.concatenate(lists.all)].astype(np.int32),
        most=max(map(len, lists.all)),
    )


class _Lists:
    """Lists of candidates, one after another; equal ones are stored once."""

    def __init__(self) -> None:
        """Start without lists."""
        self.all: list[np.ndarray] = []
        self._address: dict[bytes, int] = {}
        self._length = 0

    def address(self, listed: np.ndarray) -> int:
        """Return the address of a list, which is appended if it is new."""
        key = listed.tobytes()
        if key not in self._address:
            self._address[key] = self._length
            self.all.append(listed)
            self._length += len(listed)
        return self._address[key]
