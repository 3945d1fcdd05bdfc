"""Distances of two geoms against MuJoCo's, for all kinds of convex geoms and planes."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
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
def oracle(box: str = KINDS["box"], kinds: tuple[str, ...] = tuple(KINDS)) -> mujoco.MjModel:
    """A plane, and two free bodies for each kind, whose geoms are off their origins."""
    shapes = KINDS | {"box": box}
    bodies = "".join(
        f'<body><freejoint/><geom name="{kind}{n}" {shape} pos=".05 .1 -.02" euler="10 20 30"/>'
        "</body>"
        for n in (1, 2)
        for kind, shape in ((kind, shapes[kind]) for kind in kinds)
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
    dist, fromto = jaxsim.support.geom_distance(m, d, geom1, geom2, distmax)
    return jnp.concatenate([dist[None], fromto])


one = jax.jit(numbers)
many = jax.jit(jax.vmap(numbers, (None, 0, 0, 0, None)))


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
    """Return our results for `drawn`."""
    qpos, a, b, _ = drawn()
    return np.asarray(many(put_model(oracle()), qpos, a, b, DISTMAX))


def test_a_few_kinds_equal_the_oracle():
    """A formula, a search and a mesh, by numbers that are traced."""
    kinds = ("sphere", "box", "mesh")
    mj, rng = oracle(kinds=kinds), np.random.default_rng(3)
    pairs = [
        [mj.geom(f"{kind}{n}").id for kind, n in ((a, 1), (b, 2))] for a in kinds for b in kinds
    ]
    qpos = np.array([random_qpos(mj, rng, (0.15, 0.3, 0.6)[k % 3]) for k in range(45)])
    a, b = np.array(pairs * 5).T
    m = put_model(mj)
    mine = np.asarray(many(m, qpos, a, b, DISTMAX))
    expected = [measured(mj, *row, DISTMAX) for row in zip(qpos, a, b, strict=True)]
    np.testing.assert_allclose(mine[:, 0], np.array(expected)[:, 0], **CONTACT)
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-6)
    near = mine[:, 0] < 0
    assert 5 < near.sum() < 40
    # the segment has the length of the distance, and goes from the first geom to the second
    length = np.linalg.norm(mine[:, 4:] - mine[:, 1:4], axis=1)
    np.testing.assert_allclose(length, np.abs(mine[:, 0]), **ROUNDING)
    back = np.asarray(many(m, qpos, b, a, DISTMAX))[:, [0, 4, 5, 6, 1, 2, 3]]
    np.testing.assert_allclose(back, mine, rtol=0, atol=1e-5)
    # beyond the limit there is none
    limited = np.asarray(many(m, qpos, a, b, 0.0))
    np.testing.assert_allclose(limited[near], mine[near], rtol=0, atol=1e-6)
    assert not limited[~near].any()


@pytest.mark.slow
def test_distances_equal_the_oracle():
    """All kinds, in both orders; separate and inside each other."""
    _, a, b, expected = drawn()
    mine = found()
    mj = oracle()
    round_ = np.array([not is_flat(mj, *pair) for pair in zip(a, b, strict=True)])
    inside = expected[:, 0] < 0
    assert 200 < inside.sum() < 600
    assert (expected[:, 0] == DISTMAX).sum() > 5
    # inside each other round shapes are approached by polyhedra, by both of us, and two ways out
    # of nearly the same length may be taken for each other
    exact = ~(round_ & inside)
    np.testing.assert_allclose(mine[exact, 0], expected[exact, 0], **CONTACT)
    np.testing.assert_allclose(mine[:, 0], expected[:, 0], rtol=2e-3)
    same = np.isclose(mine[:, 0], expected[:, 0], **STORED_SINGLE)
    assert same.mean() > 0.995
    # a point is known to the root of what a distance is known to
    np.testing.assert_allclose(mine[exact], expected[exact], rtol=0, atol=1e-6)
    off = np.abs(mine - expected).max(axis=1)
    assert off[same].max() < 1e-5


def is_flat(mj, geom1: int, geom2: int) -> bool:
    """The depth of these two is that of a polyhedron, or follows from one formula."""
    kinds = {mujoco.mjtGeom(mj.geom_type[g]).name[7:] for g in (geom1, geom2)}
    return "PLANE" in kinds or not kinds & {"ELLIPSOID", "CYLINDER"}


@pytest.mark.slow
def test_the_segment_has_the_length_of_the_distance():
    mine = found()
    near = mine[:, 0] < DISTMAX
    length = np.linalg.norm(mine[:, 4:] - mine[:, 1:4], axis=1)
    np.testing.assert_allclose(length[near], np.abs(mine[near, 0]), **ROUNDING)
    assert not mine[~near, 1:].any()


@pytest.mark.slow
def test_order_is_that_asked():
    """Geoms exchanged, the points are; polyhedra and round shapes alike."""
    qpos, a, b, _ = drawn()
    mine = found()
    back = np.asarray(many(put_model(oracle()), qpos, b, a, DISTMAX))
    off = np.abs(back[:, [0, 4, 5, 6, 1, 2, 3]] - mine)
    # for a deep ellipsoid or cylinder the search may end near the least depth
    assert off[:, 0].max() < 1e-3
    assert (off[:, 0] < 1e-9).mean() > 0.99
    assert (off.max(axis=1) < 1e-5).mean() > 0.99


@pytest.mark.slow
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


@pytest.mark.slow
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
    dist, fromto = jax.jit(lambda d: jaxsim.support.geom_distance(m, d, *names, DISTMAX))(d)
    assert dist.shape == ()
    np.testing.assert_allclose(np.r_[dist, fromto], mine[k], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_single_precision():
    qpos, a, b, _ = drawn()
    m, mine = single(put_model(oracle())), found()
    rough = many(m, jnp.asarray(qpos, jnp.float32), a, b, jnp.float32(DISTMAX))
    assert rough.dtype == np.float32
    rough = np.asarray(rough)
    assert np.isfinite(rough).all()
    np.testing.assert_allclose(rough[:, 0], mine[:, 0], rtol=2e-3, atol=FLOAT32["atol"])
    assert np.isclose(rough[:, 0], mine[:, 0], **FLOAT32).mean() > 0.995
    off = np.abs(rough - mine).max(axis=1)
    assert (off < 1e-3).mean() > 0.97


@pytest.mark.slow
def test_derivatives():
    """Forward and reverse mode are what central differences are, where these are smooth."""
    m, rng = put_model(oracle()), np.random.default_rng(1)
    qpos, a, b, expected = drawn()
    way = rng.normal(size=(len(a), m.nv))
    ahead, behind = {}, {}
    for side, sign in ((ahead, 1), (behind, -1)):
        for step in (STEP, STEP / 2):
            moved = np.stack(
                [integrated(q, sign * step * w) for q, w in zip(qpos, way, strict=True)]
            )
            side[step] = np.asarray(many(m, moved, a, b, DISTMAX))
    coarse, fine = ((ahead[s] - behind[s]) / (2 * s) for s in (STEP, STEP / 2))
    tangent = np.stack(
        [
            (integrated(q, STEP * w) - integrated(q, -STEP * w)) / (2 * STEP)
            for q, w in zip(qpos, way, strict=True)
        ]
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


def put(qpos: np.ndarray, geom: int, pos: np.ndarray, mat: np.ndarray) -> None:
    """Moves a body so that its geom gets a pose."""
    mj = oracle()
    at, own = 7 * (mj.geom_bodyid[geom] - 1), np.zeros(9)
    mujoco.mju_quat2Mat(own, mj.geom_quat[geom])
    body = mat @ own.reshape(3, 3).T
    qpos[at : at + 3] = pos - body @ mj.geom_pos[geom]
    mujoco.mju_mat2Quat(qpos[at + 3 : at + 7], body.ravel())


def aligned():
    """All kinds with equal axes: centers together, inside each other, touching, and apart along z.

    Returns:
      Positions, geoms, velocities that part them along z, and how far they are apart.
    """
    mj = oracle()
    _, first, second, _ = drawn()
    d, rows = mujoco.MjData(mj), []
    mujoco.mj_kinematics(mj, d)
    plane = mj.geom("plane").id
    for a, b in zip(first[::20], second[::20], strict=True):
        moving, held = (a, b) if b == plane else (b, a)
        half = sum(mj.geom_aabb[g, 5] for g in (a, b) if g != plane)
        for gap in (-half, -0.05, 0.0, 0.1):
            qpos, way = mj.qpos0.copy(), np.zeros(mj.nq)
            mat = d.geom_xmat[held].reshape(3, 3)
            put(qpos, moving, d.geom_xpos[held] + (half + gap) * mat[:, 2], mat)
            at = 7 * (mj.geom_bodyid[moving] - 1)
            way[at : at + 3] = mat[:, 2]
            rows.append((qpos, a, b, way, gap))
    return [np.array(x) for x in zip(*rows, strict=True)]


@pytest.mark.slow
def test_derivatives_are_finite_where_geoms_are_aligned():
    """Coincident centers, parallel faces, exact touching: no NaN, and the slope along z is one."""
    mj = oracle()
    qpos, a, b, way, gap = aligned()
    weight = np.random.default_rng(2).normal(size=(len(a), 7))
    out, forward, back = slopes(put_model(mj), qpos, way, a, b, weight)
    for value in (out, forward, back):
        assert np.isfinite(value).all()
    # the bounding box of the mesh is not its extent along z at its center
    mesh = int(mujoco.mjtGeom.mjGEOM_MESH)
    known = (mj.geom_type[a] != mesh) & (mj.geom_type[b] != mesh) & (gap > -0.01)
    np.testing.assert_allclose(out[known, 0], gap[known], **ROUNDING)
    apart = known & (gap > 0)
    np.testing.assert_allclose(forward[apart, 0], 1.0, **ROUNDING)


FIELD = """<mujoco><asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>
<mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1" face="0 1 2 0 3 1 0 2 3 1 3 2"/></asset>
<worldbody>{}<geom name="floor" type="plane" size="1 1 1" contype="0"/>
<geom name="drawn" type="mesh" mesh="t" contype="0" conaffinity="0"/>
<body name="b"><geom name="ball" size=".1" contype="0"/></body></worldbody>
<sensor>{}</sensor></mujoco>"""
LAND = '<geom name="land" type="hfield" hfield="h" contype="0" conaffinity="0"/>'


@pytest.mark.slow
def test_what_has_no_distance_is_named():
    m = jaxsim.load_model(FIELD.format(LAND, ""))
    d = jaxsim.make_data(m)
    with pytest.raises(ValueError, match="no geom is named 'bal'; did you mean 'ball'"):
        jaxsim.support.geom_distance(m, d, "bal", "floor", 1.0)
    with pytest.raises(ValueError, match="geom2: there is no geom 4; the model has 4"):
        jaxsim.support.geom_distance(m, d, 0, 4, 1.0)
    with pytest.raises(ValueError, match="distmax: expected shape"):
        jaxsim.support.geom_distance(m, d, "ball", "floor", jnp.ones(2))
    # between unbounded geoms there is none, in MuJoCo too
    dist, fromto = jaxsim.support.geom_distance(m, d, "floor", "land", 1.0)
    assert dist == 1.0
    assert not fromto.any()


def test_what_a_plugin_would_measure_is_refused_without_it(refused):
    plugin = '<plugin plugin="mujoco.sdf.torus"/>'
    xml = f"""<mujoco><extension>{plugin}</extension>
      <asset><mesh name="ring">{plugin}</mesh></asset>
      <worldbody><geom name="ring" type="sdf" mesh="ring" contype="0" conaffinity="0"/>
      <body pos=".3 0 .05"><freejoint/><geom name="ball" size=".1"/></body></worldbody>
      <sensor>{{}}</sensor></mujoco>"""
    m = jaxsim.load_model(xml.format(""))
    d = jaxsim.make_data(m)
    with pytest.raises(ValueError, match=r"the distance of geom 'ring'.* is not supported$"):
        jaxsim.support.geom_distance(m, d, "ring", "ball", 1.0)
    with pytest.raises(ValueError, match=r"'ring'.*give both geoms by name"):
        jax.jit(jaxsim.support.geom_distance)(m, d, 0, 1, 1.0)
    sensor = '<distance geom1="ball" geom2="ring"/>'
    (message,) = refused(lambda: jaxsim.load_model(xml.format(sensor)))
    assert "sensor 0: the distance of geom 'ring'" in message


@pytest.mark.slow
def test_sensors_measure_meshes_that_are_only_drawn():
    """They have no hull."""
    xml = FIELD.format(
        "",
        '<distance geom1="ball" geom2="drawn" cutoff="3"/><fromto geom1="drawn" geom2="floor"/>'
        '<fromto geom1="drawn" body2="b" cutoff="3"/><normal body1="b" body2="world" cutoff="3"/>',
    ).replace('<body name="b">', '<body name="b" pos="-.5 -.4 1">')
    mj = mujoco.MjModel.from_xml_string(xml)
    assert (mj.mesh_graphadr == -1).all()
    state = mujoco.MjData(mj)
    mujoco.mj_forward(mj, state)
    m = jaxsim.load_model(xml)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    np.testing.assert_allclose(d.sensordata, state.sensordata, rtol=0, atol=1e-6)
    assert np.count_nonzero(state.sensordata) > 8
