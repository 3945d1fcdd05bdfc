"""A dense symmetric matrix, solved by its diagonal blocks.

The fallback of all other forms: JAX can differentiate its operations, and GPUs run them well. If
the matrix is block-diagonal, the blocks of one size are factorized together, like more worlds
(cholesky.py); the zeros between them are stored, but not computed with.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import diagonal, gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import chunks, gram
from jaxsim.linalg.block_diagonal import Parts, group_rows_by_size
from jaxsim.linalg.cholesky import solve_spd
from jaxsim.linalg.contact_blocks import ContactBlocks, contact_products
from jaxsim.linalg.ldl import ltdl
from jaxsim.linalg.operator import MassMatrix
from jaxsim.transforms.derivative_context import is_differentiated


@node("parts")
class Dense(MassMatrix):
    """A dense symmetric matrix.

    Attributes:
      matrix: `[n, n, *W]`.
      parts: constant rows of each diagonal block, together all rows; empty: one block.
    """

    matrix: jax.Array
    parts: Parts = ()

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.matrix)

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        return diagonal(self.matrix)

    def pivots(self) -> Array:
        """Return the diagonal of D in A = L' D L, `[n, *W]`."""
        return ltdl(self.matrix)[1]

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        return _map_blocks(apply, self.matrix, x, () if is_differentiated() else self.parts)

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G; J and G `[rows, n, *W]`."""
        return replace(self, matrix=self.matrix + gram(J, G))

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        n, ndim = self.matrix.shape[0], self.matrix.ndim
        eye = np.eye(n, dtype=self.matrix.dtype).reshape(n, n, *(1,) * (ndim - 2))
        return replace(self, matrix=self.matrix + eye * values[:, None])

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, *W]` added at constant indices: symmetric, in order."""
        place = self.matrix.at[row, column]
        matrix = place.add(values, unique_indices=True, indices_are_sorted=True)
        return replace(self, matrix=matrix)

    def supports(self, between: ContactBlocks) -> bool:
        """Return whether each group is a contiguous range of rows, of one world."""
        is_one = self.matrix.ndim == 2 and between.used is not None
        return is_one and between.are_ranges

    def add_contact_blocks(self, between: ContactBlocks) -> Self:
        """Return A + J' W J, of contacts that touch one or two contiguous ranges of rows each."""
        start, k = between.table[:, 0].astype(np.int32), between.table.shape[1]
        # First row of the groups of each contact; add its blocks there.
        starts = [jnp.asarray(start)[jnp.maximum(g, 0)] for g in between.group]

        def add(H: Array, _: Array | int, own: Array, weight: list, starts: list) -> Array:
            """Add the blocks of a chunk of contacts."""
            both = contact_products(own, weight)
            for c, i, j in np.ndindex(len(both), len(starts), len(starts)):
                value = both[c, i * k : (i + 1) * k, j * k : (j + 1) * k]
                at = starts[i][c], starts[j][c]
                H = lax.dynamic_update_slice(H, lax.dynamic_slice(H, at, (k, k)) + value, at)
            return H

        n, (own, weight, _) = self.size, between.items
        padded = jnp.pad(self.matrix, (0, k))  # padding for groups smaller than the largest
        H = chunks(add, padded, between.used, own, weight, (starts, 0))
        return replace(self, matrix=H[:n, :n])

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, *W]`."""
        return _map_blocks(solve_spd, self.matrix, b, self.parts)


def _map_blocks(
    function: Callable[[Array, Array], Array], A: Array, b: Array, parts: Sequence[Sequence[int]]
) -> Array:
    """Apply a function of a matrix and a vector to each diagonal block."""
    n, worlds = len(b), b.shape[1:]
    if len(parts) <= 1:
        return function(A, b)
    entries = jnp.broadcast_to(A, (n, n, *worlds)).reshape(n * n, *worlds)
    found, order = [], []
    # Apply the function to all blocks of one size, as more worlds.
    for rows in group_rows_by_size(parts):
        size = len(rows)
        block = gather_static(entries, (rows[:, None] * n + rows[None]).ravel())
        x = function(
            block.reshape(size, size, -1), gather_static(b, rows.ravel()).reshape(size, -1)
        )
        found.append(x.reshape(rows.size, *worlds))
        order.append(rows.ravel())
    # Restore the order of the rows.
    return gather_static(jnp.concatenate(found), np.argsort(np.concatenate(order)))
