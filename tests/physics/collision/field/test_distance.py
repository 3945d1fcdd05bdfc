"""Signed distances and slopes of every kind of geom are MuJoCo's; safe where they are singular."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.field.fields_of_all import all_kinds, oracle_distance, physics, placed
from tolerance import FLOAT32, ROUNDING, STORED_SINGLE

from jaxsim.extend.registry import shapes
from jaxsim.math import Vec
from jaxsim.physics.collision.field.distance import (
    SDF_FUNCTIONS,
    distance_and_slope,
    signed_distance,
)
from jaxsim.physics.collision.field.fields import sdf_tables

GEOMS = range(11)  # of `all_kinds`
N = 500


@pytest.fixture(scope="module")
def asked():
    """Points around every geom `[N, ngeom]`, with their distances and slopes."""
    mj = all_kinds()
    m = sdf_tables(physics(mj))
    geoms = placed(mj, np.zeros((11, 3)), np.tile(np.eye(3).ravel(), (11, 1)), np.arange(11))
    # planes are felt, but not searched
    kinds = tuple(kind for kind in (*SDF_FUNCTIONS, *shapes()) if kind != "plane")
    assert {*m.first, *m.second} == {*kinds}
    solid = m.solid(geoms, kinds)
    points = np.random.default_rng(0).normal(size=(N, 11, 3)) * mj.geom_aabb[:, 3:]
    x = Vec(*(jnp.asarray(points[..., k]) for k in range(3)))
    return mj, solid, points, x


def test_distances_and_slopes_equal_the_oracle(asked):
    """Slopes of plugins, and outside of octrees, are one-sided differences of 1e-8 in MuJoCo."""
    mj, solid, points, x = asked
    value, slope = jax.jit(distance_and_slope)(x, solid)
    slope = np.stack([np.asarray(c) for c in slope.parts], -1)
    d = mujoco.MjData(mj)
    mujoco.mj_forward(mj, d)
    for geom in GEOMS:
        theirs, direction = oracle_distance(mj, d, geom, points[:, geom])
        np.testing.assert_allclose(value[:, geom], theirs, **ROUNDING)
        exact = mj.geom_plugin[geom] < 0 and mj.geom_dataid[geom] < 0
        tolerance = ROUNDING if exact else STORED_SINGLE
        np.testing.assert_allclose(slope[:, geom], direction, **tolerance)


@pytest.mark.slow
def test_single_precision(asked):
    _, solid, _, x = asked
    double = np.asarray(signed_distance(x, solid))
    single = jax.tree.map(
        lambda a: a.astype(jnp.float32) if a.dtype == jnp.float64 else a, (x, solid)
    )
    value, slope = jax.jit(distance_and_slope)(*single)
    assert value.dtype == slope.x.dtype == jnp.float32
    assert all(np.isfinite(c).all() for c in slope.parts)
    near = np.isclose(value, double, **FLOAT32)
    assert near.mean() > 0.999  # the rest: just across a crease


@pytest.mark.slow
def test_gradients_are_finite_where_shapes_are_singular(asked):
    """Centers, axes, planes of symmetry and corners, of all geoms: also second derivatives."""
    mj, solid, _, _ = asked
    unit = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]])
    corner = np.concatenate([unit, 0.5 * unit, -2.0 * unit])[:, None]
    points = np.concatenate([corner * mj.geom_aabb[:, 3:], corner * np.maximum(mj.geom_size, 0.01)])
    x = Vec(*(jnp.asarray(points[..., k]) for k in range(3)))

    def total(x, solid):
        value, slope = distance_and_slope(x, solid)
        return jnp.sum(value) + sum(jnp.sum(c) for c in slope.parts)

    value, gradient = jax.jit(jax.value_and_grad(total, argnums=(0, 1), allow_int=True))(x, solid)
    assert np.isfinite(value)
    real = [g for g in jax.tree.leaves(gradient) if g.dtype != jax.dtypes.float0]
    assert len(real) > 3
    assert all(np.isfinite(g).all() for g in real)
