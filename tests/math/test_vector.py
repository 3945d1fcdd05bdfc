"""Vectors by components: laws of their products, and derivatives where the length is zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING, SAME

from jaxsim.enums import MINVAL
from jaxsim.math import Vec, concat, select_where


def vectors(seed: int, n: int = 50) -> tuple[np.ndarray, Vec]:
    """Return the same vectors as an array (n, 3) and by components."""
    a = np.random.default_rng(seed).normal(size=(n, 3))
    return a, Vec.from_array(jnp.asarray(a))


def test_arithmetic_is_that_of_arrays():
    (a, u), (b, v) = vectors(0), vectors(1)
    found = ((u + v), (u - v), -u, u.scale(3.0), u.map(jnp.square), u.cross(v))
    expected = (a + b, a - b, -a, 3 * a, a**2, np.cross(a, b))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.to_array(), theirs, **SAME)
    np.testing.assert_allclose(u.dot(v), np.sum(a * b, 1), **ROUNDING)
    np.testing.assert_allclose(u.norm(), np.linalg.norm(a, axis=1), **SAME)
    np.testing.assert_allclose(u.normalize().norm(), 1, **SAME)


def test_items_are_chosen_and_joined():
    (a, u), (b, v) = vectors(0, 4), vectors(1, 3)
    assert u.shape == (4,)
    np.testing.assert_array_equal(u[1:3].to_array(), a[1:3])
    np.testing.assert_array_equal(concat([u, v]).to_array(), np.concatenate([a, b]))
    assert concat([u]) is u
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(
        select_where(mask, v, u[:3]).to_array(), np.where(mask[:, None], b, a[:3])
    )
    np.testing.assert_array_equal(Vec.from_array(u.to_array(0), axis=0).to_array(), a)


def test_parts_of_the_model_meet_parts_of_many_worlds():
    """Values that all worlds share have a last axis of one."""
    mixed = Vec(jnp.ones((2, 1)), jnp.zeros((2, 5)), jnp.ones((2, 1)))
    assert mixed.to_array().shape == (2, 3, 5)


def test_a_value_is_a_pytree_that_keeps_its_type():
    _, u = vectors(0, 2)
    doubled = jax.jit(lambda v: jax.tree.map(lambda a: 2 * a, v))(u)
    assert isinstance(doubled, Vec)
    assert repr(Vec(1, 2, 3)) == "Vec(x=1, y=2, z=3)"


@pytest.mark.parametrize("length", [0.0, 1e-3 * MINVAL])
def test_what_is_shorter_than_the_least_becomes_the_fallback(length):
    """Its derivative is zero there: the direction no longer depends on the vector."""
    v, other = Vec(*(jnp.full(1, length * k) for k in (0.6, 0, 0.8))), Vec(*jnp.eye(3)[:, 2:])
    assert [float(a[0]) for a in v.normalize().parts] == [1, 0, 0]
    assert [float(a[0]) for a in v.normalize(other).parts] == [0, 0, 1]
    jacobian = jax.jacrev(lambda v: v.normalize(other).to_array())(v).to_array()
    np.testing.assert_array_equal(jacobian, 0)


def test_derivatives_of_length_and_direction():
    a, _ = vectors(3, 20)
    step, h = vectors(4, 20)[0], 1e-6

    def length_and_direction(a):
        v = Vec.from_array(a)
        return v.norm(), v.normalize().to_array()

    _, slopes = jax.jvp(length_and_direction, (jnp.asarray(a),), (jnp.asarray(step),))
    after, before = (length_and_direction(a + s * h * step) for s in (1, -1))
    for slope, high, low in zip(slopes, after, before, strict=True):
        np.testing.assert_allclose(slope, (high - low) / (2 * h), **DIFFERENCE)
