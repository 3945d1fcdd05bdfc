"""Inverse dynamics against MuJoCo, and as the inverse of forward dynamics."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.integrate.test_integrate import MANY, moving, world
from tolerance import DYNAMICS, ROUGH_DIFFERENCE, SOLVER, STIFF

import jaxsim
from jaxsim.io.bridge import put_data, put_model

SCENE = """
<mujoco><option cone="{cone}" tolerance="1e-15" iterations="200" ls_iterations="200"/>
<worldbody><geom type="plane" size="2 2 1"/>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 .15"><freejoint/><geom type="capsule" size=".1 .2" euler="90 0 0"/>
    <body pos=".2 0 0"><joint name="a" axis="0 1 0" range="-10 10" frictionloss=".3"/>
      <geom size=".08" pos=".2 0 0"/></body></body>
  <body pos="0 1 1"><joint name="b" type="ball" range="0 30"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<equality><joint joint1="a" polycoef=".1"/></equality>
<actuator><motor joint="a" gear="3"/></actuator></mujoco>
"""


@cache
def inverse():
    return jax.jit(jaxsim.inverse)


# without the flag the integrator does not count
@pytest.mark.short("Euler-disable", "implicitfast-enable")
@pytest.mark.parametrize(
    ("integrator", "invdiscrete"),
    [("Euler", "disable"), ("Euler", "enable"), ("implicitfast", "enable"), ("implicit", "enable")],
)
def test_beside_mujoco(integrator, invdiscrete):
    flag = f'invdiscrete="{invdiscrete}"'
    mj = world(integrator=integrator, flag=flag, actuators=MANY, option='density="10"')
    mjd = moving(mj)
    mujoco.mj_forward(mj, mjd)
    mjd.qacc[:] = np.random.default_rng(1).normal(size=mj.nv)
    m, d = put_model(mj), put_data(mj, mjd)
    mujoco.mj_inverse(mj, mjd)
    found = inverse()(m, d)
    np.testing.assert_allclose(
        found.qfrc_inverse, mjd.qfrc_inverse, rtol=DYNAMICS["rtol"], atol=1e-10
    )
    np.testing.assert_array_equal(found.qacc, d.qacc)


@pytest.mark.slow
def test_discrete_step_is_inverted():
    """The change of velocity in a step returns the forces of the actuators under the flag."""
    mj = world(integrator="implicitfast", flag='invdiscrete="enable"', actuators=MANY)
    m, d = put_model(mj), put_data(mj, moving(mj))
    new = jax.jit(jaxsim.step)(m, d)
    back = inverse()(m, d.replace(qacc=(new.qvel - d.qvel) / m.opt.timestep))
    np.testing.assert_allclose(back.qfrc_inverse, new.qfrc_actuator, **DYNAMICS)


@pytest.mark.short("elliptic")
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_inverse_of_forward(cone):
    """The applied forces are recovered with contacts, limits, friction and equalities."""
    mj = mujoco.MjModel.from_xml_string(SCENE.format(cone=cone))
    m = put_model(mj)
    rng = np.random.default_rng(0)
    d = jaxsim.make_data(m).replace(
        qvel=jnp.asarray(0.3 * rng.normal(size=mj.nv)),
        ctrl=jnp.ones(1),
        qfrc_applied=jnp.asarray(rng.normal(size=mj.nv)),
    )
    d = d.replace(qpos=d.qpos.at[14].add(0.3))
    there = jax.jit(jaxsim.forward)(m, d)
    assert there.ncon > 0
    assert there.ne > 0
    assert there.nf > 0
    assert there.nl > 0
    back = inverse()(m, there)
    np.testing.assert_allclose(back.qfrc_inverse, there.qfrc_actuator + there.qfrc_applied, **STIFF)
    np.testing.assert_allclose(back.qfrc_constraint, there.qfrc_constraint, **STIFF)

    # against MuJoCo, at another acceleration
    acc = np.random.default_rng(2).normal(size=mj.nv)
    found = inverse()(m, there.replace(qacc=jnp.asarray(acc)))
    mjd = mujoco.MjData(mj)
    mjd.qpos[:], mjd.qvel[:], mjd.qacc[:] = d.qpos, d.qvel, acc
    mujoco.mj_inverse(mj, mjd)
    np.testing.assert_allclose(
        found.qfrc_inverse, mjd.qfrc_inverse, rtol=DYNAMICS["rtol"], atol=SOLVER["atol"]
    )


def test_runge_kutta_has_no_discrete_inverse():
    mj = world(integrator="RK4", flag='invdiscrete="enable"')
    m = put_model(mj)
    with pytest.raises(ValueError, match="flag invdiscrete needs another integrator than RK4"):
        jaxsim.inverse(m, jaxsim.make_data(m))


def test_says_what_is_not_carried():
    m = put_model(world())
    with pytest.raises(ValueError, match=r"carry 'actuator_force'; keep it: .*jaxsim\.inverse"):
        jaxsim.inverse(m, jaxsim.make_data(m, keep=[]))


FLAGS = ('fwdinv="enable"', 'fwdinv="enable" invdiscrete="enable"')


@pytest.mark.slow
@pytest.mark.parametrize("flags", [pytest.param(FLAGS[0], marks=pytest.mark.slow), FLAGS[1]])
def test_forward_and_inverse_are_compared_as_in_the_oracle(flags):
    """One iteration of the solver does not converge, and the difference measures the error.

    Both engines have another acceleration then: the oracle judges ours.
    """
    mj = mujoco.MjModel.from_xml_string(COMPARED.format(flags=flags))
    m = put_model(mj)
    d = jaxsim.make_data(m, "all")
    d = d.replace(
        qvel=d.qvel + 1,
        ctrl=d.ctrl + 1,
        qfrc_applied=d.qfrc_applied + 0.3,
        xfrc_applied=d.xfrc_applied.at[1].set(jnp.arange(6.0)),
    )
    ours = jax.jit(jaxsim.step)(m, d)
    theirs = jaxsim.get_data(mj, jax.jit(jaxsim.forward)(m, d))
    mujoco.mj_compareFwdInv(mj, theirs)
    assert ours.solver_fwdinv[1] > 1
    np.testing.assert_allclose(
        ours.solver_fwdinv,
        theirs.solver_fwdinv,
        rtol=ROUGH_DIFFERENCE["rtol"],
        atol=DYNAMICS["atol"],
    )
    np.testing.assert_allclose(
        ours.qfrc_inverse, theirs.qfrc_inverse, rtol=ROUGH_DIFFERENCE["rtol"], atol=DYNAMICS["atol"]
    )
    airborne = jax.jit(jaxsim.step)(m, d.replace(qpos=d.qpos.at[2].set(3.0), qvel=d.qvel * 0))
    np.testing.assert_allclose(airborne.solver_fwdinv[0], 0, atol=DYNAMICS["atol"])


COMPARED = """
<mujoco><option iterations="1" ls_iterations="50" ls_tolerance="1e-12" integrator="implicitfast">
  <flag {flags}/></option><worldbody>
  <geom type="plane" size="1 1 1"/><body pos="0 0 .09"><freejoint/><geom size=".1"/></body>
  <body pos="0 0 .3"><joint name="j" damping="3" frictionloss=".1"/><geom size=".1" pos=".1 0 0"/>
  </body></worldbody><actuator><motor joint="j"/></actuator></mujoco>"""
