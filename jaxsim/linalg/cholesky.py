"""Dense symmetric positive definite systems `[n, n, *W]`, by Cholesky or L D L'.

Golub and Van Loan, Matrix Computations, section 4.2. `choose_factorization` (choose.py) chooses the
algorithm; each is a file, and those of one matrix at a time are here. Matrices for which the
program would be long or the loop slow go to the platform's library (LAPACK on a CPU), one matrix at
a time: XLA:CPU hands the matrices of a batched call to all its threads and waits for them inside
one of these, so as many simultaneous calls as there are threads deadlock (jaxlib 0.10). LAPACK
divides a matrix of more than 192 rows among threads of its own, which spin while waiting: on a busy
machine 300 dofs took 0.6 to 160 ms. So the library factorizes only blocks that it processes on one
thread, and matrix products do the rest (`_block_solve`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.linalg.blocked_lower import BlockedLower
from jaxsim.linalg.choose import Factorization, choose_factorization, choose_inverse
from jaxsim.linalg.elimination import solve_by_rows, solve_one_by_rows
from jaxsim.linalg.packed_lower import PackedLower
from jaxsim.linalg.spd_kernel import solve_in_kernel
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import is_unbatched
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning

# algorithms that solve many systems at once
_BATCHED = (
    Factorization.KERNEL,
    Factorization.PANELS,
    Factorization.ROWS,
    Factorization.BLOCK_LOOPS,
)

# forms of many systems at once that also invert
_STORED: dict[Factorization, type[PackedLower] | type[BlockedLower]] = {
    Factorization.PANELS: PackedLower,
    Factorization.BLOCK_LOOPS: BlockedLower,
}


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
        return _solve_one(A, b)
    # Many worlds at once.
    if choose_factorization(n, not is_unbatched(b)).form in _BATCHED:
        return _implicit_solve(A, b) if is_differentiated() else _solve_forward(A, b)
    # Many worlds, one after another.
    size = max(A.shape[-1], b.shape[-1])
    A = jnp.broadcast_to(A, (n, n, size))
    b = jnp.broadcast_to(b, (n, size))
    return jax.vmap(_solve_one, in_axes=-1, out_axes=-1)(A, b)


def inverse_spd(A: Array) -> Array:
    """Return the inverse of a symmetric positive definite matrix `[n, n, *W]`."""
    n = A.shape[0]
    if n == 0:
        return A
    unit = jnp.eye(n, dtype=A.dtype)
    if A.ndim == 2:
        return _solve_one(A, unit)
    form = choose_inverse(n, not is_unbatched(A[0])).form
    if form in _STORED:
        return _STORED[form].of(A).inverse()
    return jax.vmap(_solve_one, in_axes=(-1, None), out_axes=-1)(A, unit)


def broadcast_to_worlds(A: Array, like: Array) -> Array:
    """Broadcast a matrix to the worlds of a vector `like`."""
    return jnp.broadcast_to(A, (*A.shape[:2], *like.shape[1:]))


def _implicit_solve(A: Array, b: Array) -> Array:
    """Solve for many worlds at once, with an implicit derivative."""
    return lax.custom_linear_solve(
        lambda x: apply(A, x), b, lambda _, y: _solve_columns(A, y), symmetric=True
    )


@jax.custom_jvp
def _solve_forward(A: Array, b: Array) -> Array:
    """Solve for many worlds at once, where derivatives are taken forward only."""
    return _solve_columns(A, b)


@_solve_forward.defjvp
def _solve_tangent(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple:
    """Return x and its tangent, A dx = db - dA x, instead of the derivative of elimination."""
    (A, b), (dA, db) = primals, tangents
    x = _solve_forward(A, b)
    return x, _implicit_solve(A, db - apply(dA, x))


def _solve_batch(A: Array, b: Array) -> Array:
    """Solve for many worlds at once, in a GPU kernel or by operations of XLA."""
    form = choose_factorization(len(A), not is_unbatched(b)).form
    return solve_in_kernel(A, b) if form is Factorization.KERNEL else _solve_in_xla(A, b)


_solve_columns = custom_vmap(_solve_batch)


@_solve_columns.def_vmap
def _solve_many_columns(size: int, batched: list[bool], A: Array, b: Array) -> tuple[Array, bool]:
    """Solve for several right-hand sides of each world, such as the directions of a derivative."""
    if not any(batched):
        return _solve_batch(A, b), False
    form = choose_factorization(len(A), not is_unbatched(b[0])).form
    if batched[0] or form is Factorization.KERNEL or not platform().fuses_calls:
        axes = tuple(0 if own else None for own in batched)
        return jax.vmap(_solve_batch, axes)(A, b), True
    # Factorize each matrix once.
    columns = jnp.moveaxis(b, 0, 1)
    x = solve_by_rows(broadcast_to_worlds(A, columns[:, 0]), columns)
    return jnp.moveaxis(x, 1, 0), True


@jax.jit  # `custom_linear_solve` calls it twice: trace once, lower to one function
def _solve_in_xla(A: Array, b: Array) -> Array:
    """Solve for many worlds: by unrolled panels, row by row, or by loops over blocks."""
    A = broadcast_to_worlds(A, b)
    form = choose_factorization(len(A), not is_unbatched(b)).form
    if form is Factorization.ROWS:
        return solve_by_rows(A, b)
    return _STORED[form].of(A).solve(b)


def _solve_one(A: Array, b: Array) -> Array:
    """Solve for one world, `[n, n]` and `[n]` or `[n, k]`, with an implicit derivative."""
    return lax.custom_linear_solve(
        lambda x: _matrix_product(A, x),
        b,
        lambda _, y: _one_at_a_time(A, y),
        symmetric=True,
    )


def _factorize_and_solve(A: Array, b: Array) -> Array:
    """Solve for one world, without a derivative."""
    form = choose_factorization(len(A), batched=False, has_world_axis=False).form
    return _SINGLE[form](A, b.reshape(len(b), -1)).reshape(b.shape)


_one_at_a_time = custom_vmap(_factorize_and_solve)


@_one_at_a_time.def_vmap
def _solve_sequentially(size: int, batched: list[bool], A: Array, b: Array) -> tuple[Array, bool]:
    """Batch library solves in a sequential loop where batched library calls are slow."""
    if not batched[0]:
        # One matrix, factorized once: the right-hand sides are more columns.
        columns = jnp.moveaxis(b, 0, -1)
        x = _one_at_a_time(A, columns.reshape(len(columns), -1)).reshape(columns.shape)
        return jnp.moveaxis(x, -1, 0), True
    A, b = (
        x if own else jnp.broadcast_to(x, (size, *x.shape))
        for x, own in zip((A, b), batched, strict=True)
    )
    if not platform().blocks:
        return jax.vmap(_factorize_and_solve)(A, b), True
    if size == 1:
        return _one_at_a_time(A[0], b[0])[None], True
    return lax.map(lambda system: _one_at_a_time(*system), (A, b)), True


def _library_solve(A: Array, b: Array) -> Array:
    """Solve by the library's Cholesky factorization and triangular solves."""
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    y = lax.linalg.triangular_solve(L, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)


def _block_solve(A: Array, b: Array) -> Array:
    """Solve by right-looking blocked Cholesky, with explicit inverses of the diagonal blocks."""
    # Factorize from the first block column to the last; A and b shrink to what is left.
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
    # Back substitution, block by block from the last.
    x = b  # empty by now
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


# Algorithms for one system.
_SINGLE = {
    Factorization.LDL_ROWS: solve_one_by_rows,
    Factorization.BLOCKS: _block_solve,
    Factorization.LIBRARY: _library_solve,
}
