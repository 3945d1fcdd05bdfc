"""A dense symmetric matrix, solved by its diagonal blocks.

The fallback of all other forms: JAX can differentiate its operations, and GPUs run them well. If
the matrix is block-diagonal, its blocks are gathered for each product or solution, as
`BlockDiagonal`: the zeros between them are stored, but not computed with.
"""

from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.dynamic import dynamic_slice, dynamic_update_slice
from jaxsim.arrays.gather import diagonal
from jaxsim.arrays.node import node
from jaxsim.arrays.products import chunks, gram
from jaxsim.linalg.block_diagonal import BlockDiagonal, Parts
from jaxsim.linalg.cholesky import broadcast_to_worlds, solve_spd
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
        one = is_differentiated() or len(self.parts) <= 1
        return apply(self.matrix, x) if one else self._blocks(x).times(x)

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G; J and G `[rows, n, *W]`."""
        return replace(self, matrix=self.matrix + gram(J, G))

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        n, ndim = self.matrix.shape[0], self.matrix.ndim
        eye = np.eye(n, dtype=self.matrix.dtype).reshape(n, n, *(1,) * (ndim - 2))
        return replace(self, matrix=self.matrix + eye * values[:, None])

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, *W]` added at constant indices (operator.py)."""
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
                H = dynamic_update_slice(H, dynamic_slice(H, at, (k, k)) + value, at)
            return H

        n, (own, weight, _) = self.size, between.items
        padded = jnp.pad(self.matrix, (0, k))  # padding for groups smaller than the largest
        H = chunks(add, padded, between.used, own, weight, (starts, 0))
        return replace(self, matrix=H[:n, :n])

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, *W]`."""
        one = len(self.parts) <= 1
        return solve_spd(self.matrix, b) if one else self._blocks(b).solve(b)

    def _blocks(self, like: Array) -> BlockDiagonal:
        """Return the diagonal blocks, for the worlds of a vector."""
        return BlockDiagonal.of(broadcast_to_worlds(self.matrix, like), self.parts)
