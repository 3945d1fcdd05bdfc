"""Neighbors of leaves across their six sides, and the 2:1 balance between them."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.octree.cells import OctreeCells

NO_NEIGHBOR = -1  # the neighbor of a cell at the border of the root


def neighbors(tree: OctreeCells, leaves: np.ndarray) -> np.ndarray:
    """Return the leaf beyond each side of the leaves, (n, 6): low x, high x, low y, ...

    If several smaller leaves are beyond a side, it is the one just below the side's center; at the
    border of the root it is `NO_NEIGHBOR`.
    """
    spread, leaf_of_cell = _spread_bits(tree.depth), _leaf_at(tree)
    # Coordinates of the finest cell just below the center of each leaf, as parts of a Morton code.
    low, size = tree.low[leaves].T, tree.size[leaves]
    inside = spread[low + np.maximum(size // 2 - 1, 0)]
    found = np.full((len(leaves), 6), NO_NEIGHBOR)
    for side in range(6):
        axis, upper = divmod(side, 2)
        # Replace the coordinate along the axis by the one beyond the side, and look the leaf up.
        beyond = low[axis] + (size if upper else -1)
        within = np.flatnonzero((beyond >= 0) & (beyond < len(spread)))
        code = spread[beyond[within]] << axis
        for other in {0, 1, 2} - {axis}:
            code |= inside[other, within] << other
        found[within, side] = leaf_of_cell[code]
    return found


def balance_octree(tree: OctreeCells) -> OctreeCells:
    """Split leaves until those that share a side differ by one level at most."""
    while True:
        leaves = tree.leaves
        beyond = neighbors(tree, leaves)
        # Sides across which the levels differ by more than one.
        step = np.where(beyond == NO_NEIGHBOR, 0, tree.level[beyond] - tree.level[leaves, None])
        uneven = np.abs(step) > 1
        own = np.broadcast_to(leaves[:, None], beyond.shape)
        # The coarser leaf of each such pair, once, in the order of leaves and sides.
        coarse = np.where(step > 0, own, beyond)[uneven]
        coarse, first = np.unique(coarse, return_index=True)
        if not len(coarse):
            return tree
        tree = tree.split(coarse[np.argsort(first)])


def _leaf_at(tree: OctreeCells) -> np.ndarray:
    """Return the leaf of every finest cell, (8**depth,), in Morton order.

    Morton order visits the children of a cell consecutively, at all levels: the index of a point
    interleaves the bits of x, y and z (G. M. Morton, 1966).
    """
    leaves, spread = tree.leaves, _spread_bits(tree.depth)
    x, y, z = spread[tree.low[leaves].T]
    order = np.argsort(x | y << 1 | z << 2)
    return np.repeat(leaves[order], tree.size[leaves[order]] ** 3)


def _spread_bits(depth: int) -> np.ndarray:
    """Return the numbers below 2**depth with two zeros between their bits."""
    spread = np.zeros(1, np.int64)
    for bit in range(depth):
        spread = np.concatenate([spread, spread | 1 << (3 * bit)])
    return spread
