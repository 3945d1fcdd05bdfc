"""A symmetric matrix of one world with few numbers that are not 0, at places the state chooses.

A hundred boxes have six hundred dofs; the Hessian of the solver ties the dofs of a box, and those
of boxes that touch. Row p of the upper triangle is zero behind its `last` column. Eliminated from
the first row down, A = L D L', a row is subtracted from those rows alone in which it has a number,
as far as its last column, and these then end there at least. So the price follows from the numbers
that are there: that of boxes which touch nothing but the floor is the sum of their own prices.
Jennings, Matrix Computation for Engineers and Scientists (1977), ch. 5: variable bandwidth.

Loops of a length that data choose cost little in the kernels of a CPU (cpu_kernels.py). What they
change at a time, `ROWS` times `PIECE` numbers by `PIVOTS` rows, is vectorized.
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

PIVOTS = 6  # rows that are subtracted together: most trees have so many dofs
ROWS, PIECE = 8, 16  # rows and columns that are changed together
FIRST = np.int32(0)


@node()
class Profile:
    """The matrix and where its rows end.

    Attributes:
      matrix: `[n + ROWS, n + PIECE]`, so that what is cut out is within; below the diagonal it is
        not read.
      last: the last column of each row that may not be zero, int32 `[n]`.
    """

    matrix: jax.Array
    last: jax.Array

    @classmethod
    def of(cls, A: Array, parts: Sequence[Sequence[int]]) -> Self:
        """That of a symmetric matrix `[n, n]` that is zero between parts."""
        return cls(_wider(A), jnp.asarray(_ends(parts, len(A))))

    @classmethod
    def of_parts(cls, A: Apart, parts: Sequence[Sequence[int]]) -> Self:
        """The same of a matrix that is kept by its parts, of one world."""
        return cls(A.dense(ROWS, PIECE), jnp.asarray(_ends(parts, A.size)))

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.last)

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added, which is zero between the parts that there were; both `[rows, n]`."""
        return replace(self, matrix=self.matrix + _wider(gram(J, G)))

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n]` added."""
        eye = np.eye(*self.matrix.shape, dtype=self.matrix.dtype)
        return replace(self, matrix=self.matrix + eye * jnp.pad(values, (0, ROWS))[:, None])

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """With numbers `[k]` added at constant places, within the parts that there were."""
        place = self.matrix.at[row, column]
        return replace(self, matrix=place.add(values, unique_indices=True, indices_are_sorted=True))

    def takes(self, between: Between) -> bool:
        """Whether each group is a range of rows, and contacts are taken a few at a time."""
        return between.are_ranges and between.used is not None

    def plus_between(self, between: Between) -> Self:
        """With J' W J added, of rows that touch one or two ranges of rows each."""
        table, n = between.table.astype(np.int32), self.size
        start, end, k = table[:, 0], table.max(axis=1), table.shape[1]
        groups = [jnp.maximum(g, 0) for g in between.group]
        starts = [jnp.asarray(start)[g] for g in groups]
        # of two groups the first is the later one, where the rows of the other end
        reach = starts[0] * 0
        if len(groups) > 1:
            reach = jnp.where(between.group[1] >= 0, jnp.asarray(end)[groups[0]], 0)

        def add(state: tuple, _: Array | int, own: Array, weight: list, places: tuple) -> tuple:
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
                if len(starts) > 1:
                    first = (starts[1][c],)
                    longer = jnp.maximum(lax.dynamic_slice(last, first, (k,)), reach[c])
                    last = lax.dynamic_update_slice(last, longer, first)
            return H, last

        # room for a group at the end that is smaller than the largest
        room = max(int(start.max()) + k - n, 0)
        H, last = self.matrix, self.last
        if room:
            H, last = jnp.pad(H, (0, room)), jnp.pad(last, (0, room))
        own, weight, _ = between.items
        H, last = chunks(add, (H, last), between.used, own, weight, ((starts, reach), 0))
        return replace(self, matrix=H[: n + ROWS, : n + PIECE], last=last[:n])

    def solve(self, b: Array) -> Array:
        """x with A x = b, of a positive definite matrix; `[n]`."""
        n = self.size
        A, b, last = _eliminated(self.matrix, b, self.last)
        pivot = take(A.ravel(), np.arange(n) * (A.shape[1] + 1))
        # NaN as the library's, if the matrix is not positive definite
        inverse = 1 / jnp.where(jnp.all(pivot > 0), pivot, jnp.nan)
        return _substituted(A, b, last, inverse)


def _ends(parts: Sequence[Sequence[int]], n: int) -> np.ndarray:
    """The last row of the part of each row, `[n]`."""
    last = np.zeros(n, np.int32)
    for part in parts:
        last[list(part)] = max(part)
    return last


def _wider(A: Array) -> Array:
    return jnp.pad(A, ((0, ROWS), (0, PIECE)))


def _eliminated(A: Array, b: Array, last: Array) -> tuple[Array, Array, Array]:
    """The upper triangle of D L', and D L^-1 b, and where the rows end then."""
    n = len(b)

    def pivots(turn: Array, state: tuple) -> tuple:
        A, b, last = state
        p = jnp.int32(turn * PIVOTS)
        end = jnp.max(lax.dynamic_slice(last, (p,), (PIVOTS,)))
        A, b, rows, inverse = _among_each_other(A, b, p, end, n)
        of_p = lax.dynamic_slice(b, (p,), (PIVOTS,))

        def subtract(turn: Array, state: tuple) -> tuple:
            A, b, last = state
            i = p + PIVOTS + turn * ROWS
            factor = inverse[:, None] * lax.dynamic_slice(rows, (FIRST, i), (PIVOTS, ROWS))
            some = (factor != 0).any(axis=0)
            end_of_i = jnp.where(jnp.any(some), end, i - 1)

            def piece(turn: Array, A: Array) -> Array:
                at = i + turn * PIECE
                whole = _cut(rows, FIRST, at, PIVOTS)
                change = written_sum(lambda k: factor[k][:, None] * whole[k][None], PIVOTS)
                return lax.dynamic_update_slice(A, _cut(A, i, at, ROWS) - change, (i, at))

            A = lax.fori_loop(FIRST, _pieces(i, end_of_i), piece, A)
            share = written_sum(lambda k: factor[k] * of_p[k], PIVOTS)
            b = lax.dynamic_update_slice(b, lax.dynamic_slice(b, (i,), (ROWS,)) - share, (i,))
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
    """The elimination among rows that are pivots together.

    Returns:
      A and b with these rows changed, the rows as an array of their own, for what is cut out of A
      beside the rows that change would make a copy of all of it; and 1 / their pivots.
    """
    order = np.arange(PIVOTS, dtype=np.int32)

    def by_row(k: Array, state: tuple) -> tuple:
        X, y, factors, inverse = state
        k = jnp.int32(k)
        one = jnp.where(p + k < n, 1 / X[k, k], 0)
        factor = jnp.where(order > k, X[k, :PIVOTS] * one, 0)
        factors = lax.dynamic_update_slice(factors, factor[None], (k, FIRST))
        inverse = lax.dynamic_update_slice(inverse, one[None], (k,))
        return X - factor[:, None] * X[k][None], y - factor * y[k], factors, inverse

    def again(k: Array, X: Array) -> Array:
        return X - factors[k][:, None] * X[k][None]

    def put(state: tuple, X: Array, at: Array) -> tuple:
        A, rows = state
        A = lax.dynamic_update_slice(A, X, (p, at))
        return A, lax.dynamic_update_slice(rows, X, (FIRST, at))

    def piece(turn: Array, state: tuple) -> tuple:
        at = p + turn * PIECE
        return put(state, lax.fori_loop(0, PIVOTS, again, _cut(state[0], p, at, PIVOTS)), at)

    none = jnp.zeros((PIVOTS, PIVOTS), A.dtype)
    given = _cut(A, p, p, PIVOTS), lax.dynamic_slice(b, (p,), (PIVOTS,)), none, none[0]
    X, y, factors, inverse = lax.fori_loop(0, PIVOTS, by_row, given)
    state = put((A, jnp.zeros((PIVOTS, A.shape[1]), A.dtype)), X, p)
    A, rows = lax.fori_loop(np.int32(1), _pieces(p, end), piece, state)
    return A, lax.dynamic_update_slice(b, y, (p,)), rows, inverse


def _substituted(A: Array, b: Array, last: Array, inverse: Array) -> Array:
    """x from the last row up: D L' x = b."""
    n = len(b)

    def row(turn: Array, x: Array) -> Array:
        p = jnp.int32(n - 1 - turn)

        def piece(turn: Array, total: Array) -> Array:
            at = p + turn * PIECE  # the number itself is still zero
            return total + _cut(A, p, at)[0] * lax.dynamic_slice(x, (at,), (PIECE,))

        later = lax.fori_loop(FIRST, _pieces(p, last[p]), piece, jnp.zeros((PIECE,), b.dtype))
        return lax.dynamic_update_slice(x, ((b[p] - later.sum()) * inverse[p])[None], (p,))

    x: Array = lax.fori_loop(0, n, row, jnp.zeros((n + PIECE,), b.dtype))
    return x[:n]


def _pieces(first: Array, last: Array) -> Array:
    """How many pieces go from a column to the last one."""
    return (last - first + PIECE) // PIECE


def _cut(A: Array, row: Array | np.int32, column: Array, rows: int = 1) -> Array:
    return lax.dynamic_slice(A, (row, column), (rows, PIECE))
