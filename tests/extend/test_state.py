"""Plugins with a state and activations: the order of a step is MuJoCo's, and states are kept.

The same plugin is registered in MuJoCo and here: an actuator, a sensor and a passive force of one
instance, a state that follows the velocity, two activations that it overwrites at the end of a
step, and a third that its dyntype adds.
"""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from extend import theirs
from states import world

import jaxsim
from jaxsim.enums import Stage

NAME = "test.state"
MODEL = """
<mujoco><option integrator="{integrator}" timestep=".01"/>
<extension>
  <plugin plugin="test.state"><instance name="one"/><instance name="two"/></plugin></extension>
<worldbody>
  <body><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <body pos=".3 0 0"><plugin instance="two"/><joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body>
</worldbody>
<actuator>
  <position joint="b" kp="2" timeconst=".1"/>
  <plugin instance="two" joint="b" actdim="3" dyntype="filter" dynprm=".2" actrange="-.8 .7"/>
  <plugin instance="one" joint="a" actdim="2" ctrlrange="-1 1" forcerange="-.5 .5"/>
  <plugin instance="two" joint="a" actdim="3" dyntype="filter" dynprm=".1" actearly="true"/>
</actuator>
<sensor><jointpos joint="b"/><plugin instance="two"/><plugin instance="one" cutoff=".4"/></sensor>
</mujoco>
"""
START = (0.3, -0.2)  # state of an instance
FIELDS = ("qpos", "qvel", "act", "act_dot", "actuator_force", "qfrc_passive", "sensordata", "qacc")


class Ours(jaxsim.extend.Plugin):
    name = NAME
    stage = Stage.VEL

    def readings(self, config):
        return 2

    def activations(self, config):
        return 2

    def state(self, config):
        return START

    def actuator(self, m, d, at, given):
        return given + at.state[0] * d.actuator_length[at.id] - at.act[:, 1]

    def sensor(self, m, d, at):
        return jnp.broadcast_to(jnp.stack([at.state[1], d.qpos[0]]), (len(at.id), 2))

    def passive(self, m, d, at):
        return -at.state[0] * d.qvel

    def act_dot(self, m, d, at, given):
        return jnp.stack([given - at.act[:, 0], d.actuator_velocity[at.id]], axis=1)

    def next_act(self, m, d, at):
        return at.act * jnp.array([[1.0, 0.9]]) + 0.01 * d.qvel[0]

    def next_state(self, m, d, at):
        rate = jnp.stack([d.qvel[0] - at.state[0], d.qpos[1] + at.state[0]])
        return at.state + m.opt.timestep * rate + 0.001 * d.time


def _served(m, instance):
    return np.flatnonzero(m.actuator_plugin == instance)


def _state(m, d, instance):
    start, number = m.plugin_stateadr[instance], m.plugin_statenum[instance]
    return d.plugin_state[start : start + number]


def _given(m, d, i, early):
    if m.actuator_dyntype[i] == mujoco.mjtDyn.mjDYN_NONE:
        return np.clip(d.ctrl[i], -1, 1)
    last = m.actuator_actadr[i] + 2
    act = d.act[last]
    return act + m.opt.timestep * d.act_dot[last] if early and m.actuator_actearly[i] else act


def _compute(m, d, instance, capability):
    state = _state(m, d, instance)
    if capability == theirs.ACTUATOR:
        for i in _served(m, instance):
            own = d.act[m.actuator_actadr[i] + 1]
            early = _given(m, d, i, early=True)
            d.actuator_force[i] = early + state[0] * d.actuator_length[i] - own
    elif capability == theirs.SENSOR:
        for i in np.flatnonzero(m.sensor_plugin == instance):
            d.sensordata[m.sensor_adr[i] :][:2] = state[1], d.qpos[0]
    elif (m.body_plugin == instance).any():
        d.qfrc_passive[:] -= state[0] * d.qvel


def _act_dot(m, d, instance):
    for i in _served(m, instance):
        own = slice(m.actuator_actadr[i], m.actuator_actadr[i] + 2)
        given = _given(m, d, i, early=False)
        d.act_dot[own] = given - d.act[own][0], d.actuator_velocity[i]


def _advance(m, d, instance):
    for i in _served(m, instance):
        own = slice(m.actuator_actadr[i], m.actuator_actadr[i] + 2)
        d.act[own] = d.act[own] * (1, 0.9) + 0.01 * d.qvel[0]
    state = _state(m, d, instance)
    rate = np.array([d.qvel[0] - state[0], d.qpos[1] + state[0]])
    state[:] = state + m.opt.timestep * rate + 0.001 * d.time


def _reset(state, instance):
    state[0], state[1] = START


