"""Blocked LDL^T of a skyline matrix of one world whose profile depends on the state.

A hundred boxes have six hundred dofs, but the Hessian of the solver couples only the dofs of one
box, and those of boxes in contact. Row p of the upper triangle is zero behind its `last` column
(variable bandwidth; Jennings, Matrix Computation for Engineers and Scientists (1977), ch. 5).
Right-looking elimination A = L D L' from the first row down subtracts a pivot row only from rows in
which it has an entry, up to its last column, and extends their profile to there. So the cost
follows the nonzeros: boxes that touch only the floor cost the sum of their own blocks.

Four boxes, of which the first touches the last two, in blocks of six rows (x: nonzero, d: pivots,
l: finished, f: fill-in):

    H          last    box 0 eliminated    last    box 1 eliminated
    x . x x     3      d . l l              3      d . l l
      x . .     1        x . .              1        d . .      nothing to subtract: no other entry
        x .     2          x f              3          x f
          x     3            x              3            x

`_PIVOTS_PER_STEP` pivot rows are eliminated together. First among each other, by tiles from the
diagonal to the `end` of the longest of them (`_eliminate_pivot_rows`); then from the rows below,
`height` rows by `width` columns at a time (`skyline_tile`), a tile that XLA vectorizes:

          p        i               end
    p     [pivots ][tile  ][tile  ]  |     rows p .. p + 5, with reciprocal pivots `inverse`
    i              [tile  ][tile  ]  |     rows i .. i + 7: A -= factor' rows, if a factor is not 0

Loops of data-dependent length are inexpensive in fused CPU kernels (transforms/cpu_fusion.py).
docs/developer/linear-algebra.md has an example with numbers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import unrolled_sum
from jaxsim.arrays.dynamic import dynamic_slice, dynamic_update_slice
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import chunks, gram
from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.contact_blocks import ContactBlocks, contact_products
from jaxsim.linalg.operator import Symmetric
from jaxsim.transforms.tuning import tuning

_PIVOTS_PER_STEP = 6  # pivot rows eliminated together: the dofs of a free body
_FIRST_COLUMN = np.int32(0)


@node()
class Skyline(Symmetric):
    """A skyline matrix: its upper triangle, and the last nonzero column of each row.

    Attributes:
      matrix: `[n + height, n + width]`, padded by a tile so that every tile is in bounds; the lower
        triangle is not read.
      last: last column of each row that may be nonzero, int32 `[n]`.
    """

    matrix: jax.Array
    last: jax.Array

    @classmethod
    def of(cls, A: Array, parts: Sequence[Sequence[int]]) -> Self:
        """Return the skyline form of a block-diagonal symmetric matrix `[n, n]`."""
        return cls(_pad_to_tiles(A), jnp.asarray(_block_ends(parts, len(A))))

    @classmethod
    def of_parts(cls, A: BlockDiagonal, parts: Sequence[Sequence[int]]) -> Self:
        """Return the skyline form of a block-diagonal matrix of one world."""
        return cls(A.dense(*tuning().skyline_tile), jnp.asarray(_block_ends(parts, A.size)))

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.last)

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, where J' G is zero outside of the profile; J and G `[rows, n]`."""
        return replace(self, matrix=self.matrix + _pad_to_tiles(gram(J, G)))

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n]` added."""
        eye = np.eye(*self.matrix.shape, dtype=self.matrix.dtype)
        values = jnp.pad(values, (0, len(self.matrix) - self.size))
        return replace(self, matrix=self.matrix + eye * values[:, None])

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k]` added at constant indices within the profile."""
        place = self.matrix.at[row, column]
        return replace(self, matrix=place.add(values, unique_indices=True, indices_are_sorted=True))

    def supports(self, between: ContactBlocks) -> bool:
        """Return whether each group is a range of rows, and contacts are processed in chunks."""
        return between.are_ranges and between.used is not None

    def add_contact_blocks(self, between: ContactBlocks) -> Self:
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
            both = contact_products(own, weight)
            for c in range(len(both)):
                for i in range(len(starts)):
                    for j in range(i + 1):  # the upper triangle
                        value = both[c, i * k : (i + 1) * k, j * k : (j + 1) * k]
                        at = starts[i][c], starts[j][c]
                        value = dynamic_slice(H, at, (k, k)) + value
                        H = dynamic_update_slice(H, value, at)
                # Extend the profile of the earlier group to the end of the later one.
                if len(starts) > 1:
                    first = (starts[1][c],)
                    longer = jnp.maximum(dynamic_slice(last, first, (k,)), reach[c])
                    last = dynamic_update_slice(last, longer, first)
            return H, last

        # Pad for a last group that is smaller than the largest.
        height, width = self.matrix.shape
        padding = max(int(start.max()) + k - n, 0)
        H, last = self.matrix, self.last
        if padding:
            H, last = jnp.pad(H, (0, padding)), jnp.pad(last, (0, padding))
        own, weight, _ = between.items
        H, last = chunks(add, (H, last), between.used, own, weight, ((starts, reach), 0))
        return replace(self, matrix=H[:height, :width], last=last[:n])

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n]`."""
        n = self.size
        A, b, last = _eliminate(self.matrix, b, self.last)
        pivot = gather_static(A.ravel(), np.arange(n) * (A.shape[1] + 1))
        # NaN if the matrix is not positive definite, as in LAPACK.
        inverse = 1 / jnp.where(jnp.all(pivot > 0), pivot, jnp.nan)
        return _back_substitute(A, b, last, inverse)


