"""Blocked LDL^T of a skyline matrix of one world whose profile depends on the state.

A hundred boxes have six hundred dofs, but the Hessian of the solver couples only the dofs of one
box, and those of boxes in contact. Row p of the upper triangle is zero behind its `last` column
(variable bandwidth; Jennings, Matrix Computation for Engineers and Scientists (1977), ch. 5).
Right-looking elimination A = L D L' from the first row down subtracts a pivot row only from rows in
which it has an entry, up to its last column, and extends their profile to there. So the cost
follows the nonzeros: boxes that touch only the floor cost the sum of their own blocks.

`PIVOTS` pivot rows from row `p` to column `end` are eliminated together: first among each other
(`rows`, with reciprocal pivots `inverse`), then from `ROWS` rows `i` by `PIECE` columns `at` at a
time, a tile that XLA vectorizes. Loops of data-dependent length are inexpensive in fused CPU
kernels (cpu_kernels.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import written_sum
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.products import chunks, gram
from jaxsim.physics.arrays.select import take
from jaxsim.physics.arrays.system.apart import Apart
from jaxsim.physics.arrays.system.between import Between, products

PIVOTS = 6  # pivot rows eliminated together: the dofs of a free body
ROWS, PIECE = 8, 16  # rows and columns of a tile that is updated at once
FIRST = np.int32(0)


@node()
class Profile:
    """A skyline matrix: its upper triangle, and the last nonzero column of each row.

    Attributes:
      matrix: `[n + ROWS, n + PIECE]`, padded so that every tile is in bounds; the lower triangle is
        not read.
      last: last column of each row that may be nonzero, int32 `[n]`.
    """

    matrix: jax.Array
    last: jax.Array

    @classmethod
    def of(cls, A: Array, parts: Sequence[Sequence[int]]) -> Self:
        """Return the skyline form of a block-diagonal symmetric matrix `[n, n]`."""
        return cls(_wider(A), jnp.asarray(_ends(parts, len(A))))

    @classmethod
    def of_parts(cls, A: Apart, parts: Sequence[Sequence[int]]) -> Self:
        """Return the skyline form of a block-diagonal matrix of one world."""
        return cls(A.dense(ROWS, PIECE), jnp.asarray(_ends(parts, A.size)))

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.last)

    def plus_products(self, J: Array, G: Array) -> Self:
        """Return A + J' G, where J' G is zero outside of the profile; J and G `[rows, n]`."""
        return replace(self, matrix=self.matrix + _wider(gram(J, G)))

    def plus_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n]` added."""
        eye = np.eye(*self.matrix.shape, dtype=self.matrix.dtype)
        return replace(self, matrix=self.matrix + eye * jnp.pad(values, (0, ROWS))[:, None])

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k]` added at constant indices within the profile."""
        place = self.matrix.at[row, column]
        return replace(self, matrix=place.add(values, unique_indices=True, indices_are_sorted=True))

    def takes(self, between: Between) -> bool:
        """Return whether each group is a range of rows, and contacts are processed in chunks."""
        return between.are_ranges and between.used is not None

    def plus_between(self, between: Between) -> Self:
        """Return A + J' W J of contacts on one or two ranges of rows; extend the profile."""
        table, n = between.table.astype(np.int32), self.size
        start, end, k = table[:, 0], table.max(axis=1), table.shape[1]
        groups = [jnp.maximum(g, 0) for g in between.group]
        starts = [jnp.asarray(start)[g] for g in groups]
        # The first of two groups has the later rows: the rows of the other extend to its end.
        reach = starts[0] * 0
        if len(groups) > 1:
            reach = jnp.where(between.group[1] >= 0, jnp.asarray(end)[groups[0]], 0)

        def add(state: tuple, _: Array | int, own: Array, weight: list, places: tuple) -> tuple:
            """Add the blocks of a chunk of contacts, and extend the profile."""
            H, last = state
            starts, reach = places
            both = products(own, weight)
            for c in range(len(both)):
                for i in range(len(starts)):
                    for j in range(i + 1):  # the upper triangle
                        value = both[c, i * k : (i + 1) * k, j * k : (j + 1) * k]
                        at = starts[i][c], starts[j][c]
                        value = lax.dynamic_slice(H, at, (k, k)) + value
                        H = lax.dynamic_update_slice(H, value, at)
                # Extend the profile of the earlier group to the end of the later one.
                if len(starts) > 1:
                    first = (starts[1][c],)
                    longer = jnp.maximum(lax.dynamic_slice(last, first, (k,)), reach[c])
                    last = lax.dynamic_update_slice(last, longer, first)
            return H, last

        # Pad for a last group that is smaller than the largest.
        room = max(int(start.max()) + k - n, 0)
        H, last = self.matrix, self.last
        if room:
            H, last = jnp.pad(H, (0, room)), jnp.pad(last, (0, room))
        own, weight, _ = between.items
        H, last = chunks(add, (H, last), between.used, own, weight, ((starts, reach), 0))
        return replace(self, matrix=H[: n + ROWS, : n + PIECE], last=last[:n])

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n]`."""
        n = self.size
        A, b, last = _eliminated(self.matrix, b, self.last)
        pivot = take(A.ravel(), np.arange(n) * (A.shape[1] + 1))
        # NaN if the matrix is not positive definite, as in LAPACK.
        inverse = 1 / jnp.where(jnp.all(pivot > 0), pivot, jnp.nan)
        return _substituted(A, b, last, inverse)


def _ends(parts: Sequence[Sequence[int]], n: int) -> np.ndarray:
    """Return the last row of each row's diagonal block, `[n]`."""
    last = np.zeros(n, np.int32)
    for part in parts:
        last[list(part)] = max(part)
    return last


