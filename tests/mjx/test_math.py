"""Functions of `jaxsim.mjx.math` return MJX's shapes, for one item and for components."""

import jax
import jax.numpy as jnp
import pytest
from mjx.math_shapes import CASES, result_shapes

from jaxsim.mjx import math


@pytest.mark.parametrize("name", sorted({case.split()[0] for case in CASES}))
def test_results_have_the_shapes_of_mjx(name):
    cases = [case for case in CASES if case.split()[0] == name]
    assert [result_shapes(math, case) for case in cases] == cases


def test_an_angle_of_shape_one_is_a_number():
    axis = jnp.array([0.0, 0, 1])
    quat = math.axis_angle_to_quat(axis, jnp.full(1, jnp.pi / 2))
    assert quat.shape == (4,)
    assert jnp.allclose(quat, jnp.sqrt(0.5) * jnp.array([1.0, 0, 0, 1]), atol=1e-6)
    assert jnp.allclose(
        math.rotate(jnp.array([1.0, 0, 0]), quat), jnp.array([0.0, 1, 0]), atol=1e-6
    )


def test_components_are_along_the_first_axis():
    """Arrays with a batch axis last give the same as `vmap` over the last axis."""
    key = jax.random.PRNGKey(0)
    p, q = jax.random.normal(key, (2, 4, 5))
    many = jax.vmap(math.quat_mul, in_axes=-1, out_axes=-1)(p, q)
    assert jnp.allclose(math.quat_mul(p, q), many, atol=1e-6)
    a, b = jax.random.normal(key, (2, 3, 3, 5))
    many = jax.vmap(math.matmul_unroll, in_axes=-1, out_axes=-1)(a, b)
    assert jnp.allclose(math.matmul_unroll(a, b), many, atol=1e-6)


def test_several_vectors_are_rejected_with_the_remedy():
    with pytest.raises(ValueError, match=r"one vector, \(3,\), got \(5, 3\); of many: jax.vmap"):
        math.rotate(jnp.ones((5, 3)), jnp.ones(4))
