"""Symmetric positive definite systems `[n, n, *W]`: the one place that factors matrices."""

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.pin import pin

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


def _cholesky_solve(A, b):
    """By the platform's library, worlds first."""
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    y = lax.linalg.triangular_solve(L, b[..., None], left_side=True, lower=True)
    x = lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)
    return x[..., 0]


def _panel_solve(A, b):
    """Right-looking Cholesky by panels of columns, with the forward substitution on the way.

    Everything that a later panel reads is pinned: left to itself XLA would recompute the whole
    history of an entry in each of its users.
    """
    n = A.shape[0]
    witness = b
    panels, heads = [], []
    for start in range(0, n, PANEL):
        width = min(PANEL, n - start)
        columns = _factor_columns(A, width)
        y = _substitute(columns, b, width)
        columns, y = pin((columns, y), witness)
        panels.append(columns)
        heads.append(y)
        if start + width < n:
            tails = [columns[t][width - t :] for t in range(width)]
            A = A[width:, width:]
            b = b[width:]
            for t in range(width):
                A = A - tails[t][:, None] * tails[t][None]
                b = b - tails[t] * y[t]
            A, b = pin((A, b), witness)
    return _back_substitute(panels, heads, witness)


def _factor_columns(A, width: int) -> list:
    """The first columns of the factor; column t starts at row t."""
    columns: list = []
    for t in range(width):
        c = A[t:, t]
        for u in range(t):
            c = c - columns[u][t - u :] * columns[u][t - u][None]
        columns.append(c * lax.rsqrt(c[:1]))
    return columns


def _substitute(columns: list, b, width: int) -> list:
    """The first entries of L^-1 b, each `[1, *W]`."""
    y: list = []
    for t in range(width):
        v = b[t : t + 1]
        for u in range(t):
            v = v - columns[u][t - u][None] * y[u]
        y.append(v / columns[t][:1])
    return y


def _back_substitute(panels: list, heads: list, witness):
    """x from L' x = y, panel by panel from the last."""
    x = None
    for columns, y in zip(reversed(panels), reversed(heads), strict=True):
        width = len(columns)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = y[t]
            for u in range(t + 1, width):
                v = v - columns[t][u - t][None] * out[u]
            if x is not None:
                tail = columns[t][width - t :]
                for i in range(tail.shape[0]):
                    v = v - (tail[i] * x[i])[None]
            out[t] = v / columns[t][:1]
        block = pin(jnp.concatenate(out), witness)
        x = block if x is None else jnp.concatenate([block, x])
    return x
