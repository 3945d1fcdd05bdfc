"""Symmetric positive definite systems `[n, n, *W]`: the one place that factors matrices."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.pin import pin
from jaxsim.physics.tree import HIGHEST

PANEL = 4
WRITE_OUT = 48  # largest matrix that is factored by written-out panels


def solve_spd(A, b):
    """x with A x = b.

    Args:
      A: symmetric positive definite `[n, n, *W]`.
      b: right-hand side `[n, *W]`.

    Returns:
      `[n, *W]`.
    """
    n = A.shape[0]
    if n == 0:
        return b
    if A.ndim == 2:
        return _cholesky_solve(A, b)
    if n <= WRITE_OUT:
        return _panel_solve(A, b)
    size = max(A.shape[-1], b.shape[-1])
    A = jnp.moveaxis(jnp.broadcast_to(A, (n, n, size)), -1, 0)
    b = jnp.moveaxis(jnp.broadcast_to(b, (n, size)), -1, 0)
    return jnp.moveaxis(_cholesky_solve(A, b), 0, -1)


def inverse_spd(A):
    """The inverse of a symmetric positive definite matrix, `[n, n, *W]`: for what is done once."""
    n = A.shape[0]
    if n == 0:
        return A
    A = jnp.moveaxis(A, (0, 1), (-2, -1))
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    unit = jnp.broadcast_to(jnp.eye(n, dtype=A.dtype), A.shape)
    half = lax.linalg.triangular_solve(L, unit, left_side=True, lower=True)
    return jnp.moveaxis(jnp.matmul(half.mT, half, precision=HIGHEST), (-2, -1), (0, 1))


def _cholesky_solve(A, b):
    """By the platform's library, worlds first."""
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    y = lax.linalg.triangular_solve(L, b[..., None], left_side=True, lower=True)
    x = lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)
    return x[..., 0]


def _panel_solve(A, b):
    """Right-looking Cholesky by panels of columns; b rides along as one more row.

    The row of b in the factor is L^-1 b, so that forward substitution needs no code of its own.
    Everything that a later panel reads is pinned: left to itself XLA would recompute the whole
    history of an entry in each of its users.
    """
    n = A.shape[0]
    A = jnp.concatenate([jnp.broadcast_to(A, (n, n, *b.shape[1:])), b[None]])
    panels = []
    for start in range(0, n, PANEL):
        width = min(PANEL, n - start)
        columns = pin(_factor_columns(A, width), b)
        panels.append(columns)
        if start + width < n:
            A = A[width:, width:]
            for column in columns:
                tail = column[width:]
                A = A - tail[:, None] * tail[None, :-1]
            A = pin(A, b)
    return _back_substitute(panels, b)


def _factor_columns(A, width: int) -> list:
    """The first columns of the factor, from the diagonal block down; above the diagonal: noise."""
    columns: list = []
    for t in range(width):
        c = A[:, t]
        for column in columns:
            c = c - column * column[t][None]
        columns.append(c * lax.rsqrt(c[t : t + 1]))
    return columns


def _back_substitute(panels: list, like):
    """x from L' x = y, panel by panel from the last; y is the last row."""
    x = None
    for columns in reversed(panels):
        width = len(columns)
        rest = []
        for column in columns:
            v = column[-1:]
            if x is not None:
                for i in range(x.shape[0]):
                    v = v - (column[width + i] * x[i])[None]
            rest.append(v)
        rest = pin(rest, like)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = rest[t]
            for u in range(t + 1, width):
                v = v - columns[t][u][None] * out[u]
            out[t] = v / columns[t][t : t + 1]
        block = jnp.concatenate(out)
        x = pin(block if x is None else jnp.concatenate([block, x]), like)
    return x
