"""Geoms with a signed distance; rejected models; and the contacts of whole models."""

import jax
import mujoco
import numpy as np
import pytest
from physics.collision.field.fields_of_all import all_kinds, compiled
from states import inputs, stack
from tolerance import STORED_SINGLE

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.field.kinds import collidable_kinds, kind_of

OCTREE = '<mesh name="ring" builtin="supertorus" params="12 .3 1 1" scale=".5 .5 .5"/>'
RING = '<geom type="sdf" mesh="ring"/>'


@pytest.mark.slow
def test_the_functions_of_geoms():
    m = put_model(all_kinds())
    kinds = [kind_of(m.structure, g) for g in range(m.ngeom)]
    assert kinds[:5] == ["sphere", "capsule", "ellipsoid", "cylinder", "box"]
    assert kinds[5:] == [f"mujoco.sdf.{s}" for s in ("bolt", "bowl", "gear", "nut", "torus")] + [
        "octree"
    ]
    first, second = collidable_kinds(m.structure, 0)
    assert first == tuple(sorted(kinds[:-1]))
    assert second == tuple(sorted(kinds[5:]))


def test_a_geom_whose_distance_is_unknown_is_refused(refused):
    """The mesh of a plugin has no octree, and MuJoCo stops the program when such a geom is near."""
    torus = '<mesh name="torus"><plugin instance="torus"/></mesh>'
    bodies = {"ball": '<geom size=".1"/>', "ring": '<geom name="lost" type="sdf" mesh="other"/>'}
    other = torus.replace('name="torus"', 'name="other"')
    (message,) = refused(lambda: put_model(compiled(bodies, other)))
    assert "geom 'lost'" in message
    assert "give the geom the plugin too" in message


def test_room_for_contacts():
    """In a pair that is searched, most starting points may end in a contact."""
    mj = compiled({"ball": '<geom size=".1"/>', "ring": RING}, OCTREE, starts=30)
    assert collision_layout(put_model(mj)).capacity == 30


@pytest.fixture(scope="module")
def heap():
    """Rings and balls in each other, and more pairs of them than are searched at once."""
    ball = '<geom size=".3"/>'
    bodies = {"a": RING, "ball": ball, "b": RING, "c": RING, "bowl": ball, "d": RING}
    mj = compiled(bodies, OCTREE, starts=10)
    states, rng = [], np.random.default_rng(0)
    for _ in range(8):
        d = mujoco.MjData(mj)
        d.qpos.reshape(6, 7)[:, :3] = rng.normal(size=(6, 3)) * 0.6
        quat = rng.normal(size=(6, 4))
        d.qpos.reshape(6, 7)[:, 3:] = quat / np.linalg.norm(quat, axis=1)[:, None]
        mujoco.mj_forward(mj, d)
        states.append(d)
    return mj, states


def test_contacts_of_a_model(heap):
    """Contacts of pairs that are searched together, up to the budget for pairs."""
    mj, states = heap
    m = put_model(mj, pairs=12)
    searched = next(g for g in collision_layout(m).groups if len(g.kinds) > 1)
    assert searched.budget < len(searched.pairs)
    forward = jax.jit(jaxsim.forward)
    found = same = 0
    for state in states:
        out = forward(m, inputs(m, state))
        assert not out.warning.any()
        theirs, n = state.contact, int(out.ncon)
        pair = np.asarray(out.contact.geom)[:n]
        changes = (np.diff(pair, axis=0) != 0).any(axis=1).sum()
        assert changes == len(np.unique(pair, axis=0)) - 1
        mine = np.c_[pair, out.contact.dist[:n], np.asarray(out.contact.pos)[:n]]
        for row in np.c_[theirs.geom, theirs.dist, theirs.pos]:
            found += 1
            same += bool(n) and np.abs(mine - row).max(axis=1).min() < 1e-5
        assert abs(n - state.ncon) <= 2
    assert found > 100
    assert same > 0.95 * found  # of an octree, slopes jump from cell to cell


@pytest.mark.slow
def test_worlds_are_a_loop(heap):
    mj, states = heap
    m = put_model(mj)
    worlds = [inputs(m, state) for state in states]
    step = jax.jit(jaxsim.step)
    alone = [step(m, d) for d in worlds]
    many = stack(worlds)
    together = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))(m, many)
    for k, d in enumerate(alone):
        assert together.ncon[k] == d.ncon
        np.testing.assert_allclose(together.qpos[k], d.qpos, **STORED_SINGLE)
