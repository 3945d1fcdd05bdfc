"""The collider of any two convex shapes: against the oracle, by laws, and its derivatives.

All kinds of pairs are in one model and one call, so that one program serves all tests.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.oracle import unpack

import jaxsim
from jaxsim.enums import GeomType
from jaxsim.math import Quat, Rot, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.candidates.table import COLLIDERS
from jaxsim.physics.collision.convex.convex import convex_convex
from jaxsim.physics.collision.convex.solid import convex_assets
from jaxsim.physics.collision.shape import PlacedGeoms

CLOSE = 3e-5  # of curved shapes that just touch, where the search is ill-conditioned: 1e-4 of size
FAR = 5.0  # more than any two shapes are apart
REACH = 0.02  # how far contacts are found; the margin of the oracle's geoms together
SHAPES = {
    "ball": 'type="sphere" size=".15"',
    "capsule": 'type="capsule" size=".1 .2"',
    "egg": 'type="ellipsoid" size=".1 .2 .15"',
    "can": 'type="cylinder" size=".15 .2"',
    "box": 'type="box" size=".15 .2 .1"',
    "wedge": 'type="mesh" mesh="wedge"',
    "gem": 'type="mesh" mesh="gem"',
}


def _mesh(name, points):
    return f'<mesh name="{name}" vertex="{" ".join(f"{x:.5f}" for x in np.ravel(points))}"/>'


def _gem():
    points = np.random.default_rng(5).normal(size=(40, 3))
    return 0.2 * points / np.linalg.norm(points, axis=1)[:, None] * [1, 0.8, 0.6]


WEDGE = [(0.2, 0, 0.1), (-0.2, 0, 0.1), (0.2, 0.2, -0.1), (-0.2, 0.2, -0.1), (0.2, -0.2, -0.1)]
WEDGE += [(-0.2, -0.2, -0.1)]


@functools.cache
def _models():
    bodies = "".join(
        f'<body><freejoint/><geom name="{name}" margin="{REACH / 2}" {shape}/></body>'
        for name, shape in SHAPES.items()
    )
    xml = f"""<mujoco><option ccd_tolerance="1e-12"/><asset>{_mesh("wedge", WEDGE)}
      {_mesh("gem", _gem())}</asset><worldbody>{bodies}</worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.ccd_iterations = 1000
    return mj, jaxsim.load_model(xml)


class Poses(NamedTuple):
    """Pairs of geoms placed at random, `[n]`, with the oracle's contacts of each."""

    a: PlacedGeoms
    b: PlacedGeoms
    kinds: list[tuple[int, int]]
    dist: np.ndarray  # mj_geomDistance
    contacts: list[np.ndarray]  # distances


def _pairs():
    mj, _ = _models()
    kinds = mj.geom_type
    found = ((i, j) for i in range(mj.ngeom) for j in range(mj.ngeom) if i != j)
    convex = {kind for kind, row in COLLIDERS.items() if row.collide is convex_convex}
    return [(i, j) for i, j in found if (kinds[i], kinds[j]) in convex and (i < j or i > 3)]


@functools.cache
def _draw(seed: int, each: int, aligned: bool = False) -> Poses:
    mj, _ = _models()
    d = mujoco.MjData(mj)
    rng = np.random.default_rng(seed)
    rows, dist, contacts, kinds = [], [], [], []
    for i, j in _pairs():
        i, j = (i, j) if i < j else (j, i)
        for _ in range(each):
            d.qpos[:] = mj.qpos0
            for k in range(mj.ngeom):
                d.qpos[7 * k : 7 * k + 3] = 10.0 + 2 * k  # out of the way
            quat = _unit(rng.normal(size=4))
            away = _unit(rng.normal(size=3)) * rng.choice([0.15, 0.25, 0.3, 0.4])
            other = _near(quat, rng) if aligned else _unit(rng.normal(size=4))
            start = rng.normal(size=3)
            d.qpos[7 * i : 7 * i + 7] = np.r_[start, quat]
            d.qpos[7 * j : 7 * j + 7] = np.r_[start + away, other]
            mujoco.mj_forward(mj, d)
            rows.append((d.geom_xpos[[i, j]].copy(), d.geom_xmat[[i, j]].copy(), (i, j)))
            dist.append(mujoco.mj_geomDistance(mj, d, i, j, 5.0, None))
            contacts.append(np.sort(d.contact.dist[: d.ncon]).copy())
            kinds.append((mj.geom_type[i], mj.geom_type[j]))
    pos, mat, ids = (np.array(x) for x in zip(*rows, strict=True))
    a, b = (
        PlacedGeoms(
            Vec(*jnp.asarray(pos[:, g].T)),
            Rot(*jnp.asarray(mat[:, g].T)),
            Vec(*jnp.asarray(mj.geom_size[ids[:, g]].T)),
            jnp.asarray(ids[:, g], jnp.int32),
        )
        for g in (0, 1)
    )
    return Poses(a, b, kinds, np.array(dist), contacts)


