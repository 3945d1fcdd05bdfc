"""A symmetric matrix that is zero but between an item of a forest and its ancestors, by entries.

The inertia of a tree is one. Eliminated from the leaves to the roots, A = L' D L, it keeps its
zeros (Featherstone, Rigid Body Dynamics Algorithms, ch. 6): a row with d ancestors changes the rows
of these, and nothing else. Each turn of a loop takes one entry, which a kernel of a CPU does in
some nanoseconds; the dense matrix is not made.

The loops see rows `[n, places * W]` with one long axis: what they cut out at places that they look
up is vectorized in this form alone.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.cache import bounded
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.call.differentiated import loops_pay
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.arrays.system.between import Between
from jaxsim.physics.arrays.system.forest import Forest

FIRST = np.int32(0)  # column


@dataclass(frozen=True)
class Pairs:
    """Each item with each of its ancestors and with itself, ordered by item and depth.

    Attributes:
      item, other: the pair.
      place: number of ancestors of `other`, which is its place in the item's row.
      depth: of each item of the forest, the number of its ancestors.
    """

    item: np.ndarray
    other: np.ndarray
    place: np.ndarray
    depth: np.ndarray

    @property
    def width(self) -> int:
        """Places of a row."""
        return int(self.depth.max(initial=-1)) + 1


@bounded(64)
def pairs_of(forest: Forest) -> Pairs:
    """The pairs of a forest."""
    paths: list[list[int]] = []
    for k, parent in enumerate(forest):
        paths.append([*(paths[parent] if parent >= 0 else []), k])
    length = np.array([len(path) for path in paths], np.int32)
    item = np.repeat(np.arange(len(paths), dtype=np.int32), length)
    other = np.array([k for path in paths for k in path], np.int32)
    return Pairs(item, other, length[other] - 1, length - 1)


@node("forest")
class TreeMatrix:
    """Entries `[n, places, *W]`: of row i that with its ancestor of depth p in place p.

    Attributes:
      entries: those of each item with its ancestors, last that with itself; 0 behind.
      forest: the parents of the items.
    """

    entries: jax.Array
    forest: Forest

    @classmethod
    def of_products(cls, f: tuple, x: tuple, forest: Forest) -> Self:
        """sum_c f_c[i] x_c[j] for an item i and its ancestors j.

        Args:
          f, x: components, `[n, *W]` each.
          forest: the parents.
        """
        make = _products_in_loop if loops_pay() else _products_at_once
        return cls(make(f, x, pairs_of(forest)), forest)

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.entries)

    @property
    def diagonal(self) -> Array:
        """The entries of items with themselves, `[n, *W]`."""
        n, width, *worlds = self.entries.shape
        place = np.arange(n) * width + pairs_of(self.forest).depth
        return take(self.entries.reshape(n * width, *worlds), place)

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n, *W]` added."""
        depth = pairs_of(self.forest).depth
        here = np.arange(self.entries.shape[1]) == depth[:, None]
        added = self.entries + column(1.0 * here, values) * values[:, None]
        return replace(self, entries=added)

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added, symmetric, of rows that touch items with their ancestors only; both
        `[rows, n, *W]`."""
        more = type(self).of_products(tuple(J), tuple(G), self.forest)
        return replace(self, entries=self.entries + more.entries)

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Not there: rows of flexes touch several trees."""
        raise NotImplementedError("TreeMatrix.plus_entries")

    def takes(self, between: Between) -> bool:
        """Not: contacts touch items that are no ancestors of each other."""
        del between
        return False

    def plus_between(self, between: Between) -> Self:
        """Not there."""
        raise NotImplementedError("TreeMatrix.plus_between")

    def times(self, x: Array) -> Array:
        """A x, `[n, *W]`."""
        pairs = pairs_of(self.forest)
        if loops_pay():
            return _times_in_loop(self.entries, x, pairs)
        n, width, *worlds = self.entries.shape
        every = take(self.entries.reshape(n * width, *worlds), pairs.item * width + pairs.place)
        below = column(1.0 * (pairs.item != pairs.other), x)
        out = jnp.zeros_like(x).at[pairs.item].add(every * take(x, pairs.other))
        return out.at[pairs.other].add(below * every * take(x, pairs.item))

    def pivots(self) -> Array:
        """The diagonal of D in A = L' D L, `[n, *W]`."""
        pairs, (n, width, *worlds) = pairs_of(self.forest), self.entries.shape
        size = prod(worlds)
        rows = _eliminated(self.entries.reshape(n, width * size), pairs, size, self.entries[:, 0])
        return take(rows.reshape(n * width, *worlds), np.arange(n) * width + pairs.depth)

    def solve(self, b: Array) -> Array:
        """x with A x = b, of a positive definite matrix; `[n, *W]`. Its derivative is that of the
        solution."""
        if not len(b):
            return b
        if loops_pay():
            return _solve(self.entries, b, self.forest)
        return lax.custom_linear_solve(
            self.times, b, lambda _, y: _solve(self.entries, y, self.forest), symmetric=True
        )


def _products_at_once(f: tuple, x: tuple, pairs: Pairs) -> Array:
    """The entries, in a form that JAX can differentiate."""
    row, col = pairs.item, pairs.other
    values = sum(take(a, row) * take(b, col) for a, b in zip(f, x, strict=True))
    n, worlds = len(f[0]), values.shape[1:]
    out = jnp.zeros((n * pairs.width, *worlds), values.dtype)
    return out.at[row * pairs.width + pairs.place].set(values).reshape(n, pairs.width, *worlds)


