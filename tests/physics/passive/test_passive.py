"""Passive forces and energy against MuJoCo; a law; gradients."""

import jax
import mujoco
import numpy as np
import pytest
from jax.test_util import check_grads
from physics import oracle
from states import random_state
from tolerance import ROUGH_DIFFERENCE, ROUNDING, STAGE

from jaxsim.physics.passive.energy import energy_pos, energy_vel
from jaxsim.physics.passive.passive import passive

PASSIVE = ("spring", "damper", "gravcomp", "fluid", "passive")

# every kind of joint and tendon with linear and higher coefficients, drives that reflect
CREATURE = """
<mujoco><option gravity="1 2 -9" {option}><flag energy="enable" {flag}/></option>
<default><joint stiffness="2 -.3 .4" damping=".5 .6 .7" armature=".1"/>
  <geom contype="0" conaffinity="0"/></default>
<worldbody>
  <body gravcomp=".7" pos="0 0 1"><joint name="free" type="free"/>
    <geom type="box" size=".3 .2 .1" {fluid}/><site name="a" pos=".1 0 .1"/>
    <body pos=".4 0 0"><joint name="ball" type="ball"/>
      <geom type="{shape}" size=".2 .13 .1" euler="10 20 30" {fluid}/></body>
    <body pos="-.4 0 0" gravcomp="-.3"><joint name="hinge" axis="0 1 1" springref="20"
      actuatorgravcomp="true"/><geom type="capsule" size=".1 .2" pos="-.2 0 .1"/>
      <site name="b" pos="-.3 0 0"/>
      <body pos="-.4 0 0"><joint name="slide" type="slide" axis="1 0 0" springref=".3"/>
        <geom type="cylinder" size=".1 .2" pos="0 .1 0" {fluid}/><geom type="sphere" size=".1"
        pos="0 0 .3" {fluid}/></body></body>
  </body>
</worldbody>
<tendon>
  <fixed name="sum" stiffness="3 1 2" damping="1 2 3" springlength="-.1 .2" armature=".3">
    <joint joint="hinge" coef="2"/><joint joint="slide" coef="-1"/></fixed>
  <spatial stiffness="5" damping="2"><site site="a"/><site site="b"/></spatial>
</tendon>
<actuator>
  <motor joint="hinge" gear="3" damping=".1 .2 .3" armature=".2"/>
  <motor joint="slide" gear="2" damping=".2" armature=".1"/><motor joint="slide" damping=".4"/>
  <motor tendon="sum" gear="2" damping=".1 .2 .3" armature=".1"/><motor joint="ball" damping=".3"/>
</actuator></mujoco>
"""
WATER = 'density="900" viscosity="1.5" wind=".3 -.2 .4"'
FINS = 'fluidshape="ellipsoid" fluidcoef=".4 .3 1.2 .9 .8"'
CASES = {
    "dry": {},
    "no springs": {"flag": 'spring="disable"'},
    "no dampers": {"flag": 'damper="disable"'},
    "neither": {"flag": 'spring="disable" damper="disable"', "option": WATER},
    "weightless": {"flag": 'gravity="disable"'},
    "box in water": {"option": WATER},
    "viscous only": {"option": 'viscosity="2"'},
    "fins, ellipsoid": {"option": WATER, "fluid": FINS},
    "fins, capsule": {"option": WATER, "fluid": FINS, "shape": "capsule"},
}


def build(option="", flag="", fluid="", shape="ellipsoid") -> mujoco.MjModel:
    return oracle.compile_xml(CREATURE.format(option=option, flag=flag, fluid=fluid, shape=shape))


def stage(m, d):
    d = energy_vel(m, energy_pos(m, passive(m, d)))
    return {n: getattr(d, f"qfrc_{n}") for n in PASSIVE}, d.energy


run = jax.jit(stage)


@pytest.mark.parametrize("case", CASES)
def test_forces_and_energy_equal_those_of_mujoco(case):
    mj = build(**CASES[case])
    for seed in range(4):
        mjd = random_state(mj, seed)
        forces, energy = run(*oracle.pair(mj, mjd))
        for name in PASSIVE:
            want = getattr(mjd, f"qfrc_{name}")
            np.testing.assert_allclose(forces[name], want, **STAGE, err_msg=name)
        np.testing.assert_allclose(energy, mjd.energy, rtol=ROUNDING["rtol"])


def test_springs_and_gravity_are_the_gradient_of_the_energy():
    """A law: the rate of the potential energy is minus the power of its forces."""
    mj = build(flag='damper="disable"')
    for seed in range(3):
        mjd = random_state(mj, seed)
        forces, _ = run(*oracle.pair(mj, mjd))
        h, energies = 1e-5, []
        weight = np.zeros(mj.nv)
        for body in range(1, mj.nbody):
            J = np.zeros((3, mj.nv))
            mujoco.mj_jacBodyCom(mj, mjd, J, None, body)
            weight += mj.body_mass[body] * mj.opt.gravity @ J
        for sign in (-1, 1):
            moved = mujoco.MjData(mj)
            moved.qpos[:], moved.qvel[:] = mjd.qpos, mjd.qvel
            mujoco.mj_integratePos(mj, moved.qpos, mjd.qvel, sign * h)
            mujoco.mj_forward(mj, moved)
            energies.append(run(*oracle.pair(mj, moved))[1][0])
        rate = (energies[1] - energies[0]) / (2 * h)
        power = (forces["spring"] + weight) @ mjd.qvel
        np.testing.assert_allclose(rate, -power, **ROUGH_DIFFERENCE)


@pytest.mark.parametrize("case", ["dry", "fins, ellipsoid"])
def test_gradients(case):
    m, d = oracle.pair(mj := build(**CASES[case]), random_state(mj, 1))

    def outputs(qpos, qvel, cvel, length):
        return stage(m, d.replace(qpos=qpos, qvel=qvel, cvel=cvel, ten_length=length))

    inputs = d.qpos, d.qvel, d.cvel, d.ten_length
    check_grads(jax.jit(outputs), inputs, order=1, modes=("rev",), eps=1e-6, rtol=1e-5, atol=1e-5)


def test_gradients_at_rest_are_finite():
    mj = build(**CASES["fins, ellipsoid"])
    mjd = mujoco.MjData(mj)
    mujoco.mj_forward(mj, mjd)
    m, d = oracle.pair(mj, mjd)

    def loss(m, qpos, qvel, cvel):
        forces, energy = stage(m, d.replace(qpos=qpos, qvel=qvel, cvel=cvel))
        return sum(f.sum() for f in forces.values()) + energy.sum()

    grads = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(m, d.qpos, d.qvel, d.cvel)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))


@pytest.mark.slow
def test_many_worlds_are_many_loops():
    mj = build(**CASES["fins, ellipsoid"])
    states = [random_state(mj, seed) for seed in range(3)]
    forces = {"rtol": ROUNDING["rtol"], "atol": STAGE["atol"]}  # of water, which are large
    oracle.assert_worlds_are_a_loop(stage, mj, states, forces)