def _unit(v):
    return v / np.linalg.norm(v)


def _near(quat, rng):
    """Return an orientation at right angles to `quat`, with a small rotation."""
    out = quat.copy()
    for axis in np.eye(3)[rng.integers(3, size=2)]:
        half = rng.integers(4) * np.pi / 4
        mujoco.mju_mulQuat(out, out.copy(), np.r_[np.cos(half), np.sin(half) * axis])
    mujoco.mju_quatIntegrate(out, rng.normal(size=3), rng.choice([1e-4, 1e-2]))
    return out


def _assets():
    _, m = _models()
    return convex_assets(unpack(m, 0))


@functools.cache
def _collide():
    given = _assets()
    return jax.jit(
        lambda a, b, reach: convex_convex(a, b, given, reach), compiler_options=OPTIMIZED
    )


def _run(a, b):
    return _collide()(a, b, jnp.full(a.pos.x.shape, REACH, a.pos.x.dtype))


class Deepest(NamedTuple):
    """The deepest contact of each pair: its distance, position and normal."""

    dist: np.ndarray
    pos: Vec
    normal: Vec


def _deepest(a, b) -> Deepest:
    """Found by the program that also computes derivatives, at no displacement."""
    still = jnp.zeros((6, a.pos.x.shape[0]))
    numbers, _ = _outputs(points=False, far=FAR)(still, still, a, b)
    dist, *rest = numbers.reshape(7, -1, numbers.shape[-1])[:, 0]
    return Deepest(np.asarray(dist), Vec(*rest[:3]), Vec(*rest[3:]))


@pytest.fixture(scope="module")
def random():
    return _draw(1, 12)


def test_the_distance_equals_that_of_mujoco(random):
    """Apart it is exact; inside it is where the oracle's own search of the depth is exact, too."""
    difference = _deepest(random.a, random.b).dist - random.dist
    apart = random.dist > 0
    assert 50 < apart.sum() < len(apart) - 50
    assert np.abs(difference[apart]).max() < 1e-6
    curved = {GeomType.ELLIPSOID, GeomType.CYLINDER}
    smooth = np.array([bool(curved & set(k)) for k in random.kinds])
    assert np.abs(difference[~apart & ~smooth]).max() < 1e-9
    # of curved shapes far inside each other another of several ways out may be found
    assert np.mean(np.abs(difference[~apart & smooth]) < 1e-6) > 0.94


@pytest.mark.slow
@pytest.mark.parametrize("aligned", [False, True])
def test_contacts_equal_the_oracle(aligned):
    """Number and distances; benchmarks/collision_sweep.py measures the differences in detail."""
    poses = _draw(2, 12, aligned)
    touch = _run(poses.a, poses.b)
    dist = np.sort(np.asarray(touch.dist), axis=0)
    good, total = 0, 0
    for k, expected in enumerate(poses.contacts):
        mine = dist[:, k][dist[:, k] < REACH]
        total += 1
        good += len(mine) == len(expected) and np.allclose(mine, expected, rtol=0, atol=1e-5)
    assert sum(len(c) > 1 for c in poses.contacts) > 20
    assert good / total > (0.9 if aligned else 0.95)


def test_moving_by_the_depth_parts_the_shapes(random):
    """Moved along the normal by its distance, either way, the second shape just touches."""
    touch = _deepest(random.a, random.b)
    moved = random.b._replace(pos=random.b.pos - touch.normal.scale(touch.dist))
    again = _deepest(random.a, moved).dist
    assert np.abs(again).max() < CLOSE
    assert np.mean(np.abs(again) < 1e-9) > 0.95