def _block_ends(parts: Sequence[Sequence[int]], n: int) -> np.ndarray:
    """Return the last row of each row's diagonal block, `[n]`."""
    last = np.zeros(n, np.int32)
    for part in parts:
        last[list(part)] = max(part)
    return last


def _pad_to_tiles(A: Array) -> Array:
    """Pad a matrix so that every tile is in bounds."""
    height, width = tuning().skyline_tile
    return jnp.pad(A, ((0, height), (0, width)))


def _eliminate(A: Array, b: Array, last: Array) -> tuple[Array, Array, Array]:
    """Return the upper triangle D L', the right-hand side D L^-1 b, and the final profile."""
    n, (height, width) = len(b), tuning().skyline_tile

    def eliminate_step(iteration: Array, state: tuple) -> tuple:
        """Eliminate `_PIVOTS_PER_STEP` rows: among each other, then from all rows below."""
        A, b, last = state
        p = jnp.int32(iteration * _PIVOTS_PER_STEP)
        # The pivot rows reach to the last column of any of them.
        end = jnp.max(dynamic_slice(last, (p,), (_PIVOTS_PER_STEP,)))
        A, b, rows, inverse = _eliminate_pivot_rows(A, b, p, end, n)
        of_p = dynamic_slice(b, (p,), (_PIVOTS_PER_STEP,))

        def update_rows(iteration: Array, state: tuple) -> tuple:
            """Subtract the pivot rows from `height` rows, as far as they have entries there."""
            A, b, last = state
            i = p + _PIVOTS_PER_STEP + iteration * height
            # Multipliers L' of these rows; rows with none but zeros have nothing to subtract.
            factor = inverse[:, None] * dynamic_slice(
                rows, (_FIRST_COLUMN, i), (_PIVOTS_PER_STEP, height)
            )
            some = (factor != 0).any(axis=0)
            end_of_i = jnp.where(jnp.any(some), end, i - 1)

            # Update the rows tile by tile, then the right-hand side.
            def update_tile(iteration: Array, A: Array) -> Array:
                at = i + iteration * width
                whole = _slice_tile(rows, _FIRST_COLUMN, at, _PIVOTS_PER_STEP)
                change = unrolled_sum(
                    lambda k: factor[k][:, None] * whole[k][None], _PIVOTS_PER_STEP
                )
                return dynamic_update_slice(A, _slice_tile(A, i, at, height) - change, (i, at))

            A = lax.fori_loop(_FIRST_COLUMN, _num_tiles(i, end_of_i), update_tile, A)
            share = unrolled_sum(lambda k: factor[k] * of_p[k], _PIVOTS_PER_STEP)
            b = dynamic_update_slice(b, dynamic_slice(b, (i,), (height,)) - share, (i,))
            # Fill-in: rows with a nonzero multiplier extend to the end of the pivot rows.
            longer = dynamic_slice(last, (i,), (height,))
            longer = jnp.where(some, jnp.maximum(longer, end), longer)
            return A, b, dynamic_update_slice(last, longer, (i,))

        # All pivot rows now reach to `end`, and so do the rows from which they are subtracted.
        last = dynamic_update_slice(last, jnp.full(_PIVOTS_PER_STEP, end), (p,))
        iterations = jnp.maximum(end - p - _PIVOTS_PER_STEP + height, 0) // height
        return lax.fori_loop(_FIRST_COLUMN, iterations, update_rows, (A, b, last))

    state = (A, jnp.pad(b, (0, height)), jnp.pad(last, (0, height)))
    A, b, last = lax.fori_loop(0, -(-n // _PIVOTS_PER_STEP), eliminate_step, state)
    return A, b[:n], last[:n]


def _eliminate_pivot_rows(
    A: Array, b: Array, p: Array, end: Array, n: int
) -> tuple[Array, Array, Array, Array]:
    """Eliminate the pivot rows among each other.

    Returns:
      A and b with these rows updated; the rows as an array of their own, since slices of A while
      its other rows are updated would copy all of A; and the reciprocal pivots.
    """
    order = np.arange(_PIVOTS_PER_STEP, dtype=np.int32)
    _, width = tuning().skyline_tile

    def eliminate_row(k: Array, state: tuple) -> tuple:
        """Eliminate within the first tile, recording multipliers and reciprocal pivots."""
        X, y, factors, inverse = state
        k = jnp.int32(k)
        one = jnp.where(p + k < n, 1 / X[k, k], 0)
        factor = jnp.where(order > k, X[k, :_PIVOTS_PER_STEP] * one, 0)
        factors = dynamic_update_slice(factors, factor[None], (k, _FIRST_COLUMN))
        inverse = dynamic_update_slice(inverse, one[None], (k,))
        return X - factor[:, None] * X[k][None], y - factor * y[k], factors, inverse

    def reapply(k: Array, X: Array) -> Array:
        """Apply the recorded multipliers of one pivot to a tile."""
        return X - factors[k][:, None] * X[k][None]

    def store_tile(state: tuple, X: Array, at: Array) -> tuple:
        """Store a tile in A and in the separate pivot rows."""
        A, rows = state
        A = dynamic_update_slice(A, X, (p, at))
        return A, dynamic_update_slice(rows, X, (_FIRST_COLUMN, at))

    def eliminate_tile(iteration: Array, state: tuple) -> tuple:
        """Eliminate within one of the tiles to the right, with the recorded multipliers."""
        at = p + iteration * width
        return store_tile(
            state,
            lax.fori_loop(
                0, _PIVOTS_PER_STEP, reapply, _slice_tile(state[0], p, at, _PIVOTS_PER_STEP)
            ),
            at,
        )

    # First the tile with the pivots, then the tiles to its right.
    none = jnp.zeros((_PIVOTS_PER_STEP, _PIVOTS_PER_STEP), A.dtype)
    given = (
        _slice_tile(A, p, p, _PIVOTS_PER_STEP),
        dynamic_slice(b, (p,), (_PIVOTS_PER_STEP,)),
        none,
        none[0],
    )
    X, y, factors, inverse = lax.fori_loop(0, _PIVOTS_PER_STEP, eliminate_row, given)
    state = store_tile((A, jnp.zeros((_PIVOTS_PER_STEP, A.shape[1]), A.dtype)), X, p)
    A, rows = lax.fori_loop(np.int32(1), _num_tiles(p, end), eliminate_tile, state)
    return A, dynamic_update_slice(b, y, (p,)), rows, inverse


def _back_substitute(A: Array, b: Array, last: Array, inverse: Array) -> Array:
    """Solve D L' x = b from the last row up."""
    n, (_, width) = len(b), tuning().skyline_tile

    def row(iteration: Array, x: Array) -> Array:
        """Solve for the unknown of row p, given those behind it."""
        p = jnp.int32(n - 1 - iteration)

        def sum_tile(iteration: Array, total: Array) -> Array:
            at = p + iteration * width  # starts at x[p], which is still zero
            return total + _slice_tile(A, p, at)[0] * dynamic_slice(x, (at,), (width,))

        later = lax.fori_loop(
            _FIRST_COLUMN, _num_tiles(p, last[p]), sum_tile, jnp.zeros((width,), b.dtype)
        )
        return dynamic_update_slice(x, ((b[p] - later.sum()) * inverse[p])[None], (p,))

    x: Array = lax.fori_loop(0, n, row, jnp.zeros((n + width,), b.dtype))
    return x[:n]


def _num_tiles(first: Array, last: Array) -> Array:
    """Return the number of tiles between two columns, both included."""
    _, width = tuning().skyline_tile
    return (last - first + width) // width


def _slice_tile(A: Array, row: Array | np.int32, column: Array, rows: int = 1) -> Array:
    """Return a tile of some rows."""
    _, width = tuning().skyline_tile
    return dynamic_slice(A, (row, column), (rows, width))
