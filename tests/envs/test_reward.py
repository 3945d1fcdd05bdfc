"""Terms of rewards against those of the Control Suite's own package, and their derivatives."""

import importlib.util
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.envs.reward import FALLOFFS, tolerance

NAME = "rewards"
X = np.linspace(-3, 4, 57)


@pytest.fixture(scope="module")
def suite():
    """One file of dm_control, which knows numpy alone."""
    root = Path(importlib.util.find_spec("dm_control").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location("rewards", root / "utils" / f"{NAME}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fall", FALLOFFS)
@pytest.mark.parametrize("bounds", [(0, 0), (-1, 1.5), (0.5, math.inf)])
def test_equals_the_control_suite(suite, fall, bounds):
    for margin, at_margin in ((0, 0.1), (1.5, 0.1), (0.7, 0.6)):
        expected = suite.tolerance(X, bounds, margin, fall, at_margin)
        given = {"margin": float(margin), "fall": fall, "at_margin": at_margin}
        np.testing.assert_allclose(tolerance(jnp.asarray(X), bounds, **given), expected, atol=1e-12)


@pytest.mark.parametrize("fall", FALLOFFS)
def test_derivatives_are_finite_and_right(fall):
    def value(x):
        return tolerance(x, (-0.51, 0.52), margin=1.0, fall=fall)

    slope = jax.vmap(jax.grad(value))(jnp.asarray(X))
    h = 1e-6
    difference = (value(jnp.asarray(X + h)) - value(jnp.asarray(X - h))) / (2 * h)
    np.testing.assert_allclose(slope, difference, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bounds": (1, 0)}, "bounds: expected the lower first"),
        ({"margin": -1.0}, "margin: expected at least 0"),
        ({"margin": 1.0, "fall": "gausian"}, "did you mean 'gaussian'"),
        ({"margin": 1.0, "at_margin": 0.0}, "at_margin: expected a number between 0 and 1"),
    ],
)
def test_bad_input_is_said(given, message):
    with pytest.raises(ValueError, match=message):
        tolerance(jnp.zeros(()), **given)
