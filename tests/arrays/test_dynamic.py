"""Slices and items at traced indices are numpy's, in one operation each."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.arrays import dynamic

PACKAGE = Path(jaxsim.__file__).parent
TABLE = np.arange(24.0).reshape(4, 6)
INDEX = np.array([3, 0, 0, 2], np.int32)

CALLS = {
    "take": (lambda a, i: dynamic.take(a, i), TABLE[INDEX]),
    "take of two axes": (lambda a, i: dynamic.take(a, i, 1), TABLE[INDEX, 1]),
    "take_clipped": (lambda a, i: dynamic.take_clipped(a, ..., i + 3), TABLE[:, [5, 3, 3, 5]]),
    "slice": (lambda a, i: dynamic.dynamic_slice(a, (i[3], i[3]), (2, 3)), TABLE[2:4, 2:5]),
    "slice at the end": (lambda a, i: dynamic.dynamic_slice_in_dim(a, i[0], 2), TABLE[2:4]),
    "row": (lambda a, i: dynamic.dynamic_index_in_dim(a, i[3], keepdims=False), TABLE[2]),
    "update": (
        lambda a, i: dynamic.dynamic_update_slice_in_dim(a, a[:1], i[3], axis=0),
        TABLE[[0, 1, 0, 3]],
    ),
    "update of a block": (
        lambda a, i: dynamic.dynamic_update_slice(a, a[1:2], (i[0], i[1])),
        TABLE[[0, 1, 2, 1]],
    ),
    "update of a row": (
        lambda a, i: dynamic.dynamic_update_index_in_dim(a, a[3], i[1], 0),
        TABLE[[3, 1, 2, 3]],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_traced_index_is_not_compared_with_zero(name):
    function, expected = CALLS[name]
    np.testing.assert_array_equal(jax.jit(function)(jnp.asarray(TABLE), INDEX), expected)
    assert " lt " not in str(jax.make_jaxpr(function)(jnp.asarray(TABLE), INDEX))


def test_the_package_uses_these_functions_only():
    own = PACKAGE / "arrays" / "dynamic.py"
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py") if path != own}
    others = [p.name for p, text in texts.items() if "lax.dynamic_" in text or ".get(mode=" in text]
    assert not others
