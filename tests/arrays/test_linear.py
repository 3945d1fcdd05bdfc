"""Selections and sums, and their derivatives, against the matrices that they are products with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.arrays.linear import (
    ConstantTable,
    bind_gather,
    bind_gather_static,
    bind_matmul,
)
from jaxsim.transforms.cpu_fusion import fuse_calls
from jaxsim.transforms.platform import for_platform
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels

ITEMS, WORLDS = 9, 3
INDICES = {
    "each once": np.array([4, 0, 7]),
    "some twice": np.array([2, 2, 5, 0, 1, 8, 8]),
    "one many times": np.array([3] * 12 + [1, 0]),  # added in a loop, not by rows of equal length
}
RNG = np.random.default_rng(0)
PLACES = RNG.integers(0, ITEMS, (12, WORLDS)).astype(np.int32)


def _one_hot(index):
    return np.eye(ITEMS)[index]


# each: the function, and the matrix [k, n, worlds] that it is a product with
WEIGHTS = RNG.standard_normal((5, ITEMS))
FUNCTIONS = {
    **{
        name: (lambda x, i=index: bind_gather_static(x, i), _one_hot(index)[..., None])
        for name, index in INDICES.items()
    },
    "each world its own": (
        lambda x: bind_gather(x, jnp.asarray(PLACES)),
        np.moveaxis(_one_hot(PLACES), 1, 2),
    ),
    "an index of all": (
        lambda x: bind_gather(x, jnp.asarray(PLACES[:, 0])),
        _one_hot(PLACES[:, 0])[..., None],
    ),
    "weights": (lambda x: bind_matmul(WEIGHTS, x), WEIGHTS[..., None]),
    "ones": (lambda x: bind_matmul(np.ones((4, ITEMS)), x), np.ones((4, ITEMS, 1))),
}


def _times(matrix, x):
    return np.einsum("knw,nw->kw", np.broadcast_to(matrix, (*matrix.shape[:2], x.shape[1])), x)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_and_its_derivatives_are_products_with_a_matrix(name, platform):
    """Forwards, backwards, backwards of backwards, and of several at once."""
    function, matrix = FUNCTIONS[name]
    assert WEIGHTS.size > Tuning().max_loop_free_size  # else it needs no loop
    transposed = np.swapaxes(matrix, 0, 1)
    x, change = RNG.standard_normal((2, ITEMS, WORLDS))
    weights = RNG.standard_normal((len(matrix), WORLDS))
    several = RNG.standard_normal((4, *weights.shape))

    def run():
        value, moved = jax.jvp(function, (x,), (change,))
        back = jax.linear_transpose(function, x)
        again = jax.linear_transpose(lambda w: back(w)[0], weights)
        hessian = jax.jvp(jax.grad(lambda a: jnp.sum(function(a) ** 2)), (x,), (change,))[1]
        more = jax.vmap(lambda w: back(w)[0])(jnp.asarray(several))
        forwards = jax.vmap(function, in_axes=1, out_axes=2)(jnp.stack([x, change], 1))
        return value, moved, back(weights)[0], again(x)[0], hessian, more, forwards

    with for_platform(platform, kernels=False):
        found = jax.jit(run)()
    wanted = (
        _times(matrix, x),
        _times(matrix, change),
        _times(transposed, weights),
        _times(matrix, x),
        2 * _times(transposed, _times(matrix, change)),
        np.stack([_times(transposed, w) for w in several]),
        np.stack([_times(matrix, x), _times(matrix, change)], axis=2),
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_contain_product_and_transpose(name):
    """No library's call, and no scatter, stands between them."""
    function, matrix = FUNCTIONS[name]
    x, weights = np.ones((ITEMS, WORLDS)), np.ones((len(matrix), WORLDS))

    def both(x, weights):
        y = jnp.sin(x) + x * x - 1  # a kernel has more than a few operations
        z, back = jax.vjp(function, jnp.cos(y))
        return z * 2, back(weights)[0] + 1

    program = jax.make_jaxpr(both)(x, weights)
    text = jax.jit(lambda *a: fuse_calls(program, a)).lower(x, weights).as_text()
    assert text.count("xla_cpu_small_call") == 1
    assert "scatter" not in text


def test_several_indices_at_once():
    """Each of several worlds has its own index, or all have several."""
    x = RNG.standard_normal((ITEMS, WORLDS))
    index = RNG.integers(0, ITEMS, (4, 6)).astype(np.int32)
    rows = jax.vmap(lambda i: bind_gather(jnp.asarray(x), i))(jnp.asarray(index))
    np.testing.assert_array_equal(rows, x[index])
    columns = jax.vmap(lambda i: bind_gather(jnp.asarray(x), i))(
        jnp.asarray(np.stack([PLACES] * 2))
    )
    np.testing.assert_array_equal(columns, np.stack([np.take_along_axis(x, PLACES, 0)] * 2))
    _, back = jax.vjp(
        lambda a: jax.vmap(lambda i: bind_gather(a, i))(jnp.asarray(index)), jnp.asarray(x)
    )
    wanted = np.zeros_like(x)
    np.add.at(wanted, index.ravel(), np.ones((index.size, WORLDS)))
    np.testing.assert_array_equal(back(jnp.ones((4, 6, WORLDS)))[0], wanted)


def test_tables_with_equal_entries_are_equal():
    one, same, other = (
        ConstantTable(np.arange(3)),
        ConstantTable(np.arange(3)),
        ConstantTable(np.arange(3.0)),
    )
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert str(other) == "float64[3]"
