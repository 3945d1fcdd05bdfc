"""The four corners kept of a polygon: large, and symmetric where the polygon is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.math import Vec
from jaxsim.physics.collision.convex.polygon import four_corners, make_polygon

MOST = 32


def _kept(points: np.ndarray, dtype: str = "float64") -> np.ndarray:
    """The corners kept of each polygon `[n, k, 2]`, `[n, 4, 2]`."""
    n, k = points.shape[:2]
    x, y = (jnp.asarray(points[..., c].T, dtype) for c in range(2))
    polygon = make_polygon(Vec(x, y, jnp.zeros_like(x)), jnp.full(n, k, jnp.int32), MOST)
    corners, count = jax.jit(four_corners)(polygon)
    assert (np.asarray(count) == 4).all()
    return np.take_along_axis(points, np.asarray(corners).T[..., None], axis=1)


def _regular(sides: int, turns: np.ndarray) -> np.ndarray:
    angle = 2 * np.pi * np.arange(sides) / sides + turns[:, None]
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sides", [6, 8, 12, 16, 24])
def test_a_regular_polygon_is_held_symmetrically(sides, dtype):
    """Turned by any angle, and anywhere: the largest area, about its center."""
    rng = np.random.default_rng(sides)
    polygons = 0.02 * _regular(sides, rng.uniform(0, 7, 40)) + rng.uniform(-1, 1, (40, 1, 2))
    kept = _kept(polygons, dtype)
    np.testing.assert_allclose(kept.mean(axis=1), polygons.mean(axis=1), rtol=0, atol=1e-6)
    one, other = kept[:, 2] - kept[:, 0], kept[:, 3] - kept[:, 1]
    area = np.abs(one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0])
    expected = 4 if sides % 4 == 0 else 2 * np.sqrt(3)
    np.testing.assert_allclose(area, expected * 0.02**2, rtol=1e-5)


def test_a_box_cut_by_a_box_is_held_symmetrically():
    """The octagon that two equal squares share, one turned by any angle."""
    angle = np.linspace(0.1, 1.4, 40)
    tan = np.tan(0.5 * np.minimum(angle, np.pi / 2 - angle))
    side = np.stack(
        [np.stack([np.ones_like(tan), -tan], -1), np.stack([np.ones_like(tan), tan], -1)]
    )
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    corners = [c @ np.linalg.matrix_power(quarter, k).T for k in range(4) for c in side]
    kept = _kept(np.stack(corners, axis=1))
    np.testing.assert_allclose(kept.mean(axis=1), 0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 17.0, 30.0, 45.0])
@pytest.mark.parametrize("floor", [pytest.param("box", marks=pytest.mark.slow), "cylinder"])
def test_a_coin_at_rest_does_not_rotate(floor, angle):
    """Its contacts are the corners of a square, so that gravity and contact forces balance."""
    size = {"box": "1 .5 .1", "cylinder": "1 .1"}[floor]
    m = jaxsim.load_model(
        f'''<mujoco><worldbody><geom type="{floor}" size="{size}" pos="0 0 -.1" euler="0 0 10"/>
        <body pos="0 0 .0199" euler="0 0 {angle}"><freejoint/>
        <geom type="cylinder" size=".2 .02"/></body></worldbody></mujoco>'''
    )
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    near = np.asarray(d.contact.dist) < 0
    x, y = np.asarray(d.contact.pos)[near, :2].T
    assert len(x) == 4
    np.testing.assert_allclose(np.hypot(x, y), 0.2, rtol=1e-5)
    np.testing.assert_allclose([x.mean(), y.mean()], 0, atol=1e-6)
    np.testing.assert_allclose(d.qacc[3:], 0, atol=1e-4 if d.qacc.dtype == np.float32 else 1e-9)
