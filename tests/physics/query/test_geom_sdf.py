"""Signed distances of geoms, against `mjc_distance` and `mjc_gradient`."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.field.fields_of_all import PRIMITIVES, all_kinds, oracle_distance
from tolerance import DIFFERENCE, ROUGH_DIFFERENCE, STAGE, STORED_SINGLE

import jaxsim
from jaxsim.io.bridge import put_model

NUMBER = 60
GEOMS = (2, 4, 9, 10)  # ellipsoid, box, a torus of a plugin, an octree


def state(seed: int) -> mujoco.MjData:
    mj, rng = all_kinds(), np.random.default_rng(seed)
    d, pose = mujoco.MjData(mj), rng.normal(size=(mj.nbody - 1, 7))
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    d.qpos[:] = pose.ravel()
    mujoco.mj_forward(mj, d)
    return d


def points(d: mujoco.MjData, seed: int) -> np.ndarray:
    """About each of the geoms, inside and outside, `[geom, n, 3]`."""
    near = np.random.default_rng(seed).normal(size=(len(GEOMS), NUMBER, 3)) * 0.2
    return d.geom_xpos[list(GEOMS), None] + near


def theirs(d: mujoco.MjData, at: np.ndarray) -> np.ndarray:
    """The oracle's distances and slopes, in the world, `[geom, n, 4]`."""
    found = []
    for geom, p in zip(GEOMS, at, strict=True):
        R = d.geom_xmat[geom].reshape(3, 3)
        dist, slope = oracle_distance(all_kinds(), d, geom, (p - d.geom_xpos[geom]) @ R)
        found.append(np.c_[dist, slope @ R.T])
    return np.array(found)


@jax.jit
def every(m, qpos, at):
    """Distances and slopes of the same, `[geom, n, 4]`."""
    d = jaxsim.make_data(m).replace(qpos=qpos)
    found = (jaxsim.support.geom_sdf(m, d, g, p) for g, p in zip(GEOMS, at, strict=True))
    return jnp.stack([jnp.column_stack(sdf) for sdf in found])


def test_distances_and_slopes_equal_those_of_mujoco():
    """Also in worlds at once."""
    m, states = put_model(all_kinds()), [state(seed) for seed in range(3)]
    at = np.array([points(d, k) for k, d in enumerate(states)])
    each = jax.jit(jax.vmap(every, (None, 0, 0)))(m, np.array([d.qpos for d in states]), at)
    for k, d in enumerate(states):
        expected = theirs(d, at[k])
        inside = (expected[..., 0] < 0).mean(axis=1)
        assert (inside > 0.02).all()
        assert (inside < 0.9).all()
        np.testing.assert_allclose(each[k][..., 0], expected[..., 0], **STAGE)
        # MuJoCo takes differences for what is no primitive
        exact = np.array([geom < len(PRIMITIVES) for geom in GEOMS])
        np.testing.assert_allclose(each[k][exact], expected[exact], **STAGE)
        np.testing.assert_allclose(each[k][~exact], expected[~exact], **STORED_SINGLE)


@pytest.mark.slow
def test_the_derivative_is_that_of_the_distance():
    """Derivatives by point and pose; equal to the slope, except in a box and for an ellipsoid."""
    m, d = put_model(all_kinds()), state(5)
    rng, at = np.random.default_rng(6), points(d, 7)
    way = rng.normal(size=m.nq), rng.normal(size=at.shape)
    out, slope = jax.jit(lambda q, p, w: jax.jvp(lambda *x: every(m, *x), (q, p), w))(
        d.qpos, at, way
    )
    step = 1e-6
    moved = [every(m, d.qpos + s * way[0], at + s * way[1]) for s in (step, -step)]
    difference = ((moved[0] - moved[1]) / (2 * step))[..., 0]
    # where the nearest part changes, or the cell of the octree does, there is no derivative
    near = np.isclose(slope[..., 0], difference, **ROUGH_DIFFERENCE)
    assert near.mean() > 0.97
    still = jax.jvp(lambda p: every(m, d.qpos, p), (at,), (way[1],))[1][..., 0]
    along = np.sum(out[..., 1:] * way[1], axis=-1)
    same = np.isclose(still, along, **DIFFERENCE)
    kinds = [PRIMITIVES[g] if g < len(PRIMITIVES) else "" for g in GEOMS]
    for kind, of, dist in zip(kinds, same, out[..., 0], strict=True):
        if kind == "box":
            assert of[dist > 0].all()
        elif kind != "ellipsoid":
            assert of.all()


def test_primitive_in_a_model_without_meshes():
    m = jaxsim.load_model("<mujoco><worldbody><geom size='.1' pos='1 0 0'/></worldbody></mujoco>")
    found = jaxsim.support.geom_sdf(m, jaxsim.make_data(m), 0, jnp.array([1.3, 0, 0]))
    np.testing.assert_allclose(found.distance, 0.2, atol=1e-12)
    np.testing.assert_allclose(found.gradient, [1, 0, 0], atol=1e-12)


def test_arguments():
    xml = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/><geom type="mesh" mesh="m"/></worldbody></mujoco>"""
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)
    floor = jaxsim.support.geom_sdf(m, d, 0, jnp.array([5.0, 0, -0.2]))
    assert floor.distance == -0.2
    np.testing.assert_array_equal(floor.gradient, [0, 0, 1])
    with pytest.raises(
        ValueError, match="geom_sdf: geom 1: a geom of type mesh has no signed dist"
    ):
        jaxsim.support.geom_sdf(m, d, 1, jnp.zeros(3))
    with pytest.raises(ValueError, match="geom_sdf: geom: there is no geom 2; the model has 2"):
        jaxsim.support.geom_sdf(m, d, 2, jnp.zeros(3))
    with pytest.raises(ValueError, match="geom_sdf: geom: expected a number or name that is known"):
        jax.jit(jaxsim.support.geom_sdf)(m, d, 0, jnp.zeros(3))