@pytest.fixture(scope="module")
def of_now():
    """Set the inputs of MuJoCo's plugin."""
    stage = int(mujoco.mjtStage.mjSTAGE_VEL)
    return theirs.register(NAME, stage, 2, 2, _reset, _compute, _advance, _act_dot)


@pytest.fixture
def ours():
    jaxsim.extend.register_plugin(Ours)
    yield Ours
    jaxsim.extend.unregister_plugin(NAME)


@pytest.mark.parametrize(
    "integrator",
    ["Euler", *(pytest.param(i, marks=pytest.mark.slow) for i in ("RK4", "implicitfast"))],
)
def test_a_step_is_that_of_mujoco(of_now, ours, integrator):
    xml = MODEL.format(integrator=integrator)
    mj = mujoco.MjModel.from_xml_string(xml)
    theirs_ = mujoco.MjData(mj)
    of_now(mj, theirs_)
    m = jaxsim.load_model(xml)
    d, step = jaxsim.make_data(m), jax.jit(jaxsim.step)
    np.testing.assert_array_equal(d.plugin_state, theirs_.plugin_state)
    rng = np.random.default_rng(0)
    for _ in range(20):
        theirs_.ctrl[:] = rng.uniform(-2, 2, mj.nu)
        mujoco.mj_step(mj, theirs_)
        d = step(m, d.replace(ctrl=theirs_.ctrl))
        for field in (*FIELDS, "plugin_state"):
            ours_ = getattr(d, field)
            np.testing.assert_allclose(
                ours_, getattr(theirs_, field), rtol=1e-9, atol=1e-11, err_msg=field
            )
    assert np.ptp(theirs_.plugin_state) > 0.01


@pytest.mark.slow
def test_states_are_of_each_world(ours):
    """Worlds that begin with other states go other ways, as each does alone."""
    m = jaxsim.load_model(MODEL.format(integrator="Euler"))
    start = m.plugin_state0[None] + jnp.linspace(0, 1, 5)[:, None]
    d = jax.vmap(lambda s: jaxsim.make_data(m).replace(plugin_state=s))(start)
    d = d.replace(ctrl=jnp.full((5, m.nu), 0.3))
    go = jax.jit(lambda d: jaxsim.rollout(m, d, steps=5)[0])
    many = jax.jit(jax.vmap(lambda d: jaxsim.rollout(m, d, steps=5)[0]))(d)
    for k in (0, 4):
        one = go(world(d, k))
        for field in ("plugin_state", "act", "qpos", "sensordata"):
            np.testing.assert_allclose(getattr(many, field)[k], getattr(one, field), atol=1e-12)
    assert np.ptp(many.plugin_state[:, 0]) > 0.5


def test_a_world_goes_back_to_the_states_of_its_start(ours):
    m = jaxsim.load_model(MODEL.format(integrator="Euler"))
    d = jaxsim.make_data(m).replace(ctrl=jnp.full(m.nu, 0.3))
    step = jax.jit(jaxsim.step)
    later = step(m, step(m, d))
    assert np.abs(later.plugin_state - m.plugin_state0).max() > 1e-3
    np.testing.assert_array_equal(jaxsim.reset_data(m, later).plugin_state, m.plugin_state0)
    lost = step(m, later.replace(qpos=later.qpos.at[0].set(jnp.nan)))
    again = step(m, jaxsim.make_data(m))
    np.testing.assert_array_equal(lost.plugin_state, again.plugin_state)
    saved = jaxsim.from_state_dict(d, jaxsim.state_dict(later))
    np.testing.assert_array_equal(saved.plugin_state, later.plugin_state)
    place = jaxsim.support.plugin_state_index(m, "two")
    np.testing.assert_array_equal(later.plugin_state[place], later.plugin_state[2:])


@pytest.mark.slow
def test_the_derivative_of_a_motion_goes_through_states_and_activations(ours):
    m = jaxsim.load_model(MODEL.format(integrator="Euler"))
    d = jaxsim.make_data(m).replace(ctrl=jnp.full(m.nu, 0.3), qvel=jnp.array([0.5, -0.4]))

    @jax.jit
    def end(state):
        return jnp.sum(jaxsim.rollout(m, d.replace(plugin_state=state), steps=4)[0].qpos)

    slope, h = jax.grad(end)(d.plugin_state), 1e-6
    for k in range(m.npluginstate):
        change = jnp.zeros(m.npluginstate).at[k].set(h)
        difference = (end(d.plugin_state + change) - end(d.plugin_state - change)) / (2 * h)
        np.testing.assert_allclose(slope[k], difference, rtol=1e-6, atol=1e-9)
    assert np.abs(slope).max() > 1e-4
