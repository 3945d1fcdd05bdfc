"""Rays and simple shapes against MuJoCo's ray casting."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.physics.sensor.shape_query import RAY_INTERVALS, ray_hits_shape

SIZE = np.array([0.3, 0.4, 0.5])


@pytest.mark.parametrize("kind", RAY_INTERVALS)
def test_rays_meet_the_geoms_that_those_of_mujoco_meet(kind):
    rng = np.random.default_rng(0)
    p, u = rng.normal(size=(2, 500, 3)) * 0.4
    u[:20, :2] = 0  # along the axis of the shape
    meets = jax.jit(lambda size, p, u: ray_hits_shape(kind, size, p, u))(
        jnp.tile(SIZE, (len(p), 1)), Vec(*jnp.asarray(p).T), Vec(*jnp.asarray(u).T)
    )
    want = [
        mujoco.mju_rayGeom(np.zeros(3), np.eye(3).ravel(), SIZE, a, b, int(kind), None) >= 0
        for a, b in zip(p, u, strict=True)
    ]
    np.testing.assert_array_equal(meets, want)
    assert 50 < np.sum(want) < 450


@pytest.mark.parametrize("kind", RAY_INTERVALS)
def test_a_ray_without_direction_meets_nothing(kind: GeomType):
    inside, still = Vec(*jnp.zeros((3, 1))), Vec(*jnp.zeros((3, 1)))
    assert not ray_hits_shape(kind, jnp.asarray(SIZE[None]), inside, still).any()
