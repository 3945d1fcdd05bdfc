"""Merge coincident vertices, which some file formats repeat."""

from __future__ import annotations

import numpy as np

# Odd multipliers that spread the bits of the three coordinates (Knuth's multiplicative hashing).
_HASH_FACTORS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


def weld_vertices(vertex: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distinct vertices in the order of their first occurrence, and the index of each given
    one among them.

    Args:
      vertex: (n, 3).
    """
    # the sum removes negative zeros, which equal positive ones
    vertex = np.ascontiguousarray(vertex, np.float64) + 0.0
    first, label = _groups(vertex)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return vertex[first[order]], rank[label]


def _groups(vertex: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first member of each group of equal rows, and the group of each row.

    Sorting one hash per row is much faster than sorting rows; the rows themselves decide in case of
    collisions.
    """
    bits = vertex.view(np.uint64)
    mixed = np.zeros(len(vertex), np.uint64)
    for i, factor in enumerate(_HASH_FACTORS):
        mixed = (mixed ^ bits[:, i]) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(29)
    _, first, label = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(vertex[first[label]], vertex):
        _, first, label = np.unique(vertex, axis=0, return_index=True, return_inverse=True)
    return first, label.ravel()
