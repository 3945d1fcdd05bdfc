"""Symmetric positive definite systems `[n, n, *W]`: choice of the factorization and matrix format.

Many worlds are factorized together: row by row in fused kernels (gaussian_elimination.py), else by
unrolled blocked Cholesky (packed_lower.py). One world on a CPU is factorized by a loop over rows.
Matrices for which the program would be long or the loop slow go to the platform's library (LAPACK
on a CPU), one matrix at a time: XLA:CPU hands the matrices of a batched call to all its threads and
waits for them inside one of these, so as many simultaneous calls as there are threads deadlock
(jaxlib 0.10). LAPACK divides a matrix of more than 192 rows among threads of its own, which spin
while waiting: on a busy machine 300 dofs took 0.6 to 160 ms. So the library factorizes only blocks
that it processes on one thread (`max_library_dofs`), and matrix products do the rest
(`_block_solve`).

`make_updatable` chooses the format of a matrix to which the solver adds J' D J before it solves
once: `Dense` (dense), `PackedLower` and `BlockedLower` (lower triangle by panels), `BlockDiagonal`
(block-diagonal), `Skyline` (skyline). `parts` are the rows of the diagonal blocks when everything
has been added; `tied` are those of the smaller blocks that are coupled without contacts
(physics/partition.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.arrays.node import node
from jaxsim.arrays.products import chunks, gram
from jaxsim.linalg.block_diagonal import BlockDiagonal, group_rows_by_size
from jaxsim.linalg.blocked_lower import BlockedLower
from jaxsim.linalg.contact_blocks import ContactBlocks, contact_products
from jaxsim.linalg.gaussian_elimination import solve_by_rows
from jaxsim.linalg.packed_lower import PackedLower, Symmetric
from jaxsim.linalg.skyline import Skyline
from jaxsim.linalg.spd_kernel import solve_in_kernel, supports_rhs
from jaxsim.transforms.derivative_context import is_differentiated, prefer_loops
from jaxsim.transforms.materialize import is_unbatched
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def solve_spd(A: Array, b: Array) -> Array:
    """Solve A x = b for a symmetric positive definite A.

    Args:
      A: symmetric positive definite `[n, n, *W]`.
      b: right-hand side `[n, *W]`.

    Returns:
      x, `[n, *W]`.
    """
    n = A.shape[0]
    if n == 0:
        return b
    # One world.
    if A.ndim == 2:
        return _solve(A, b)
    # Many worlds: a GPU kernel, an unrolled or row-wise factorization, or the library one by one.
    if platform().kernels and supports_rhs(b):
        return _linear_solve(A, b) if is_differentiated() else solve_in_kernel(A, b)
    if n <= tuning().max_unrolled_dofs and not is_unbatched(b):
        return _linear_solve(A, b) if is_differentiated() else _solve_batch(A, b)
    size = max(A.shape[-1], b.shape[-1])
    A = jnp.broadcast_to(A, (n, n, size))
    b = jnp.broadcast_to(b, (n, size))
    return jax.vmap(_solve, in_axes=-1, out_axes=-1)(A, b)


def solve_blocks(A: Array, b: Array, parts: Sequence[Sequence[int]]) -> Array:
    """Solve A x = b for a block-diagonal symmetric positive definite A.

    Blocks of one size are solved together, like more worlds.

    Args:
      A: symmetric positive definite `[n, n, *W]`.
      b: right-hand side `[n, *W]`.
      parts: constant rows of each diagonal block; together all rows.

    Returns:
      x, `[n, *W]`.
    """
    return _map_blocks(solve_spd, A, b, parts)


def multiply_blocks(A: Array, x: Array, parts: Sequence[Sequence[int]]) -> Array:
    """Return A x for a block-diagonal A, with the arguments of `solve_blocks`."""
    return _map_blocks(apply, A, x, () if is_differentiated() else parts)


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


@node("parts")
class Dense:
    """A dense symmetric matrix to add to and to solve with, where `PackedLower` is not worth its
    program.

    Attributes:
      matrix: `[n, n, *W]`.
      parts: rows of the diagonal blocks, as in `solve_blocks`.
    """

    matrix: jax.Array
    parts: Sequence[Sequence[int]] = ()

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.matrix)

    def plus_products(self, J: Array, G: Array) -> Self:
        """Return A + J' G; J and G `[rows, n, *W]`."""
        return replace(self, matrix=self.matrix + gram(J, G))

    def plus_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        n, ndim = self.matrix.shape[0], self.matrix.ndim
        eye = np.eye(n, dtype=self.matrix.dtype).reshape(n, n, *(1,) * (ndim - 2))
        return replace(self, matrix=self.matrix + eye * values[:, None])

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
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
        """Solve A x = b."""
        return solve_blocks(self.matrix, b, self.parts)


