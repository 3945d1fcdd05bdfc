"""Gaussian elimination row by row without pivoting, in loops that fused CPU kernels can hold.

Unrolled blocked Cholesky (packed_lower.py) is fast where XLA runs operation by operation, but it
consists of thousands of operations. In a fused kernel (transforms/cpu_fusion.py) loops are
inexpensive, so a hundred operations suffice: the program is the same for 6 rows and for 48, and
takes two to three times the time of the blocked form. Three variants (Golub and Van Loan, Matrix
Computations, section 3.2): `solve_by_rows` for many symmetric matrices, vectorized over worlds;
`solve_one_by_rows` for one, vectorized over columns; `solve_general` for the nonsymmetric matrices
of implicit integrators.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from jaxsim.arrays.gather import column, diagonal
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.arrays.node import node
from jaxsim.transforms.materialize import materialize


def solve_by_rows(A: Array, b: Array) -> Array:
    """Solve A x = b by A = L U with a unit U; NaN where A is not positive definite.

    Args:
      A: symmetric positive definite `[n, n, W]`.
      b: right-hand side `[n, W]`, or several, `[n, k, W]`.

    Returns:
      x, as b.
    """
    n = len(A)
    # Right-hand sides are more columns, so elimination includes forward substitution.
    columns = b.reshape(n, -1, b.shape[-1])
    system = materialize(jnp.concatenate([A, columns], axis=1), columns[:, 0])

    def eliminate(k: Array, system: Array) -> Array:
        """Scale row k by its pivot and subtract it from the rows below."""
        row = dynamic_slice_in_dim(system, k, 1)
        pivot = dynamic_slice_in_dim(row, k, 1, axis=1)
        row = materialize(row / jnp.where(pivot > 0, pivot, jnp.nan), columns[:, 0])

        def below(i: Array, system: Array) -> Array:
            own = dynamic_slice_in_dim(system, i, 1)
            new = own - dynamic_slice_in_dim(own, k, 1, axis=1) * row
            return dynamic_update_slice_in_dim(system, new, i, axis=0)

        # Store the pivot row, then update the rows below it.
        system = dynamic_update_slice_in_dim(system, row, k, axis=0)
        return lax.fori_loop(k + 1, n, below, system)

    system = lax.fori_loop(0, n, eliminate, system)

    def back(iteration: Array, x: Array) -> Array:
        """Substitute one solved unknown in the rows above."""
        k = n - 1 - iteration
        known = materialize(dynamic_slice_in_dim(x, k, 1), columns[:, 0])

        def above(i: Array, x: Array) -> Array:
            entry = dynamic_slice(system, (i, k, 0), (1, 1, x.shape[-1]))
            new = dynamic_slice_in_dim(x, i, 1) - entry * known
            return dynamic_update_slice_in_dim(x, new, i, axis=0)

        return lax.fori_loop(0, k, above, x)

    # Back substitution in the last columns, which hold L^-1 b divided by the pivots.
    return lax.fori_loop(0, n, back, system[:, n:]).reshape(b.shape)


def solve_one_by_rows(A: Array, b: Array) -> Array:
    """Solve A x = b of one world by right-looking A = L D L'; NaN where A is not positive definite.

    After iteration k, row k of A is that of D L', and L^-1 is applied to b up to row k.

    Args:
      A: symmetric positive definite `[n, n]`.
      b: right-hand sides `[n, k]`.

    Returns:
      x, `[n, k]`.
    """
    n = len(A)
    index = np.arange(n, dtype=np.int32)

    def pivot(row: Array, k: Array) -> Array:  # NaN if A is not positive definite, as in LAPACK
        return jnp.where(row[k] > 0, row[k], jnp.nan)

    def eliminate(k: Array, state: tuple) -> tuple:
        """Subtract multiples of row k from the rows below, of A and of b."""
        A, b = state
        row = A[k]
        factor = jnp.where(index > k, row / pivot(row, k), 0)[:, None]
        return A - factor * row[None], b - factor * b[k][None]

    def substitute(iteration: Array, b: Array) -> Array:
        """Solve for unknown k, given those behind it."""
        k = n - 1 - iteration
        row = A[k]
        later = jnp.where(index > k, row, 0)
        x = (b[k] - jnp.matmul(later, b, precision=HIGHEST_PRECISION)) / pivot(row, k)
        return dynamic_update_slice_in_dim(b, x[None], k, 0)

    # Eliminate from the first row down, then substitute back from the last row up.
    A, b = lax.fori_loop(0, n - 1, eliminate, (A, b))
    return lax.fori_loop(0, n, substitute, b)


@node()
class General:
    """A dense nonsymmetric matrix, positive definite up to a smaller antisymmetric part.

    Attributes:
      matrix: `[n, n, *W]`.
    """

    matrix: jax.Array

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        return diagonal(self.matrix)

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        return apply(self.matrix, x)

    def solve(self, b: Array) -> Array:
        """Solve A x = b by Gauss-Jordan elimination."""
        return solve_general(self.matrix, b)


def solve_general(A: Array, b: Array) -> Array:
    """Solve A x = b for an A that is positive definite up to a smaller antisymmetric part.

    Gauss-Jordan elimination clears the entries above the pivots too, so that no back substitution
    remains. It runs from the leaves to the root, without pivoting, since the pivots are close to
    those of an inertia matrix. Its derivative is implicit (`custom_linear_solve`).

    Args:
      A: matrix `[n, n, *W]`.
      b: right-hand side `[n, *W]`.

    Returns:
      x, `[n, *W]`.
    """
    if not A.shape[0]:
        return b
    A = jnp.broadcast_to(A, (*A.shape[:2], *b.shape[1:]))
    return lax.custom_linear_solve(
        lambda x: apply(A, x),
        b,
        lambda _, y: _gauss_jordan(A, y),
        lambda _, y: _gauss_jordan(A.swapaxes(0, 1), y),
    )


def _gauss_jordan(A: Array, b: Array) -> Array:
    """Run Gauss-Jordan elimination from the last row to the first."""
    n = A.shape[0]

    def pivot(state, row):
        """Scale the pivot row and subtract it from all other rows."""
        A, b = state
        here = column(np.arange(n, dtype=np.int32), b) == row
        head = dynamic_index_in_dim(A, row, 0)
        # Normalize the pivot row, and eliminate its column from all other rows.
        scale = 1 / dynamic_index_in_dim(head, row, 1)
        head, value = scale * head, scale[0] * dynamic_index_in_dim(b, row, 0)
        factor = dynamic_index_in_dim(A, row, 1)
        A = jnp.where(here[:, None], head, A - factor * head)
        return (A, jnp.where(here, value, b - factor[:, 0] * value)), None

    (_, x), _ = lax.scan(pivot, (A, b), np.arange(n, dtype=np.int32)[::-1])
    return x
