"""Tendons against MuJoCo: lengths, Jacobians, velocities; gradients; many worlds at once."""

import itertools
import re

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax.test_util import check_grads
from physics import oracle
from states import random_state
from tolerance import DYNAMICS, ROUGH_DIFFERENCE, ROUNDING, SAME, SOLVER, STAGE

import jaxsim
from jaxsim.io.bridge import put_data
from jaxsim.physics.body.rne import bias, com_vel
from jaxsim.physics.tendon.tendon import tendon, tendon_velocity

FIXED_AND_STRAIGHT = """
<mujoco><worldbody>
  <site name="post" pos="0 0 2"/>
  <body><freejoint/><geom size=".1"/><site name="a" pos="-.5 .05 .1"/>
    <body pos=".3 0 0">
      <joint name="turn" axis="1 2 3"/><joint name="shift" type="slide" axis="0 1 3"/>
      <geom size=".1" pos="1 0 0"/><site name="b" pos=".2 .05 .1"/><site name="c" pos=".6 .1 .1"/>
    </body>
  </body>
</worldbody>
<tendon>
  <fixed><joint joint="turn" coef="2"/><joint joint="shift" coef="-3"/></fixed>
  <spatial>
    <site site="a"/><site site="b"/><site site="c"/><pulley divisor="2"/>
    <site site="a"/><site site="post"/><pulley divisor="3"/><site site="post"/><site site="c"/>
  </spatial>
  <fixed><joint joint="shift" coef="1"/></fixed>
</tendon></mujoco>
"""

# both ends of the leg and the geom move freely; a second leg goes on from the far end
WRAPPED = """
<mujoco><worldbody>
  <site name="post" pos="0 0 1"/>
  <body name="obstacle"><freejoint/>
    <geom name="g" type="{kind}" size=".5 .5" euler="10 20 30"/><site name="side" pos="{side}"/>
  </body>
  <body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <joint type="slide" axis="0 0 1"/><geom size=".1"/><site name="a" pos="-.5 0 0"/></body>
  <body><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
    <joint type="slide" axis="0 0 1"/><geom size=".1"/><site name="b" pos=".5 0 0"/></body>
</worldbody>
<tendon><spatial>
  <site site="a"/><geom geom="g" {sidesite}/><site site="b"/><site site="post"/>
</spatial></tendon></mujoco>
"""
SIDES = {
    "none": ("0 0 0", ""),
    "outside": ("0 .6 .1", 'sidesite="side"'),
    "inside": ("0 .1 .05", 'sidesite="side"'),
}
CASES = list(itertools.product(["sphere", "cylinder"], SIDES))

# inertia of two tendons over several trees, with pulleys, and of a motor on a third, that wraps not
HEAVY = """
<mujoco><option gravity="1 2 -5" integrator="{integrator}" timestep=".001">
  <flag energy="enable" contact="disable"/></option>
<worldbody>
  <site name="post" pos="0 0 2"/>
  <body><freejoint/><geom size=".1" pos=".1 .2 0"/><site name="a" pos="-.5 .05 .1"/>
    <body pos=".3 0 0">
      <joint name="turn" axis="1 2 3"/><joint name="shift" type="slide" axis="0 1 3"/>
      <geom size=".1" pos="1 0 0"/><site name="b" pos=".2 .05 .1"/><site name="c" pos=".6 .1 .1"/>
    </body>
  </body>
  <body pos="0 1 0"><joint type="ball"/><geom size=".2" pos=".3 0 0"/>
    <site name="e" pos=".3 .4 0"/></body>
</worldbody>
<tendon>
  <fixed armature="2"><joint joint="turn" coef="2"/><joint joint="shift" coef="-3"/></fixed>
  <spatial armature="123">
    <site site="a"/><site site="b"/><site site="c"/><pulley divisor="2"/>
    <site site="e"/><site site="post"/><pulley divisor="3"/><site site="post"/><site site="c"/>
  </spatial>
  <spatial armature="456"><site site="e"/><site site="a"/></spatial>
  <spatial name="driven"><site site="post"/><site site="a"/></spatial>
</tendon>
<actuator><motor tendon="driven" gear="3" armature="7"/></actuator></mujoco>
"""
SWING = """
<mujoco><option timestep=".001" integrator="RK4"><flag energy="enable"/></option><worldbody>
  <site name="post" pos="0 .2 1"/>
  <body><joint axis="0 1 0"/><joint axis="1 0 0"/><geom size=".1" pos=".4 0 .1"/>
    <site name="end" pos=".4 0 .1"/></body></worldbody>
<tendon><spatial armature="12"><site site="post"/><site site="end"/></spatial></tendon></mujoco>
"""


def wrapped(kind: str, side: str) -> str:
    pos, sidesite = SIDES[side]
    return WRAPPED.format(kind=kind, side=pos, sidesite=sidesite)


def stage(m, d):
    d = tendon_velocity(m, tendon(m, d))
    return d.ten_length, d.ten_J, d.ten_velocity


run = jax.jit(stage)


