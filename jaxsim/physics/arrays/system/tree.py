"""A tree-sparse symmetric matrix: nonzero only between an item of a forest and its ancestors.

The joint-space inertia matrix is one. LTDL factorization A = L' D L from the leaves to the roots
has no fill-in (Featherstone, Rigid Body Dynamics Algorithms, section 6.5): a row with d ancestors
updates the rows of these, and nothing else. Corresponds to `mj_factorM` and `mj_solveM` in MuJoCo.
Each iteration of a loop processes one entry, in a few nanoseconds in a fused CPU kernel; the dense
matrix is never formed.

`entries` `[n, width, *W]` hold for item i its entry with the ancestor of depth p in column p. The
loops see rows `[n, width * W]` with one long axis (`size` = number of worlds), because XLA
vectorizes slices at traced offsets only in this form. `pairs` lists the stored entries:
`row`/`item`, `col`/`other`, and the offset `place`.
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
    """All pairs of an item with an ancestor or itself, ordered by item and depth.

    Attributes:
      item, other: the item and its ancestor.
      place: depth of `other`, its column in the item's row.
      depth: number of ancestors of each item of the forest.
    """

    item: np.ndarray
    other: np.ndarray
    place: np.ndarray
    depth: np.ndarray

    @property
    def width(self) -> int:
        """Return the number of columns of the stored rows."""
        return int(self.depth.max(initial=-1)) + 1


@bounded(64)
def pairs_of(forest: Forest) -> Pairs:
    """Return the pairs of a forest."""
    # Path from the root to each item, itself included.
    paths: list[list[int]] = []
    for k, parent in enumerate(forest):
        paths.append([*(paths[parent] if parent >= 0 else []), k])
    length = np.array([len(path) for path in paths], np.int32)
    item = np.repeat(np.arange(len(paths), dtype=np.int32), length)
    other = np.array([k for path in paths for k in path], np.int32)
    return Pairs(item, other, length[other] - 1, length - 1)


@node("forest")
class TreeMatrix:
    """A tree-sparse symmetric matrix.

    Attributes:
      entries: `[n, width, *W]`: row i holds the entries with the ancestors of i by depth, then the
        diagonal, then zeros.
      forest: parents of the items.
    """

    entries: jax.Array
    forest: Forest

    @classmethod
    def of_products(cls, f: tuple, x: tuple, forest: Forest) -> Self:
        """Return the matrix of entries sum_c f_c[i] x_c[j], for an item i and its ancestors j.

        Args:
          f, x: components, `[n, *W]` each.
          forest: parents of the items.
        """
        make = _products_in_loop if loops_pay() else _products_at_once
        return cls(make(f, x, pairs_of(forest)), forest)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.entries)

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        n, width, *worlds = self.entries.shape
        place = np.arange(n) * width + pairs_of(self.forest).depth
        return take(self.entries.reshape(n * width, *worlds), place)

    def plus_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        depth = pairs_of(self.forest).depth
        here = np.arange(self.entries.shape[1]) == depth[:, None]
        added = self.entries + column(1.0 * here, values) * values[:, None]
        return replace(self, entries=added)

    def plus_products(self, J: Array, G: Array) -> Self:
        """Return A + J' G, of rows that touch an item and its ancestors; J, G `[rows, n, *W]`."""
        more = type(self).of_products(tuple(J), tuple(G), self.forest)
        return replace(self, entries=self.entries + more.entries)

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Raise NotImplementedError: constraint rows of flexes couple several trees."""
        raise NotImplementedError("TreeMatrix.plus_entries")

    def takes(self, between: Between) -> bool:
        """Return False: contacts couple items that are not ancestors of each other."""
        del between
        return False

    def plus_between(self, between: Between) -> Self:
        """Raise NotImplementedError; `takes` is always false."""
        raise NotImplementedError("TreeMatrix.plus_between")

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        pairs = pairs_of(self.forest)
        if loops_pay():
            return _times_in_loop(self.entries, x, pairs)
        # Each entry acts on its item, and, off the diagonal, on its ancestor.
        n, width, *worlds = self.entries.shape
        every = take(self.entries.reshape(n * width, *worlds), pairs.item * width + pairs.place)
        below = column(1.0 * (pairs.item != pairs.other), x)
        out = jnp.zeros_like(x).at[pairs.item].add(every * take(x, pairs.other))
        return out.at[pairs.other].add(below * every * take(x, pairs.item))

    def pivots(self) -> Array:
        """Return the diagonal of D in A = L' D L, `[n, *W]`."""
        pairs, (n, width, *worlds) = pairs_of(self.forest), self.entries.shape
        size = prod(worlds)
        rows = _eliminated(self.entries.reshape(n, width * size), pairs, size, self.entries[:, 0])
        return take(rows.reshape(n * width, *worlds), np.arange(n) * width + pairs.depth)

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, *W]`; differentiable."""
        if not len(b):
            return b
        if loops_pay():
            return _solve(self.entries, b, self.forest)
        return lax.custom_linear_solve(
            self.times, b, lambda _, y: _solve(self.entries, y, self.forest), symmetric=True
        )


def _products_at_once(f: tuple, x: tuple, pairs: Pairs) -> Array:
    """Return the entries by one gather and scatter, which JAX can differentiate."""
    row, col = pairs.item, pairs.other
    values = sum(take(a, row) * take(b, col) for a, b in zip(f, x, strict=True))
    n, worlds = len(f[0]), values.shape[1:]
    out = jnp.zeros((n * pairs.width, *worlds), values.dtype)
    return out.at[row * pairs.width + pairs.place].set(values).reshape(n, pairs.width, *worlds)


def _products_in_loop(f: tuple, x: tuple, pairs: Pairs) -> Array:
    """Return the entries by a loop, one entry per iteration."""
    shape = jnp.broadcast_shapes(*(a.shape for a in (*f, *x)))
    like, size = jnp.broadcast_to(f[0], shape), prod(shape[1:])
    # Concatenate the components, so that one slice is an item with all of them.
    left, right = (
        jnp.concatenate([jnp.broadcast_to(a, shape).reshape(len(a), size) for a in v], axis=1)
        for v in (f, x)
    )
    row, col, place = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.place))
    whole = (1, len(f) * size)

    def entry(turn: Array, out: Array) -> Array:
        """Compute one entry."""
        one, other = _cut(left, row[turn], whole), _cut(right, col[turn], whole)
        parts = jnp.split(pin(one * other, like), len(f), axis=1)
        return lax.dynamic_update_slice(out, sum(parts), (row[turn], place[turn]))

    none = jnp.zeros((len(left), pairs.width * size), left.dtype)
    entries = lax.fori_loop(0, len(pairs.item), entry, none)
    return entries.reshape(shape[0], pairs.width, *shape[1:])


def _times_in_loop(entries: Array, x: Array, pairs: Pairs) -> Array:
    """Return A x by a loop over entries, each of which acts on its item and on its ancestor."""
    (n, width), size = entries.shape[:2], prod(x.shape[1:])
    entries = jnp.broadcast_to(entries, (n, width, *x.shape[1:])).reshape(n, width * size)
    given = x.reshape(n, size)
    row, col, place = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.place))
    below = jnp.asarray(pairs.item != pairs.other, x.dtype)

    def add(turn: Array, out: Array) -> Array:
        i, j = row[turn], col[turn]
        value = _cut(entries, i, (1, size), place[turn])
        # The entry acts on the item, then on its ancestor.
        of_item = _cut(out, i, (1, size)) + value * _cut(given, j, (1, size))
        out = lax.dynamic_update_slice(out, of_item, (i, FIRST))
        of_other = _cut(out, j, (1, size)) + below[turn] * value * _cut(given, i, (1, size))
        return lax.dynamic_update_slice(out, of_other, (j, FIRST))

    none = jnp.zeros((n, size), x.dtype)
    return lax.fori_loop(0, len(pairs.item), add, none).reshape(x.shape)


def _solve(entries: Array, b: Array, forest: Forest) -> Array:
    """Solve by LTDL with the right-hand side as one more column, which is substituted for free."""
    pairs, worlds = pairs_of(forest), b.shape[1:]
    (n, width), size = entries.shape[:2], prod(worlds)
    entries = jnp.broadcast_to(entries, (n, width, *worlds))
    # Append the right-hand side and factorize.
    rows = jnp.concatenate([entries.reshape(n, width * size), b.reshape(n, size)], axis=1)
    rows = _eliminated(rows, pairs, size, b).reshape(n, width + 1, *worlds)

    # Divide by the pivots: rows of L, and y in the last column.
    flat = rows.reshape(n * (width + 1), *worlds)
    pivot = take(flat, np.arange(n) * (width + 1) + pairs.depth)
    # NaN if the matrix is not positive definite, as in LAPACK.
    inverse = 1 / jnp.where(jnp.all(pivot > 0, axis=0, keepdims=True), pivot, jnp.nan)
    rows = (rows * inverse[:, None]).reshape(n, (width + 1) * size)
    return _substituted(rows, pairs, size).reshape(b.shape)


def _eliminated(rows: Array, pairs: Pairs, size: int, like: Array) -> Array:
    """Return the rows of D L: from the last row up, each is subtracted from those of its ancestors.

    Columns behind the diagonal become meaningless and are not read.
    """
    # Off-diagonal pairs, from the last item up.
    above = np.flatnonzero(pairs.item != pairs.other)[::-1]
    if not len(above):
        return rows
    row, to = jnp.asarray(pairs.item[above]), jnp.asarray(pairs.other[above])
    place = jnp.asarray(size * pairs.place[above])
    diagonal = jnp.asarray(size * pairs.depth[pairs.item[above]])
    whole, repeats = (1, rows.shape[1]), rows.shape[1] // size

    def subtract(turn: Array, rows: Array) -> Array:
        """Subtract row k from the row of its ancestor i."""
        k, i = row[turn], to[turn]
        # Multiplier: the entry with the ancestor, divided by the pivot.
        factor = _cut(rows, k, (1, size), place[turn]) / _cut(rows, k, (1, size), diagonal[turn])
        every = pin(jnp.concatenate([pin(factor, like)] * repeats, axis=1), like)
        left = _cut(rows, i, whole) - every * _cut(rows, k, whole)
        return lax.dynamic_update_slice(rows, left, (i, FIRST))

    return lax.fori_loop(0, len(above), subtract, rows)


def _substituted(rows: Array, pairs: Pairs, size: int) -> Array:
    """Solve L x = y from the first row down; y is the last column of the rows of L."""
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
    """Return a slice of the rows."""
    return lax.dynamic_slice(rows, (row, start), shape)
