"""Meshes without hull, as nothing could touch them when they were compiled, against the oracle."""

import copy
from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.oracle import assert_worlds_are_a_loop, data
from scipy.spatial import ConvexHull
from tolerance import CONTACT, ROUGH_DIFFERENCE, ROUNDING

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.math import Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.collision.convex.hull.hulls import hull_of, hulls
from jaxsim.physics.collision.convex.hull.support import hull_support
from jaxsim.transforms.layout import pack_record, unpack_record
from jaxsim.transforms.tuning import Tuning

BLOCK = np.stack(np.meshgrid([-0.1, 0.1], [-0.06, 0.06], [-0.05, 0.05]), -1).reshape(-1, 3)
SHARD = np.random.default_rng(5).normal(size=(12, 3)) * 0.08


def _pebble(number: int) -> np.ndarray:
    point = np.random.default_rng(0).normal(size=(number, 3))
    return point / np.linalg.norm(point, axis=1)[:, None] * [0.1, 0.15, 0.06]


PEBBLE = _pebble(3 * Tuning().hull_vertices_per_chunk // 2)  # searched in two blocks
KINDS = {
    "sphere": 'type="sphere" size=".08"',
    "capsule": 'type="capsule" size=".05 .1"',
    "ellipsoid": 'type="ellipsoid" size=".1 .06 .08"',
    "cylinder": 'type="cylinder" size=".08 .07"',
    "box": 'type="box" size=".1 .06 .05"',
    "hull": 'type="mesh" mesh="shard"',
    "bare": 'type="mesh" mesh="block" contype="0" conaffinity="0"',
    "field": 'type="hfield" hfield="land"',
    "plane": 'type="plane" size="1 1 1"',
}
BARE = 'type="mesh" mesh="pebble" contype="0" conaffinity="0"'
FIXED = ("field", "plane")
ROUND = (int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), int(mujoco.mjtGeom.mjGEOM_CYLINDER))
# a point is known to the root of what a distance is known to, a normal of a round shape as well
EXACT = {"dist": 1e-10, "pos": 1e-6, "frame": 1e-5}
STEP = 1e-6  # of finite differences


def numbers(values) -> str:
    return " ".join(map(repr, np.ravel(values).tolist()))


def faced(name: str, point: np.ndarray) -> str:
    """A mesh with faces; without them it would be given a hull."""
    face = ConvexHull(point).simplices
    normal = np.cross(point[face[:, 1]] - point[face[:, 0]], point[face[:, 2]] - point[face[:, 0]])
    inward = np.einsum("ij,ij->i", normal, point[face[:, 0]] - point.mean(axis=0)) < 0
    face[inward] = face[inward][:, ::-1]
    return (
        f'<mesh name="{name}" vertex="{numbers(point)}" face="{" ".join(map(str, face.ravel()))}"/>'
    )


