"""A tree-sparse symmetric matrix: nonzero only between an item of a forest and its ancestors.

The joint-space inertia matrix is one. LTDL factorization A = L' D L from the leaves to the roots
has no fill-in (Featherstone, Rigid Body Dynamics Algorithms, section 6.5): a row with d ancestors
updates the rows of these, and nothing else. Corresponds to `mj_factorM` and `mj_solveM` in MuJoCo.
Each iteration of a loop processes one entry, in a few nanoseconds in a fused CPU kernel; the dense
matrix is never formed.

A trunk 0 with two arms, 1-2 and 3 (parents -1, 0, 1, 0), as a matrix and as it is stored:

    00 10 20 30      00
    10 11 21  .      10 11          row i: its entries with its ancestors by depth,
    20 21 22  .      20 21 22       then the diagonal
    30  .  . 33      30 33

Elimination from the last row: row 3 is subtracted from row 0 (its only ancestor), row 2 from rows 1
and 0, row 1 from row 0. No zero becomes nonzero. docs/developer/linear-algebra.md has the numbers.

`entries` `[n, width, *W]` hold for item i its entry with the ancestor of depth p in column p. The
loops see rows `[n, width * W]` with one long axis (`size` = number of worlds), because XLA
vectorizes slices at traced offsets only in this form. `pairs` lists the stored entries:
`row`/`item`, `col`/`other`, and the offset `address`.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_slice, dynamic_update_slice
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.node import node
from jaxsim.cache import bounded_cache
from jaxsim.linalg.forest import Forest
from jaxsim.linalg.operator import MassMatrix
from jaxsim.transforms.derivative_context import prefer_loops
from jaxsim.transforms.materialize import materialize

_FIRST_COLUMN = np.int32(0)  # column


@dataclass(frozen=True)
class AncestorPairs:
    """All pairs of an item with an ancestor or itself, ordered by item and depth.

    Attributes:
      item, other: the item and its ancestor.
      column: depth of `other`, its column in the item's row.
      depth: number of ancestors of each item of the forest.
    """

    item: np.ndarray
    other: np.ndarray
    column: np.ndarray
    depth: np.ndarray

    @property
    def width(self) -> int:
        """Return the number of columns of the stored rows."""
        return int(self.depth.max(initial=-1)) + 1


@bounded_cache(64)
def pairs_of(forest: Forest) -> AncestorPairs:
    """Return the pairs of a forest."""
    # Path from the root to each item, itself included.
    paths: list[list[int]] = []
    for k, parent in enumerate(forest):
        paths.append([*(paths[parent] if parent >= 0 else []), k])
    length = np.array([len(path) for path in paths], np.int32)
    item = np.repeat(np.arange(len(paths), dtype=np.int32), length)
    other = np.array([k for path in paths for k in path], np.int32)
    return AncestorPairs(item, other, length[other] - 1, length - 1)


@node("forest")
class TreeSparse(MassMatrix):
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
        make = _products_in_loop if prefer_loops() else _products_by_gather
        return cls(make(f, x, pairs_of(forest)), forest)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.entries)

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        n, width, *worlds = self.entries.shape
        address = np.arange(n) * width + pairs_of(self.forest).depth
        return gather_static(self.entries.reshape(n * width, *worlds), address)

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        depth = pairs_of(self.forest).depth
        here = np.arange(self.entries.shape[1]) == depth[:, None]
        added = self.entries + column(1.0 * here, values) * values[:, None]
        return replace(self, entries=added)

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, of rows that touch an item and its ancestors; J, G `[rows, n, *W]`."""
        more = type(self).of_products(tuple(J), tuple(G), self.forest)
        return replace(self, entries=self.entries + more.entries)

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        pairs = pairs_of(self.forest)
        if prefer_loops():
            return _times_in_loop(self.entries, x, pairs)
        # Each entry acts on its item, and, off the diagonal, on its ancestor.
        n, width, *worlds = self.entries.shape
        every = gather_static(
            self.entries.reshape(n * width, *worlds), pairs.item * width + pairs.column
        )
        below = column(1.0 * (pairs.item != pairs.other), x)
        out = jnp.zeros_like(x).at[pairs.item].add(every * gather_static(x, pairs.other))
        return out.at[pairs.other].add(below * every * gather_static(x, pairs.item))

    def pivots(self) -> Array:
        """Return the diagonal of D in A = L' D L, `[n, *W]`."""
        pairs, (n, width, *worlds) = pairs_of(self.forest), self.entries.shape
        size = prod(worlds)
        rows = _eliminate_rows(
            self.entries.reshape(n, width * size), pairs, size, self.entries[:, 0]
        )
        return gather_static(rows.reshape(n * width, *worlds), np.arange(n) * width + pairs.depth)

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, *W]`; differentiable."""
        if not len(b):
            return b
        if prefer_loops():
            return _solve(self.entries, b, self.forest)
        return lax.custom_linear_solve(
            self.times, b, lambda _, y: _solve(self.entries, y, self.forest), symmetric=True
        )


def _products_by_gather(f: tuple, x: tuple, pairs: AncestorPairs) -> Array:
    """Return the entries by one gather and scatter, which JAX can differentiate."""
    row, col = pairs.item, pairs.other
    values = sum(gather_static(a, row) * gather_static(b, col) for a, b in zip(f, x, strict=True))
    n, worlds = len(f[0]), values.shape[1:]
    out = jnp.zeros((n * pairs.width, *worlds), values.dtype)
    return out.at[row * pairs.width + pairs.column].set(values).reshape(n, pairs.width, *worlds)


def _products_in_loop(f: tuple, x: tuple, pairs: AncestorPairs) -> Array:
    """Return the entries by a loop, one entry per iteration."""
    shape = jnp.broadcast_shapes(*(a.shape for a in (*f, *x)))
    like, size = jnp.broadcast_to(f[0], shape), prod(shape[1:])
    # Concatenate the components, so that one slice is an item with all of them.
    left, right = (
        jnp.concatenate([jnp.broadcast_to(a, shape).reshape(len(a), size) for a in v], axis=1)
        for v in (f, x)
    )
    row, col, address = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.column))
    whole = (1, len(f) * size)

    def entry(iteration: Array, out: Array) -> Array:
        """Compute one entry."""
        one, other = (
            _slice_row(left, row[iteration], whole),
            _slice_row(right, col[iteration], whole),
        )
        parts = jnp.split(materialize(one * other, like), len(f), axis=1)
        return dynamic_update_slice(out, sum(parts), (row[iteration], address[iteration]))

    none = jnp.zeros((len(left), pairs.width * size), left.dtype)
    entries = lax.fori_loop(0, len(pairs.item), entry, none)
    return entries.reshape(shape[0], pairs.width, *shape[1:])


def _times_in_loop(entries: Array, x: Array, pairs: AncestorPairs) -> Array:
    """Return A x by a loop over entries, each of which acts on its item and on its ancestor."""
    (n, width), size = entries.shape[:2], prod(x.shape[1:])
    entries = jnp.broadcast_to(entries, (n, width, *x.shape[1:])).reshape(n, width * size)
    given = x.reshape(n, size)
    row, col, address = (jnp.asarray(a) for a in (pairs.item, pairs.other, size * pairs.column))
    below = jnp.asarray(pairs.item != pairs.other, x.dtype)

    def add(iteration: Array, out: Array) -> Array:
        i, j = row[iteration], col[iteration]
        value = _slice_row(entries, i, (1, size), address[iteration])
        # The entry acts on the item, then on its ancestor.
        of_item = _slice_row(out, i, (1, size)) + value * _slice_row(given, j, (1, size))
        out = dynamic_update_slice(out, of_item, (i, _FIRST_COLUMN))
        of_other = _slice_row(out, j, (1, size)) + below[iteration] * value * _slice_row(
            given, i, (1, size)
        )
        return dynamic_update_slice(out, of_other, (j, _FIRST_COLUMN))

    none = jnp.zeros((n, size), x.dtype)
    return lax.fori_loop(0, len(pairs.item), add, none).reshape(x.shape)


def _solve(entries: Array, b: Array, forest: Forest) -> Array:
    """Solve by LTDL with the right-hand side as one more column, which is substituted for free."""
    pairs, worlds = pairs_of(forest), b.shape[1:]
    (n, width), size = entries.shape[:2], prod(worlds)
    entries = jnp.broadcast_to(entries, (n, width, *worlds))
    # Append the right-hand side and factorize.
    rows = jnp.concatenate([entries.reshape(n, width * size), b.reshape(n, size)], axis=1)
    rows = _eliminate_rows(rows, pairs, size, b).reshape(n, width + 1, *worlds)

    # Divide by the pivots: rows of L, and y in the last column.
    flat = rows.reshape(n * (width + 1), *worlds)
    pivot = gather_static(flat, np.arange(n) * (width + 1) + pairs.depth)
    # NaN if the matrix is not positive definite, as in LAPACK.
    inverse = 1 / jnp.where(jnp.all(pivot > 0, axis=0, keepdims=True), pivot, jnp.nan)
    rows = (rows * inverse[:, None]).reshape(n, (width + 1) * size)
    return _forward_substitute(rows, pairs, size).reshape(b.shape)


def _eliminate_rows(rows: Array, pairs: AncestorPairs, size: int, like: Array) -> Array:
    """Return the rows of D L: from the last row up, each is subtracted from those of its ancestors.

    Columns behind the diagonal become meaningless and are not read.
    """
    # Off-diagonal pairs, from the last item up.
    above = np.flatnonzero(pairs.item != pairs.other)[::-1]
    if not len(above):
        return rows
    row, to = jnp.asarray(pairs.item[above]), jnp.asarray(pairs.other[above])
    address = jnp.asarray(size * pairs.column[above])
    diagonal = jnp.asarray(size * pairs.depth[pairs.item[above]])
    whole, repeats = (1, rows.shape[1]), rows.shape[1] // size

    def subtract(iteration: Array, rows: Array) -> Array:
        """Subtract row k from the row of its ancestor i."""
        k, i = row[iteration], to[iteration]
        # Multiplier: the entry with the ancestor, divided by the pivot.
        factor = _slice_row(rows, k, (1, size), address[iteration]) / _slice_row(
            rows, k, (1, size), diagonal[iteration]
        )
        every = materialize(jnp.concatenate([materialize(factor, like)] * repeats, axis=1), like)
        left = _slice_row(rows, i, whole) - every * _slice_row(rows, k, whole)
        return dynamic_update_slice(rows, left, (i, _FIRST_COLUMN))

    return lax.fori_loop(0, len(above), subtract, rows)


def _forward_substitute(rows: Array, pairs: AncestorPairs, size: int) -> Array:
    """Solve L x = y from the first row down; y is the last column of the rows of L."""
    above = np.flatnonzero(pairs.item != pairs.other)
    if not len(above):
        return rows[:, -size:]
    row, of = jnp.asarray(pairs.item[above]), jnp.asarray(pairs.other[above])
    address = jnp.asarray(size * pairs.column[above])

    def subtract(iteration: Array, x: Array) -> Array:
        k = row[iteration]
        share = _slice_row(rows, k, (1, size), address[iteration]) * _slice_row(
            x, of[iteration], (1, size)
        )
        return dynamic_update_slice(x, _slice_row(x, k, (1, size)) - share, (k, _FIRST_COLUMN))

    return lax.fori_loop(0, len(above), subtract, rows[:, -size:])


def _slice_row(
    rows: Array, row: Array, shape: tuple, start: Array | np.int32 = _FIRST_COLUMN
) -> Array:
    """Return a slice of the rows."""
    return dynamic_slice(rows, (row, start), shape)
