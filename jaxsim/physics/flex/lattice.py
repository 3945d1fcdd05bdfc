"""Interpolated flexes: lattice of nodes, cells and walls, and shape functions.

Along one axis of a cell, at s in [0, 1], the nodes have Lagrange shape functions:

    order 1: 1 - s, s        order 2: (1 - s)(1 - 2 s), 4 s (1 - s), s (2 s - 1)

In three dimensions they are tensor products. The z index of the nodes runs fastest.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.model.structure import Structure, cache_by_structure

_INTERPOLATION_ORDERS = (1, 2)


def shape_functions(s: Array | float, order: int) -> list:
    """Return the shape functions along one axis."""
    if order == 1:
        return [1 - s, s]
    return [(1 - s) * (1 - 2 * s), 4 * s * (1 - s), s * (2 * s - 1)]


def shape_function_slopes(s: float, order: int) -> np.ndarray:
    """Return the derivatives of the shape functions, at a constant s."""
    return np.array([-1.0, 1.0] if order == 1 else [4 * s - 3, 4 - 8 * s, 4 * s - 1])


def lattice_shape(s: Structure, f: int | np.integer) -> tuple[int, np.ndarray]:
    """Return the interpolation order of a flex, and the number of nodes along each axis."""
    order = abs(int(s.flex_interp[f]))
    return order, order * np.asarray(s.flex_cellnum[f]) + 1


class Vertices(NamedTuple):
    """Vertices that are interpolated with one order.

    Attributes:
      order: interpolation order.
      vert: vertex ids, `[n]`.
      cell: index of each vertex's cell along the axes, `[n, 3]`.
      cells: number of cells along the axes, `[n, 3]`.
      node: node ids of the cell, `[n, (order + 1)^3]`.
    """

    order: int
    vert: np.ndarray
    cell: np.ndarray
    cells: np.ndarray
    node: np.ndarray


@cache_by_structure
def interpolated_vertices(s: Structure) -> list[Vertices]:
    """Return the interpolated vertices of the model, by order."""
    out = []
    # One group per order, with the flexes concatenated.
    for order in _INTERPOLATION_ORDERS:
        parts = [_vertices(s, f) for f in np.flatnonzero(np.abs(s.flex_interp) == order)]
        if parts:
            out.append(Vertices(order, *map(np.concatenate, zip(*parts, strict=True))))
    return out


def _vertices(s: Structure, f: int | np.integer) -> tuple[np.ndarray, ...]:
    order, size = lattice_shape(s, f)
    vert = s.flex_vertadr[f] + np.arange(s.flex_vertnum[f])
    count = np.asarray(s.flex_cellnum[f])
    # Cell of each vertex, and the nodes of that cell.
    cell = np.stack(np.unravel_index(s.flex_vertcell[vert], tuple(count)), axis=1)
    return vert, cell, np.tile(count, (len(vert), 1)), _cell_nodes(s, f, cell, order, size)


def _cell_nodes(
    s: Structure, f: int | np.integer, cell: np.ndarray, order: int, size: np.ndarray
) -> np.ndarray:
    """Return the nodes of cells `[n, 3]`: `[n, (order + 1)^3]`."""
    # Offsets within the cell, scaled by the order.
    local = np.indices((order + 1,) * 3).reshape(3, -1).T
    place = order * cell[:, None] + local
    return s.flex_nodeadr[f] + place @ np.array([size[1] * size[2], size[2], 1])


class LatticeElements(NamedTuple):
    """Cells of solids, or outer walls of shells, with interpolation of one order.

    Attributes:
      order: interpolation order.
      solid: True for cells, False for walls.
      flex: flex of each element, `[n]`.
      number: index of the element within its flex, `[n]`.
      axis: axis normal to a wall; -1 for cells, `[n]`.
      node: node ids, `[n, k]`.
    """

    order: int
    solid: bool
    flex: np.ndarray
    number: np.ndarray
    axis: np.ndarray
    node: np.ndarray

    def some(self, which: np.ndarray) -> "LatticeElements":
        """Return a subset."""
        return LatticeElements(self.order, self.solid, *(a[which] for a in self[2:]))


@cache_by_structure
def lattice_elements(s: Structure) -> list[LatticeElements]:
    """Return the elements of all interpolated flexes that move, by order, cells first."""
    moving = np.flatnonzero((s.flex_interp != 0) & ~np.asarray(s.flex_rigid, bool))
    found = [_walls(s, f) if s.flex_interp[f] < 0 else _cells(s, f) for f in moving]
    out = []
    # One group per order and kind.
    for kind in sorted({(e.order, not e.solid) for e in found}):
        same = [e[2:] for e in found if (e.order, not e.solid) == kind]
        joined = (np.concatenate(t) for t in zip(*same, strict=True))
        out.append(LatticeElements(kind[0], not kind[1], *joined))
    return out


def _cells(s: Structure, f: int | np.integer) -> LatticeElements:
    order, size = lattice_shape(s, f)
    cell = np.indices(tuple(s.flex_cellnum[f])).reshape(3, -1).T
    number = np.arange(len(cell))
    node = _cell_nodes(s, f, cell, order, size)
    return LatticeElements(
        order, True, np.full_like(number, f), number, np.full_like(number, -1), node
    )


def _walls(s: Structure, f: int | np.integer) -> LatticeElements:
    """Return the walls of a shell, ordered by axis, side and cell.

    Within a wall the axis after the normal one is the slower.
    """
    order, size = lattice_shape(s, f)
    count = np.asarray(s.flex_cellnum[f])
    stride = np.array([size[1] * size[2], size[2], 1])
    axes, nodes = [], []
    # Six sides; each is a grid of cells of two axes.
    for axis in range(3):
        slow, fast = (axis + 1) % 3, (axis + 2) % 3
        side, i, j = np.indices((2, count[slow], count[fast])).reshape(3, -1)
        local = np.indices((order + 1,) * 2).reshape(2, -1)
        # Node index from side, cell and position within the cell.
        node = (side * (size[axis] - 1) * stride[axis])[:, None]
        node = node + (order * i[:, None] + local[0]) * stride[slow]
        node = node + (order * j[:, None] + local[1]) * stride[fast]
        axes.append(np.full(len(side), axis))
        nodes.append(s.flex_nodeadr[f] + node)
    normal, node = np.concatenate(axes), np.concatenate(nodes)
    number = np.arange(len(normal))
    return LatticeElements(order, False, np.full_like(number, f), number, normal, node)


def midpoint_derivatives(order: int, solid: bool) -> np.ndarray:
    """Return shape function derivatives at the midpoint by local coordinate, `[3 or 2, k]`."""
    return shape_function_derivatives((0.5,) * (3 if solid else 2), order)


def shape_function_derivatives(place: tuple[float, ...], order: int) -> np.ndarray:
    """Return shape function derivatives by local coordinate at a constant point, `[dim, k]`."""
    value = [np.array(shape_functions(x, order)) for x in place]
    grad = [shape_function_slopes(x, order) for x in place]
    # Product rule: the derivative along one axis, values along the others.
    rows = []
    for axis in range(len(place)):
        row = np.ones(1)
        for k in range(len(place)):
            row = np.outer(row, grad[k] if k == axis else value[k]).ravel()
        rows.append(row)
    return np.array(rows)


class Inside(NamedTuple):
    """Nodes inside shells, which are interpolated from the walls.

    Attributes:
      node: node ids, `[n]`.
      wall: nodes on the walls from which each is interpolated, `[n, 26]`.
      share: their weights, `[n, 26]`.
    """

    node: np.ndarray
    wall: np.ndarray
    share: np.ndarray


@cache_by_structure
def inner_nodes(s: Structure) -> Inside:
    """Return the nodes inside the shells of the model, by transfinite interpolation.

    With (s, t, u) in [0, 1] the coordinates of the node, and P_s the linear interpolation between
    the two walls across the first axis, and so on (Gordon and Hall, *Construction of curvilinear
    co-ordinate systems*, 1973):

        x = (1 - (1 - P_s)(1 - P_t)(1 - P_u)) x
    """
    parts = [_inside(s, f) for f in np.flatnonzero(s.flex_interp < 0)]
    none = (np.zeros(0, int), np.zeros((0, 26), int), np.zeros((0, 26)))
    return Inside(*(np.concatenate(t) for t in zip(none, *parts, strict=True)))


def _inside(s: Structure, f: int | np.integer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    # Interior lattice points.
    _, size = lattice_shape(s, f)
    stride = np.array([size[1] * size[2], size[2], 1])
    place = np.indices(tuple(np.maximum(size - 2, 0))).reshape(3, -1).T + 1
    # Each axis: keep the coordinate, or project to the lower or upper wall.
    going = [g for g in np.ndindex(3, 3, 3) if any(g)]
    wall = np.zeros((len(place), len(going)), int)
    share = np.zeros((len(place), len(going)))
    for k, g in enumerate(going):
        # The weight is a product of linear weights, with the sign of the inclusion-exclusion.
        there, weight = place.copy(), -np.ones(len(place))
        for axis, to in enumerate(g):
            if to:
                t = place[:, axis] / (size[axis] - 1)
                weight = weight * -(t if to == 2 else 1 - t)
                there[:, axis] = (to - 1) * (size[axis] - 1)
        wall[:, k], share[:, k] = there @ stride, weight
    first = s.flex_nodeadr[f]
    return first + place @ stride, first + wall, share
