"""Servos on ball joints and between sites: setpoints on a circle, beyond several rotations."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from states import random_state, stack
from tolerance import ROUNDING, SAME

import jaxsim
from jaxsim.io.bridge import put_data, put_model

XML = """
<mujoco><option integrator="{integrator}" timestep=".01" gravity="0 0 0"/><worldbody>
  <site name="ground" euler="10 20 30"/>
  <body><joint name="hinge" axis="0 1 0" damping="1"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="ball" type="ball" damping="1"/><geom size=".1" pos=".1 0 0"/>
      <site name="tip" pos=".1 0 0"/></body></body>
</worldbody>
<actuator>
  <position joint="hinge" kp="3"/>
  <position site="tip" refsite="ground" gear="0 0 0 .1 .2 0" kp="3" kv=".1"/>
  <intvelocity joint="ball" gear="0 1 1" kp="4" kv=".2"/>
  <position joint="ball" gear="1 0 0" kp="2"/>
  <general joint="ball" gear="1 2 0" biastype="affine" gainprm="2" biasprm="1 -3 0"/>
  <intvelocity site="tip" refsite="ground" gear="0 0 0 0 0 .5" kp="1" actrange="-9 9"/>
  <position site="tip" refsite="ground" gear="1 0 0 0 0 0" kp="3"/>
  <position site="tip" refsite="ground" gear="1 0 0 0 .5 0" kp="3"/>
  <general joint="ball" gear="0 0 1" dyntype="filter" dynprm=".1" biastype="affine" gainprm="2"
    biasprm="0 -2 0"/>
  <intvelocity joint="ball" gear="0 0 2" kp="1"/>
  <general joint="ball" gear="0 1 0" dyntype="integrator" actearly="true" biastype="affine"
    gainprm="1.5" biasprm="0 -1.5 -.1"/>
</actuator></mujoco>
"""


def wound(mj: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """Return a random state whose setpoints are several rotations away."""
    d = random_state(mj, seed)
    rng = np.random.default_rng(seed)
    d.ctrl[:] = rng.uniform(-20, 20, mj.nu)
    d.act[:] = rng.uniform(-20, 20, mj.na)
    mujoco.mj_forward(mj, d)
    return d


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_forces_and_setpoints_equal_those_of_mujoco(integrator):
    mj = oracle.compile_xml(XML.format(integrator=integrator))
    m, step = put_model(mj), jax.jit(jaxsim.step)
    for seed in range(4):
        d = wound(mj, seed)
        mine = put_data(mj, d)
        for _ in range(5):
            mine = step(m, mine)
            mujoco.mj_step(mj, d)
            np.testing.assert_allclose(mine.act, d.act, **ROUNDING)
            np.testing.assert_allclose(mine.actuator_force, d.actuator_force, **ROUNDING)
            np.testing.assert_allclose(mine.qvel, d.qvel, **ROUNDING)
            np.testing.assert_allclose(mine.actuator_length, d.actuator_length, **ROUNDING)
        assert np.sum(np.abs(d.act) < 2 * np.pi) >= 4


@pytest.mark.slow
def test_a_whole_turn_changes_nothing():
    """Neither the force nor its derivative, where the length is that of a rotation."""
    mj = oracle.compile_xml(XML.format(integrator="Euler"))
    m, d = put_model(mj), put_data(mj, wound(mj, 1))

    def force(ctrl):
        return jaxsim.forward(m, d.replace(ctrl=ctrl)).actuator_force

    turn = np.zeros(mj.nu)
    turn[[1, 3]] = 2 * np.pi * np.array([np.hypot(0.1, 0.2), 1])
    here, there = d.ctrl, d.ctrl + 3 * jnp.asarray(turn)
    slope = jax.jit(jax.jacfwd(force))
    np.testing.assert_allclose(jax.jit(force)(here), jax.jit(force)(there), **ROUNDING)
    np.testing.assert_allclose(slope(here), slope(there), **SAME)
    assert slope(here)[1, 1] == pytest.approx(3)


@pytest.mark.slow
def test_worlds_are_a_loop():
    mj = oracle.compile_xml(XML.format(integrator="Euler"))
    m, start = put_model(mj), [put_data(mj, wound(mj, seed)) for seed in range(5)]
    worlds = stack(start)
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, worlds)
    for k, d in enumerate(start):
        one = jax.jit(jaxsim.step)(m, d)
        np.testing.assert_allclose(many.act[k], one.act, **ROUNDING)
        np.testing.assert_allclose(many.qvel[k], one.qvel, **ROUNDING)
