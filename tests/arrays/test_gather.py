"""Items that each world chooses, and sums of items, in the forms of all platforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.arrays.gather import gather, running_sum, sum_items, weighted_sum
from jaxsim.physics.collision.compact import compact_true
from jaxsim.transforms.platform import for_platform, platform
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels

ITEMS, PLACES, WORLDS = 7, 3, 5


@pytest.mark.parametrize("worlds", [WORLDS, 1])
def test_loop_and_comparison_gather_equally(worlds):
    """Tables of all types, per world or shared; an infinite item does not affect others."""
    rng = np.random.default_rng(0)
    real = rng.standard_normal((ITEMS, worlds))
    real[2] = np.inf
    table = {
        "real": jnp.asarray(real),
        "whole": jnp.asarray(rng.integers(-9, 9, real.shape), jnp.int32),
        "bits": jnp.asarray(rng.integers(0, 2**32, real.shape, np.uint32)),
        "mask": jnp.asarray(real > 0),
    }
    index = jnp.asarray(rng.integers(0, ITEMS, (PLACES, WORLDS)), jnp.int32)
    gathered = jax.tree.map(np.asarray, gather(table, index))
    with for_platform("tpu"):
        assert not platform().gathers
        assert "gather" not in jax.jit(lambda t: gather(t, index)).lower(table).as_text()
        compared = gather(table, index)
    for name, values in gathered.items():
        assert compared[name].dtype == table[name].dtype
        np.testing.assert_array_equal(compared[name], values)


def test_first_true_items_of_both_forms_are_equal():
    mask = jnp.asarray(np.random.default_rng(1).random((ITEMS, WORLDS)) > 0.5)
    order = np.random.default_rng(2).permutation(ITEMS)
    items, count = compact_true(mask, order, ITEMS)
    for name in ("cuda", "tpu"):
        with for_platform(name):
            others, number = compact_true(mask, order, ITEMS)
        np.testing.assert_array_equal(number, count)
        filled = np.arange(ITEMS)[:, None] < np.asarray(count)
        np.testing.assert_array_equal(np.where(filled, others, -1), np.where(filled, items, -1))


@pytest.mark.parametrize("worlds", [(), (1,), (7,), (2, 7)])
@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_sums_of_both_forms(worlds, name):
    """In kernels of a CPU, with loops for tables that are not small, and outside of these."""
    rng = np.random.default_rng(3)
    n = Tuning().max_loop_free_size + 1
    weights = rng.standard_normal((4, n))
    a, count = rng.standard_normal((n, *worlds)), rng.integers(0, 9, (n, *worlds))

    def sums(a, count):
        return weighted_sum(weights, a), sum_items(a), running_sum(a), running_sum(count)

    with for_platform(name, kernels=False):
        lowered = jax.jit(sums).lower(a, count)
    loops = lowered.as_text().count("stablehlo.while")
    assert loops == (0 if name != "cpu" else 4 if worlds else 2)
    found = lowered.compile()(a, count)
    wanted = [
        np.tensordot(weights, a, 1),
        a.sum(axis=0, keepdims=True),
        a.cumsum(axis=0),
        count.cumsum(axis=0),
    ]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
        assert one.shape == other.shape
        assert one.dtype == other.dtype
