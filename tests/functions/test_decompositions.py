"""Dense and band Cholesky factors and 3 x 3 eigenvalues, against MuJoCo and dense algebra."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING, STAGE

from jaxsim import functions as f

RNG = np.random.default_rng(0)
SHAPES = [(8, 3, 2), (7, 2, 0), (6, 1, 3), (5, 4, 1), (4, 1, 0), (3, 2, 3)]


def spd(n):
    root = RNG.normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


def slope(function, x, v, h=1e-6):
    """Central difference of a function of arrays along a direction."""
    up, down = function(x + h * v), function(x - h * v)
    return jax.tree.map(lambda a, b: (a - b) / (2 * h), up, down)


def test_dense():
    for n in (1, 4, 7):
        A, b = spd(n), RNG.normal(size=n)
        L, rank = jax.jit(f.chol_factor)(A)
        assert rank == n
        np.testing.assert_allclose(L, np.linalg.cholesky(A), **ROUNDING)
        np.testing.assert_allclose(f.chol_solve(L, b), np.linalg.solve(A, b), **ROUNDING)


@pytest.mark.parametrize("mindiag", [1e-6, 0.5])
def test_a_matrix_without_full_rank(mindiag):
    root = RNG.normal(size=(6, 3))
    A = root @ root.T + 1e-3 * np.eye(6)
    theirs = A.copy()
    rank = mujoco.mju_cholFactor(theirs, mindiag)
    ours = f.chol_factor(A, mindiag)
    assert ours.rank == rank
    np.testing.assert_allclose(ours.L, np.tril(theirs), **DYNAMICS)


@pytest.mark.parametrize("plus", [True, False])
def test_an_update(plus):
    A, x = spd(6), RNG.normal(size=6)
    A = A if plus else A + np.outer(x, x)
    L = np.linalg.cholesky(A)
    ours = jax.jit(f.chol_update, static_argnums=2)(L, x, plus)
    theirs, rest = L.copy(), x.copy()
    assert ours.rank == mujoco.mju_cholUpdate(theirs, rest, plus) == 6
    np.testing.assert_allclose(ours.L, np.tril(theirs), **ROUNDING)
    expected = A + (1 if plus else -1) * np.outer(x, x)
    np.testing.assert_allclose(ours.L @ ours.L.T, expected, **ROUNDING)


def test_an_update_that_leaves_nothing():
    L = np.linalg.cholesky(spd(4))
    x = L[:, 1].copy()
    theirs = L.copy()
    rank = mujoco.mju_cholUpdate(theirs, x.copy(), False)
    assert f.chol_update(L, x, False).rank == rank < 4


def test_the_numbers_of_the_storage():
    """The example of 34 numbers in MuJoCo's documentation."""
    shape = (8, 3, 2)
    assert f.band_size(*shape) == 34
    assert [f.band_diag(i, *shape) for i in range(8)] == [2, 5, 8, 11, 14, 17, 24, 33]
    dense = f.band_to_dense(jnp.arange(34), *shape, flg_sym=False)
    expected = np.zeros((8, 8), int)
    expected[0, 0] = 2
    expected[1, :2] = 4, 5
    for row in range(2, 6):
        expected[row, row - 2 : row + 1] = 3 * row + np.arange(3)
    expected[6, :7] = 18 + np.arange(7)
    expected[7] = 26 + np.arange(8)
    assert np.array_equal(dense, expected)
    stored = f.dense_to_band(dense, *shape)
    assert np.array_equal(np.flatnonzero(stored != np.arange(34)), [1, 3, 25])  # 0 is 0