def test_the_point_is_midway_between_the_surfaces(random):
    """Half the distance along the normal lead from the point to both surfaces."""
    touch = _deepest(random.a, random.b)
    half = touch.normal.scale(0.5 * touch.dist)
    zero = jnp.zeros_like(random.a.size.x)
    # a point is a sphere without size; as the second shape its number is that of the ball
    for shape, at in ((random.a, touch.pos - half), (random.b, touch.pos + half)):
        point = PlacedGeoms(at, shape.rot, Vec(zero, zero, zero), jnp.zeros_like(shape.id))
        gap = _deepest(point, shape).dist
        round_ = np.asarray(shape.id) == 0
        assert np.mean(np.abs(gap[~round_]) < CLOSE) > 0.98


def _moved(b, x):
    turn = Quat.from_rotation_vector(Vec(*x[3:])).matrix()
    return b._replace(pos=b.pos + Vec(*x[:3]), rot=turn @ b.rot)


@functools.cache
def _outputs(points: bool, far: float):
    """Distances, positions and normals of moved shapes, `[7 k, n]`, and derivatives along a way."""
    given = dataclasses.replace(_assets(), patches=points)

    def out(x, a, b):
        t = convex_convex(a, _moved(b, x), given, jnp.full(a.pos.x.shape, far))
        parts = [t.dist, *t.pos.parts, *t.normal.parts]  # where there is no contact they are free
        return jnp.concatenate([jnp.where(t.dist < NO_CONTACT_DISTANCE, p, 0) for p in parts])

    return jax.jit(lambda x, way, a, b: jax.jvp(lambda x: out(x, a, b), (x,), (way,)))


def test_derivatives_equal_differences(random):
    """Derivatives of distance, position and normal, where differences of two step sizes agree."""
    exact, fine, smooth = _slopes(random, points=False, far=FAR)
    assert smooth.mean() > 0.7
    assert np.mean(np.abs(exact - fine)[0, smooth] < 1e-5) > 0.99
    off = np.abs(exact - fine)[:, smooth].max(axis=0)
    assert np.mean(off < 1e-3) > 0.98


@pytest.mark.slow
def test_derivatives_of_flat_contacts_equal_differences():
    """Derivatives of all contact points."""
    poses = _draw(2, 12, aligned=True)
    exact, fine, smooth = _slopes(poses, points=True, far=REACH)
    several = (np.asarray(_run(poses.a, poses.b).dist) < REACH).sum(axis=0) > 1
    assert (several & smooth).sum() > 20
    off = np.abs(exact - fine)[:, smooth & several].max(axis=0)
    assert np.mean(off < 1e-4) > 0.95


def _slopes(poses: Poses, points: bool, far: float):
    """Derivatives and differences along random ways, `[.., n]`, and where those are smooth."""
    both = _outputs(points, far)
    way = jnp.asarray(np.random.default_rng(0).normal(size=(6, len(poses.dist))))

    def at(step):
        return [np.asarray(x) for x in both(step * way, way, poses.a, poses.b)]

    _, exact = at(0.0)

    def differences(step):
        (ahead, _), (behind, _) = at(step), at(-step)
        return (ahead - behind) / (2 * step)

    coarse, fine = differences(2e-5), differences(1e-5)
    return exact, fine, np.abs(coarse - fine).max(axis=0) < 1e-4


