"""The inverse of a block-diagonal symmetric positive definite matrix, by its blocks.

Solvers that apply M^-1 many times in a step (conjugate gradients, Gauss-Seidel on the dual problem)
and the exact diagonal of J M^-1 J' use it: with an inverse each application is one product.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.products import gram
from jaxsim.linalg.block_diagonal import group_rows_by_size
from jaxsim.linalg.cholesky import inverse_spd


class InverseBlocks(NamedTuple):
    """The inverse of a block-diagonal matrix.

    Attributes:
      rows: rows of the blocks of each size, constant `[size, parts]`.
      blocks: inverse blocks of each size, `[size, size, parts of all worlds]`.
    """

    rows: list[np.ndarray]
    blocks: list

    def times(self, b: Array) -> Array:
        """Return A^-1 b: `[n, *W]` -> `[n, *W]`."""
        return self.responses(b[None])[0]

    def responses(self, J: Array) -> Array:
        """Return J A^-1: `[k, n, *W]` -> `[k, n, *W]`."""
        found, order, (k, _, *worlds) = [], [], J.shape
        for rows, (own, block) in zip(self.rows, self._parts(J), strict=True):
            found.append(gram(own, block).reshape(k, rows.size, *worlds))
            order.append(rows.ravel())
        # Restore the order of the columns.
        all_parts = jnp.swapaxes(jnp.concatenate(found, axis=1), 0, 1)
        return jnp.swapaxes(gather_static(all_parts, np.argsort(np.concatenate(order))), 0, 1)

    def products(self, J: Array) -> Array:
        """Return J A^-1 J': `[k, n, *W]` -> `[k, k, *W]`."""
        k, worlds = len(J), J.shape[2:]
        out: Array = jnp.zeros((k, k, *worlds), J.dtype)
        for own, block in self._parts(J):
            each = gram(jnp.swapaxes(gram(own, block), 0, 1), own)
            out = out + jnp.sum(each.reshape(k, k, -1, *worlds), axis=2)
        return out

    def squares(self, J: Array) -> Array:
        """Return the diagonal of J A^-1 J': `[k, n, *W]` -> `[k, *W]`."""
        k, worlds = len(J), J.shape[2:]
        out: Array = jnp.zeros((k, *worlds), J.dtype)
        for own, block in self._parts(J):
            each = jnp.sum(own * jnp.swapaxes(gram(own, block), 0, 1), axis=0)
            out = out + jnp.sum(each.reshape(k, -1, *worlds), axis=1)
        return out

    def _parts(self, J: Array) -> Iterator[tuple[Array, Array]]:
        """Yield columns of J by block size, `[size, k, parts of all worlds]`, and the blocks."""
        k, worlds = len(J), J.shape[2:]
        if not k:
            return
        for rows, block in zip(self.rows, self.blocks, strict=True):
            own = gather_static(jnp.swapaxes(J, 0, 1), rows.ravel()).reshape(
                *rows.shape, k, *worlds
            )
            yield jnp.swapaxes(own, 1, 2).reshape(len(rows), k, -1), block


def inverse_blocks(A: Array, parts: Sequence[Sequence[int]]) -> InverseBlocks:
    """Return the inverse of a block-diagonal symmetric positive definite matrix.

    Args:
      A: `[n, n, *W]`.
      parts: constant rows of each diagonal block; together all rows.
    """
    n, worlds = len(A), A.shape[2:]
    entries, groups = A.reshape(n * n, *worlds), group_rows_by_size(parts)
    blocks = []
    for rows in groups:
        block = gather_static(entries, (rows[:, None] * n + rows[None]).ravel())
        blocks.append(inverse_spd(block.reshape(len(rows), len(rows), -1)))
    return InverseBlocks(groups, blocks)
