"""Nonsymmetric systems `[n, n, *W]` of the implicit integrators, by Gauss-Jordan elimination."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import column


def solve_general(A: Array, b: Array) -> Array:
    """Solve A x = b for an A that is positive definite up to a smaller antisymmetric part.

    Gauss-Jordan elimination in the order of the dofs from the leaves to the root, without pivoting,
    since the pivots are close to those of an inertia matrix. Its derivative is implicit
    (`custom_linear_solve`).

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
        lambda _, y: _eliminate(A, y),
        lambda _, y: _eliminate(A.swapaxes(0, 1), y),
    )


def _eliminate(A: Array, b: Array) -> Array:
    """Run Gauss-Jordan elimination from the last row to the first."""
    n = A.shape[0]

    def pivot(state, row):
        """Scale the pivot row and subtract it from all other rows."""
        A, b = state
        here = column(np.arange(n, dtype=np.int32), b) == row
        head = lax.dynamic_index_in_dim(A, row, 0)
        # Normalize the pivot row, and eliminate its column from all other rows.
        scale = 1 / lax.dynamic_index_in_dim(head, row, 1)
        head, value = scale * head, scale[0] * lax.dynamic_index_in_dim(b, row, 0)
        factor = lax.dynamic_index_in_dim(A, row, 1)
        A = jnp.where(here[:, None], head, A - factor * head)
        return (A, jnp.where(here, value, b - factor[:, 0] * value)), None

    (_, x), _ = lax.scan(pivot, (A, b), np.arange(n, dtype=np.int32)[::-1])
    return x