def compare(mj, mjd, tolerance: float):
    length, J, velocity = run(*oracle.pair(mj, mjd))
    np.testing.assert_allclose(length, mjd.ten_length, **ROUNDING)
    np.testing.assert_allclose(J, oracle.dense_tendon(mj, mjd), atol=tolerance)
    np.testing.assert_allclose(velocity, mjd.ten_velocity, atol=10 * tolerance)


def test_fixed_and_straight_tendons_equal_those_of_mujoco():
    mj = oracle.compile_xml(FIXED_AND_STRAIGHT)
    for seed in range(5):
        compare(mj, random_state(mj, seed), ROUNDING["atol"])


@pytest.mark.short("sphere-outside", "cylinder-inside")
@pytest.mark.parametrize(("kind", "side"), CASES)
def test_wrapped_tendons_equal_those_of_mujoco(kind, side):
    mj = oracle.compile_xml(wrapped(kind, side))
    touching = 0
    for seed in range(60):
        mjd = random_state(mj, seed, spread=0.5)
        touching += mjd.ten_wrapnum[0] > 3
        # the oracle finds the touching point of an inside wrap to 1e-6 only
        compare(mj, mjd, 1e-6 if side == "inside" else ROUNDING["atol"])
    assert 5 < touching < 60


@pytest.mark.short("cylinder-inside")
@pytest.mark.parametrize(
    ("kind", "side"),
    [c if c[0] == "cylinder" else pytest.param(*c, marks=pytest.mark.slow) for c in CASES],
)
def test_gradient_of_a_wrapped_length(kind, side):
    """ten_J and the derivative of the length agree, and so do first and second differences."""
    mj = oracle.compile_xml(wrapped(kind, side))
    mjd = next(
        d for d in (random_state(mj, k, spread=0.5) for k in range(99)) if d.ten_wrapnum[0] > 3
    )
    m, d = oracle.pair(mj, mjd)

    def outputs(x):
        sites = type(d.site_xpos)(*(x[k] for k in range(3)))
        length, J, _ = stage(m, d.replace(site_xpos=sites))
        return length, J

    x = jnp.stack(d.site_xpos.parts)
    check_grads(jax.jit(outputs), (x,), order=1, modes=("fwd", "rev"), eps=1e-6, **ROUGH_DIFFERENCE)


@pytest.mark.slow
def test_many_worlds_are_many_loops():
    mj = oracle.compile_xml(wrapped("sphere", "outside"))
    states = [random_state(mj, seed, spread=0.5) for seed in range(3)]
    oracle.assert_worlds_are_a_loop(stage, mj, states, SAME | {"rtol": ROUNDING["rtol"]})


def test_a_model_without_tendons_has_empty_results():
    mj = oracle.compile_xml(
        "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    length, J, velocity = stage(*oracle.pair(mj, random_state(mj, 0)))
    assert length.shape == velocity.shape == (0,)
    assert J.shape == (0, 1)


def test_bias_force_of_armature_equals_that_of_mujoco():
    mj = oracle.compile_xml(HEAVY.format(integrator="Euler"))
    weightless = oracle.compile_xml(
        re.sub(' armature="[0-9]+"', "", HEAVY.format(integrator="RK4"))
    )

    @jax.jit
    def force(m, d):
        return bias(m, com_vel(m, d)).qfrc_bias

    for seed in range(5):
        mjd = random_state(mj, seed)
        found = force(*oracle.pair(mj, mjd))
        np.testing.assert_allclose(found, mjd.qfrc_bias, rtol=STAGE["rtol"], atol=1e-10)
        without = random_state(weightless, seed).qfrc_bias
        assert np.abs(found - without).max() > 10


@pytest.mark.parametrize("integrator", [pytest.param("Euler", marks=pytest.mark.slow), "implicit"])
def test_dynamics_with_armature_equal_those_of_mujoco(integrator):
    """Forward and inverse dynamics, and a step: velocity derivatives of the integrators, too."""
    mj = oracle.compile_xml(HEAVY.format(integrator=integrator))
    mjd = random_state(mj, 0, spread=0.3)
    m, d = oracle.model(mj), put_data(mj, mjd)
    new = jax.jit(jaxsim.step)(m, d)
    mujoco.mj_step(mj, mjd)
    np.testing.assert_allclose(new.qacc, mjd.qacc, **DYNAMICS)
    np.testing.assert_allclose(new.qvel, mjd.qvel, **DYNAMICS)
    mujoco.mj_inverse(mj, mjd)
    back = jax.jit(jaxsim.inverse)(m, new)
    np.testing.assert_allclose(
        back.qfrc_inverse, mjd.qfrc_inverse, rtol=DYNAMICS["rtol"], atol=SOLVER["atol"]
    )


@pytest.mark.slow
def test_energy_with_armature_is_conserved():
    m = oracle.model(oracle.compile_xml(SWING))
    d = jaxsim.make_data(m).replace(qvel=jnp.asarray([3.0, -2.0]))
    fly = jax.jit(lambda d: jaxsim.rollout(m, d, 300, record=["energy"])[1]["energy"].sum(-1))
    energy = fly(d)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)  # the error of the method
