"""Gaussian elimination row by row for many worlds, in loops that fused CPU kernels can hold.

The blocked Cholesky factorization of `PackedLower` (packed_lower.py) is fast where XLA runs
operation by operation, but is thousands of unrolled operations. In a fused kernel
(transforms/cpu_fusion.py) loops are inexpensive, so a hundred operations suffice: the program is
the same for 6 rows and for 48, and takes two to three times the time of the blocked form.
"""

import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.transforms.materialize import materialize


def solve_by_rows(A: Array, b: Array) -> Array:
    """Solve A x = b by A = L U with a unit U; NaN where A is not positive definite.

    Args:
      A: symmetric positive definite `[n, n, W]`.
      b: right-hand side `[n, W]`.

    Returns:
      x, `[n, W]`.
    """
    n = len(A)
    # The right-hand side is one more column, so elimination includes forward substitution.
    system = materialize(jnp.concatenate([A, b[:, None]], axis=1), b)

    def eliminate(k: Array, system: Array) -> Array:
        """Scale row k by its pivot and subtract it from the rows below."""
        row = lax.dynamic_slice_in_dim(system, k, 1)
        pivot = lax.dynamic_slice_in_dim(row, k, 1, axis=1)
        row = materialize(row / jnp.where(pivot > 0, pivot, jnp.nan), b)

        def below(i: Array, system: Array) -> Array:
            own = lax.dynamic_slice_in_dim(system, i, 1)
            new = own - lax.dynamic_slice_in_dim(own, k, 1, axis=1) * row
            return lax.dynamic_update_slice_in_dim(system, new, i, axis=0)

        # Store the pivot row, then update the rows below it.
        system = lax.dynamic_update_slice_in_dim(system, row, k, axis=0)
        return lax.fori_loop(k + 1, n, below, system)

    system = lax.fori_loop(0, n, eliminate, system)

    def back(iteration: Array, x: Array) -> Array:
        """Substitute one solved unknown in the rows above."""
        k = n - 1 - iteration
        known = materialize(lax.dynamic_slice_in_dim(x, k, 1), b)

        def above(i: Array, x: Array) -> Array:
            entry = lax.dynamic_slice(system, (i, k, 0), (1, 1, x.shape[-1]))[0]
            new = lax.dynamic_slice_in_dim(x, i, 1) - entry * known
            return lax.dynamic_update_slice_in_dim(x, new, i, axis=0)

        return lax.fori_loop(0, k, above, x)

    # Back substitution in column n, which holds L^-1 b divided by the pivots.
    return lax.fori_loop(0, n, back, system[:, n])