def supports_block_updates(
    n: int, own: Sequence, parts: Sequence[Sequence[int]], tied: Sequence[Sequence[int]]
) -> bool:
    """Return whether `make_updatable` supports a matrix of one world that is stored by its blocks
    `own`."""
    if not prefer_loops():
        return False
    return (len(tied) > 1 and n > tuning().max_unrolled_dofs) or (
        len(parts) > 1 and tuple(own) == tuple(parts)
    )


def make_updatable(
    A: Array | BlockDiagonal,
    parts: Sequence[Sequence[int]],
    like: Array,
    tied: Sequence[Sequence[int]] = (),
) -> Symmetric:
    """Return a symmetric matrix in the format to which others are added before a solve.

    Args:
      A: `[n, n, *W]`; or block-diagonal, where `supports_block_updates` is true.
      parts: rows of the diagonal blocks after everything has been added, as in `solve_blocks`.
      like: the right-hand side to come, `[n, *W]`.
      tied: rows of the diagonal blocks without contacts, if contacts are added by
        `add_contact_blocks`; empty if they are not.
    """
    # Block-diagonal input: skyline if contacts couple the blocks.
    if isinstance(A, BlockDiagonal):
        return Skyline.of_parts(A, tied) if len(tied) > 1 else A
    # Dense under differentiation, since JAX differentiates the matrix operations.
    if is_differentiated():
        return Dense(A, parts)
    # One large world with contacts between trees: skyline.
    if len(tied) > 1 and A.ndim == 2 and len(A) > tuning().max_unrolled_dofs and prefer_loops():
        return Skyline.of(A, tied)
    # Decoupled trees: block-diagonal.
    if len(parts) > 1:
        return BlockDiagonal.of(A, tuple(map(tuple, parts)), solve_spd)
    # Many worlds: lower triangle, unrolled if small, else in loops.
    halves = 0 < len(A) <= tuning().max_tiled_dofs and not is_unbatched(like)
    if not halves or not platform().recomputes:
        return Dense(A)
    return (
        _lower(A, like)
        if len(A) <= tuning().max_unrolled_dofs
        else BlockedLower.of(_broadcast_to_worlds(A, like))
    )


def _lower(A: Array, like: Array) -> PackedLower:
    """Return the lower triangle of A, broadcast to the worlds of `like`."""
    return PackedLower.of(_broadcast_to_worlds(A, like))


def _broadcast_to_worlds(A: Array, like: Array) -> Array:
    """Broadcast A to the worlds of `like`."""
    return jnp.broadcast_to(A, (*A.shape[:2], *like.shape[1:]))


def inverse_spd(A: Array) -> Array:
    """Return the inverse of a symmetric positive definite matrix `[n, n, *W]`."""
    n = A.shape[0]
    if n == 0:
        return A
    unit = jnp.eye(n, dtype=A.dtype)
    if A.ndim == 2:
        return _solve(A, unit)
    if n <= tuning().max_unrolled_dofs and not is_unbatched(A[0]):
        return PackedLower.of(A).inverse()
    return jax.vmap(_solve, in_axes=(-1, None), out_axes=-1)(A, unit)


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


def _solve(A: Array, b: Array) -> Array:
    """Solve for one world, `[n, n]` and `[n]` or `[n, k]`, with an implicit derivative."""
    return lax.custom_linear_solve(
        lambda x: _matrix_product(A, x),
        b,
        lambda _, y: _by_library(A, y),
        symmetric=True,
    )


def _linear_solve(A: Array, b: Array) -> Array:
    """Solve for many worlds, with an implicit derivative."""

    def solve(_: Callable, y: Array) -> Array:
        in_kernel = platform().kernels and supports_rhs(y)
        return solve_in_kernel(A, y) if in_kernel else _solve_batch(A, y)

    return lax.custom_linear_solve(lambda x: apply(A, x), b, solve, symmetric=True)


@jax.jit  # `custom_linear_solve` calls it twice: trace once, lower to one function
def _solve_batch(A: Array, b: Array) -> Array:
    """Solve for many worlds: unrolled if small, else row by row in a fused kernel."""
    if len(A) <= tuning().max_short_unrolled_dofs or not platform().fuses_calls:
        return _lower(A, b).solve(b)
    A = _broadcast_to_worlds(A, b)
    return solve_by_rows(A, b)


def _cholesky_solve(A: Array, b: Array) -> Array:
    """Solve for one world: row by row in a fused kernel, by the library, or by blocks."""
    columns = b.reshape(len(b), -1)
    if len(A) <= tuning().max_row_loop_dofs and prefer_loops():
        return _step_solve(A, columns).reshape(b.shape)
    in_blocks = len(A) > tuning().max_library_dofs and platform().blocks
    solve = _block_solve if in_blocks else _library_solve
    return solve(A, columns).reshape(b.shape)


