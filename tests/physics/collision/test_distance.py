"""Distances from height fields and `sdf` geoms against the oracle: asked for, and by sensors."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics import oracle
from physics.collision.field.fields_of_all import compiled, sdf_geom
from physics.sensor.test_distance import read
from tolerance import ROUGH_DIFFERENCE

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = np.random.default_rng(5).normal(size=(12, 3)) * 0.15
STEP = 1e-6
LIMITS = (0.05, 0.5, 2.0, 0.1)


def numbers(a: np.ndarray) -> str:
    return " ".join(f"{x:.4f}" for x in np.ravel(a))


LAND = f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/>
<default><geom contype="0" conaffinity="0"/></default><asset>
<hfield name="land" nrow="12" ncol="9" size="1 1 .5 .2"
  elevation="{numbers(np.random.default_rng(0).random(108))}"/>
<mesh name="shard" vertex="{numbers(SHARD)}"/></asset>
<worldbody><geom name="land" type="hfield" hfield="land" pos=".1 .1 -.2" euler="20 10 0"/>
<body name="a"><freejoint/><geom name="ball" size=".2" pos=".05 0 0"/></body>
<body name="b"><freejoint/><geom name="crate" type="box" size=".1 .2 .3"/></body>
<body name="c"><freejoint/><geom name="stone" type="mesh" mesh="shard"/></body></worldbody>
<sensor><distance body1="world" geom2="stone" cutoff="5"/>
<fromto geom1="ball" body2="world" cutoff="3"/><normal geom1="ball" body2="world" cutoff=".3"/>
<distance geom1="ball" body2="world" cutoff=".3"/><fromto body1="a" body2="b" cutoff="4"/>
</sensor></mujoco>"""


@cache
def land() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(LAND)


@cache
def fields() -> mujoco.MjModel:
    """Geoms with signed distances, of a plugin and of a mesh, and what may meet them."""
    ring = '<mesh name="ring" builtin="supertorus" params="24 .3 1 1" scale=".5 .5 .5"/>'
    shard = f'<mesh name="shard" vertex="{numbers(SHARD)}"/>'
    bodies = {
        "plane": '<geom size=".2" contype="0"/>',
        "ball": '<geom size=".2"/>',
        "stone": '<geom type="mesh" mesh="shard"/>',
        "torus": sdf_geom("torus"),
        "ring": '<geom type="sdf" mesh="ring"/>',
    }
    mj = compiled(bodies, ring + shard)
    mj.geom_type[0] = mujoco.mjtGeom.mjGEOM_PLANE  # it moves as the others do
    return mj


def states(mj: mujoco.MjModel, number: int) -> list[np.ndarray]:
    """Bodies about the origin, near and far, turned at random."""
    rng = np.random.default_rng(1)
    found = []
    for k in range(number):
        pose = rng.normal(size=(mj.nbody - 1, 7))
        pose[:, :3] *= (0.15, 0.3, 0.6)[k % 3]
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
        found.append(pose.ravel())
    return found


def drawn(mj: mujoco.MjModel, pairs: list[tuple[int, int]], poses: int):
    """Positions, geoms, limits, and the oracle's distances and segments, `[n, 7]`."""
    d, rows = mujoco.MjData(mj), []
    for a, b in pairs:
        for k, qpos in enumerate(states(mj, poses)):
            d.qpos[:] = qpos
            mujoco.mj_kinematics(mj, d)
            limit, fromto = LIMITS[k % len(LIMITS)], np.zeros(6)
            dist = mujoco.mj_geomDistance(mj, d, a, b, limit, fromto)
            rows.append((qpos, a, b, limit, np.r_[dist, fromto]))
    return [np.array(x) for x in zip(*rows, strict=True)]


def measured(m, qpos, geom1, geom2, limit):
    d = jaxsim.make_data(m).replace(qpos=qpos)
    dist, fromto = jaxsim.support.geom_distance(m, d, geom1, geom2, limit)
    return jnp.concatenate([dist[None], fromto])


many = jax.jit(jax.vmap(measured, (None, 0, 0, 0, 0)), compiler_options=OPTIMIZED)


