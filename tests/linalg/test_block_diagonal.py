"""Matrices kept by their parts, against the dense matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.tree_sparse import pairs_of

pytestmark = pytest.mark.kernels

# a forest with a branch, and its trees; in one order and mixed
FORESTS = {
    "one after another": ((-1, 0, 0, -1, 3, 3, -1), ((0, 1, 2), (3, 4, 5), (6,))),
    "mixed": ((-1, -1, 0, 1, 0, -1, 1), ((0, 2, 4), (1, 3, 6), (5,))),
    "equal": ((-1, 0, -1, 2), ((0, 1), (2, 3))),
}
WORLDS = 3


@pytest.mark.parametrize("worlds", [(), (WORLDS,)], ids=str)
@pytest.mark.parametrize("name", FORESTS)
def test_products_and_solutions_are_those_of_the_dense_matrix(name, worlds):
    forest, parts = FORESTS[name]
    n, pairs = len(forest), pairs_of(forest)
    rng = np.random.default_rng(n)
    f, x = rng.standard_normal((2, 6, n, *worlds))
    added = 20 + rng.random((n, *worlds))
    above, dense = np.zeros((n, n), bool), np.zeros((n, n, *worlds))
    for i, j in zip(pairs.item, pairs.other, strict=True):
        above[i, j] = True
        dense[i, j] = dense[j, i] = np.sum(f[:, i] * x[:, j], axis=0)
    dense[np.arange(n), np.arange(n)] += added
    b = rng.standard_normal((n, *worlds))

    def both(f, x, added, b):
        matrix = BlockDiagonal.of_products(tuple(f), tuple(x), parts, above)
        matrix = matrix.add_diagonal(added)
        return matrix.times(b), matrix.solve(b)

    product, solution = jax.jit(both)(*map(jnp.asarray, (f, x, added, b)))
    np.testing.assert_allclose(product, np.einsum("ij...,j...->i...", dense, b), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        np.einsum("ij...,j...->i...", dense, solution), b, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("worlds", [(), (WORLDS,)], ids=str)
@pytest.mark.parametrize("name", ["one after another", "equal"])
def test_dense_form_equals_blocks(name, worlds):
    _, parts = FORESTS[name]
    n = 1 + max(map(max, parts))
    dense = np.zeros((n, n, *worlds))
    for part in parts:
        own = np.random.default_rng(len(part)).standard_normal((len(part), len(part), *worlds))
        dense[np.ix_(part, part)] = own + own.swapaxes(0, 1)
    matrix = BlockDiagonal.of(jnp.asarray(dense), parts)
    whole = np.pad(dense, [(0, 2), (0, 3), *[(0, 0)] * len(worlds)])
    np.testing.assert_array_equal(matrix.dense(2, 3), whole)
    np.testing.assert_array_equal(matrix.diagonal, dense[np.arange(n), np.arange(n)])
