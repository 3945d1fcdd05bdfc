"""Contacts of `sdf` geoms with geoms of every kind against the oracle, and their derivative."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.field.fields_of_all import (
    ALONE,
    PRIMITIVES,
    STARTS,
    all_kinds,
    compiled,
    draw,
    physics,
    placed,
    rows,
    sdf_geom,
)
from states import single
from tolerance import FLOAT32, ROUNDING

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.math import Quat, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.field.fields import sdf_tables
from jaxsim.physics.collision.field.sdf import sdf_contacts

STATES = 12
STEP = 1e-6  # of finite differences
BOX = PRIMITIVES.index("box")
FIRST_SDF = len(PRIMITIVES)

collide = jax.jit(sdf_contacts)


@functools.cache
def every_pair():
    """Random placements of all pairs of kinds, what the oracle finds, and what we find."""
    mj = all_kinds()
    pairs = [(i, j) for j in range(FIRST_SDF, mj.ngeom) for i in range(j)]
    p = draw(mj, pairs, STATES, spread=0.35, seed=1)
    m = sdf_tables(physics(mj))
    return p, m, collide(p.a, p.b, m)


def _agreement(p, touch, tolerance: float) -> np.ndarray:
    """Return whether each pair has the oracle's contacts, in its order."""
    mine = rows(touch)
    agrees = []
    for k, expected in enumerate(p.contacts):
        found = mine[mine[:, k, 0] < NO_CONTACT_DISTANCE, k]
        same = len(found) == len(expected)
        agrees.append(same and np.abs(found - expected).max(initial=0) < tolerance)
    return np.array(agrees)


def test_contacts_equal_the_oracle():
    """Contacts are equal, in the same order.

    A search that reaches a crease depends on the last digit of its position, and MuJoCo's slopes
    of plugins are differences that are right to eight digits: some searches end elsewhere.
    """
    p, _, touch = every_pair()
    mine, touching = rows(touch), np.array([len(c) > 0 for c in p.contacts])
    agrees = []
    for k, expected in enumerate(p.contacts):
        found = mine[mine[:, k, 0] < NO_CONTACT_DISTANCE, k]
        same = len(found) == len(expected)
        agrees.append(same and np.abs(found - expected).max(initial=0) < 1e-5)
    agrees, box = np.array(agrees), p.ids[:, 0] == BOX
    assert touching[~box].sum() > 150
    assert agrees[~touching].mean() > 0.99
    assert agrees[touching & ~box].mean() > 0.96


def test_contacts_of_boxes_equal_the_oracle():
    """Contact by contact: one in fourteen differs.

    The first point of a Halton sequence is a corner of the box in which it lies, often that of the
    geom: whether it is inside, where the slope is another, is decided by rounding.
    """
    p, _, touch = every_pair()
    mine, found, same = rows(touch), 0, 0
    for k in np.flatnonzero(p.ids[:, 0] == BOX):
        for contact in p.contacts[k]:
            found += 1
            same += np.abs(mine[:, k] - contact).max(axis=1).min() < 1e-5
    assert found > 200
    assert same > 0.9 * found


@functools.cache
def ball_in(shape: str, depth: float = 0.004):
    """Return a ball in the inner wall of a shape around the z axis, in 60 positions."""
    mj = compiled({"ball": f'<geom size=".15" {ALONE}/>', "shape": sdf_geom(shape)})
    rng, n = np.random.default_rng(0), 60
    way = np.c_[rng.normal(size=(n, 2)), -1 - rng.uniform(size=n)]
    way /= np.linalg.norm(way, axis=1)[:, None]
    center = (0.4 - 0.02 - 0.15 + depth) * way  # in the bowl of `CONFIG`
    eye = np.tile(np.eye(3).ravel(), (n, 1))
    a = placed(mj, center, eye, np.zeros(n, int))
    b = placed(mj, 0 * center, eye, np.ones(n, int))
    return a, b, sdf_tables(physics(mj))


def moved(geom, x):
    """Geoms displaced by the first three rows of `x` `[6, n]` and turned by the others."""
    turn = Quat.from_rotation_vector(Vec(*x[3:])).matrix()
    return geom._replace(pos=geom.pos + Vec(*x[:3]), rot=turn @ geom.rot)


def slopes(of, way):
    """Derivatives of the rows of contacts along a way, and which contacts there are."""
    zero = jnp.zeros_like(way)
    touch, tangent = jax.jit(lambda x: jax.jvp(of, (x,), (way,)))(zero)
    return rows(tangent), np.asarray(touch.dist) < NO_CONTACT_DISTANCE, rows(touch)


