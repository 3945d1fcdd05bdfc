"""Worlds with no, some and many contacts, side by side: each has the oracle's acceleration.

With the worlds last contacts are taken a few at a time as far as some world has one
(arrays/products.py).
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tolerance import STIFF

import jaxsim
from jaxsim.physics.arrays.pin import few
from jaxsim.physics.arrays.products import CHUNK
from jaxsim.physics.collision.candidates.plan import layout

PILE = Path(jaxsim.__file__).parent.parent / "configs" / "pile.xml"
STEPS = (0, 60, 100, 300, 600)  # in the air, the first ones down, ..., at rest


def test_worlds_with_different_numbers_of_contacts():
    mj = mujoco.MjModel.from_xml_path(str(PILE))
    mj.opt.iterations, mj.opt.tolerance = 100, 1e-14
    m = jaxsim.put_model(mj)
    states, state = [], mujoco.MjData(mj)
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            mujoco.mj_forward(mj, state)
            states.append((state.qpos.copy(), state.qvel.copy(), state.qacc.copy(), state.ncon))
        mujoco.mj_step(mj, state)
    qpos, qvel, qacc, ncon = (np.array(column) for column in zip(*states, strict=True))
    assert ncon[0] == 0
    assert ncon[-1] > CHUNK
    assert not few(qpos.T)

    d = jaxsim.make_data(m)
    worlds = jax.vmap(lambda q, v: d.replace(qpos=q, qvel=v))(jnp.array(qpos), jnp.array(qvel))
    found = jax.jit(jax.vmap(jaxsim.forward, in_axes=(None, 0)))(m, worlds)
    np.testing.assert_array_equal(found.ncon, ncon)
    np.testing.assert_allclose(found.qacc, qacc, **STIFF)


SLABS = """
<mujoco>
  <option tolerance="1e-14" iterations="100" cone="elliptic"/>
  <worldbody>
    <body name="slab" pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .05"/></body>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm" pos="1 0 .1"><joint axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
      <geom type="capsule" size=".1 .2" pos="0 .5 0"/><geom type="box" size=".1 .2 .1"/></body>
  </worldbody>
  <contact><exclude body1="slab" body2="arm"/></contact>
</mujoco>
"""


def test_contacts_with_a_place_for_each():
    """There is room for every candidate, and more than a chunk of them: those that exist move."""
    mj = mujoco.MjModel.from_xml_string(SLABS)
    m, state = jaxsim.put_model(mj), mujoco.MjData(mj)
    plan = layout(m)
    assert plan.all
    assert plan.points > CHUNK
    rng, states = np.random.default_rng(0), []
    for height, lower in ((1, 0.5), (0.04, 0.5), (1, -0.03), (0.045, -0.01), (0.06, 0), (0.03, 0)):
        mujoco.mj_resetData(mj, state)
        state.qpos[2], state.qpos[-1] = height, lower
        state.qpos[3:7] += 0.02 * rng.standard_normal(4)
        state.qvel[:] = rng.standard_normal(mj.nv)
        mujoco.mj_forward(mj, state)
        geom, dist = np.full((plan.points, 2), -1), np.zeros(plan.points)
        geom[: state.ncon], dist[: state.ncon] = state.contact.geom, state.contact.dist
        states.append((state.qpos.copy(), state.qvel.copy(), state.qacc.copy(), geom, dist))
    qpos, qvel, qacc, geom, dist = (np.array(column) for column in zip(*states, strict=True))
    ncon = (geom[..., 0] >= 0).sum(axis=1)
    assert ncon.min() == 0
    assert ncon.max() > 4

    d = jaxsim.make_data(m)
    worlds = jax.vmap(lambda q, v: d.replace(qpos=q, qvel=v))(jnp.array(qpos), jnp.array(qvel))
    assert not few(qpos.T)
    found = jax.jit(jax.vmap(jaxsim.forward, in_axes=(None, 0)))(m, worlds)
    np.testing.assert_array_equal(found.ncon, ncon)
    np.testing.assert_array_equal(found.contact.geom, geom)
    there = np.arange(plan.points) < ncon[:, None]
    np.testing.assert_allclose(np.where(there, found.contact.dist, 0), dist, **STIFF)
    np.testing.assert_allclose(found.qacc, qacc, **STIFF)
