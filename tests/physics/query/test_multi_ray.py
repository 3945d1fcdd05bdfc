"""Many rays from one point, against MuJoCo's `mj_multiRay`: the cutoff, masks, worlds."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STAGE

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = " ".join(map(str, np.random.default_rng(5).normal(size=36) * 0.15 + 0.1))
KINDS = ("sphere", "capsule", "cylinder", "box", "ellipsoid")
DRAWN = 2 + len(KINDS)  # the geom of a body that is only drawn: no cutoff counts for it
NUMBER = 200


@cache
def scene() -> mujoco.MjModel:
    """Free geoms of every kind with a bounding sphere, over a floor and next to a rectangle.

    One is a body that is only drawn.
    """
    shapes = [f'type="{kind}" size=".1 .2 .3" group="{k}"' for k, kind in enumerate(KINDS)]
    shapes += ['size=".2" contype="0" conaffinity="0"']
    shapes += ['type="mesh" mesh="shard"', 'type="hfield" hfield="hills"']
    bodies = "".join(
        f'<body><freejoint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><geom {s}/></body>'
        for s in shapes
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><mesh name="shard" vertex="{SHARD}"/>
        <hfield name="hills" nrow="2" ncol="2" size=".3 .2 .2 .2" elevation="0 1 .5 .2"/></asset>
        <worldbody><geom type="plane" size="0 0 1" pos="0 0 -1"/>
        <geom type="plane" size=".5 .5 1" pos="2 0 0" zaxis="-1 0 0"/>{bodies}
        </worldbody></mujoco>"""
    )


def state(seed: int) -> mujoco.MjData:
    mj, rng = scene(), np.random.default_rng(seed)
    d, pose = mujoco.MjData(mj), rng.normal(size=(mj.nq // 7, 7))
    pose[:, :3] *= 0.8
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    d.qpos[:] = pose.ravel()
    mujoco.mj_kinematics(mj, d)
    return d


def directions(seed: int, number: int = NUMBER) -> np.ndarray:
    """In all directions, of any length."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(number, 3)) * rng.uniform(0.2, 3, (number, 1))


def aimed(d: mujoco.MjData, pnt: np.ndarray, seed: int) -> np.ndarray:
    """Return rays, half of them aimed at the geoms of a state."""
    vec, rng = directions(seed), np.random.default_rng(seed)
    geom = rng.integers(0, scene().ngeom, NUMBER // 2)
    vec[::2] = d.geom_xpos[geom] + 0.05 * rng.normal(size=(NUMBER // 2, 3)) - pnt
    return vec


def theirs(d, pnt, vec, cutoff=1e10, geomgroup=None, flg_static=True, bodyexclude=-1) -> np.ndarray:
    """The oracle's distances, geoms and normals, `[n, 5]`."""
    n = len(vec)
    geom, dist, normal = np.zeros(n, np.int32), np.zeros(n), np.zeros(3 * n)
    given = (geomgroup, flg_static, bodyexclude, geom, dist, normal, n, cutoff)
    mujoco.mj_multiRay(scene(), d, pnt, vec.ravel(), *given)
    return np.column_stack([dist, geom, normal.reshape(n, 3)])


def numbers(m, qpos, pnt, vec, cutoff=None, **options):
    d = jaxsim.make_data(m).replace(qpos=qpos)
    hit = jaxsim.support.multi_ray(m, d, pnt, vec, cutoff=cutoff, **options)
    return jnp.column_stack([hit.dist, hit.geomid.astype(hit.dist.dtype), hit.normal])


cast = jax.jit(numbers)


@pytest.mark.slow
def test_a_geom_whose_bounding_sphere_is_beyond_the_cutoff_is_not_met():
    """Whatever the lengths of the vectors; a nearer geom is met beyond it, and planes are."""
    m = put_model(scene())
    met, far, long = set(), 0, 0
    for seed, cutoff in enumerate((0.05, 0.4, 0.8, 1.5, 100.0)):
        d, pnt = state(seed), np.array([0.1, -0.2, 0.3 * seed])
        vec = aimed(d, pnt, seed)
        expected = theirs(d, pnt, vec, cutoff)
        np.testing.assert_allclose(cast(m, d.qpos, pnt, vec, cutoff), expected, **STAGE)
        every = theirs(d, pnt, vec)
        far += (every[:, 1] != expected[:, 1]).sum()
        meters = expected[:, 0] * np.linalg.norm(vec, axis=1)
        long += ((expected[:, 1] > 1) & (expected[:, 1] != DRAWN) & (meters > cutoff)).sum()
        met |= set(expected[:, 1])
    assert met == {-1, *range(scene().ngeom)}
    assert far > 50
    assert long > 5


def test_masks_and_no_cutoff():
    m, d, vec, pnt = put_model(scene()), state(7), directions(2, 60), np.array([0.0, 0.1, 0.4])
    for options in ({}, {"geomgroup": (1, 0, 0, 1, 0, 0), "flg_static": False, "bodyexclude": 4}):
        asked = dict(options)
        if options:
            asked["geomgroup"] = np.array(options["geomgroup"], np.uint8)
        expected = theirs(d, pnt, vec, **asked)
        mine = numbers(m, d.qpos, pnt, vec, **options)  # also without jit
        np.testing.assert_allclose(mine, expected, **STAGE)


@pytest.mark.slow
def test_worlds_with_a_cutoff_of_their_own():
    m, vec = put_model(scene()), directions(3)
    states = [state(seed) for seed in range(4)]
    pnt = np.random.default_rng(4).normal(size=(4, 3))
    cutoff = np.array([0.2, 0.6, 1.0, 3.0])
    qpos = np.array([d.qpos for d in states])
    mine = jax.jit(jax.vmap(numbers, (None, 0, 0, None, 0)))(m, qpos, pnt, vec, cutoff)
    for k, d in enumerate(states):
        np.testing.assert_allclose(mine[k], theirs(d, pnt[k], vec, cutoff[k]), **STAGE)


def test_shapes():
    m = put_model(scene())
    d, zero = jaxsim.make_data(m), jnp.zeros(3)
    with pytest.raises(ValueError, match=r"multi_ray: vec: expected shape \(n, 3\), got \(3,\); j"):
        jaxsim.support.multi_ray(m, d, zero, zero)
    with pytest.raises(ValueError, match=r"multi_ray: pnt: expected shape \(3,\), got \(2, 3\)"):
        jaxsim.support.multi_ray(m, d, jnp.zeros((2, 3)), jnp.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"multi_ray: cutoff: expected shape \(\), got"):
        jaxsim.support.multi_ray(m, d, zero, jnp.zeros((2, 3)), cutoff=jnp.zeros(2))
