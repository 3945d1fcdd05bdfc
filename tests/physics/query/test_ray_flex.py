"""Rays and flexes against `mj_rayFlex`: threads, sheets, solids, with everything that is drawn."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUGH_DIFFERENCE, STAGE

import jaxsim
from jaxsim.io.bridge import put_model

# the first body touches nothing; the solid has an inner layer, the sheet no thickness
XML = """<mujoco><worldbody><body pos="5 0 0"><freejoint/><geom size=".1"/></body>
  <flexcomp name="solid" type="grid" count="4 4 4" spacing=".2 .2 .2" dim="3" radius=".02"/>
  <flexcomp name="thread" type="grid" count="5 1 1" spacing=".2 .2 .2" dim="1" radius=".08"/>
  <flexcomp name="sheet" type="grid" count="4 3 1" spacing=".2 .2 .2" dim="2" radius=".03"/>
  </worldbody></mujoco>"""
# flex, layer, and what is drawn: vertices, edges, faces, skin
DRAWN = [
    ("solid", 0, (False, False, False, True)),
    ("solid", 1, (True, False, True, False)),
    ("thread", 0, (False, True, True, True)),
    ("thread", 0, (True, False, False, True)),
    ("sheet", 0, (False, True, True, False)),
    ("sheet", 0, (True, False, False, False)),
]


@cache
def scene() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML)


def state(seed: int) -> mujoco.MjData:
    mj = scene()
    d, rng = mujoco.MjData(mj), np.random.default_rng(seed)
    d.qpos[:] += 0.04 * rng.normal(size=mj.nq)
    mujoco.mj_kinematics(mj, d)
    mujoco.mj_comPos(mj, d)
    mujoco.mj_flex(mj, d)
    return d


def shot(seed: int, number: int = 60):
    """Rays from inside and outside, at and past the flexes, of any length."""
    rng = np.random.default_rng(seed)
    pnt = rng.normal(size=(number, 3)) * rng.choice([0.1, 0.4, 2.0], (number, 1))
    aim = 0.2 * rng.normal(size=(number, 3))
    return pnt, (aim - pnt) * rng.uniform(0.3, 3, (number, 1))


def theirs(d, pnt, vec) -> np.ndarray:
    mj, rows = scene(), []
    for name, layer, flags in DRAWN:
        flex = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_FLEX, name)
        for p, v in zip(pnt, vec, strict=True):
            vert, normal = np.full(1, -1, np.int32), np.zeros(3)
            far = mujoco.mj_rayFlex(mj, d, layer, *flags, flex, p, v, vert, normal)
            rows.append(np.r_[far, vert, normal])
    return np.array(rows).reshape(len(DRAWN), len(pnt), 5)


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, None, None))
def ours(m, qpos, pnt, vec):
    d, found = jaxsim.make_data(m).replace(qpos=qpos), []
    for name, layer, flags in DRAWN:
        hit = jaxsim.support.ray_flex(m, d, name, pnt, vec, layer, *flags)
        found.append(jnp.column_stack([hit.dist, hit.vertid.astype(hit.dist.dtype), hit.normal]))
    return jnp.stack(found)


def test_flexes_are_met_as_in_mujoco_in_worlds_that_differ():
    m, (pnt, vec) = put_model(scene()), shot(1)
    vec[0] = 0
    states = [state(seed) for seed in range(3)]
    found = ours(m, np.array([d.qpos for d in states]), pnt, vec)
    for mine, d in zip(found, states, strict=True):
        expected = theirs(d, pnt[1:], vec[1:])
        met = (expected[..., 0] >= 0).mean(axis=1)
        assert ((met > 0.05) & (met < 0.98)).all()
        np.testing.assert_allclose(mine[:, 1:], expected, **STAGE)
        np.testing.assert_array_equal(mine[:, 0], np.tile([-1.0, -1, 0, 0, 0], (len(DRAWN), 1)))


@pytest.mark.slow
def test_derivatives():
    """Derivatives of distances and normals by configuration and rays, for all shapes at once."""
    m, d = put_model(scene()), state(0)
    at = (d.qpos.copy(), *shot(3))
    rng = np.random.default_rng(4)
    way, step = tuple(rng.normal(size=x.shape) for x in at), 1e-6

    def of(qpos, pnt, vec):
        return ours(m, qpos[None], pnt, vec)[0]

    moved = [of(*(x + s * w for x, w in zip(at, way, strict=True))) for s in (step, -step)]
    difference = (moved[0] - moved[1]) / (2 * step)
    out, slope = jax.jit(lambda a, w: jax.jvp(of, a, w))(at, way)
    smooth = np.all(np.abs(difference) < 50, axis=-1) & (out[..., 0] >= 0)  # nothing else is met
    assert smooth.sum() > 60
    np.testing.assert_allclose(slope[smooth], difference[smooth], **ROUGH_DIFFERENCE)
    assert np.isfinite(slope).all()


def test_rays_at_geoms_do_not_meet_flexes():
    mj, d = scene(), state(0)
    for p, v in zip(*shot(1), strict=True):
        assert mujoco.mj_ray(mj, d, p, v, None, 1, -1, np.zeros(1, np.int32)) < 0
    m = put_model(mj)
    ours = jaxsim.make_data(m).replace(qpos=d.qpos)
    assert (jax.jit(jaxsim.support.ray)(m, ours, *shot(1)).dist < 0).all()


def test_arguments():
    m = put_model(scene())
    d, zero = jaxsim.make_data(m), jnp.zeros(3)
    with pytest.raises(ValueError, match="ray_flex: flex: there is no flex 3; the model has 3"):
        jaxsim.support.ray_flex(m, d, 3, zero, zero)
    with pytest.raises(ValueError, match="no flex is named 'cloth'"):
        jaxsim.support.ray_flex(m, d, "cloth", zero, zero)
