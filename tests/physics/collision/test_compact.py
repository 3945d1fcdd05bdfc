"""Selection of the first true items, in both of its forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.physics.collision.compact import first_true


@pytest.mark.parametrize("worlds", [(), (40,)])
@pytest.mark.parametrize("size", [1, 5, 12, 20])
def test_first_true_items_in_order(worlds, size):
    rng = np.random.default_rng(size)
    n = 12
    order = rng.permutation(n)
    for density in (0, 0.2, 0.7, 1):
        mask = rng.random((n, *worlds)) < density
        found, count = jax.jit(lambda m: first_true(m, order, size))(jnp.asarray(mask))
        assert found.shape == (size, *worlds)
        assert count.shape == (1, *worlds)
        for w in np.ndindex(worlds):
            expected = [i for i in order if mask[(i, *w)]]
            assert count[(0, *w)] == len(expected)
            filled = min(size, len(expected))
            assert found[(slice(None), *w)][:filled].tolist() == expected[:size]
            assert (found >= 0).all()
            assert (found < n).all()
