"""The order in which MuJoCo lists the polygons of a hull: that of a hash table of their normals.

Where several edges or faces at a vertex would do for a contact, the first in this order is used, so
the order affects the physics. Determined by experiment: the keys are the cells of the normals,
mixed by Boost's `hash_combine`, and the table is libc++'s `std::unordered_map`: one linked list of
all entries, in which those of a bucket are adjacent, with prime bucket counts.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B9)
_LEFT, _RIGHT = np.uint64(6), np.uint64(2)


def table_order(cell: np.ndarray) -> np.ndarray:
    """Return the order in which the table lists its entries.

    Args:
      cell: two integers for each entry, all distinct, in the order of insertion, (n, 2).

    Returns:
      Indices of the entries, (n,).
    """
    first, second = (np.asarray(cell, np.float64) + 0.0).view(np.uint64).reshape(-1, 2).T
    mixed = first ^ (second + _GOLDEN + (first << _LEFT) + (first >> _RIGHT))
    table = _Table(mixed.tolist())
    for entry in range(len(mixed)):
        table.insert(entry)
    return np.array(table.entries(), np.int64)


class _Table:
    """A linked list of entries, and for each bucket the entry before its first one."""

    def __init__(self, hashes: list[int]) -> None:
        self._hashes = hashes
        self._head = len(hashes)  # sentinel before the first entry
        self._after = [-1] * (len(hashes) + 1)
        self._before: dict[int, int] = {}
        self._buckets = 0

    def insert(self, entry: int) -> None:
        """Insert an entry before all others of its bucket, or of the list if the bucket is
        empty."""
        if entry == self._buckets:  # as many entries as buckets
            self._grow()
        bucket = self._bucket(entry)
        if bucket in self._before:
            self._link(self._before[bucket], entry)
            return
        self._link(self._head, entry)
        self._before[bucket] = self._head
        if (behind := self._after[entry]) >= 0:
            self._before[self._bucket(behind)] = entry

    def entries(self) -> list[int]:
        """Return all entries in their order."""
        listed, entry = [], self._after[self._head]
        while entry >= 0:
            listed.append(entry)
            entry = self._after[entry]
        return listed

    def _bucket(self, entry: int) -> int:
        return self._hashes[entry] % self._buckets

    def _link(self, before: int, entry: int) -> None:
        self._after[entry], self._after[before] = self._after[before], entry

    def _grow(self) -> None:
        """Double the number of buckets; an entry whose bucket exists moves to the front of it."""
        self._buckets = _next_prime(2 * self._buckets + 1) if self._buckets else 2
        self._before = {}
        previous, last = self._head, -1
        while (entry := self._after[previous]) >= 0:
            bucket = self._bucket(entry)
            if bucket != last and bucket in self._before:
                self._after[previous] = self._after[entry]
                self._link(self._before[bucket], entry)
                continue
            self._before.setdefault(bucket, previous)
            previous, last = entry, bucket


def _next_prime(least: int) -> int:
    """Return the smallest prime that is at least `least`."""
    while any(least % k == 0 for k in range(2, int(least**0.5) + 1)):
        least += 1
    return least