def _products_in_loop(f: tuple, x: tuple, pairs: Pairs) -> Array:
    """The same, one entry a turn."""
    shape = jnp.broadcast_shapes(*(a.shape for a in (*f, *x)))
    like, size = jnp.broadcast_to(f[0], shape), prod(shape[1:])
    left, right = (
        jnp.concatenate([jnp.broadcast_to(a, shape).reshape(len(a), size) for a in v], axis=1)
        for v in (f, x)
    )
    row, col, place = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.place))
    whole = (1, len(f) * size)

    def entry(turn: Array, out: Array) -> Array:
        one, other = _cut(left, row[turn], whole), _cut(right, col[turn], whole)
        parts = jnp.split(pin(one * other, like), len(f), axis=1)
        return lax.dynamic_update_slice(out, sum(parts), (row[turn], place[turn]))

    none = jnp.zeros((len(left), pairs.width * size), left.dtype)
    entries = lax.fori_loop(0, len(pairs.item), entry, none)
    return entries.reshape(shape[0], pairs.width, *shape[1:])


def _times_in_loop(entries: Array, x: Array, pairs: Pairs) -> Array:
    """A x, one entry a turn: for the item, and for its ancestor."""
    (n, width), size = entries.shape[:2], prod(x.shape[1:])
    entries = jnp.broadcast_to(entries, (n, width, *x.shape[1:])).reshape(n, width * size)
    given = x.reshape(n, size)
    row, col, place = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.place))
    below = jnp.asarray(pairs.item != pairs.other, x.dtype)

    def add(turn: Array, out: Array) -> Array:
        i, j = row[turn], col[turn]
        value = _cut(entries, i, (1, size), place[turn])
        of_item = _cut(out, i, (1, size)) + value * _cut(given, j, (1, size))
        out = lax.dynamic_update_slice(out, of_item, (i, FIRST))
        of_other = _cut(out, j, (1, size)) + below[turn] * value * _cut(given, i, (1, size))
        return lax.dynamic_update_slice(out, of_other, (j, FIRST))

    none = jnp.zeros((n, size), x.dtype)
    return lax.fori_loop(0, len(pairs.item), add, none).reshape(x.shape)


def _solve(entries: Array, b: Array, forest: Forest) -> Array:
    """The right-hand side is one more column of the entries, which makes the first substitution
    free."""
    pairs, worlds = pairs_of(forest), b.shape[1:]
    (n, width), size = entries.shape[:2], prod(worlds)
    entries = jnp.broadcast_to(entries, (n, width, *worlds))
    rows = jnp.concatenate([entries.reshape(n, width * size), b.reshape(n, size)], axis=1)
    rows = _eliminated(rows, pairs, size, b).reshape(n, width + 1, *worlds)

    flat = rows.reshape(n * (width + 1), *worlds)
    pivot = take(flat, np.arange(n) * (width + 1) + pairs.depth)
    # NaN as the library's, if the matrix is not positive definite
    inverse = 1 / jnp.where(jnp.all(pivot > 0, axis=0, keepdims=True), pivot, jnp.nan)
    rows = (rows * inverse[:, None]).reshape(n, (width + 1) * size)
    return _substituted(rows, pairs, size).reshape(b.shape)


def _eliminated(rows: Array, pairs: Pairs, size: int, like: Array) -> Array:
    """Rows of D L, from the last: each is subtracted from those of its ancestors.

    Behind the diagonal a row becomes noise, which nobody reads.
    """
    above = np.flatnonzero(pairs.item != pairs.other)[::-1]
    if not len(above):
        return rows
    row, to = jnp.asarray(pairs.item[above]), jnp.asarray(pairs.other[above])
    place = jnp.asarray(size * pairs.place[above])
    diagonal = jnp.asarray(size * pairs.depth[pairs.item[above]])
    whole, repeats = (1, rows.shape[1]), rows.shape[1] // size

    def subtract(turn: Array, rows: Array) -> Array:
        k, i = row[turn], to[turn]
        factor = _cut(rows, k, (1, size), place[turn]) / _cut(rows, k, (1, size), diagonal[turn])
        every = pin(jnp.concatenate([pin(factor, like)] * repeats, axis=1), like)
        left = _cut(rows, i, whole) - every * _cut(rows, k, whole)
        return lax.dynamic_update_slice(rows, left, (i, FIRST))

    return lax.fori_loop(0, len(above), subtract, rows)


def _substituted(rows: Array, pairs: Pairs, size: int) -> Array:
    """x from L x = y, from the first row; y is the last column of the rows of L."""
    above = np.flatnonzero(pairs.item != pairs.other)
    if not len(above):
        return rows[:, -size:]
    row, of = jnp.asarray(pairs.item[above]), jnp.asarray(pairs.other[above])
    place = jnp.asarray(size * pairs.place[above])

    def subtract(turn: Array, x: Array) -> Array:
        k = row[turn]
        share = _cut(rows, k, (1, size), place[turn]) * _cut(x, of[turn], (1, size))
        return lax.dynamic_update_slice(x, _cut(x, k, (1, size)) - share, (k, FIRST))

    return lax.fori_loop(0, len(above), subtract, rows[:, -size:])


def _cut(rows: Array, row: Array, shape: tuple, start: Array | np.int32 = FIRST) -> Array:
    return lax.dynamic_slice(rows, (row, start), shape)