@pytest.mark.slow
def test_distances_from_a_height_field_equal_the_oracle():
    """In both orders: apart, inside, under it, and beyond the limit."""
    mj = land()
    pairs = [(0, g) for g in range(1, 4)] + [(g, 0) for g in range(1, 4)]
    qpos, a, b, limit, expected = drawn(mj, pairs, 24)
    mine = np.asarray(many(put_model(mj), qpos, a, b, limit))
    near = expected[:, 0] < limit
    assert 20 < (expected[:, 0] < 0).sum() < 100
    assert (near & (expected[:, 0] > 0)).sum() > 20
    assert (~near).sum() > 10
    np.testing.assert_allclose(mine[:, 0], expected[:, 0], rtol=0, atol=1e-9)
    # a point is known to the root of what a distance is known to
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_distances_from_sdf_geoms_equal_the_oracle():
    """All but pairs of one kind twice, in both orders; where nothing is touched, the limit."""
    mj = fields()
    names = [mj.body(g + 1).name for g in range(mj.ngeom)]
    pairs = [(a, b) for a in range(mj.ngeom) for b in range(mj.ngeom) if a != b and max(a, b) >= 3]
    qpos, a, b, limit, expected = drawn(mj, pairs, 8)
    mine = np.asarray(many(put_model(mj), qpos, a, b, limit))
    near = expected[:, 0] < limit
    for pair in pairs:
        here = (a == pair[0]) & (b == pair[1])
        assert near[here].any(), [names[g] for g in pair]
    assert (~near).sum() > 20
    off = np.abs(mine - expected).max(axis=1)
    # a search that comes to a crease may end elsewhere: see field/test_sdf.py
    assert (off[near] < 1e-6).mean() > 0.98
    assert (off[~near] == 0).all()


@pytest.mark.slow
def test_sensors_of_bodies_with_a_height_field_equal_the_oracle():
    """Each has its own cutoff, which decides which prisms count."""
    mj = land()
    some = []
    for qpos in states(mj, 20):
        d = mujoco.MjData(mj)
        d.qpos[:] = qpos
        mujoco.mj_forward(mj, d)
        some.append(d)
    mine = np.asarray(read(*oracle.many(mj, some))).T
    expected = np.array([d.sensordata for d in some])
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-5)
    assert (expected[:, 0] > 0).any()
    assert (expected[:, 10] < 0).any()
    assert (expected[:, 10] == 0.3).any()


def test_a_file_with_such_sensors_is_simulated():
    m = jaxsim.load_model(LAND)
    assert not m.unsupported


@pytest.mark.slow
def test_gradients_of_distances_from_a_height_field():
    """In reverse mode, against central differences; zero beyond the limit."""
    mj = land()
    way = np.random.default_rng(3).normal(size=mj.nq)
    way.reshape(-1, 7)[:, 3:] = 0
    some = np.array(states(mj, 9))
    some[:6, 2] += np.repeat([2.0, 0.6], 3)  # out of reach, and above
    moved = np.concatenate([some, some + STEP * way, some - STEP * way])

    def distance(m, qpos):
        return measured(m, qpos, "land", "ball", 0.5)[0]

    both = jax.jit(jax.vmap(jax.value_and_grad(distance, 1), (None, 0)))
    dist, gradient = (np.split(np.asarray(x), 3) for x in both(put_model(mj), moved))
    slope = (dist[1] - dist[2]) / (2 * STEP)
    np.testing.assert_allclose(gradient[0] @ way, slope, **ROUGH_DIFFERENCE)
    assert 0 < (dist[0] == 0.5).sum() < 5
    assert np.isfinite(gradient[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "beside", ["", pytest.param('<geom type="mesh" mesh="shard"/>', marks=pytest.mark.slow)]
)
def test_pairs_without_a_distance_do_not_take_it_from_others(beside):
    """An `sdf` geom without hull or field, in a model of a floor and a ball."""
    mesh = f'<mesh name="shard" vertex="{numbers(SHARD)}"/>'
    m = jaxsim.load_model(f"""<mujoco><asset>{mesh}</asset><worldbody>
      <geom name="floor" type="plane" size="1 1 1"/>
      <body pos="0 0 .5"><freejoint/><geom name="ball" size=".1"/>{beside}
        <geom type="sdf" mesh="shard" contype="0" conaffinity="0"/></body>
      </worldbody></mujoco>""")
    dist, _ = jax.jit(lambda d: jaxsim.support.geom_distance(m, d, "floor", "ball", 2.0))(
        jaxsim.make_data(m)
    )
    np.testing.assert_allclose(dist, 0.4, rtol=1e-12)