@pytest.mark.slow
def test_reverse_mode_is_finite_at_singular_placements():
    """Coinciding centers, parallel faces, exact touching: no NaN in values or derivatives."""
    _, m = _models()
    given = _assets()
    pairs = [(min(p), max(p)) for p in _pairs()]
    ids = np.array(pairs * 3, np.int32)
    n = len(ids)
    offset = np.zeros((n, 3))
    offset[len(pairs) : 2 * len(pairs), 2] = 0.3
    offset[2 * len(pairs) :, 0] = 0.35
    eye = jnp.asarray(np.tile(np.eye(3).ravel(), (n, 1)).T)
    size = np.asarray(m.geom_size)

    def total(offset, size1, size2):
        zero = jnp.zeros(n)
        a = PlacedGeoms(Vec(zero, zero, zero), Rot(*eye), Vec(*size1.T), jnp.asarray(ids[:, 0]))
        b = PlacedGeoms(Vec(*offset.T), Rot(*eye), Vec(*size2.T), jnp.asarray(ids[:, 1]))
        t = convex_convex(a, b, given, jnp.full(n, 5.0))
        parts = [t.dist, *t.pos.parts, *t.normal.parts]
        return sum(jnp.sum(jnp.where(t.dist < NO_CONTACT_DISTANCE, p, 0)) for p in parts)

    gradient = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))
    value, parts = gradient(jnp.asarray(offset), *(jnp.asarray(size[ids[:, k]]) for k in (0, 1)))
    assert np.isfinite(value)
    assert all(np.isfinite(p).all() for p in parts)


@pytest.mark.slow
def test_worlds_last_and_single_precision(random):
    """`[n, worlds]` gives what each world gives; single precision stays close."""
    n = len(random.dist) // 4 * 4
    a, b = jax.tree.map(lambda x: x[:n], (random.a, random.b))
    flat = _run(a, b)
    last = _run(*jax.tree.map(lambda x: x.reshape(-1, 4), (a, b)))
    for x, y in zip(jax.tree.leaves(flat), jax.tree.leaves(last), strict=True):
        np.testing.assert_allclose(y.reshape(x.shape), x, rtol=0, atol=1e-12)
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, (a, b))
    given = jax.tree.map(
        lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, _assets()
    )
    touch = jax.jit(lambda a, b, r: convex_convex(a, b, given, r))(
        *single, jnp.full(n, REACH, jnp.float32)
    )
    assert touch.dist.dtype == jnp.float32
    deepest, other = (np.asarray(t.dist, float).min(axis=0) for t in (flat, touch))
    here = (deepest < 0.9 * REACH) & (other < NO_CONTACT_DISTANCE)
    assert here.sum() > 50
    assert np.mean(np.abs(deepest - other)[here] < 1e-4 * 0.3) > 0.97


@pytest.mark.slow
def test_worlds_have_vertices_of_their_own():
    """Meshes of another size in each world touch as they do in that world alone; the deepest
    contacts move with the size as finite differences say."""
    random, kinds = _draw(7, 2), (int(GeomType.BOX), int(GeomType.MESH))
    given = dataclasses.replace(_assets(), kinds=kinds)
    chosen = np.flatnonzero(np.isin(np.array(random.kinds), kinds).all(axis=1))
    pair = jax.tree.map(lambda x: x[chosen][:, None], (random.a, random.b))

    @functools.partial(jax.jit, compiler_options=OPTIMIZED)
    def both(scale, a, b):
        """Contacts, and how they change with the size."""

        def touches(scale):
            own = given.hulls.vertex.map(lambda x: x.reshape(-1, 1) * scale[None])
            normal = given.hulls.normal.map(lambda x: x.reshape(-1, 1))
            table = dataclasses.replace(given.hulls, vertex=own, normal=normal)
            table = dataclasses.replace(given, hulls=table)
            return convex_convex(a, b, table, jnp.full(a.pos.x.shape, 1.0))

        return jax.jvp(touches, (scale,), (jnp.ones_like(scale),))

    scale = np.array([1.0, 0.8, 1.3])
    many = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(chosen), len(scale))), pair)
    found = touch, change = both(jnp.asarray(scale), *many)
    for k, size in enumerate(scale):
        alone = both(jnp.asarray(size)[None], *pair)
        for here, there in zip(jax.tree.leaves(found), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(here[..., k : k + 1], there, rtol=0, atol=1e-12)
    step = 1e-6
    up, down = (both(jnp.asarray(scale + h), *many)[0].dist.min(axis=0) for h in (step, -step))
    deepest = jnp.argmin(touch.dist, axis=0)[None]
    rate = jnp.take_along_axis(change.dist, deepest, axis=0)[0]
    expected = np.asarray((up - down) / (2 * step))
    assert (np.abs(expected) > 0.01).mean() > 0.5
    np.testing.assert_allclose(rate, expected, rtol=1e-4, atol=1e-5)
