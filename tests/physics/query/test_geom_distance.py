"""Distances of two geoms beside MuJoCo's, for all kinds of convex geoms and planes."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED

from states import single
from tolerance import CONTACT, FLOAT32, ROUGH_DIFFERENCE, ROUNDING, STORED_SINGLE

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = np.random.default_rng(5).normal(size=(12, 3)) * 0.15
BLOCK = np.stack(np.meshgrid([-0.1, 0.1], [-0.2, 0.2], [-0.3, 0.3]), -1).reshape(-1, 3)
KINDS = {
    "sphere": 'type="sphere" size=".2"',
    "capsule": 'type="capsule" size=".1 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .3 .2"',
    "cylinder": 'type="cylinder" size=".2 .15"',
    "box": 'type="box" size=".1 .2 .3"',
    "mesh": 'type="mesh" mesh="shard"',
}
CAPSULE, BOX = int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_BOX)
DISTMAX = 2.0
STEP = 1e-6  # of finite differences


@cache
def oracle(box: str = KINDS["box"]) -> mujoco.MjModel:
    """A plane, and two free bodies for each kind, whose geoms are beside their origins."""
    kinds = KINDS | {"box": box}
    bodies = "".join(
        f'<body><freejoint/><geom name="{kind}{n}" {shape} pos=".05 .1 -.02" euler="10 20 30"/>'
        "</body>"
        for n in (1, 2)
        for kind, shape in kinds.items()
    )
    # as exact as the oracle can be: its default stops at 1e-6
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/>
        <default><geom contype="0"/></default>
        <asset><mesh name="shard" vertex="{" ".join(map(str, SHARD.ravel()))}"/>
        <mesh name="block" vertex="{" ".join(map(str, BLOCK.ravel()))}"/></asset>
        <worldbody><geom name="plane" type="plane" size="1 1 1" pos=".1 .2 .3" euler="20 30 0"/>
        {bodies}</worldbody></mujoco>"""
    )


def random_qpos(mj: mujoco.MjModel, rng, spread: float) -> np.ndarray:
    """Bodies about the origin, turned at random."""
    pose = rng.normal(size=(mj.nbody - 1, 7))
    pose[:, :3] *= spread
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    return pose.ravel()


def measured(mj: mujoco.MjModel, qpos: np.ndarray, geom1: int, geom2: int, distmax: float):
    """The oracle's distance and segment, `[7]`."""
    d, fromto = mujoco.MjData(mj), np.zeros(6)
    d.qpos[:] = qpos
    mujoco.mj_kinematics(mj, d)
    return np.r_[mujoco.mj_geomDistance(mj, d, geom1, geom2, distmax, fromto), fromto]


@cache
def drawn(poses: int = 20):
    """Placements of every two kinds in both orders: positions, geoms, the oracle's distances."""
    mj, rng = oracle(), np.random.default_rng(0)
    first = [mj.geom(f"{kind}1").id for kind in KINDS]
    second = [mj.geom(f"{kind}2").id for kind in KINDS]
    plane = mj.geom("plane").id
    pairs = [(a, b) for a in first for b in second]
    pairs += [(plane, b) for b in second] + [(a, plane) for a in first]
    # MuJoCo's collider of capsule and box is not deep enough where the axis is in the box: there
    # the box is a mesh to it
    block = oracle('type="mesh" mesh="block"')
    rows = []
    for a, b in pairs:
        asked = block if set(mj.geom_type[[a, b]]) == {CAPSULE, BOX} else mj
        for k in range(poses):
            qpos = random_qpos(mj, rng, (0.15, 0.3, 0.6)[k % 3])
            rows.append((qpos, a, b, measured(asked, qpos, a, b, DISTMAX)))
    return [np.array(x) for x in zip(*rows, strict=True)]


def numbers(m, qpos, geom1, geom2, distmax):
    """Distance and segment, `[7]`."""
    d = jaxsim.make_data(m).replace(qpos=qpos)
    dist, fromto = jaxsim.geom_distance(m, d, geom1, geom2, distmax)
    return jnp.concatenate([dist[None], fromto])


one = jax.jit(numbers)
many = jax.jit(jax.vmap(numbers, (None, 0, 0, 0, None)), compiler_options=OPTIMIZED)
many32 = jax.jit(jax.vmap(numbers, (None, 0, 0, 0, None)))


@jax.jit
def slopes(m, qpos, way, geom1, geom2, weight):
    """Along a way in forward mode, and against weights of the numbers in reverse mode."""

    def at_one(qpos, way, a, b, weight):
        out, forward = jax.jvp(lambda q: numbers(m, q, a, b, DISTMAX), (qpos,), (way,))
        _, back = jax.vjp(lambda q: numbers(m, q, a, b, DISTMAX), qpos)
        return out, forward, back(weight)[0]

    return jax.vmap(at_one)(qpos, way, geom1, geom2, weight)


@cache
def found() -> np.ndarray:
    """What we find of `drawn`."""
    qpos, a, b, _ = drawn()
    return np.asarray(many(put_model(oracle()), qpos, a, b, DISTMAX))


def test_distances_equal_the_oracle():
    """Of all kinds, in both orders; apart and inside each other."""
    _, a, b, expected = drawn()
    mine = found()
    mj = oracle()
    round_ = np.array([not is_flat(mj, *pair) for pair in zip(a, b, strict=True)])
    inside = expected[:, 0] < 0
    assert 200 < inside.sum() < 600
    assert 5 < (expected[:, 0] == DISTMAX).sum()
    # inside each other round shapes are approached by polyhedra, by both of us
    exact = ~(round_ & inside)
    np.testing.assert_allclose(mine[exact, 0], expected[exact, 0], **CONTACT)
    np.testing.assert_allclose(mine[:, 0], expected[:, 0], **STORED_SINGLE)
    # a point is known to the root of what a distance is known to
    np.testing.assert_allclose(mine[exact], expected[exact], rtol=0, atol=1e-6)
    off = np.abs(mine - expected).max(axis=1)
    assert off.max() < 1e-2
    assert (off < 1e-5).mean() > 0.99