def test_contacts_move_as_those_that_are_searched_again():
    """Central differences of the whole search, of a ball that moves and rotates in a bowl.

    The search ends anywhere in the part that both share, so its single points move as they like;
    what is compared is how much of their motion the derivative explains.
    """
    a, b, m = ball_in("bowl")
    way = jnp.asarray(np.random.default_rng(1).normal(size=(6, 60)))

    def of(x):
        return sdf_contacts(moved(a, x), b, m)

    ours, there, _ = slopes(of, way)
    search = jax.jit(of)
    coarse, fine = (
        (rows(search(h * way)) - rows(search(-h * way))) / (2 * h) for h in (STEP, STEP / 2)
    )
    smooth = there & (np.abs(coarse - fine).max(axis=-1) < 1e-3)
    assert smooth.sum() > 0.9 * there.sum() > 400

    def left(part):
        difference = (ours - fine)[smooth][:, part]
        return np.sqrt((difference**2).mean() / (fine[smooth][:, part] ** 2).mean())

    assert left(slice(4, 7)) < 0.3  # normal
    assert left(slice(1, 4)) < 0.5  # position
    assert left(slice(0, 1)) < 0.8  # distance, whose slope jumps with the last step of the search


@pytest.mark.slow
def test_contacts_go_along_when_both_geoms_move():
    """Contacts move with the two geoms as one rigid body, to the last digit."""
    a, b, m = ball_in("bowl")
    way = jnp.broadcast_to(jnp.asarray([[0.3], [-0.5], [0.2], [0.7], [0.1], [-0.4]]), (6, 60))

    def of(x):
        turn = Quat.from_rotation_vector(Vec(*x[3:])).matrix()
        a_, b_ = (g._replace(pos=turn @ g.pos + Vec(*x[:3]), rot=turn @ g.rot) for g in (a, b))
        return sdf_contacts(a_, b_, m)

    ours, there, touch = slopes(of, way)
    speed, spin = np.asarray(way[:3, 0]), np.asarray(way[3:, 0])
    pos, normal = touch[there][:, 1:4], touch[there][:, 4:]
    np.testing.assert_allclose(ours[there][:, 0], 0, **ROUNDING)
    np.testing.assert_allclose(ours[there][:, 1:4], speed + np.cross(spin, pos), **ROUNDING)
    np.testing.assert_allclose(ours[there][:, 4:], np.cross(spin, normal), **ROUNDING)


@pytest.mark.slow
def test_reverse_mode_is_the_transpose_of_forward_mode():
    a, b, m = ball_in("bowl")
    rng = np.random.default_rng(2)
    way, weight = (jnp.asarray(rng.normal(size=s)) for s in ((6, 60), (STARTS, 60)))

    def total(x):
        t = sdf_contacts(moved(a, x), b, m)
        parts = [t.dist, *t.pos.parts, *t.normal.parts]
        return sum(
            jnp.sum(weight * jnp.where(t.dist < NO_CONTACT_DISTANCE, part, 0.0)) for part in parts
        )

    zero = jnp.zeros((6, 60))
    gradient = jax.jit(jax.grad(total))(zero)
    _, slope = jax.jit(lambda x: jax.jvp(total, (x,), (way,)))(zero)
    np.testing.assert_allclose(jnp.vdot(gradient, way), slope, **ROUNDING)


@pytest.mark.slow
def test_worlds_last():
    """`[n, worlds]` items equal the results of each world; single precision gives equal points."""
    a, b, m = ball_in("bowl")
    flat = collide(a, b, m)
    wide = jax.tree.map(lambda x: x[..., None], m)
    many = jax.tree.map(lambda x: x.reshape(12, 5), (a, b))
    last = collide(*many, wide)
    assert last.dist.shape == (STARTS, 12, 5)
    np.testing.assert_allclose(
        rows(last).reshape(STARTS, 60, 7), rows(flat), rtol=0, atol=ROUNDING["atol"]
    )

    narrow = collide(*single((*many, wide)))
    assert all(x.dtype == jnp.float32 and np.isfinite(x).all() for x in jax.tree.leaves(narrow))
    touching, found = (np.asarray(t.dist < NO_CONTACT_DISTANCE).any(axis=0) for t in (last, narrow))
    assert touching.all()
    assert found.all()
    where = rows(narrow)
    depth, normal = where[..., 0], where[..., 4:]
    here = depth < NO_CONTACT_DISTANCE
    assert depth[here].min() > -0.004
    np.testing.assert_allclose(np.linalg.norm(normal[here], axis=-1), 1, **FLOAT32)


@pytest.mark.slow
def test_no_contacts_without_starting_points():
    mj = compiled({"a": sdf_geom("torus"), "b": sdf_geom("torus")}, starts=0)
    mjd = mujoco.MjData(mj)
    mujoco.mj_forward(mj, mjd)
    assert mjd.ncon == 0
    m = put_model(mj)
    out = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    assert out.ncon == 0
