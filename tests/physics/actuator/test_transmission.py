"""Transmissions against MuJoCo: lengths, moments and velocities of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics import oracle
from states import random_state
from tolerance import ROUNDING, SAME

import jaxsim
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission

ALL_KINDS = """
<mujoco><worldbody>
  <site name="world" pos="0 0 1" euler="20 10 5"/>
  <body><freejoint name="free"/><geom size=".1"/><site name="a" pos="-.5 .05 .1" euler="10 20 30"/>
    <body pos=".3 0 0"><joint name="hinge" axis="1 2 3"/><geom size=".1" pos="1 0 0"/>
      <site name="b" pos=".2 .05 .1" euler="40 50 60"/>
      <body pos=".3 .2 0"><joint name="ball" type="ball"/><geom size=".1" pos="1 0 0"/>
        <site name="c" pos=".2 .05 .1" euler="20 30 90"/>
        <body pos=".1 0 0"><joint name="slide" type="slide" axis="1 0 1"/><geom size=".1"/></body>
      </body>
    </body>
    <body pos="-.3 0 0"><joint name="side" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
      <site name="e" pos=".3 .1 0"/></body>
  </body>
</worldbody>
<tendon>
  <fixed name="sum"><joint joint="hinge" coef="2"/><joint joint="slide" coef="-1"/></fixed>
  <spatial name="string"><site site="a"/><site site="c"/></spatial>
</tendon>
<actuator>
  <general site="b" gear="1 2 3 .4 .5 .6"/>
  <general joint="slide" gear="2"/>
  <general joint="ball" gear="1 2 3"/>
  <general site="c" refsite="a" gear="1 2 3 .4 .5 .6"/>
  <general jointinparent="ball" gear="3 1 -2"/>
  <general joint="free" gear="1 2 3 4 5 6"/>
  <general tendon="string" gear="-3"/>
  <general jointinparent="free" gear="1 2 3 4 5 6"/>
  <general joint="hinge" gear="1.5"/>
  <general cranksite="e" slidersite="b" cranklength="1.1" gear="2"/>
  <general cranksite="c" slidersite="world" cranklength=".01" gear="2"/>
  <general tendon="sum" gear="4"/>
  <general site="e" refsite="world" gear="1 0 3 .4 0 .6"/>
  <orientation site="b" refsite="e"/>
  <general jointinparent="hinge" gear="1.5"/>
  <orientation joint="ball"/>
</actuator></mujoco>
"""


def stage(m, d):
    d = actuator_velocity(m, transmission(m, d))
    return d.actuator_length, d.actuator_moment, d.actuator_velocity


run = jax.jit(stage)


def test_every_kind_equals_that_of_mujoco():
    mj = oracle.compile_xml(ALL_KINDS)
    for seed in range(10):
        mjd = random_state(mj, seed)
        length, moment, velocity = run(*oracle.pair(mj, mjd))
        np.testing.assert_allclose(length, mjd.actuator_length, **ROUNDING)
        np.testing.assert_allclose(moment, oracle.dense_moment(mj, mjd), **ROUNDING)
        np.testing.assert_allclose(velocity, mjd.actuator_velocity, **ROUNDING)


@pytest.mark.slow
def test_many_worlds_are_many_loops():
    mj = oracle.compile_xml(ALL_KINDS)
    states = [random_state(mj, seed) for seed in range(3)]
    oracle.assert_worlds_are_a_loop(stage, mj, states, SAME)


@pytest.mark.slow
def test_gradients_at_the_reference_pose_are_finite():
    """There sites coincide in orientation and joints are at rest: the singular points."""
    mj = oracle.compile_xml(ALL_KINDS)
    m, d = oracle.pair(mj, random_state(mj, 0, spread=0.0))

    def loss(qpos, site_xpos, xquat):
        outputs = stage(m, d.replace(qpos=qpos, site_xpos=site_xpos, xquat=xquat))
        return sum(jnp.sum(x) for x in outputs)

    grads = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(d.qpos, d.site_xpos, d.xquat)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))


def test_without_actuators_all_is_empty():
    mj = oracle.compile_xml(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    length, moment, velocity = stage(*oracle.pair(mj, random_state(mj, 0)))
    assert length.shape == velocity.shape == (0,)
    assert moment.shape == (0, 1)


GRIP = """
<mujoco><option cone="{cone}"/><worldbody>
  <body name="cup" pos="0 0 .6"><joint axis="0 1 0"/><geom size=".05"/>
    <body name="tip" pos=".3 0 0"><joint type="slide" axis="0 0 1"/>
      <geom name="tip" type="box" size=".1 .1 .05" margin=".01" gap=".05"/></body></body>
  <body name="free" pos=".3 0 .46"><freejoint/><geom type="box" size=".08 .08 .08" condim="4"/>
  </body>
  <geom name="table" type="plane" size="1 1 1" pos="0 0 .36" margin=".01"/>
  <geom name="fixed" size=".2" pos="2 0 .4" contype="0" conaffinity="0"/>
</worldbody>
<contact><pair geom1="table" geom2="fixed"/></contact>
<actuator>
  <motor site="s" gear="1 0 0 0 0 0"/><adhesion body="free" ctrlrange="0 1"/>
  <general body="world" gear="3"/><adhesion body="tip" ctrlrange="0 1" gain="2"/>
  <adhesion body="cup" ctrlrange="0 1"/>
</actuator></mujoco>
""".replace('<geom size=".05"/>', '<geom size=".05"/><site name="s"/>')


@pytest.mark.short("pyramidal")
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_body_shares_the_force_among_its_contacts(cone):
    """Contacts that push and contacts in the gap, of a body, of the world and of none."""
    mj = oracle.compile_xml(GRIP.format(cone=cone))
    seen = set()
    for seed in range(8):
        mjd = random_state(mj, seed, spread=0.02)
        length, moment, velocity = run(*oracle.pair(mj, mjd))
        np.testing.assert_allclose(length, mjd.actuator_length, **ROUNDING)
        np.testing.assert_allclose(moment, oracle.dense_moment(mj, mjd), **ROUNDING)
        np.testing.assert_allclose(velocity, mjd.actuator_velocity, **ROUNDING)
        assert np.any(moment[1])
        assert not np.any(moment[4])  # the body of the joint touches nothing
        seen |= set(mjd.contact.exclude.tolist())
    assert seen == {0, 1, 3}


def test_a_stage_alone_asks_for_the_contacts():
    """A transmission to contacts has no moment without them, not a zero moment."""
    mj = oracle.compile_xml(GRIP.format(cone="pyramidal"))
    m = jaxsim.put_model(mj)
    stages = jaxsim.stages
    assert "contact" in stages.transmission.carries
    keep = [stages.kinematics, stages.com_pos, *(stages.transmission.carries - {"contact"})]
    d = jaxsim.make_data(m, keep=keep)
    d = jax.jit(lambda d: jaxsim.stages.com_pos(m, jaxsim.stages.kinematics(m, d)))(d)
    with pytest.raises(ValueError, match="'contact'; keep it"):
        jaxsim.stages.transmission(m, d)
