"""Nearest points of curved shapes in double precision: optimality conditions, and closed forms."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.convex.exact import Shape, sphere
from physics.oracle import unpack

import jaxsim
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.convex.convex import convex_convex
from jaxsim.physics.collision.convex.solid import convex_assets
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms

CYLINDERS = {"can": 'type="cylinder" size=".15 .2"', "coin": 'type="cylinder" size=".25 .1"'}
OTHERS = {
    "capsule": 'type="capsule" size=".1 .2"',
    "egg": 'type="ellipsoid" size=".1 .2 .15"',
    "box": 'type="box" size=".15 .2 .1"',
    "gem": 'type="mesh" mesh="gem"',
}
GAPS = (-0.1, -0.02, -0.003, 0.003, 0.05, 0.3)  # between two support planes
DIRECTIONS = sphere(4000)


def _models(shapes: dict[str, str]):
    point = np.random.default_rng(5).normal(size=(40, 3))
    point *= 0.2 * np.array([1, 0.8, 0.6]) / np.linalg.norm(point, axis=1)[:, None]
    mesh = f'<mesh name="gem" vertex="{" ".join(map(str, point.ravel()))}"/>'
    bodies = "".join(f"<body><freejoint/><geom {shape}/></body>" for shape in shapes.values())
    xml = f"<mujoco><asset>{mesh}</asset><worldbody>{bodies}</worldbody></mujoco>"
    return mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)


def _turn(quat: np.ndarray) -> np.ndarray:
    mat = np.zeros(9)
    mujoco.mju_quat2Mat(mat, quat / np.linalg.norm(quat))
    return mat.reshape(3, 3)


def _right_angles(rng) -> np.ndarray:
    quarter = [_turn(np.r_[1, axis]) for axis in np.eye(3)]
    return np.linalg.matrix_power(quarter[rng.integers(3)], rng.integers(4)).round()


def _draw(mj: mujoco.MjModel, each: int) -> list[tuple[Shape, Shape, int, int]]:
    """Pairs at random; at right angles; and tilted a little from that."""
    rng = np.random.default_rng(1)
    pairs = []
    for i in range(mj.ngeom):
        for j in range(i, mj.ngeom):
            for k in range(each):
                one, other = (_turn(rng.normal(size=4)) for _ in range(2))
                if k % 3:
                    one, other = np.eye(3), _right_angles(rng)
                if k % 3 == 2:
                    tilt = rng.normal(size=3) * rng.choice([1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
                    other = other @ _turn(np.r_[1, tilt])
                away = rng.normal(size=3)
                away[rng.integers(3)] *= k % 3 == 0 or rng.random() < 0.5
                away /= np.linalg.norm(away)
                a, b = Shape(mj, i, np.zeros(3), one), Shape(mj, j, np.zeros(3), other)
                reach = a.support(away[None])[0] + b.support(-away[None])[0]
                b.pos = away * (reach + rng.choice(GAPS))
                pairs.append((a, b, i, j))
    return pairs


def _touch(m: jaxsim.Model, pairs: list[tuple[Shape, Shape, int, int]]) -> ContactPoints:
    """The nearest points of all pairs."""

    def placed(shapes: list[Shape], ids: list[int]) -> PlacedGeoms:
        pos, mat, size = (
            jnp.asarray(np.array([getattr(s, name) for s in shapes]).reshape(len(shapes), -1).T)
            for name in ("pos", "mat", "size")
        )
        return PlacedGeoms(Vec(*pos), Rot(*mat), Vec(*size), jnp.asarray(ids, jnp.int32))

    one, other, i, j = (list(x) for x in zip(*pairs, strict=True))
    table = dataclasses.replace(convex_assets(unpack(m, 0)), patches=False)
    reach = jnp.full(len(pairs), 5.0)
    found = jax.jit(lambda a, b: convex_convex(a, b, table, reach))(
        placed(one, i), placed(other, j)
    )
    return jax.tree.map(lambda x: np.asarray(x[0]), found)


def _check(shapes: dict[str, str], each: int):
    mj, m = _models(shapes)
    pairs = _draw(mj, each)
    touch = _touch(m, pairs)
    pos, normal = (np.stack(v.parts, axis=-1) for v in (touch.pos, touch.normal))
    off, wrong = [], 0
    for (a, b, _, _), dist, x, n in zip(pairs, touch.dist, pos, normal, strict=True):
        half = 0.5 * dist * n
        wrong += max(a.violation(x - half, n), b.violation(x + half, -n)) > 1e-8
        depth = a.support(n[None])[0] + b.support(-n[None])[0]
        off.append(abs(depth + dist))
        # nowhere is the way out shorter, or the gap wider
        assert (a.support(DIRECTIONS) + b.support(-DIRECTIONS)).min() > depth - 1e-8
    assert 0.1 < np.mean(touch.dist < 0) < 0.9
    # of a side line on a cap that it crosses off its middle the search may stop early: 2e-5
    assert np.mean(np.array(off) < 1e-8) > 0.995
    assert max(off) < 1e-4
    # points of a line that crosses a cap off its middle are not exact either
    assert wrong / len(pairs) < 0.02


def test_nearly_parallel_caps_touch_where_their_rims_cross():
    """Stacked and tilted by a little: no way out is shorter than the distance."""
    mj, m = _models(CYLINDERS)
    rng = np.random.default_rng(2)
    pairs = []
    for tilt in np.repeat([1e-7, 1e-6, 1e-5, 1e-4, 1e-3], 40):
        i, j = rng.integers(2, size=2)
        one = _turn(rng.normal(size=4))
        other = one @ _turn(np.r_[1, tilt * rng.normal(size=3)])
        a, b = Shape(mj, i, np.zeros(3), one), Shape(mj, j, np.zeros(3), other)
        height = mj.geom_size[i, 1] + mj.geom_size[j, 1] + rng.uniform(-0.05, 0.05)
        b.pos = one @ [*rng.uniform(-0.15, 0.15, 2), height * rng.choice([-1, 1])]
        pairs.append((a, b, i, j))
    touch = _touch(m, pairs)
    for (a, b, _, _), dist, n in zip(
        pairs, touch.dist, np.stack(touch.normal.parts, -1), strict=True
    ):
        depth = a.support(n[None])[0] + b.support(-n[None])[0]
        assert abs(depth + dist) < 1e-10
        axis = b.mat[:, 2] * np.sign(b.mat[:, 2] @ n)
        angle = np.linalg.norm(np.cross(a.mat[:, 2], b.mat[:, 2]))
        around = axis + 2 * angle * DIRECTIONS  # normals on the scale of the tilt
        around /= np.linalg.norm(around, axis=1)[:, None]
        assert (a.support(around) + b.support(-around)).min() > depth - 1e-10


@pytest.mark.slow
def test_cylinders_have_exact_distances_and_normals():
    _check(CYLINDERS, 100)


@pytest.mark.slow
def test_curved_shapes_have_exact_distances_and_normals():
    _check(CYLINDERS | OTHERS, 60)


@pytest.mark.slow
@pytest.mark.parametrize(
    "height", [0.0, *(pytest.param(h, marks=pytest.mark.slow) for h in (0.05, 0.19))]
)
def test_parallel_cylinders_touch_like_circles(height):
    """Side by side: the normal goes from axis to axis, wherever along them they overlap."""
    mj, m = _models(CYLINDERS)
    upright = np.eye(3)
    rng = np.random.default_rng(0)
    pairs, expected = [], []
    for way in rng.uniform(0, 2 * np.pi, 20):
        for gap in (-0.05, -0.0091, 0.01, 0.4):
            n = np.array([np.cos(way), np.sin(way), 0])
            a = Shape(mj, 1, np.array([0.06, 0, 0]), upright)
            b = Shape(mj, 1, a.pos + (0.5 + gap) * n + [0, 0, height], upright)
            pairs.append((a, b, 1, 1))
            expected.append((gap, *n))
    touch = _touch(m, pairs)
    found = np.stack([touch.dist, *touch.normal.parts], axis=-1)
    # sideways the overlap along the axes is the shorter way out of some
    side = np.array(expected)[:, 0] > -(0.2 - height)
    np.testing.assert_allclose(found[side], np.array(expected)[side], rtol=0, atol=1e-8)
