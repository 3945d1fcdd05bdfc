"""A block-diagonal symmetric matrix, of which only the diagonal blocks are stored.

The blocks are the connected components of the model: robots that cannot touch each other share a
model, but not a linear system. Blocks of one size are processed together, like more worlds: three
blocks of rows (0 3) (1 4) (2) are stored as

    blocks[0]  [1, 1, 1, *W]      of (2)
    blocks[1]  [2, 2, 2, *W]      of (0 3) and (1 4)

In this module a "part" is the tuple of rows of one block, `parts` lists all of them, and `rows`
`[size, parts]` are the rows of all blocks of one size.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.dynamic import dynamic_update_slice
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import chunks, gram
from jaxsim.linalg.cholesky import solve_spd
from jaxsim.linalg.contact_blocks import ContactBlocks, contact_products, scatter_add_contacts
from jaxsim.linalg.ldl import ltdl
from jaxsim.linalg.operator import MassMatrix
from jaxsim.transforms.materialize import materialize

Parts = tuple[tuple[int, ...], ...]


def group_rows_by_size(parts: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Return the rows of the blocks of each size, `[size, parts]`, in order of size."""
    sizes = sorted({len(part) for part in parts})
    return [np.array([part for part in parts if len(part) == size]).T for size in sizes]


@node("parts")
class BlockDiagonal(MassMatrix):
    """A block-diagonal symmetric matrix, stored by size of its blocks.

    Attributes:
      blocks: `[size, size, parts, *W]` each, in the order of `group_rows_by_size`.
      parts: the rows of each block; together all rows.
    """

    blocks: list[jax.Array]
    parts: Parts

    @classmethod
    def of(cls, A: Array, parts: Parts) -> Self:
        """Return the diagonal blocks of a symmetric matrix `[n, n, *W]`."""
        n, worlds = len(A), A.shape[2:]
        entries = A.reshape(n * n, *worlds)
        blocks = [
            gather_static(entries, (rows[:, None] * n + rows[None]).ravel()).reshape(
                len(rows), len(rows), -1, *worlds
            )
            for rows in group_rows_by_size(parts)
        ]
        return cls(blocks, parts)

    @classmethod
    def of_products(cls, f: tuple, x: tuple, parts: Parts, above: np.ndarray) -> Self:
        """Return the symmetric matrix of entries sum_c f_c[i] x_c[j], for j above i or equal.

        Args:
          f, x: components, `[n, *W]` each.
          parts: the rows of each block; together all rows.
          above: constant `[n, n]` bool: the column's row is an ancestor of the row, or the row
            itself.
        """
        shape = jnp.broadcast_shapes(*(a.shape for a in (*f, *x)))
        blocks = []
        for rows in group_rows_by_size(parts):
            # Components of the rows of each block, and the sum of their products.
            own = [[_gather_blocks(jnp.broadcast_to(a, shape), rows) for a in v] for v in (f, x)]
            left, right = materialize(own, f[0])
            terms = [a[:, None] * b[None] for a, b in zip(left, right, strict=True)]
            # Lower triangle of the blocks, then mirror it.
            below = sum(terms[1:], terms[0])
            lower = above[rows[:, None], rows[None]]
            lower = lower.reshape(*lower.shape, *(1,) * (len(shape) - 1))
            other = jnp.where(lower.swapaxes(0, 1), below.swapaxes(0, 1), 0)
            blocks.append(jnp.where(lower, below, other))
        return cls(blocks, parts)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.parts))

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        found = []
        for block, rows in self._each():
            entries = block.reshape(-1, *block.shape[2:])
            found.append(gather_static(entries, np.arange(len(rows)) * (len(rows) + 1)))
        return _scatter_blocks(found, self.parts)

    def pivots(self) -> Array:
        """Return the diagonal of D in A = L' D L, `[n, *W]`."""
        return _scatter_blocks([ltdl(block)[1] for block in self.blocks], self.parts)

    def dense(self, below: int = 0, to_right: int = 0) -> Array:
        """Return the dense matrix, if each part is a range of rows.

        Zero rows and columns are appended, to `[n + below, n + to_right, *W]`.
        """
        n, worlds = self.size, self.blocks[0].shape[3:]
        out = jnp.zeros((n + below, n + to_right, *worlds), self.blocks[0].dtype)
        for block, rows in self._each():
            out = _write_blocks(out, jnp.moveaxis(block, 2, 0), rows[0])
        return out

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        found = []
        for block, rows in self._each():
            own = _gather_blocks(x, rows).reshape(len(rows), -1)
            product = apply(block.reshape(*block.shape[:2], -1), own)
            found.append(product.reshape(*rows.shape, *x.shape[1:]))
        return _scatter_blocks(found, self.parts)

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, symmetric and zero between blocks; J and G `[rows, n, *W]`."""
        new = []
        for block, rows in self._each():
            shape = (len(J), *rows.shape, *J.shape[2:])
            left, right = (
                jnp.swapaxes(gather_static(jnp.swapaxes(a, 0, 1), rows.ravel()), 0, 1).reshape(
                    shape
                )
                for a in (J, G)
            )
            left, right = (a.reshape(*shape[:2], -1) for a in (left, right))
            new.append(block + gram(left, right).reshape(block.shape))
        return replace(self, blocks=new)

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        new = []
        for block, rows in self._each():
            own = gather_static(values, rows.ravel()).reshape(1, *rows.shape, *values.shape[1:])
            eye = np.eye(len(rows), dtype=block.dtype)
            new.append(block + eye.reshape(*eye.shape, *(1,) * (block.ndim - 2)) * own)
        return replace(self, blocks=new)

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, *W]` added at constant indices (operator.py)."""
        new = []
        for block, rows in self._each():
            place = np.full((2, self.size), -1)  # index of each row in its block, block of each row
            place[:, rows.ravel()] = [a.ravel() for a in np.indices(rows.shape)]
            (i, part), (j, other) = place[:, row], place[:, column]
            # Entries whose row and column are in the same block of this size.
            own = np.flatnonzero((part >= 0) & (part == other))
            at = block.at[i[own], j[own], part[own]]
            new.append(at.add(gather_static(values, own), unique_indices=True))
        return replace(self, blocks=new)

    def supports(self, between: ContactBlocks) -> bool:
        """Return whether contacts touch one block each, the case that `add_contact_blocks`
        supports."""
        return len(between.group) == 1 and len(between.dofs) == len(self.parts)

    def add_contact_blocks(self, between: ContactBlocks) -> Self:
        """Return A + J' W J, of contacts that touch one block each."""
        return chunks(_add_chunk, self, between.used, *between.items)

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, *W]`."""
        found = []
        for block, rows in self._each():
            own = _gather_blocks(b, rows).reshape(len(rows), -1)
            x = solve_spd(block.reshape(*block.shape[:2], -1), own)
            found.append(x.reshape(*rows.shape, *b.shape[1:]))
        return _scatter_blocks(found, self.parts)

    def _each(self) -> list[tuple[Array, np.ndarray]]:
        """Return the blocks of each size with their rows."""
        return list(zip(self.blocks, group_rows_by_size(self.parts), strict=True))


def _write_blocks(M: Array, blocks: Array, first: np.ndarray) -> Array:
    """Write blocks `[k, n, n, *W]` on the diagonal of M, each from a constant row on."""
    start = jnp.asarray(first.astype(np.int32))
    zeros = (jnp.int32(0),) * (M.ndim - 2)

    def put(k: Array, M: Array) -> Array:
        return dynamic_update_slice(M, blocks[k], (start[k], start[k], *zeros))

    placed: Array = lax.fori_loop(0, len(first), put, M)
    return placed


def _gather_blocks(x: Array, rows: np.ndarray) -> Array:
    """Gather items `[n, *W]` by the blocks of one size: `[size, parts, *W]`."""
    size, number = rows.shape
    if np.array_equal(rows.T.ravel(), np.arange(rows.size) + rows[0, 0]):  # contiguous
        own = gather_static(x, rows.T.ravel()).reshape(number, size, *x.shape[1:])
        return jnp.swapaxes(own, 0, 1)
    return gather_static(x, rows.ravel()).reshape(*rows.shape, *x.shape[1:])


def _scatter_blocks(found: list[Array], parts: Parts) -> Array:
    """Return the items of the blocks of all sizes as `[n, *W]`, the inverse of `_gather_blocks`."""
    flat = [jnp.swapaxes(a, 0, 1).reshape(-1, *a.shape[2:]) for a in found]
    # Invert the permutation from rows to blocks.
    order = np.concatenate([rows.T.ravel() for rows in group_rows_by_size(parts)])
    return gather_static(jnp.concatenate(flat), np.argsort(order))


def _add_chunk(
    H: BlockDiagonal, _: Array | int, own: Array, weight: list, group: tuple
) -> BlockDiagonal:
    """Add the products of a chunk of contacts."""
    (of_contact,) = group
    own, weight = materialize((own, weight), own[0, 0])
    both = materialize(contact_products(own, weight), own[0, 0])
    # For each size of block: the index of a contact's block among them, -1 for another size.
    sizes = np.array([len(part) for part in H.parts])
    new = []
    for block in H.blocks:
        size = len(block)
        number = np.where(sizes == size, np.cumsum(sizes == size) - 1, -1).astype(np.int32)
        table = jnp.asarray(column(np.append(number, np.int32(-1)), of_contact))
        index = gather(table, jnp.where(of_contact < 0, len(sizes), of_contact))
        new.append(scatter_add_contacts(block, both[:, :size, :size], index, axis=2))
    return replace(H, blocks=new)
