"""Public functions of single stages, mass matrix and Jacobians, against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.integrate.test_integrate import MANY, moving, world
from public import public
from tolerance import DYNAMICS, STAGES

import jaxsim
from jaxsim.io.bridge import put_data, put_model


@cache
def pair():
    """A moving scene: MuJoCo's, after its forward dynamics, and ours with the state alone."""
    mj = world(actuators=MANY, tendon='armature=".2"')
    mjd = moving(mj)
    m, d = put_model(mj), put_data(mj, mjd, keep="all")
    mujoco.mj_forward(mj, mjd)
    return mj, mjd, m, d


def close(found, expected):
    np.testing.assert_allclose(found, expected, **STAGES)


def test_stage_by_stage():
    mj, mjd, m, d = pair()
    d = jaxsim.stages.kinematics(m, d)
    close(d.xpos, mjd.xpos)
    d = jaxsim.stages.com_pos(m, d)
    close(d.cinert, mjd.cinert)
    d = jaxsim.stages.tendon(m, d)
    close(d.ten_length, mjd.ten_length)
    d = jaxsim.stages.transmission(m, jaxsim.stages.crb(m, d))
    close(d.actuator_length, mjd.actuator_length)
    d = jaxsim.stages.com_vel(m, d)
    close(d.cvel, mjd.cvel)
    close(jaxsim.stages.rne(m, d), mjd.qfrc_bias)
    acc = np.random.default_rng(0).normal(size=mj.nv)
    mjd.qacc[:] = acc
    expected = np.zeros(mj.nv)
    mujoco.mj_rne(mj, mjd, 1, expected)
    close(jaxsim.stages.rne(m, d.replace(qacc=jnp.asarray(acc)), flg_acc=True), expected)


def test_mass_matrix():
    mj, mjd, m, d = pair()
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, mjd, M)
    x = jnp.asarray(np.random.default_rng(0).normal(size=mj.nv))
    close(jaxsim.support.full_m(m, d), M)
    close(jaxsim.support.mul_m(m, d, x), M @ x)
    close(jaxsim.support.solve_m(m, d, x), np.linalg.solve(M, x))


def test_jacobians():
    """Jacobians of each body alone, and of all bodies at once."""
    mj, mjd, m, d = pair()
    mujoco.mj_kinematics(mj, mjd)
    mujoco.mj_comPos(mj, mjd)
    p, r = np.zeros((2, 3, mj.nv))
    point = np.array([0.3, -0.2, 0.5])
    every = jax.jit(jax.vmap(jaxsim.support.jac, (None, None, None, 0)))
    jacp, jacr = every(m, d, jnp.asarray(point), jnp.arange(mj.nbody))
    assert jacp.shape == (mj.nbody, mj.nv, 3)
    for body in range(mj.nbody):
        mujoco.mj_jac(mj, mjd, p, r, point, body)
        close(jacp[body], p.T)
        close(jacr[body], r.T)
    single = {
        "jac_body": (mujoco.mj_jacBody, 2),
        "jac_body_com": (mujoco.mj_jacBodyCom, 4),
        "jac_geom": (mujoco.mj_jacGeom, 3),
        "jac_site": (mujoco.mj_jacSite, 0),
    }
    for name, (expected, index) in single.items():
        expected(mj, mjd, p, r, index)
        found = public(name)(m, d, index)
        close(found[0], p.T)
        close(found[1], r.T)


def test_configurations():
    mj, mjd, m, d = pair()
    v = np.random.default_rng(0).normal(size=mj.nv)
    qpos, back = mjd.qpos.copy(), np.zeros(mj.nv)
    mujoco.mj_integratePos(mj, qpos, v, 0.3)
    found = jaxsim.support.integrate_pos(m, d.qpos, jnp.asarray(v), 0.3)
    close(found, qpos)
    mujoco.mj_differentiatePos(mj, back, 0.3, mjd.qpos, qpos)
    close(jaxsim.support.differentiate_pos(m, 0.3, d.qpos, found), back)


def test_a_stage_says_what_is_missing():
    _, _, m, _ = pair()
    with pytest.raises(ValueError, match=r"com_vel: this Data does not carry 'xanchor'; keep it"):
        jaxsim.stages.com_vel(m, jaxsim.make_data(m, keep=["cvel"]))
    with pytest.raises(ValueError, match=r"crb: this Data does not carry 'M'; keep it"):
        jaxsim.stages.crb(m, jaxsim.make_data(m))


TOUCH = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 2"><freejoint/><geom size="0.1"/></body>
    <body pos="0 0 .09"><freejoint/><geom size="0.1"/><site name="s" size="0.2"/></body>
  </worldbody>
  <sensor><touch site="s"/><contact site="s" data="found force"/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("keep", ["all", "default", ["sensordata"], []])
def test_what_is_not_kept_is_there_all_the_same(keep):
    """Sensors read contacts whether or not the caller's Data carries them."""
    mj = mujoco.MjModel.from_xml_string(TOUCH)
    mjd = mujoco.MjData(mj)
    mujoco.mj_forward(mj, mjd)
    m = put_model(mj)
    d = jaxsim.forward(m, jaxsim.make_data(m, keep))
    close(d.qacc_warmstart, 0)
    if d.sensordata is not None:
        assert mjd.sensordata[0] > 100
        np.testing.assert_allclose(d.sensordata, mjd.sensordata, rtol=1e-6, atol=DYNAMICS["atol"])


def test_a_call_outside_a_program_is_a_program_of_its_own():
    """Made once for all states of a model; the same as in a program of the user, or without any."""
    traced = []

    def control(m, d):
        traced.append(m)
        return d.replace(ctrl=0.1 * d.qpos)

    m = jaxsim.load_model(
        "<mujoco><worldbody><body><joint name='a' axis='0 1 0'/><geom size='.1' pos='.1 0 0'/>"
        "</body></worldbody><actuator><motor joint='a'/></actuator></mujoco>"
    ).replace(callbacks=jaxsim.Callbacks(control=control))
    first = jaxsim.step(m, jaxsim.make_data(m))
    second = jaxsim.step(m, first)

    def end(qvel):
        return jaxsim.step(m, first.replace(qvel=qvel)).qpos[0]

    speeds = jnp.linspace(-1, 1, 5)[:, None]
    for function, given in ((end, speeds[0]), (jax.grad(end), speeds[0]), (jax.vmap(end), speeds)):
        before = function(given)
        times = len(traced)
        after = function(given)
        assert len(traced) == times > 0
        close(after, before)
        close(after, jax.jit(function)(given))
    expected = jax.jit(jaxsim.step)(m, first)
    with jax.disable_jit():
        bare = jaxsim.step(m, first)
    for name in ("qpos", "qvel", "time", "xpos"):
        np.testing.assert_array_equal(getattr(second, name), getattr(expected, name))
        close(getattr(bare, name), getattr(second, name))
    m2 = m.replace(opt=m.opt.replace(timestep=2 * m.opt.timestep))
    assert jaxsim.step(m2, first).time == first.time + m2.opt.timestep
