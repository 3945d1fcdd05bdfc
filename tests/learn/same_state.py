"""Comparison of two states of a training."""

import jax
import numpy as np


def assert_same_state(state, expected):
    """Check that all numbers are equal bit by bit, those of random keys included."""
    for a, b in zip(_numbers(state), _numbers(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def _numbers(state):
    key = jax.dtypes.prng_key
    leaves = jax.tree.leaves(state)
    return [jax.random.key_data(x) if jax.numpy.issubdtype(x.dtype, key) else x for x in leaves]
