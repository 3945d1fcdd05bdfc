"""Guarded functions: values, derivatives at singular points, and NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import Quat, Vec
from jaxsim.math.guard import safe_arccos, safe_atan2, safe_divide, safe_sqrt

NAN = float("nan")


@pytest.mark.parametrize(
    ("function", "exact", "points"),
    [
        (safe_sqrt, np.sqrt, [1e-30, 0.3, 4.0]),
        (safe_arccos, np.arccos, [-1.0, -0.5, 0.2, 1.0]),
    ],
)
def test_values_and_slopes(function, exact, points):
    x = jnp.asarray(points)
    np.testing.assert_allclose(function(x), exact(points), rtol=1e-15)
    inner = [p for p in points if abs(p) not in (0.0, 1.0)]
    slopes = jax.vmap(jax.grad(function))(jnp.asarray(inner))
    eps = 1e-6
    for p, slope in zip(inner, slopes, strict=True):
        if p > 1e-6:
            np.testing.assert_allclose(slope, (exact(p + eps) - exact(p - eps)) / (2 * eps), 1e-6)


def test_derivatives_at_singular_points_are_zero():
    assert jax.grad(safe_sqrt)(0.0) == 0
    for end in (-1.0, 1.0):
        assert jax.grad(safe_arccos)(end) == 0
    assert jax.grad(safe_atan2, (0, 1))(0.0, 0.0) == (0, 0)
    assert jax.grad(safe_divide, (0, 1))(2.0, 0.0) == (0, 0)
    zero = Vec(*(jnp.zeros(1) for _ in range(3)))
    assert jax.grad(lambda v: v.norm()[0])(zero).x == 0


def test_nan_stays_nan():
    assert jnp.isnan(safe_sqrt(NAN))
    assert jnp.isnan(safe_arccos(NAN))
    assert jnp.isnan(safe_divide(NAN, 1.0))
    assert jnp.isnan(safe_divide(1.0, NAN))
    assert jnp.isnan(safe_atan2(NAN, 1.0))
    one, nan = jnp.ones(1), jnp.full(1, NAN)
    assert all(jnp.isnan(a) for a in Quat(one, one, one, nan).normalize().parts)
    assert all(jnp.isnan(a) for a in Vec(one, nan, one).normalize().parts)


def test_short_vectors_normalize_to_a_direction():
    tiny = jnp.full(1, 1e-20)
    assert [float(a[0]) for a in Quat(tiny, tiny, tiny, tiny).normalize().parts] == [1, 0, 0, 0]
    assert [float(a[0]) for a in Vec(tiny, tiny, tiny).normalize().parts] == [1, 0, 0]
