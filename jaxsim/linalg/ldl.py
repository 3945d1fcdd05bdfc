"""Reverse LDL factorization A = L' D L of a symmetric positive definite matrix.

Eliminated from the last row to the first, the mass matrix of a kinematic tree keeps its zeros
(Featherstone, Rigid Body Dynamics Algorithms, section 6.5). One column per iteration; used for
public outputs and queries only, the systems of a step are solved by cholesky.py. `ltdl` corresponds
to `mj_factorM` in MuJoCo, `solve_transposed` is one of the two substitutions of `mj_solveM`.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
)
from jaxsim.arrays.gather import column, diagonal
from jaxsim.enums import MINVAL


def ltdl(A: Array) -> tuple[Array, Array]:
    """Factorize A = L' D L: L `[n, n, *W]`, unit lower triangular, and the diagonal D `[n, *W]`.

    A pivot below MINVAL is raised to it, as in MuJoCo.
    """
    n = A.shape[0]
    if not n:
        return A, A.reshape(A.shape[1:])
    number = column(np.arange(n), A[0])

    def eliminate(A: Array, k: Array) -> tuple[Array, None]:
        """Eliminate row k: subtract its outer product from the rows above."""
        row = dynamic_index_in_dim(A, k, keepdims=False)
        pivot = jnp.maximum(dynamic_slice_in_dim(row, k, 1), MINVAL)
        left = jnp.where(number < k, row, 0) / pivot
        A = A - left[:, None] * (left * pivot)[None]
        # Store the finished row: L on the left of the diagonal, D on it.
        row = jnp.where(number == k, pivot, left)
        return dynamic_update_index_in_dim(A, row, k, 0), None

    A, _ = lax.scan(eliminate, A, jnp.arange(n), reverse=True)
    D = diagonal(A)
    lower = column(np.tri(n, k=-1, dtype=bool), A[0])
    unit = column(np.eye(n), A[0])
    return jnp.where(lower, A, unit), D


def solve_transposed(L: Array, b: Array) -> Array:
    """Solve L' x = b for a unit lower triangular L `[n, n, *W]` and b `[n, *W]`."""
    n = L.shape[0]
    number = column(np.arange(n), b)

    def substitute(x: Array, k: Array) -> tuple[Array, None]:
        row = dynamic_index_in_dim(L, k, keepdims=False)
        value = dynamic_slice_in_dim(x, k, 1)
        return x - jnp.where(number < k, row, 0) * value, None

    return lax.scan(substitute, b, jnp.arange(n), reverse=True)[0] if n else b
