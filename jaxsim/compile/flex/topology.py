"""Topology of a flex from its elements: edges, neighbors, surface and layers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Edges of an element in MuJoCo's order, by the indices of its vertices, for dim 1, 2 and 3.
_EDGES = {
    1: ((0, 1),),
    2: ((1, 2), (2, 0), (0, 1)),
    3: ((0, 1), (1, 2), (2, 0), (2, 3), (0, 3), (1, 3)),
}

# Sides of an element, counter-clockwise seen from outside.
_SIDES = {
    1: ((0,), (1,)),
    2: ((0, 1), (1, 2), (2, 0)),
    3: ((0, 1, 2), (0, 2, 3), (0, 3, 1), (1, 3, 2)),
}


class FlexTopology(NamedTuple):
    """Edges and surface of a flex; ids are within the flex.

    Attributes:
      edge: vertices of the edges, the lower first, in order of their first element, (nedge, 2).
      elemedge: edges of the elements, (nelem, 1, 3 or 6).
      flap: vertices opposite to an edge in its first two triangles, -1: none, (nedge, 2).
      shell: sides that belong to one element alone, in order of their vertices, (nshell, dim).
      layer: steps from the surface to each element of a solid, through sides, (nelem,).
    """

    edge: np.ndarray
    elemedge: np.ndarray
    flap: np.ndarray
    shell: np.ndarray
    layer: np.ndarray


def flex_topology(dim: int, element: np.ndarray) -> FlexTopology:
    """Return the flex_topology of elements (nelem, dim + 1)."""
    local = np.array(_EDGES[dim])
    pairs = np.sort(element[:, local], axis=2).reshape(-1, 2)
    edge, inverse = _unique_in_order(pairs)
    elemedge = inverse.reshape(len(element), len(local))
    flap = np.full((len(edge), 2), -1)
    if dim == 2:
        _fill_flaps(flap, elemedge, element)
    shell, layer = _surface(dim, element)
    return FlexTopology(edge, elemedge, flap, shell, layer)


def _unique_in_order(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return unique rows in order of first appearance, and the index of each row among them."""
    unique, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), int)
    rank[order] = np.arange(len(order))
    return unique[order], rank[inverse.ravel()]


def _fill_flaps(flap: np.ndarray, elemedge: np.ndarray, element: np.ndarray) -> None:
    # Edge k of a triangle is opposite to its vertex k.
    for edges, vertices in zip(elemedge, element, strict=True):
        for edge, across in zip(edges, vertices, strict=True):
            if flap[edge, 0] < 0:
                flap[edge, 0] = across
            elif flap[edge, 1] < 0:
                flap[edge, 1] = across


def _surface(dim: int, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sides that one element alone has, and for a solid the layer of each element."""
    sides = element[:, np.array(_SIDES[dim])]
    flat = sides.reshape(-1, dim)
    _, inverse, count = np.unique(
        np.sort(flat, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    inverse = inverse.ravel()
    alone = np.flatnonzero(count[inverse] == 1)
    shell = flat[alone[np.argsort(inverse[alone], kind="stable")]]
    layer = np.zeros(len(element), int)
    if dim == 3:
        layer = _layer_numbers(inverse.reshape(len(element), -1), count)
    return shell, layer


def _layer_numbers(side: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the steps through sides from the elements with a free side, (nelem,)."""
    outer = (count[side] == 1).any(axis=1)
    layer = np.where(outer, 0, -1)
    reached, step = np.zeros(len(count), bool), 0
    while (layer < 0).any():
        reached[:] = False
        reached[side[layer == step].ravel()] = True
        further = (layer < 0) & reached[side].any(axis=1)
        if not further.any():
            break  # a solid without surface
        step += 1
        layer[further] = step
    return np.maximum(layer, 0)