@cache
def oracle(kinds: tuple[str, ...] = tuple(KINDS)) -> mujoco.MjModel:
    """Two pairs of each kind and a mesh without hull, which comes first in the one, second in the
    other; every pair stands alone, and may touch itself only."""
    pairs = []
    for kind in kinds:
        shape = KINDS[kind]
        joint = "" if kind in FIXED else "<freejoint/>"
        other = f'<body><geom {shape} margin=".01"/>{joint}</body>'
        bare = f'<body><freejoint/><geom {BARE} margin=".01"/></body>'
        pairs += [bare + other, other + bare]
    heights = np.random.default_rng(1).uniform(size=25)
    mj = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="200"/><asset>
        {faced("pebble", PEBBLE)}{faced("block", BLOCK)}{faced("shard", SHARD)}
        <hfield name="land" nrow="5" ncol="5" size=".3 .3 .1 .05" elevation="{numbers(heights)}"/>
        </asset><worldbody>{"".join(pairs)}</worldbody></mujoco>"""
    )
    for geom in range(mj.ngeom):  # each is alone on its body
        bit = 1 << geom // 2
        mj.geom_contype[geom] = mj.geom_conaffinity[geom] = bit
        mj.body_contype[geom + 1] = mj.body_conaffinity[geom + 1] = bit
    return mj


def states(mj: mujoco.MjModel, number: int) -> list[mujoco.MjData]:
    """The bodies of each pair near each other, turned at random."""
    rng, found = np.random.default_rng(0), []
    for _ in range(number):
        d = mujoco.MjData(mj)
        turn = rng.normal(size=(mj.nq // 7, 4))
        place = rng.normal(size=(mj.nq // 7, 3)) * 0.08
        d.qpos[:] = np.c_[place, turn / np.linalg.norm(turn, axis=1)[:, None]].ravel()
        mujoco.mj_forward(mj, d)
        found.append(d)
    return found


@cache
def touching(kinds: tuple[str, ...]) -> mujoco.MjModel:
    """The model of all kinds, of whose pairs those of some kinds alone may touch."""
    mj = copy.copy(oracle())
    for number, kind in enumerate(KINDS):
        if kind not in kinds:
            first = 4 * number  # two geoms in each of two orders
            mj.geom_contype[first : first + 4] = mj.geom_conaffinity[first : first + 4] = 0
            mj.body_contype[first + 1 : first + 5] = mj.body_conaffinity[first + 1 : first + 5] = 0
    return mj


@cache
def model() -> jaxsim.Model:
    return put_model(oracle())


def test_nothing_is_refused():
    m = model()
    assert not m.unsupported
    assert sum(m.structure.geom_hullid >= 0) == 2


@pytest.mark.parametrize(
    "kinds",
    [("sphere", "box", "bare", "plane"), pytest.param(tuple(KINDS), marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_contacts_equal_the_oracle(kinds):
    """Every kind, in both orders: equal numbers of contacts in equal positions."""
    mj = touching(kinds)
    m = put_model(mj)
    find = jax.jit(lambda d: pack_record(collision(unpack_record(m, 0), unpack_record(d, 0)), d))
    seen = np.zeros(mj.ngeom // 2, int)
    for state in states(mj, 30):
        d = data(mj, state)
        contact = jax.tree.map(lambda a: jnp.zeros((m.ncontact, *a.shape[1:]), a.dtype), d.contact)
        d = find(d.replace(contact=contact))
        assert d.ncon == state.ncon
        np.testing.assert_array_equal(d.contact.geom[: state.ncon], state.contact.geom)
        # deep in each other ellipsoids are approached by polyhedra, by both of us
        exact = mj.geom_type[state.contact.geom[:, 0]] != mujoco.mjtGeom.mjGEOM_ELLIPSOID
        exact &= mj.geom_type[state.contact.geom[:, 1]] != mujoco.mjtGeom.mjGEOM_ELLIPSOID
        for name, tolerance in EXACT.items():
            mine, theirs = getattr(d.contact, name)[: state.ncon], getattr(state.contact, name)
            off = (
                np.abs(np.reshape(mine, theirs.shape) - theirs).reshape(state.ncon, -1).max(axis=1)
            )
            assert off[exact].max() < tolerance
            assert np.median(off) < 1e-9 if name == "dist" else off.max() < 0.1
        np.add.at(seen, state.contact.geom[:, 0] // 2, 1)
    assert (seen[[kind in kinds for kind in KINDS for _ in range(2)]] > 5).all()
    assert (seen[-2:] <= 30).all()  # over a plane the lowest vertex alone


@pytest.mark.slow
def test_contacts_carry_derivatives():
    """Backwards, along a random way of all bodies: what finite differences say."""
    mj = oracle(("box", "hull"))
    m, rng = put_model(mj), np.random.default_rng(2)
    d, weight = jaxsim.make_data(m, keep=[jaxsim.stages.collision]), jnp.asarray(rng.normal(size=3))

    @jax.jit
    @jax.value_and_grad
    def felt(qpos):
        c = jaxsim.stages.collision(m, jaxsim.stages.kinematics(m, d.replace(qpos=qpos))).contact
        there = c.dist < NO_CONTACT_DISTANCE
        return jnp.sum(jnp.where(there, c.dist + c.pos @ weight, 0.0))

    ends = np.zeros((2, mj.nq))
    for state in states(mj, 4):
        assert state.ncon
        way = rng.normal(size=mj.nv)
        for sign, end in zip((1, -1), ends, strict=True):
            end[:] = state.qpos
            mujoco.mj_integratePos(mj, end, sign * way, STEP)
        change = (ends[0] - ends[1]) / (2 * STEP)
        above, below = (felt(jnp.asarray(end))[0] for end in ends)
        slope = felt(jnp.asarray(state.qpos))[1] @ change
        np.testing.assert_allclose(slope, (above - below) / (2 * STEP), **ROUGH_DIFFERENCE)


@pytest.mark.slow
def test_worlds_are_a_loop():
    mj = oracle(("box", "bare", "plane"))

    def places(m, d):  # contacts of one world may have other slots than those of several
        touch = collision(m, d).found.contacts
        points = (
            jnp.sum(jnp.where(touch.dist < NO_CONTACT_DISTANCE, x, 0), axis=0)
            for x in touch.pos.parts
        )
        return jnp.sort(touch.dist, axis=0), *points

    assert_worlds_are_a_loop(places, mj, states(mj, 3), ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_the_farthest_vertex_is_that_of_a_search(dtype):
    """A mesh of several blocks, one of a part of a block, and one with a hull."""
    mj, m = oracle(), model()
    h = jax.tree.map(
        lambda x: x.astype(dtype) if x.dtype == float else x, hulls(unpack_record(m, 0))
    )
    meshes = np.flatnonzero(mj.geom_type == mujoco.mjtGeom.mjGEOM_MESH)
    geom = np.resize(meshes, 500)
    d = np.random.default_rng(2).normal(size=(500, 3))
    vertex = jax.jit(lambda g, d: hull_support(h, hull_of(h, g), d))(
        jnp.asarray(geom, jnp.int32), Vec(*jnp.asarray(d, dtype).T)
    )
    assert vertex.dtype == jnp.int32
    kinds = set()
    for g, way, found in zip(geom, d, np.asarray(h.tables.mesh_row[vertex]), strict=True):
        mesh = mj.geom_dataid[g]
        first, number = mj.mesh_vertadr[mesh], mj.mesh_vertnum[mesh]
        reach = mj.mesh_vert[first : first + number] @ way
        assert first <= found < first + number
        np.testing.assert_allclose(mj.mesh_vert[found] @ way, reach.max(), rtol=1e-5)
        kinds.add(mesh)
    assert kinds == {0, 1, 2}


@cache
def drawn() -> mujoco.MjModel:
    """Two geoms of each kind, which nothing can touch."""
    bodies = "".join(
        f'<body name="{kind}{n}">{"" if kind in FIXED else "<freejoint/>"}<geom {shape}/></body>'
        for kind, shape in KINDS.items()
        for n in (1, 2)
    )
    off = bodies.replace('contype="0" conaffinity="0"', "").replace(
        "<geom", '<geom contype="0" conaffinity="0"'
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="200"/><asset>
        {faced("block", BLOCK)}{faced("shard", SHARD)}
        <hfield name="land" nrow="5" ncol="5" size=".3 .3 .1 .05"/></asset>
        <worldbody>{off}</worldbody></mujoco>"""
    )