def is_flat(mj, geom1: int, geom2: int) -> bool:
    """The depth of these two is that of a polyhedron, or follows from one formula."""
    kinds = {mujoco.mjtGeom(mj.geom_type[g]).name[7:] for g in (geom1, geom2)}
    return "PLANE" in kinds or not kinds & {"ELLIPSOID", "CYLINDER"}


def test_the_segment_has_the_length_of_the_distance():
    mine = found()
    near = mine[:, 0] < DISTMAX
    length = np.linalg.norm(mine[:, 4:] - mine[:, 1:4], axis=1)
    np.testing.assert_allclose(length[near], np.abs(mine[near, 0]), **ROUNDING)
    assert not mine[~near, 1:].any()


def test_order_is_that_asked():
    """Geoms exchanged, the points are; polyhedra and round shapes alike."""
    qpos, a, b, _ = drawn()
    mine = found()
    back = np.asarray(many(put_model(oracle()), qpos, b, a, DISTMAX))
    np.testing.assert_allclose(back[:, 0], mine[:, 0], **STORED_SINGLE)
    off = np.abs(back[:, [4, 5, 6, 1, 2, 3]] - mine[:, 1:]).max(axis=1)
    assert (off < 1e-5).mean() > 0.99


@pytest.mark.parametrize("distmax", [-0.05, 0.0, 0.3])
def test_beyond_the_limit(distmax):
    """The limit, and zeros; also where shapes are inside each other by less."""
    qpos, a, b, _ = drawn()
    free = found()
    mine = np.asarray(many(put_model(oracle()), qpos, a, b, distmax))
    near = free[:, 0] < distmax
    assert near.any()
    np.testing.assert_allclose(mine[near], free[near], rtol=0, atol=1e-6)
    assert (mine[~near, 0] == distmax).all()
    assert not mine[~near, 1:].any()


def test_one_world_is_as_many():
    """Also with names, and geoms that are known when the program is made."""
    mj = oracle()
    qpos, a, b, _ = drawn()
    m, mine = put_model(mj), found()
    for k in range(0, len(a), 50):
        alone = one(m, qpos[k], a[k], b[k], DISTMAX)
        np.testing.assert_allclose(alone, mine[k], rtol=0, atol=1e-6)
    d = jaxsim.make_data(m).replace(qpos=jnp.asarray(qpos[k]))
    names = (mj.geom(a[k]).name, mj.geom(b[k]).name)
    dist, fromto = jax.jit(lambda d: jaxsim.geom_distance(m, d, *names, DISTMAX))(d)
    assert dist.shape == ()
    np.testing.assert_allclose(np.r_[dist, fromto], mine[k], rtol=0, atol=1e-6)


def test_single_precision():
    qpos, a, b, _ = drawn()
    m, mine = single(put_model(oracle())), found()
    rough = many32(m, jnp.asarray(qpos, jnp.float32), a, b, jnp.float32(DISTMAX))
    assert rough.dtype == np.float32
    rough = np.asarray(rough)
    assert np.isfinite(rough).all()
    np.testing.assert_allclose(rough[:, 0], mine[:, 0], **FLOAT32)
    off = np.abs(rough - mine).max(axis=1)
    assert (off < 1e-3).mean() > 0.97


def test_derivatives():
    """Forward and reverse mode are what central differences are, where these are smooth."""
    m, rng = put_model(oracle()), np.random.default_rng(1)
    qpos, a, b, expected = drawn()
    way = rng.normal(size=(len(a), m.nv))
    tangent = np.zeros_like(qpos)
    ahead, behind = ({}, {})
    for side, sign in ((ahead, 1), (behind, -1)):
        for step in (STEP, STEP / 2):
            moved = np.stack([integrated(q, sign * step * w) for q, w in zip(qpos, way)])
            side[step] = np.asarray(many(m, moved, a, b, DISTMAX))
    coarse, fine = ((ahead[s] - behind[s]) / (2 * s) for s in (STEP, STEP / 2))
    tangent = np.stack(
        [(integrated(q, STEP * w) - integrated(q, -STEP * w)) / (2 * STEP) for q, w in zip(qpos, way)]
    )
    near = expected[:, 0] < DISTMAX
    smooth = near & (np.abs(coarse - fine) < 1e-6).all(axis=1)
    assert smooth.sum() > 0.95 * near.sum()

    some = np.arange(0, len(a), 5)
    weight = rng.normal(size=(len(some), 7))
    _, forward, back = slopes(m, qpos[some], tangent[some], a[some], b[some], weight)
    keep = smooth[some]
    np.testing.assert_allclose(forward[keep], fine[some][keep], **ROUGH_DIFFERENCE)
    both = np.sum(np.asarray(back) * tangent[some], axis=1), np.sum(weight * forward, axis=1)
    np.testing.assert_allclose(*both, rtol=1e-9, atol=1e-9)


def integrated(qpos: np.ndarray, change: np.ndarray) -> np.ndarray:
    """A configuration after a small motion."""
    out = qpos.copy()
    mujoco.mj_integratePos(oracle(), out, change, 1.0)
    return out
