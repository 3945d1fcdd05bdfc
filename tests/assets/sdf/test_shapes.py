"""Signed distances equal those of MuJoCo's plugins, in numpy and in jax, and have gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from assets.sdf import plugin_functions
from tolerance import ROUGH_DIFFERENCE, SAME

from jaxsim.assets.sdf.shapes import SDF_SHAPES, shape_settings
from jaxsim.errors import AssetError

CASES = [
    ("bolt", [0.26]),
    ("bolt", [0.1]),
    ("bolt", [0.7]),
    ("nut", [0.26]),
    ("nut", [0.45]),
    ("torus", [0.35, 0.15]),
    ("torus", [-0.1, 0.15]),
    ("bowl", [0.4, 1.0, 0.02]),
    ("bowl", [-0.5, 2.0, 0.1]),
    ("bowl", [1.0, 1.0, 0.02]),
    ("gear", [0.0, 2.8, 25.0, 0.2, -1.0]),
    ("gear", [15.0, 1.0, 12.5, 0.3, 0.4]),
    ("gear", [0.3, 5.0, 3.0, 0.2, 0.0]),
    ("gear", [0.0, 2.8, 200.0, 0.2, -1.0]),
]


def points(shape, values, n: int) -> np.ndarray:
    """Points in the box of a shape and around it, some of them on its planes and on its axis."""
    rng = np.random.default_rng(0)
    point = rng.uniform(-1.2, 1.2, (n, 3)) * shape.half_box(*values)
    for i in range(3):
        point[3 * i : 3 * i + 3, i] = 0
    point[9:12, :2] = 0
    return point


@pytest.mark.parametrize("name", SDF_SHAPES)
def test_settings(name):
    assert dict(SDF_SHAPES[name].settings) == plugin_functions.defaults(name)
    assert list(SDF_SHAPES[name].settings) == list(plugin_functions.defaults(name))


@pytest.mark.parametrize(("kind", "values"), CASES)
def test_distance(kind, values):
    name = f"mujoco.sdf.{kind}"
    shape = SDF_SHAPES[name]
    np.testing.assert_array_equal(shape.half_box(*values), plugin_functions.half_box(name, values))
    point = points(shape, values, 2000)
    theirs = plugin_functions.distance(name, point, values)
    ours = shape.distance(*point.T, *shape.constants(*values))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME["atol"])


@pytest.mark.parametrize("kind", ["bolt", "nut", "torus", "bowl", "gear"])
def test_in_jax(kind):
    """The physics takes the same functions: jit and vmap give the same, gradients are finite."""
    shape = SDF_SHAPES[f"mujoco.sdf.{kind}"]
    values = shape_settings(shape, {})
    constants = shape.constants(*values)
    point = points(shape, values, 60)

    def distance(p):
        return shape.distance(*p, *constants)

    ours, gradient = jax.jit(jax.vmap(jax.value_and_grad(distance)))(jnp.array(point))
    np.testing.assert_allclose(
        ours, shape.distance(*point.T, *constants), rtol=0, atol=SAME["atol"]
    )
    assert np.isfinite(gradient).all()

    # away from the creases of a shape, where both one-sided differences agree
    step = 1e-6 * np.eye(3)
    ahead, behind = (
        np.stack([shape.distance(*(point + side * e).T, *constants) for e in step], axis=1)
        for side in (1, -1)
    )
    middle = np.asarray(ours)[:, None]
    smooth = np.all(np.abs(ahead - 2 * middle + behind) < 1e-10, axis=1)
    assert smooth.sum() > 30
    numeric = (ahead - behind) / 2e-6
    np.testing.assert_allclose(gradient[smooth], numeric[smooth], **ROUGH_DIFFERENCE)

    single = shape.distance(*jnp.array(point.T, jnp.float32), *constants)
    assert single.dtype == jnp.float32


@pytest.mark.parametrize(
    ("text", "value"), [("", 0.35), (" \t", 0.35), (" .2 ", 0.2), ("0x1p-2", 0.25), ("1e-3", 1e-3)]
)
def test_numbers(text, value):
    assert shape_settings(SDF_SHAPES["mujoco.sdf.torus"], {"radius1": text}) == (value, 0.15)


@pytest.mark.parametrize("text", ["a", ".2a", "1 2", ".", "nan", "inf", "1e999", "0x"])
def test_non_numeric_parameters_are_rejected(text):
    with pytest.raises(AssetError, match=r"^radius2='.*' must be"):
        shape_settings(SDF_SHAPES["mujoco.sdf.torus"], {"radius2": text})


@pytest.mark.parametrize(
    ("kind", "config", "words"),
    [
        ("bowl", {"height": "2"}, "radius must not be less"),
        ("bowl", {"radius": "-1"}, "radius must not be less"),
        ("gear", {"teeth": "0"}, "teeth must be positive"),
        ("gear", {"teeth": "1e300"}, "at most 10000"),
    ],
)
def test_unknown_shape_is_rejected(kind, config, words):
    with pytest.raises(AssetError, match=words):
        shape_settings(SDF_SHAPES[f"mujoco.sdf.{kind}"], config)
