"""Band-dense symmetric matrices in MuJoCo's storage: a band along the diagonal and dense last rows.

Three integers define the pattern: `ntotal` rows, `nband` entries from the left end of the band to
the diagonal, inclusive, `ndense` dense rows at the bottom. The lower triangle is stored as a band
block (ntotal - ndense, nband) followed by a dense block (ndense, ntotal), row by row; entries left
of the first column, and above the diagonal in the dense block, are never read. With nband = 3,
ndense = 2, ntotal = 8 the addresses in the storage are

    0  1  2
       3  4  5
          6  7  8
             9 10 11
               12 13 14
                  15 16 17
         18 19 20 21 22 23 24 25
         26 27 28 29 30 31 32 33

of which 2, 5, 8, 11, 14, 17, 24, 33 are the diagonal. Factorization and solve are in
band_factor.py.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array


class BandIndices(NamedTuple):
    """Positions of the entries of the lower triangle, in storage order.

    Attributes:
      row, col: position in the matrix.
      address: position in the storage.
    """

    row: np.ndarray
    col: np.ndarray
    address: np.ndarray


def band_size(ntotal: int, nband: int, ndense: int) -> int:
    """Return the size of the storage; ValueError if there is no such matrix."""
    if not (0 <= ndense <= ntotal and (nband >= 1 or ndense == ntotal)):
        raise ValueError(
            f"band matrix: expected 0 <= ndense <= ntotal and nband >= 1, got ntotal={ntotal}, "
            f"nband={nband}, ndense={ndense}"
        )
    return (ntotal - ndense) * nband + ndense * ntotal


def band_diag(i: int, ntotal: int, nband: int, ndense: int) -> int:
    """Return the address of the entry (i, i) in the storage."""
    if not 0 <= i < ntotal:
        raise ValueError(f"band_diag: i: the matrix has {ntotal} rows, there is no row {i}")
    band = ntotal - ndense
    if i < band:
        return i * nband + nband - 1
    return band * nband + (i - band) * ntotal + i


def band_to_dense(mat: Array, ntotal: int, nband: int, ndense: int, flg_sym: bool = True) -> Array:
    """Return the dense matrix (ntotal, ntotal) of a storage; without `flg_sym` its lower triangle
    alone."""
    mat = check_stored("band_to_dense", mat, ntotal, nband, ndense)
    at = band_indices(ntotal, nband, ndense)
    lower = jnp.zeros((ntotal, ntotal), mat.dtype).at[at.row, at.col].set(mat[at.address])
    return lower + jnp.tril(lower, -1).T if flg_sym else lower


def dense_to_band(mat: Array, ntotal: int, nband: int, ndense: int) -> Array:
    """Return the storage of a symmetric matrix (ntotal, ntotal), of which the lower triangle is
    read.

    Entries outside of the band and the dense rows are dropped; addresses that are never read are
    zero.
    """
    mat = jnp.asarray(mat)
    if mat.shape != (ntotal, ntotal):
        raise ValueError(
            f"dense_to_band: mat: expected shape ({ntotal}, {ntotal}), got {mat.shape}"
        )
    at = band_indices(ntotal, nband, ndense)
    out = jnp.zeros(band_size(ntotal, nband, ndense), mat.dtype)
    return out.at[at.address].set(mat[at.row, at.col])


def band_mul_mat_vec(
    mat: Array, vec: Array, ntotal: int, nband: int, ndense: int, flg_sym: bool = True
) -> Array:
    """Return the product of a stored matrix and a vector (ntotal,); for many vectors use jax.vmap.

    Args:
      mat: the storage.
      vec: (ntotal,).
      ntotal, nband, ndense: pattern of the storage.
      flg_sym: with the upper triangle; else it is the product of the lower triangle.
    """
    mat, vec = check_stored("band_mul_mat_vec", mat, ntotal, nband, ndense), jnp.asarray(vec)
    at = band_indices(ntotal, nband, ndense)
    value = mat[at.address]
    out = jnp.zeros_like(vec).at[at.row].add(value * vec[at.col])
    if not flg_sym:
        return out
    above = at.row != at.col
    row, col = at.row[above], at.col[above]
    return out.at[col].add(value[above] * vec[row])


def check_stored(function: str, mat: Array, ntotal: int, nband: int, ndense: int) -> Array:
    """Return the storage as an array; ValueError if its size is not that of the pattern."""
    size, mat = band_size(ntotal, nband, ndense), jnp.asarray(mat)
    if mat.shape != (size,):
        raise ValueError(f"{function}: mat: expected shape ({size},), got {mat.shape}")
    return mat


def band_indices(ntotal: int, nband: int, ndense: int) -> BandIndices:
    """Return all stored entries of the lower triangle."""
    band = ntotal - ndense
    row, slot = (a.ravel() for a in np.indices((band, nband)))
    col = row - nband + 1 + slot
    real = col >= 0
    dense_row, dense_col = (a.ravel() for a in np.indices((ndense, ntotal)))
    lower = dense_col <= dense_row + band
    first = band * nband
    return BandIndices(
        np.append(row[real], dense_row[lower] + band),
        np.append(col[real], dense_col[lower]),
        np.append((row * nband + slot)[real], (first + dense_row * ntotal + dense_col)[lower]),
    )
