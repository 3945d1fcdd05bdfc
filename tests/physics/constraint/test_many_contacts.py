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
