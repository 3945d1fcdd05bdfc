"""Dense Cholesky factorization with a rank: MuJoCo's `mju_chol` functions.

One column per iteration, so that a vanishing pivot can be replaced. The physics solves its own
systems in `linalg/cholesky.py`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_index_in_dim
from jaxsim.enums import MINVAL


class CholFactor(NamedTuple):
    """A lower triangular factor: mat = L L'.

    Attributes:
      L: (n, n), zero above the diagonal.
      rank: number of pivots above the threshold, () int.
    """

    L: jax.Array
    rank: jax.Array


def chol_factor(mat: Array, mindiag: Array | float = MINVAL) -> CholFactor:
    """Return the Cholesky factor of a symmetric matrix.

    Golub, Van Loan: Matrix Computations, section 4.2. A pivot below `mindiag` is replaced by it,
    the entries below it by zeros, and it does not count for the rank.

    Args:
      mat: (n, n), of which the lower triangle is read.
      mindiag: smallest pivot, (), positive.

    Returns:
      A CholFactor.
    """
    n, mat = len(mat), jnp.asarray(mat)
    if not n:
        return CholFactor(mat, jnp.zeros((), jnp.int32))
    number = jnp.arange(n)

    def eliminate(state: tuple, j: Array) -> tuple[tuple, Array]:
        A, rank = state
        column = dynamic_index_in_dim(A, j, axis=1, keepdims=False)
        pivot = column[j]
        small = pivot < mindiag
        pivot = jnp.where(small, jnp.asarray(mindiag, A.dtype), pivot)
        column = jnp.where(number > j, column, jnp.where(number == j, pivot, 0)) / jnp.sqrt(pivot)
        column = jnp.where(small & (number > j), 0, column)
        below = jnp.where(number > j, column, 0)
        A = A - below[:, None] * below[None, :]
        return (A, rank - small.astype(rank.dtype)), column

    start = (mat, jnp.asarray(n, jnp.int32))
    (_, rank), columns = lax.scan(eliminate, start, number)
    return CholFactor(columns.T, rank)


def chol_solve(L: Array, vec: Array) -> Array:
    """Return x (n,) with L L' x = vec, for a lower triangular factor (n, n)."""
    if not len(L):
        return jnp.asarray(vec)
    number = jnp.arange(len(L))

    def forward(y: Array, j: Array) -> tuple:
        column = dynamic_index_in_dim(L, j, axis=1, keepdims=False)
        value = y[j] / column[j]
        y = jnp.where(number > j, y - column * value, jnp.where(number == j, value, y))
        return y, None

    def backward(x: Array, j: Array) -> tuple:
        row = dynamic_index_in_dim(L, j, keepdims=False)
        value = x[j] / row[j]
        x = jnp.where(number < j, x - row * value, jnp.where(number == j, value, x))
        return x, None

    y, _ = lax.scan(forward, jnp.asarray(vec), number)
    return lax.scan(backward, y, number, reverse=True)[0]


def chol_update(L: Array, x: Array, flg_plus: bool | Array = True) -> CholFactor:
    """Return the factor of L L' + x x', or of L L' - x x'.

    Golub, Van Loan: Matrix Computations, section 6.5.4. A pivot below MINVAL is replaced by it.

    Args:
      L: lower triangular factor, (n, n).
      x: (n,).
      flg_plus: whether x x' is added.

    Returns:
      A CholFactor.
    """
    L, number = jnp.asarray(L), jnp.arange(len(L))
    sign = jnp.where(flg_plus, 1, -1).astype(L.dtype)

    def iterate(state: tuple, j: Array) -> tuple[tuple, Array]:
        x, rank = state
        column = dynamic_index_in_dim(L, j, axis=1, keepdims=False)
        old = column[j]
        square = old * old + sign * x[j] * x[j]
        small = square < MINVAL
        new = jnp.sqrt(jnp.where(small, MINVAL, square))
        cosine, sine = new / old, x[j] / old
        below = (column + sign * sine * x) / cosine
        x = jnp.where(number > j, cosine * x - sine * below, x)
        column = jnp.where(number > j, below, jnp.where(number == j, new, 0))
        return (x, rank - small.astype(rank.dtype)), column

    start = (jnp.asarray(x), jnp.asarray(len(L), jnp.int32))
    (_, rank), columns = lax.scan(iterate, start, number)
    return CholFactor(columns.T, rank)