@pytest.mark.slow
def test_distances_equal_the_oracle():
    """In both orders, of meshes that are only drawn: which is what most of them are."""
    mj = drawn()
    assert (mj.mesh_graphadr == -1).all()
    m, rng = put_model(mj), np.random.default_rng(3)
    assert not m.unsupported
    rows = []
    for other in range(0, mj.ngeom, 2):
        for pair in ((other, 13), (13, other)):
            for _ in range(6):
                turn = rng.normal(size=(mj.nq // 7, 4))
                place = rng.normal(size=(mj.nq // 7, 3)) * 0.2
                qpos = np.c_[place, turn / np.linalg.norm(turn, axis=1)[:, None]].ravel()
                d, fromto = mujoco.MjData(mj), np.zeros(6)
                d.qpos[:] = qpos
                mujoco.mj_kinematics(mj, d)
                dist = mujoco.mj_geomDistance(mj, d, *pair, 1.0, fromto)
                rows.append((qpos, *pair, np.r_[dist, fromto]))
    qpos, a, b, expected = (np.array(x) for x in zip(*rows, strict=True))

    def measured(m, qpos, a, b):
        dist, fromto = jaxsim.support.geom_distance(
            m, jaxsim.make_data(m).replace(qpos=qpos), a, b, 1.0
        )
        return jnp.concatenate([dist[None], fromto])

    @jax.jit
    def along(m, qpos, way, a, b):
        return jax.vmap(lambda q, w, a, b: jax.jvp(lambda q: measured(m, q, a, b), (q,), (w,)))(
            qpos, way, a, b
        )

    way = rng.normal(size=(len(qpos), mj.nv))
    moved = np.zeros((2, *qpos.shape))
    for k, q in enumerate(qpos):
        for sign, out in zip((1, -1), moved, strict=True):
            out[k] = q
            mujoco.mj_integratePos(mj, out[k], sign * way[k], STEP)
    change = (moved[0] - moved[1]) / (2 * STEP)
    found, slope = (np.asarray(x) for x in along(m, qpos, change, a, b))
    # inside each other round shapes are approached by polyhedra, by both of us
    both = mj.geom_type[[a, b]]
    exact = (expected[:, 0] > 0) | ~np.isin(both, ROUND).any(axis=0)
    assert exact.mean() > 0.9
    assert (expected[:, 0] < 0).sum() > 5
    assert (expected[:, 0] == 1).sum() < 5
    np.testing.assert_allclose(found[:, 0], expected[:, 0], **CONTACT)
    np.testing.assert_allclose(found[exact], expected[exact], rtol=0, atol=1e-6)
    above, below = (np.asarray(along(m, q, change, a, b)[0]) for q in moved)
    np.testing.assert_allclose((above - below)[:, 0] / (2 * STEP), slope[:, 0], **ROUGH_DIFFERENCE)
