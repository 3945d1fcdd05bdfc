"""Cholesky factorization of band-dense matrices in the storage of band.py, without fill-in.

Right-looking elimination, one column per iteration: a window of the rows that the column reaches
moves down the band. The cost grows with ntotal (nband + ndense)^2.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_slice, dynamic_update_slice
from jaxsim.enums import MINVAL
from jaxsim.functions.band import check_stored
from jaxsim.functions.cholesky import chol_factor, chol_solve


def chol_factor_band(
    mat: Array,
    ntotal: int,
    nband: int,
    ndense: int,
    diagadd: Array | float = 0.0,
    diagmul: Array | float = 0.0,
) -> tuple[Array, Array]:
    """Return the Cholesky factor L of a band-dense matrix plus a diagonal, in the same storage.

    L L' = mat + diag(diagadd + diagmul mat_ii)

    Args:
      mat: the storage.
      ntotal, nband, ndense: pattern of the storage.
      diagadd, diagmul: terms added to the diagonal, () each.

    Returns:
      factor, as `mat`, with zeros at addresses that are never read; mindiag (): the smallest
      diagonal entry of the factor, or 0 if the square of one is below MINVAL, in which case the
      factor is meaningless.
    """
    rows, side, corner = _blocks("chol_factor_band", mat, ntotal, nband, ndense)
    rows = rows.at[:, -1].add(diagadd + diagmul * rows[:, -1])
    diagonal = np.arange(ndense)
    corner = corner.at[diagonal, diagonal].add(diagadd + diagmul * corner[diagonal, diagonal])

    def eliminate(state: tuple, entering: tuple) -> tuple[tuple, tuple[Array, Array]]:
        window, side, corner, least = state
        j, row = entering
        pivot = window[0, 0]
        root = jnp.sqrt(jnp.maximum(pivot, MINVAL))
        column, below = window[:, 0] / root, side[:, j] / root
        # Schur complement: update the next rows of the band, the dense rows and their corner.
        window = window - column[:, None] * column[None]
        reach = dynamic_slice(side, (0, j), (ndense, nband)) - below[:, None] * column[None]
        side = dynamic_update_slice(side, reach, (jnp.zeros_like(j), j))
        corner = corner - below[:, None] * below[None]
        window = jnp.zeros_like(window).at[:-1, :-1].set(window[1:, 1:]).at[-1].set(row)
        return (window, side, corner, jnp.minimum(least, pivot)), (column, below)

    band = ntotal - ndense
    after = jnp.pad(rows, [(0, nband), (0, 0)])  # no entries below the band
    side = jnp.pad(side, [(0, 0), (0, nband)])
    start = (_leading_block(after, nband), side, corner, jnp.asarray(jnp.inf, rows.dtype))
    (_, _, corner, least), (columns, below) = lax.scan(
        eliminate, start, (jnp.arange(band), after[nband:])
    )
    whole = chol_factor(corner)
    least = jnp.minimum(least, jnp.min(jnp.diag(whole.L) ** 2, initial=jnp.inf))
    good = (least >= MINVAL) & (whole.rank == ndense)
    dense = jnp.concatenate([below.T, whole.L], axis=1)
    factor = jnp.concatenate([_rows_of_columns(columns, nband).ravel(), dense.ravel()])
    return factor, jnp.where(good, jnp.sqrt(jnp.where(good, least, 1)), 0)


def chol_solve_band(mat: Array, vec: Array, ntotal: int, nband: int, ndense: int) -> Array:
    """Return x (ntotal,) with L L' x = vec.

    Args:
      mat: the storage of a factor L, from `chol_factor_band`.
      vec: (ntotal,); for many vectors use jax.vmap.
      ntotal, nband, ndense: pattern of the storage.
    """
    rows, side, corner = _blocks("chol_solve_band", mat, ntotal, nband, ndense)
    band, vec = ntotal - ndense, jnp.asarray(vec)
    known = jnp.zeros(nband - 1, vec.dtype)

    def forward(before: Array, row: tuple) -> tuple[Array, Array]:
        entries, value = row
        y = (value - entries[:-1] @ before) / entries[-1]
        return jnp.append(before, y)[1:], y

    def backward(after: Array, column: tuple) -> tuple[Array, Array]:
        entries, value = column
        x = (value - entries[1:] @ after) / entries[0]
        return jnp.append(x, after)[:-1], x

    _, y = lax.scan(forward, known, (rows, vec[:band]))
    x_dense = chol_solve(corner, vec[band:] - side @ y)
    columns = _columns_of_rows(rows, nband)
    _, x = lax.scan(backward, known, (columns, y - side.T @ x_dense), reverse=True)
    return jnp.concatenate([x, x_dense])


def _blocks(
    function: str, mat: Array, ntotal: int, nband: int, ndense: int
) -> tuple[Array, Array, Array]:
    """Return the band rows (band, nband), the dense rows left of the corner (ndense, band), and the
    corner.

    Entries that are never read become zero.
    """
    mat = check_stored(function, mat, ntotal, nband, ndense)
    band = ntotal - ndense
    rows, dense = mat[: band * nband], mat[band * nband :].reshape(ndense, ntotal)
    real = np.arange(band)[:, None] + np.arange(nband)[None] >= nband - 1
    corner = jnp.where(np.tri(ndense, dtype=bool), dense[:, band:], 0)
    return jnp.where(real, rows.reshape(band, nband), 0), dense[:, :band], corner


def _leading_block(rows: Array, nband: int) -> Array:
    """Return the lower triangle of the first rows and columns, (nband, nband)."""
    i, j = np.indices((nband, nband))
    return jnp.where(j <= i, rows[i, np.clip(j - i + nband - 1, 0, None)], 0)


def _rows_of_columns(columns: Array, nband: int) -> Array:
    """Return the rows L[i, i - nband + 1 ... i] from columns L[j ... j + nband - 1, j]."""
    i, slot = np.indices(columns.shape)
    j = i - nband + 1 + slot
    return jnp.where(j >= 0, columns[np.clip(j, 0, None), nband - 1 - slot], 0)


def _columns_of_rows(rows: Array, nband: int) -> Array:
    """Return the inverse of `_rows_of_columns`; zero beyond the band."""
    band = len(rows)
    j, slot = np.indices(rows.shape)
    i = j + slot
    return jnp.where(i < band, rows[np.clip(i, None, band - 1), nband - 1 - slot], 0)
