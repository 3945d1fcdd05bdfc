"""Rays and one mesh or height field, against `mj_rayMesh` and `mj_rayHfield`."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUGH_DIFFERENCE, STAGE

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = " ".join(map(str, np.random.default_rng(5).normal(size=36) * 0.15))
HILLS = " ".join(map(str, np.random.default_rng(1).uniform(size=20)))
ORACLE = {"mesh": mujoco.mj_rayMesh, "hfield": mujoco.mj_rayHfield}
MINE = {"mesh": jaxsim.support.ray_mesh, "hfield": jaxsim.support.ray_hfield}


@cache
def scene() -> mujoco.MjModel:
    """Two meshes and two height fields, of which one is not drawn and others are in its way."""
    geoms = ['type="mesh" mesh="shard"', 'type="mesh" mesh="shard" rgba="1 1 1 0"']
    geoms += ['type="hfield" hfield="hills"', 'type="hfield" hfield="step"', 'size=".5"']
    bodies = "".join(
        f'<body><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom {g}/></body>'
        for g in geoms
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><mesh name="shard" vertex="{SHARD}"/>
        <hfield name="hills" nrow="4" ncol="5" size=".3 .2 .2 .1" elevation="{HILLS}"/>
        <hfield name="step" nrow="2" ncol="2" size=".3 .2 .2 .2" elevation="0 1 1 0"/></asset>
        <default><geom contype="0" conaffinity="0"/></default>
        <worldbody>{bodies}</worldbody></mujoco>"""
    )


def state(seed: int) -> mujoco.MjData:
    mj, rng = scene(), np.random.default_rng(seed)
    d, pose = mujoco.MjData(mj), rng.normal(size=(mj.nbody - 1, 7))
    pose[:, :3] *= 0.1
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    d.qpos[:] = pose.ravel()
    mujoco.mj_kinematics(mj, d)
    return d


def drawn(seed: int, number: int = 120):
    """Rays from inside and outside, at and past the geoms, of any length."""
    rng = np.random.default_rng(seed)
    pnt = rng.normal(size=(number, 3)) * rng.choice([0.05, 0.3, 2.0], (number, 1))
    aim = 0.15 * rng.normal(size=(number, 3))
    return pnt, (aim - pnt) * rng.uniform(0.3, 3, (number, 1))


def theirs(kind, d, geom, pnt, vec) -> np.ndarray:
    normal, rows = np.zeros(3), []
    for p, v in zip(pnt, vec, strict=True):
        normal[:] = 0
        rows.append(np.r_[ORACLE[kind](scene(), d, geom, p, v, normal), normal])
    return np.array(rows)


def numbers(m, qpos, geom, pnt, vec, kind):
    hit = MINE[kind](m, jaxsim.make_data(m).replace(qpos=qpos), geom, pnt, vec)
    return jnp.column_stack([hit.dist, hit.normal])


ask = {kind: jax.jit(partial(numbers, kind=kind)) for kind in MINE}
# in each world the bodies have other positions, and another geom is queried
ask_worlds = {kind: jax.jit(jax.vmap(ask[kind], (None, 0, 0, None, None))) for kind in MINE}


@pytest.mark.parametrize(("kind", "geoms"), [("mesh", (0, 1)), ("hfield", (2, 3))])
def test_one_geom_is_met_whatever_is_in_the_way(kind, geoms):
    """Also one that is not drawn; and in many worlds at once."""
    m, (pnt, vec) = put_model(scene()), drawn(1)
    states = [state(seed) for seed in range(4)]
    geom = np.tile(np.int32(geoms), 2)
    each = ask_worlds[kind](m, np.array([d.qpos for d in states]), geom, pnt, vec)
    for k, d in enumerate(states):
        expected = theirs(kind, d, geom[k], pnt, vec)
        assert 0.1 < (expected[:, 0] >= 0).mean() < 0.98
        np.testing.assert_allclose(each[k], expected, **STAGE)
    one = ask[kind](m, states[0].qpos, geoms[0], pnt, vec)
    np.testing.assert_allclose(one, each[0], **STAGE)
    # a geom of another type has no such surface
    other = ask[kind](m, states[0].qpos, 4, pnt, vec)
    np.testing.assert_array_equal(other, np.tile([-1.0, 0, 0, 0], (len(pnt), 1)))


@pytest.mark.parametrize(("kind", "geom"), [("mesh", 0), ("hfield", 2)])
def test_derivatives(kind, geom):
    m, d = put_model(scene()), state(0)
    at = (d.qpos.copy(), *drawn(3))
    rng = np.random.default_rng(4)
    way, step = tuple(rng.normal(size=x.shape) for x in at), 1e-6

    def of(qpos, pnt, vec):
        return ask[kind](m, qpos, geom, pnt, vec)

    moved = [of(*(x + s * w for x, w in zip(at, way, strict=True))) for s in (step, -step)]
    difference = (moved[0] - moved[1]) / (2 * step)
    out, slope = jax.jit(lambda a, w: jax.jvp(of, a, w))(at, way)
    smooth = np.all(np.abs(difference) < 50, axis=1) & (out[:, 0] >= 0)  # no other face is met
    assert smooth.sum() > 20
    np.testing.assert_allclose(slope[smooth], difference[smooth], **ROUGH_DIFFERENCE)
    assert np.isfinite(slope).all()


@pytest.mark.slow
def test_arguments():
    m = put_model(scene())
    d, zero = jaxsim.make_data(m), jnp.zeros(3)
    with pytest.raises(ValueError, match="ray_mesh: geom 2 is of type hfield, expected mesh"):
        jaxsim.support.ray_mesh(m, d, 2, zero, zero)
    with pytest.raises(ValueError, match="ray_hfield: geom: there is no geom 9; the model has 5"):
        jaxsim.support.ray_hfield(m, d, 9, zero, zero)
    with pytest.raises(ValueError, match="no geom is named 'hills'"):
        jaxsim.support.ray_hfield(m, d, "hills", zero, zero)
    hit = jaxsim.support.ray_hfield(m, d, 3, jnp.array([0.0, 0, 2]), jnp.array([0.0, 0, -1]))
    assert hit.dist.shape == ()
    assert hit.normal.shape == (3,)
