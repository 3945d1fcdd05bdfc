"""Matrices of trees, by their entries, against the dense matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxsim.linalg.tree_sparse import TreeSparse, pairs_of
from jaxsim.transforms.derivative_context import (
    not_differentiated,
    prefer_loops,
    trace_for_derivative,
)

pytestmark = pytest.mark.kernels

FORESTS = {
    "branches": (-1, 0, 1, 0, 3, 3, 1, 6),
    "several": (-1, 0, -1, 2, 0, 2, -1),
    "chain": tuple(range(-1, 6)),
    "roots": (-1, -1, -1),
}
WORLDS = 3


def _matrix(forest: tuple, worlds: tuple = (WORLDS,)) -> tuple[TreeSparse, np.ndarray]:
    """A positive definite matrix in both forms: products of two motions, and a diagonal."""
    rng, n = np.random.default_rng(len(forest)), len(forest)
    pairs = pairs_of(forest)
    f, x = rng.standard_normal((2, 6, n, *worlds))
    diagonal = 20 + rng.random((n, *worlds))
    tree = TreeSparse.of_products(tuple(map(jnp.asarray, f)), tuple(map(jnp.asarray, x)), forest)
    dense = np.zeros((n, n, *worlds))
    for i, j in zip(pairs.item, pairs.other, strict=True):
        dense[i, j] = dense[j, i] = np.sum(f[:, i] * x[:, j], axis=0)
    dense[np.arange(n), np.arange(n)] += diagonal
    return tree.add_diagonal(jnp.asarray(diagonal)), dense


@pytest.mark.parametrize("worlds", [(), (WORLDS,)])
@pytest.mark.parametrize("name", FORESTS)
def test_products_and_solutions_are_those_of_the_dense_matrix(name, worlds):
    assert prefer_loops()  # else the loops are not those of a step
    tree, dense = _matrix(FORESTS[name], worlds)
    b = np.random.default_rng(0).standard_normal(dense.shape[1:])
    product = np.einsum("ij...,j...->i...", dense, b)
    np.testing.assert_allclose(tree.times(jnp.asarray(b)), product, rtol=0, atol=1e-12)
    flat = dense.reshape(len(b), len(b), -1)
    each = [np.linalg.solve(A, v) for A, v in zip(flat.T, b.reshape(len(b), -1).T, strict=True)]
    found = jax.jit(TreeSparse.solve)(tree, jnp.asarray(b))
    np.testing.assert_allclose(found, np.array(each).T.reshape(b.shape), rtol=0, atol=1e-13)


def test_a_world_whose_matrix_is_not_positive_definite_has_no_solution():
    tree, dense = _matrix(FORESTS["branches"])
    tree = tree.add_diagonal(jnp.zeros(dense.shape[1:]).at[2, 1].set(-100))
    found = np.asarray(tree.solve(jnp.ones(dense.shape[1:])))
    assert np.isnan(found[:, 1]).all()
    assert np.isfinite(found[:, [0, 2]]).all()


def test_derivatives_are_those_of_finite_differences():
    forest = FORESTS["branches"]
    tree, dense = _matrix(forest)
    rng = np.random.default_rng(2)
    f, x = rng.standard_normal((2, 6, len(forest), WORLDS))
    b = jnp.asarray(rng.standard_normal(dense.shape[1:]))

    @jax.jit
    def solution(*given):
        f, x, b = map(jnp.asarray, given)
        with trace_for_derivative():
            more = TreeSparse.of_products(tuple(f), tuple(x), forest)
            return TreeSparse(tree.entries + more.entries, forest).solve(b)

    given = (0.1 * jnp.asarray(f), jnp.asarray(x), b)
    check_grads(solution, given, order=1, modes=("fwd", "rev"), atol=1e-6, rtol=1e-6)
    with not_differentiated():
        products = TreeSparse.of_products(*given[:2], forest)
        np.testing.assert_allclose(
            solution(*given),
            TreeSparse(tree.entries + products.entries, forest).solve(b),
            rtol=0,
            atol=1e-14,
        )