def _step_solve(A: Array, b: Array) -> Array:
    """Solve by right-looking A = L D L', row by row in loops that a fused kernel can hold.

    After iteration k, row k of A is that of D L', and L^-1 is applied to b up to row k
    (transforms/cpu_fusion.py).
    """
    n = len(A)
    place = np.arange(n, dtype=np.int32)

    def pivot(row: Array, k: Array) -> Array:  # NaN if A is not positive definite, as in LAPACK
        return jnp.where(row[k] > 0, row[k], jnp.nan)

    def eliminate(k: Array, state: tuple) -> tuple:
        A, b = state
        row = A[k]
        factor = jnp.where(place > k, row / pivot(row, k), 0)[:, None]
        return A - factor * row[None], b - factor * b[k][None]

    def substitute(iteration: Array, b: Array) -> Array:
        k = n - 1 - iteration
        row = A[k]
        later = jnp.where(place > k, row, 0)
        x = (b[k] - jnp.matmul(later, b, precision=HIGHEST_PRECISION)) / pivot(row, k)
        return lax.dynamic_update_slice_in_dim(b, x[None], k, 0)

    # Eliminate from the first row down, then substitute back from the last row up.
    A, b = lax.fori_loop(0, n - 1, eliminate, (A, b))
    return lax.fori_loop(0, n, substitute, b)


def _library_solve(A: Array, b: Array) -> Array:
    """Solve by the library's Cholesky factorization and triangular solves."""
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    y = lax.linalg.triangular_solve(L, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)


def _block_solve(A: Array, b: Array) -> Array:
    """Solve by right-looking blocked Cholesky, with explicit inverses of the diagonal blocks."""
    blocks = []
    while len(A):
        width = min(tuning().library_block_dofs, len(A))
        # Factorize and invert the diagonal block, then update the trailing matrix by products.
        inverse = _inverse_lower(lax.linalg.cholesky(A[:width, :width], symmetrize_input=False))
        below = _matrix_product(A[width:, :width], inverse.T)
        y = _matrix_product(inverse, b[:width])
        blocks.append((inverse, below, y))
        A = A[width:, width:] - _matrix_product(below, below.T)
        b = b[width:] - _matrix_product(below, y)
    x = b  # empty by now
    # Back substitution, block by block from the last.
    for inverse, below, y in reversed(blocks):
        x = jnp.concatenate([_matrix_product(inverse.T, y - _matrix_product(below.T, x)), x])
    return x


def _inverse_lower(L: Array) -> Array:
    """Invert a lower triangular matrix by doubling: diagonal blocks of size 1, 2, 4, ...

    [A 0]^-1   [     A^-1         0 ] [B C]    = [-C^-1 B A^-1   C^-1 ]
    """
    n, size = len(L), 1
    full = 1 << (n - 1).bit_length()
    # Pad to a power of two with a unit matrix, and start from 1 x 1 blocks.
    L = jnp.eye(full, dtype=L.dtype).at[:n, :n].set(L)
    inverse = (1 / jnp.diagonal(L))[:, None, None]
    while size < full:
        # Merge pairs of inverted blocks A and C with the block B below A.
        pairs = np.arange(full // (2 * size))
        B = L.reshape(len(pairs), 2, size, len(pairs), 2, size)[pairs, 1, :, pairs, 0]
        A, C = inverse[::2], inverse[1::2]
        upper = jnp.concatenate([A, jnp.zeros_like(A)], axis=2)
        lower = jnp.concatenate([-_matrix_product(_matrix_product(C, B), A), C], axis=2)
        inverse = jnp.concatenate([upper, lower], axis=1)
        size *= 2
    return inverse[0, :n, :n]


def _matrix_product(A: Array, B: Array) -> Array:
    """Return the matrix product at the highest precision."""
    return jnp.matmul(A, B, precision=HIGHEST_PRECISION)


_by_library = custom_vmap(_cholesky_solve)


@_by_library.def_vmap
def _solve_sequentially(size: int, batched: list[bool], A: Array, b: Array) -> tuple[Array, bool]:
    """Batch library solves in a sequential loop where batched library calls are slow."""
    A, b = (
        x if own else jnp.broadcast_to(x, (size, *x.shape))
        for x, own in zip((A, b), batched, strict=True)
    )
    if not platform().blocks:
        return jax.vmap(_cholesky_solve)(A, b), True
    if size == 1:
        return _by_library(A[0], b[0])[None], True
    return lax.map(lambda system: _by_library(*system), (A, b)), True