def band(shape):
    """Return a stored positive definite matrix; entries that are never read are arbitrary."""
    size = f.band_size(*shape)
    mat = RNG.normal(size=size)
    for i in range(shape[0]):
        mat[f.band_diag(i, *shape)] = 10 + RNG.uniform()
    return mat


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_conversions_and_products(shape):
    mat, vec = band(shape), RNG.normal(size=shape[0])
    n, size = shape[0], f.band_size(*shape)
    for sym in (True, False):
        dense, product = np.zeros((n, n)), np.zeros(n)
        mujoco.mju_band2Dense(dense, mat, *shape, sym)
        np.testing.assert_array_equal(f.band_to_dense(mat, *shape, flg_sym=sym), dense)
        mujoco.mju_bandMulMatVec(product, mat[None], vec[:, None], *shape, 1, sym)
        ours = f.band_mul_mat_vec(mat, vec, *shape, flg_sym=sym)
        np.testing.assert_allclose(ours, product, **ROUNDING)
    stored, theirs = f.dense_to_band(dense, *shape), np.zeros(size)
    mujoco.mju_dense2Band(theirs, dense, *shape)
    back = f.band_to_dense(stored, *shape, flg_sym=False)
    np.testing.assert_array_equal(back, dense)
    np.testing.assert_array_equal(f.band_to_dense(theirs, *shape, flg_sym=False), back)
    assert [f.band_diag(i, *shape) for i in range(n)] == [
        mujoco.mju_bandDiag(i, *shape) for i in range(n)
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factor_and_solution(shape):
    mat, vec = band(shape), RNG.normal(size=shape[0])
    theirs = mat.copy()
    least = mujoco.mju_cholFactorBand(theirs, *shape, 0.3, 0.1)
    ours, ours_least = jax.jit(
        partial(
            f.chol_factor_band,
            ntotal=shape[0],
            nband=shape[1],
            ndense=shape[2],
            diagadd=0.3,
            diagmul=0.1,
        )
    )(mat)
    np.testing.assert_allclose(ours_least, least, **ROUNDING)
    as_dense = partial(f.band_to_dense, ntotal=shape[0], nband=shape[1], ndense=shape[2])
    L = as_dense(ours, flg_sym=False)
    np.testing.assert_allclose(L, as_dense(theirs, flg_sym=False), **ROUNDING)
    A = as_dense(mat)
    np.testing.assert_allclose(L @ L.T, A + np.diag(0.3 + 0.1 * np.diag(A)), **ROUNDING)
    x = np.zeros(shape[0])
    mujoco.mju_cholSolveBand(x, theirs, vec, *shape)
    np.testing.assert_allclose(f.chol_solve_band(theirs, vec, *shape), x, **ROUNDING)


def test_a_band_without_full_rank():
    shape = (8, 3, 2)
    for bad in (2, 7):
        mat = band(shape)
        mat[f.band_diag(bad, *shape)] = -1
        assert f.chol_factor_band(mat, *shape)[1] == 0
        assert mujoco.mju_cholFactorBand(mat.copy(), *shape, 0, 0) == 0


def test_gradients_and_batches():
    shape = (6, 3, 1)
    mats = np.stack([band(shape) for _ in range(3)])
    direction, vec = RNG.normal(size=mats[0].shape), jnp.asarray(RNG.normal(size=6))

    def solved(mat):
        return f.chol_solve_band(f.chol_factor_band(mat, *shape)[0], vec, *shape)

    one = jax.jit(solved)
    each = jax.jit(jax.vmap(solved))(mats)
    for mat, x in zip(mats, each, strict=True):
        np.testing.assert_allclose(one(mat), x, **ROUNDING)
    expected = slope(one, mats[0], direction)
    found = jax.jit(jax.jacrev(solved))(mats[0]) @ direction
    np.testing.assert_allclose(found, expected, **DIFFERENCE)


def test_dense_gradients_and_batches():
    A, dA = np.stack([spd(4) for _ in range(3)]), RNG.normal(size=(4, 4))
    x = jnp.asarray(RNG.normal(size=4))

    def all_of(A):
        L = f.chol_factor(A).L
        return f.chol_solve(f.chol_update(L, x).L, x)

    one = jax.jit(all_of)
    for mat, found in zip(A, jax.jit(jax.vmap(all_of))(A), strict=True):
        np.testing.assert_allclose(one(mat), found, **ROUNDING)
    found = jnp.einsum("ijk,jk->i", jax.jit(jax.jacrev(all_of))(A[0]), dA)
    np.testing.assert_allclose(found, slope(one, A[0], dA), **DIFFERENCE)


def symmetric():
    A = RNG.normal(size=(3, 3))
    return A + A.T


def test_eigenvalues():
    mats = [symmetric() for _ in range(20)]
    mats += [np.eye(3), np.diag([1.0, 3.0, 2.0]), np.diag([1.0, 1.0, 2.0]), np.zeros((3, 3))]
    mats += [1e6 * symmetric(), 1e-6 * symmetric()]
    found = jax.jit(jax.vmap(f.eig3))(np.stack(mats))
    for k, A in enumerate(mats):
        value, axes, quat = (a[k] for a in found)
        scale = np.abs(A).max() + 1e-30
        expected, vectors, q = np.zeros(3), np.zeros(9), np.zeros(4)
        mujoco.mju_eig3(expected, vectors, q, A.ravel())
        np.testing.assert_allclose(value / scale, expected / scale, **STAGE)
        np.testing.assert_allclose(axes @ np.diag(value) @ axes.T / scale, A / scale, **STAGE)
        np.testing.assert_allclose(axes.T @ axes, np.eye(3), **ROUNDING)
        np.testing.assert_allclose(np.linalg.det(axes), 1, **ROUNDING)
        np.testing.assert_allclose(f.quat_to_mat(quat), axes, **ROUNDING)


def test_the_derivative_of_eigenvalues():
    A, dA = symmetric(), symmetric()
    found = jax.jit(lambda: jax.jvp(f.eig3, (A,), (dA,))[1])()
    for a, b in zip(found, slope(jax.jit(f.eig3), A, dA), strict=True):
        np.testing.assert_allclose(a, b, **DIFFERENCE)
    free = jax.jacrev(lambda A: f.eig3(A).eigval)(jnp.eye(3))
    assert np.isfinite(free).all()
