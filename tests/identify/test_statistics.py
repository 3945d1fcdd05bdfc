"""Uncertainties of a least-squares fit against their closed forms."""

import numpy as np
import pytest
from scipy import stats
from tolerance import ROUNDING

from jaxsim.identify import calculate_intervals, uncertainty
from jaxsim.identify.search.statistics import warnings

rng = np.random.default_rng(0)
T = np.linspace(0, 4, 60)


def test_the_covariance_of_a_line():
    """The closed form of linear regression, and the result of scipy."""
    t, y = T, 2 + 0.5 * T + 0.1 * rng.normal(size=T.size)
    A = np.stack([np.ones_like(t), t], 1)
    b = np.linalg.lstsq(A, y, rcond=None)[0]
    u = uncertainty((A @ b - y) / 0.1, A / 0.1)
    np.testing.assert_allclose(u.covariance, 0.01 * np.linalg.inv(A.T @ A), **ROUNDING)
    free = uncertainty(A @ b - y, A, known_sigma=False)
    line = stats.linregress(t, y)
    np.testing.assert_allclose(free.sd, [line.intercept_stderr, line.stderr], rtol=1e-9)
    np.testing.assert_allclose(free.quantile(0.95), stats.t(58).ppf(0.975), **ROUNDING)
    np.testing.assert_allclose(u.quantile(0.95), stats.norm.ppf(0.975), **ROUNDING)
    covariance, half = calculate_intervals(A @ b - y, A)
    np.testing.assert_allclose(covariance, free.covariance, **ROUNDING)
    np.testing.assert_allclose(half, stats.t(58).ppf(0.975) * free.sd, **ROUNDING)
    assert (u.rank, u.freedom) == (2, 58)


def test_unidentifiable_parameters_are_named():
    """Two columns in proportion and one of zeros: two directions without effect."""
    a, b, c = rng.normal(size=(3, 50))
    J = np.stack([a, b, 3 * a, 0 * a, b + 0.05 * c], 1)
    u = uncertainty(rng.normal(size=50), J)
    assert u.rank == 3
    assert np.isinf(u.condition)
    np.testing.assert_array_equal(np.isinf(u.sd), [True, False, True, True, False])
    said = warnings(u, ["mass", "drag", "gravity", "idle", "lift"])
    assert any("idle has no effect" in w for w in said)
    assert any("not told apart" in w and "mass" in w and "gravity" in w for w in said)
    assert any("drag trades against lift" in w for w in said)


def test_wrong_sigma_is_reported():
    A = np.stack([np.ones_like(T), T], 1)
    y = A @ [1, 2] + rng.normal(size=T.size)
    r = A @ np.linalg.lstsq(A, y, rcond=None)[0] - y
    assert not warnings(uncertainty(r, A), ["a", "b"])
    (said,) = warnings(uncertainty(r / 0.3, A / 0.3), ["a", "b"])
    assert "sigma is not that of the noise" in said
    with pytest.raises(ValueError, match="between 0 and 1"):
        uncertainty(r, A).quantile(1.0)