def _wider(A: Array) -> Array:
    """Pad a matrix so that every tile is in bounds."""
    return jnp.pad(A, ((0, ROWS), (0, PIECE)))


def _eliminated(A: Array, b: Array, last: Array) -> tuple[Array, Array, Array]:
    """Return the upper triangle D L', the right-hand side D L^-1 b, and the final profile."""
    n = len(b)

    def pivots(turn: Array, state: tuple) -> tuple:
        """Eliminate `PIVOTS` rows."""
        A, b, last = state
        p = jnp.int32(turn * PIVOTS)
        # The pivot rows reach to the last column of any of them.
        end = jnp.max(lax.dynamic_slice(last, (p,), (PIVOTS,)))
        A, b, rows, inverse = _among_each_other(A, b, p, end, n)
        of_p = lax.dynamic_slice(b, (p,), (PIVOTS,))

        def subtract(turn: Array, state: tuple) -> tuple:
            """Subtract the pivot rows from `ROWS` rows, as far as they have entries there."""
            A, b, last = state
            i = p + PIVOTS + turn * ROWS
            # Multipliers L' of these rows; rows with none but zeros have nothing to subtract.
            factor = inverse[:, None] * lax.dynamic_slice(rows, (FIRST, i), (PIVOTS, ROWS))
            some = (factor != 0).any(axis=0)
            end_of_i = jnp.where(jnp.any(some), end, i - 1)

            # Update the rows tile by tile, then the right-hand side.
            def piece(turn: Array, A: Array) -> Array:
                at = i + turn * PIECE
                whole = _cut(rows, FIRST, at, PIVOTS)
                change = written_sum(lambda k: factor[k][:, None] * whole[k][None], PIVOTS)
                return lax.dynamic_update_slice(A, _cut(A, i, at, ROWS) - change, (i, at))

            A = lax.fori_loop(FIRST, _pieces(i, end_of_i), piece, A)
            share = written_sum(lambda k: factor[k] * of_p[k], PIVOTS)
            b = lax.dynamic_update_slice(b, lax.dynamic_slice(b, (i,), (ROWS,)) - share, (i,))
            # Fill-in: rows with a nonzero multiplier extend to the end of the pivot rows.
            longer = lax.dynamic_slice(last, (i,), (ROWS,))
            longer = jnp.where(some, jnp.maximum(longer, end), longer)
            return A, b, lax.dynamic_update_slice(last, longer, (i,))

        last = lax.dynamic_update_slice(last, jnp.full(PIVOTS, end), (p,))
        turns = jnp.maximum(end - p - PIVOTS + ROWS, 0) // ROWS
        return lax.fori_loop(FIRST, turns, subtract, (A, b, last))

    state = (A, jnp.pad(b, (0, ROWS)), jnp.pad(last, (0, ROWS)))
    A, b, last = lax.fori_loop(0, -(-n // PIVOTS), pivots, state)
    return A, b[:n], last[:n]


def _among_each_other(
    A: Array, b: Array, p: Array, end: Array, n: int
) -> tuple[Array, Array, Array, Array]:
    """Eliminate the pivot rows among each other.

    Returns:
      A and b with these rows updated; the rows as an array of their own, since slices of A while
      its other rows are updated would copy all of A; and the reciprocal pivots.
    """
    order = np.arange(PIVOTS, dtype=np.int32)

    def by_row(k: Array, state: tuple) -> tuple:
        """Eliminate within the first tile, recording multipliers and reciprocal pivots."""
        X, y, factors, inverse = state
        k = jnp.int32(k)
        one = jnp.where(p + k < n, 1 / X[k, k], 0)
        factor = jnp.where(order > k, X[k, :PIVOTS] * one, 0)
        factors = lax.dynamic_update_slice(factors, factor[None], (k, FIRST))
        inverse = lax.dynamic_update_slice(inverse, one[None], (k,))
        return X - factor[:, None] * X[k][None], y - factor * y[k], factors, inverse

    def again(k: Array, X: Array) -> Array:
        """Apply the recorded multipliers of one pivot to a tile."""
        return X - factors[k][:, None] * X[k][None]

    def put(state: tuple, X: Array, at: Array) -> tuple:
        """Store a tile in A and in the separate pivot rows."""
        A, rows = state
        A = lax.dynamic_update_slice(A, X, (p, at))
        return A, lax.dynamic_update_slice(rows, X, (FIRST, at))

    def piece(turn: Array, state: tuple) -> tuple:
        """Eliminate within one of the remaining tiles."""
        at = p + turn * PIECE
        return put(state, lax.fori_loop(0, PIVOTS, again, _cut(state[0], p, at, PIVOTS)), at)

    # First the tile with the pivots, then the tiles to its right.
    none = jnp.zeros((PIVOTS, PIVOTS), A.dtype)
    given = _cut(A, p, p, PIVOTS), lax.dynamic_slice(b, (p,), (PIVOTS,)), none, none[0]
    X, y, factors, inverse = lax.fori_loop(0, PIVOTS, by_row, given)
    state = put((A, jnp.zeros((PIVOTS, A.shape[1]), A.dtype)), X, p)
    A, rows = lax.fori_loop(np.int32(1), _pieces(p, end), piece, state)
    return A, lax.dynamic_update_slice(b, y, (p,)), rows, inverse


def _substituted(A: Array, b: Array, last: Array, inverse: Array) -> Array:
    """Solve D L' x = b from the last row up."""
    n = len(b)

    def row(turn: Array, x: Array) -> Array:
        """Solve for the unknown of row p."""
        p = jnp.int32(n - 1 - turn)

        def piece(turn: Array, total: Array) -> Array:
            at = p + turn * PIECE  # starts at x[p], which is still zero
            return total + _cut(A, p, at)[0] * lax.dynamic_slice(x, (at,), (PIECE,))

        later = lax.fori_loop(FIRST, _pieces(p, last[p]), piece, jnp.zeros((PIECE,), b.dtype))
        return lax.dynamic_update_slice(x, ((b[p] - later.sum()) * inverse[p])[None], (p,))

    x: Array = lax.fori_loop(0, n, row, jnp.zeros((n + PIECE,), b.dtype))
    return x[:n]


def _pieces(first: Array, last: Array) -> Array:
    """Return the number of tiles between two columns, both included."""
    return (last - first + PIECE) // PIECE


def _cut(A: Array, row: Array | np.int32, column: Array, rows: int = 1) -> Array:
    """Return a tile of `PIECE` columns."""
    return lax.dynamic_slice(A, (row, column), (rows, PIECE))
