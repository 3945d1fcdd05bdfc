"""Constraint islands of trees that may not sleep, against MuJoCo's."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import inputs, random_state, stack, world

import jaxsim

# the first tree touches nothing; two on the floor, of which one holds a chain of trees; a stack
XML = """<mujoco><option cone="{cone}"><flag island="{island}"/></option><worldbody>
  <geom type="plane" size="3 3 .1"/>
  <body pos="0 0 3"><freejoint/><geom size=".1"/></body>
  <body name="low" pos="1 0 .09"><freejoint/><geom size=".1" condim="6"/></body>
  <body name="a" pos="1 0 1"><joint name="x" frictionloss=".1"/><geom size=".05" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint axis="0 1 0"/><geom size=".05" pos=".1 0 0"/></body></body>
  <body name="b" pos="2 0 1"><joint name="y" axis="0 1 0" range="-.001 .001" limited="true"/>
    <geom size=".05" pos=".2 0 0" condim="1"/></body>
  <body pos="-1 0 .09"><freejoint/><geom size=".1" condim="1"/></body>
  <body pos="-1 0 .285"><freejoint/><geom size=".1" condim="4"/></body>
  <body pos="-2 0 1"><joint name="z" type="slide"/><geom size=".1"/></body></worldbody>
<tendon><fixed name="t" limited="true" range="-.001 .001"><joint joint="z" coef="1"/></fixed>
</tendon>
<equality><connect body1="a" body2="low" anchor="0 0 0"/></equality></mujoco>"""
SEEDS = range(4)


@cache
def scene(cone: str, island: str = "enable"):
    mj = mujoco.MjModel.from_xml_string(XML.format(cone=cone, island=island))
    m = jaxsim.put_model(mj)
    states = [random_state(mj, seed, spread=0.002, speed=0.1) for seed in SEEDS]
    return mj, m, states, stack([inputs(m, s) for s in states])


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
@partial(jax.vmap, in_axes=(None, 0))
def found(m, d):
    return jaxsim.stages.island(m, d), jaxsim.support.constraint_rows(m, d).active


@pytest.mark.short("elliptic")
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_islands_are_those_of_mujoco(cone):
    mj, m, states, d = scene(cone)
    counts = set()
    islands, active = found(m, d)
    for k, state in enumerate(states):
        ours = world(islands, k)
        assert ours.nisland == state.nisland
        np.testing.assert_array_equal(ours.tree_island, state.tree_island)
        np.testing.assert_array_equal(ours.dof_island, state.dof_island)
        np.testing.assert_array_equal(ours.efc_island[active[k]], state.efc_island)
        assert (ours.efc_island[~active[k]] == -1).all()
        counts.add(state.nisland)
    assert max(counts) > 2
    assert (ours.tree_island[0], mj.ntree) == (-1, m.ntree)


@pytest.mark.slow
def test_without_the_flag_there_are_none():
    _, m, states, d = scene("elliptic", "disable")
    islands, _ = found(m, d)
    assert not islands.nisland.any()
    for numbers in islands[1:]:
        assert (numbers == -1).all()
    assert not any(state.nisland for state in states)


def test_a_model_that_nothing_can_hold_has_none():
    m = jaxsim.load_model(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    islands = jaxsim.stages.island(m, jaxsim.make_data(m))
    assert (islands.nisland, islands.nisland.shape) == (0, ())
    assert islands.tree_island.tolist() == islands.dof_island.tolist() == [-1]
    assert islands.efc_island.shape == (0,)
    assert islands.nisland.dtype == jnp.int32
