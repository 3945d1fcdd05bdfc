"""Actuator forces against MuJoCo: dynamics, gains, biases, limits, flags."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax.test_util import check_grads
from physics import oracle
from states import random_state, single
from tolerance import ROUGH_DIFFERENCE, ROUNDING, SAME

from jaxsim.enums import WarningType
from jaxsim.physics.actuator.actuation import actuation, next_activation

ARM = """
<mujoco><option {option}><flag {flag}/></option><worldbody>
  <body gravcomp=".5"><joint name="a" axis="0 1 0" {joint}/><geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1"/>
      <body pos=".4 0 0"><joint name="c" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
    </body></body>
</worldbody>
<tendon><fixed name="t" actuatorfrcrange="-1 3">
  <joint joint="a" coef="2"/><joint joint="b" coef="1"/></fixed></tendon>
<actuator>{actuators}</actuator></mujoco>
"""
KINDS = """
  <motor joint="a" ctrlrange="-.5 .5"/>
  <position joint="b" kp="3" kv="1"/>
  <velocity joint="c" kv="2" forcerange="-1 1"/>
  <damper joint="a" kv="3" ctrlrange="0 1"/>
  <intvelocity joint="b" kp="2" actrange="-.2 .5"/>
  <position joint="c" kp="4" timeconst=".05"/>
  <cylinder joint="a" timeconst=".2" area="3"/>
  <general joint="c" dyntype="filter" dynprm="0.02" gaintype="affine" gainprm="1 2 3"
    biastype="affine" biasprm="1 2 3" group="1"/>
  <general joint="a" dyntype="integrator" actearly="true" actlimited="true" actrange="0 .6"/>
  <general joint="a" dyntype="filterexact" dynprm=".03" actearly="true" gainprm="2"/>
  <motor tendon="t" forcerange="0 2"/><motor tendon="t" gear="2"/><motor tendon="t" group="1"/>
"""
MUSCLES = """
  <muscle joint="a" lengthrange="-1 1"/>
  <muscle joint="b" lengthrange="-2 1.5" force="30" tausmooth=".4" range=".6 1.2"/>
  <muscle joint="c" lengthrange="-1 1" lmin=".3" lmax="1.7" vmax="2" fpmax="1.1" fvmax="1.5"/>
  <muscle tendon="t" lengthrange="-3 3" timeconst=".02 .06"/>
"""
CASES = {
    "kinds": {"actuators": KINDS},
    "muscles": {"actuators": MUSCLES},
    "group off": {"actuators": KINDS, "option": 'actuatorgroupdisable="1"'},
    "no clamp": {"actuators": KINDS, "flag": 'clampctrl="disable"'},
    "actuation off": {"actuators": KINDS, "flag": 'actuation="disable"'},
    "joint range": {"actuators": KINDS, "joint": 'actuatorfrcrange="-1 .5"'},
    "gravcomp": {"actuators": KINDS, "joint": 'actuatorgravcomp="true"'},
    "none": {"actuators": "", "joint": 'actuatorgravcomp="true"'},
}


def build(option="", flag="", joint="", actuators="") -> mujoco.MjModel:
    xml = ARM.format(option=option, flag=flag, joint=joint, actuators=actuators)
    return oracle.compile_xml(xml)


def stage(m, d):
    d = actuation(m, d)
    return d.act_dot, d.actuator_force, d.qfrc_actuator, next_activation(m, d), d.warning


run = jax.jit(stage)


@pytest.mark.parametrize("case", CASES)
def test_forces_equal_those_of_mujoco(case):
    mj = build(**CASES[case])
    for seed in range(6):
        mjd = random_state(mj, seed)
        act_dot, force, qfrc, act, warning = run(*oracle.pair(mj, mjd))
        np.testing.assert_allclose(act_dot, mjd.act_dot, **ROUNDING)
        np.testing.assert_allclose(force, mjd.actuator_force, **ROUNDING)
        np.testing.assert_allclose(qfrc, mjd.qfrc_actuator, **ROUNDING)
        assert not warning.any()
        mujoco.mj_step(mj, mjd)
        np.testing.assert_allclose(act, mjd.act, **ROUNDING)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e11])
def test_bad_controls_count_as_zero(value):
    mj = build(actuators=KINDS)
    mjd = random_state(mj, 0)
    mjd.ctrl[1] = value  # a control without range
    mujoco.mj_forward(mj, mjd)
    _, force, _, _, warning = run(*oracle.pair(mj, mjd))
    np.testing.assert_allclose(force, mjd.actuator_force, **SAME)
    assert warning[WarningType.BADCTRL] == 1
    assert warning.sum() == 1


@pytest.mark.parametrize("case", ["kinds", "muscles"])
def test_gradients(case):
    m, d = oracle.pair(mj := build(**CASES[case]), random_state(mj, 3))

    def outputs(ctrl, act, length, velocity):
        d1 = d.replace(ctrl=ctrl, act=act, actuator_length=length, actuator_velocity=velocity)
        return stage(m, d1)[:4]

    inputs = d.ctrl, d.act, d.actuator_length, d.actuator_velocity
    check_grads(jax.jit(outputs), inputs, order=1, modes=("rev",), eps=1e-6, **ROUGH_DIFFERENCE)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["kinds", "muscles"])
def test_many_worlds_are_many_loops(case):
    mj = build(**CASES[case])
    states = [random_state(mj, seed) for seed in range(3)]
    states[1].ctrl[1] = np.nan  # in one world only
    oracle.assert_worlds_are_a_loop(stage, mj, states, SAME)


@pytest.mark.slow
def test_float32_stays_float32():
    mj = build(actuators=KINDS + MUSCLES)
    m, d = single(oracle.pair(mj, random_state(mj, 0)))
    assert {a.dtype for a in run(m, d)} == {jnp.dtype("float32"), jnp.dtype("int32")}
