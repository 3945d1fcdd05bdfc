"""Sums over ancestors and descendants, against products with 0/1 matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.linalg.forest import ancestor_sums, descendant_sums

pytestmark = pytest.mark.kernels

FORESTS = {
    "branches": (-1, 0, 1, 0, 3, 3, 1, 6),
    "several": (-1, 0, -1, 2, 0, 2, -1),
    "chain": tuple(range(-1, 6)),
    "roots": (-1, -1, -1),
    "nothing": (),
}


def _of_path(forest: tuple) -> np.ndarray:
    """1 where the column's item is the row's or an ancestor of it."""
    table = np.eye(len(forest))
    for item, parent in enumerate(forest):
        if parent >= 0:
            table[item] += table[parent]
    return table


@pytest.mark.parametrize("name", FORESTS)
def test_the_sums_are_products_with_the_table_of_ancestors_and_so_are_derivatives(name):
    forest = FORESTS[name]
    rng, table = np.random.default_rng(0), _of_path(forest)
    n = len(forest)
    x, y = rng.standard_normal((n, 3)), rng.standard_normal((n, 1))
    for sums, matrix in ((ancestor_sums, table), (descendant_sums, table.T)):
        found = jax.jit(lambda x, y, sums=sums: sums((x, y), forest))(x, y)
        for value, given in zip(found, (x, y), strict=True):
            np.testing.assert_allclose(value, matrix @ given, rtol=0, atol=1e-14)
        weights = rng.standard_normal((n, 3))
        value, change = jax.jvp(lambda x, s=sums: s(x, forest), (x,), (2 * x,))
        np.testing.assert_allclose(change, 2 * value, rtol=0, atol=1e-14)
        (back,) = jax.vjp(lambda x, s=sums: s(x, forest), x)[1](jnp.asarray(weights))
        np.testing.assert_allclose(back, matrix.T @ weights, rtol=0, atol=1e-14)


def test_one_for_each_of_many_is_that_of_many():
    forest, rng = FORESTS["branches"], np.random.default_rng(1)
    x = rng.standard_normal((4, len(forest), 2, 3))
    for axis in range(3):
        many = jax.vmap(lambda a: ancestor_sums(a, forest), axis, axis)(np.moveaxis(x, 0, axis))
        each = np.stack([ancestor_sums(jnp.asarray(a), forest) for a in x], axis)
        np.testing.assert_array_equal(many, each)
