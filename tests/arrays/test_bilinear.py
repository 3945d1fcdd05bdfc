"""Products J x, J' f and f x': values and derivatives of every order."""

from itertools import product as product_of

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING, STAGE

from jaxsim.arrays.bilinear import apply, apply_transpose, outer, outer_sum
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels

SUMS = {apply: "nk...,k...->n...", apply_transpose: "nk...,n...->k...", outer: "n...,k...->nk..."}
LONG = Tuning().max_unrolled_terms + 1
SIZES = [(3, 4), (LONG, 2), (2, LONG), (1, LONG), (LONG, 1)]
WORLDS = [((), ()), ((5,), (5,)), ((1,), (5,)), ((5,), (1,))]
random = np.random.default_rng(0).normal


def factors(product, n, k, worlds):
    """Two factors; one of an axis of 1 serves all worlds."""
    first, second = ({apply: ((n, k), (k,)), apply_transpose: ((n, k), (n,)), outer: ((n,), (k,))})[
        product
    ]
    one, other = worlds
    return jnp.asarray(random(size=first + one)), jnp.asarray(random(size=second + other))


def cases():
    """Give every size with every batch; all but one batch of the large sizes are slow."""
    for size, worlds in product_of(SIZES, WORLDS):
        quick = size == SIZES[0] or worlds == WORLDS[1]
        yield pytest.param(size, worlds, marks=() if quick else pytest.mark.slow)


def by_einsum(product, a, b):
    return jnp.einsum(SUMS[product], a, b)


@pytest.mark.parametrize(("size", "worlds"), list(cases()))
@pytest.mark.parametrize("product", SUMS)
def test_products_and_derivatives(product, size, worlds):
    a, b = factors(product, *size, worlds)

    def both(function):
        def value(a, b):
            return jnp.sum(jnp.sin(function(a, b)))

        def slope(a, b):  # of the derivatives, so that they are differentiated again
            first, second = jax.grad(value, (0, 1))(a, b)
            return jnp.sum(jnp.cos(first)) + jnp.sum(jnp.cos(second))

        return value(a, b), jax.grad(value, (0, 1))(a, b), jax.grad(slope, (0, 1))(a, b)

    change = (np.cos(a), np.sin(b))

    @jax.jit
    def results(*operands):
        functions = product, lambda *f: by_einsum(product, *f)
        return [(both(f), jax.jvp(f, operands, change)) for f in functions]

    (found, forward), (want, exact) = results(a, b)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, **STAGE)  # sums of up to 129 terms, differentiated twice
    for x, y in zip(forward, exact, strict=True):
        np.testing.assert_allclose(x, y, **ROUNDING)


@pytest.mark.parametrize("product", SUMS)
def test_batch(product):
    a, b = factors(product, 3, 4, ((5,), (5,)))
    several = jnp.stack([b, 2 * b, -b])
    found = jax.vmap(product, (None, 0))(a, several)
    np.testing.assert_array_equal(found, jnp.stack([product(a, x) for x in several]))


def test_sum_of_outer_products():
    pairs = [(random(size=(3, 5)), random(size=(4, 5))) for _ in range(3)]
    found = outer_sum((jnp.asarray(f), jnp.asarray(x)) for f, x in pairs)
    np.testing.assert_allclose(found, sum(f[:, None] * x[None] for f, x in pairs), **ROUNDING)
