"""Springs that yield against MuJoCo, and the law of ideal plasticity."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32, ROUNDING

import jaxsim
from jaxsim import mjx
from jaxsim.io.bridge import get_data, put_data, put_model

# The first joint and the first tendon do not yield.
MODEL = """
<mujoco><option timestep=".005" integrator="{integrator}"/>
<option><flag energy="enable" {flags}/></option>
<worldbody><site name="post" pos="0 .2 1"/>
  <body pos="2 0 1"><joint name="idle" stiffness="2"/><geom size=".1" pos=".1 0 0"/></body>
  <body name="arm" pos="0 0 .5"><joint name="turn" axis="0 1 0" stiffness="8 1 2" springyield="9"
    springref="-5"/><geom type="capsule" size=".03 .1" pos=".1 0 0"/>
    <body pos=".2 0 0"><joint name="slide" type="slide" axis="1 0 .3" stiffness="40"
      springyield=".03"/><geom size=".05" pos=".1 0 0"/>
      <body pos=".2 0 0"><joint name="ball" type="ball" stiffness="3 1 1" springyield="12"/>
        <geom type="box" size=".05 .08 .03" pos=".1 0 0"/><site name="tip" pos=".1 .05 0"/></body>
    </body></body>
</worldbody>
<tendon>
  <fixed stiffness="2"><joint joint="idle" coef="1"/></fixed>
  <spatial name="cord" stiffness="20 5 3" springyield=".02"><site site="post"/><site site="tip"/>
  </spatial>
  <fixed name="slack" stiffness="9" springyield=".01" springlength="0 .01">
    <joint joint="slide" coef="2"/><joint joint="turn" coef=".5"/></fixed>
  <fixed name="band" stiffness="9" springyield=".03" springlength="-.02 .01">
    <joint joint="slide" coef="1"/><joint joint="idle" coef=".3"/></fixed>
</tendon>
<keyframe><key plastic=".1 .2 2 0 .1 0 1.1 1.2 0 .1 -.1 .3" qpos=".1 .3 .1 1 .3 .1 0"/></keyframe>
</mujoco>
"""
WORLDS, STEPS = 3, 60
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
FIELDS = ("plastic", "qfrc_spring", "energy", "qpos", "qvel", "qacc", "ten_length")


@cache
def oracle(integrator: str = "Euler", flags: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL.format(integrator=integrator, flags=flags))


def begun(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    out = []
    for k in range(WORLDS):
        d = mujoco.MjData(mj)
        if k == 1:
            mujoco.mj_resetDataKeyframe(mj, d, 0)
        d.qvel[:] = 3 * np.random.default_rng(k).normal(size=mj.nv)
        out.append(d)
    return out


def ours(m: jaxsim.Model, states: list[mujoco.MjData]) -> jaxsim.Data:
    empty = jaxsim.make_data(m, ["qfrc_spring", "energy", "qacc", "ten_length"])
    names = ("time", "qpos", "qvel", "plastic")
    given = [{n: jnp.asarray(getattr(s, n), empty.qpos.dtype) for n in names} for s in states]
    return stack([empty.replace(**values) for values in given])


@cache
def program(m: jaxsim.Model):
    def advance(d, _):
        d = jax.vmap(jaxsim.step, (None, 0))(m, d)
        return d, {name: getattr(d, name) for name in FIELDS}

    def run(d):
        return jax.lax.scan(advance, d, length=STEPS)

    return jax.jit(run, compiler_options=COMPILER)


CASES = {"Euler": "", "RK4": "", "implicit": 'spring="disable"', "implicitfast": 'sleep="enable"'}


@pytest.mark.short("Euler")
@pytest.mark.parametrize(
    "integrator", ["Euler", "RK4", "implicit", pytest.param("implicitfast", marks=pytest.mark.slow)]
)
def test_many_steps(integrator):
    """A spring that is disabled does not yield."""
    mj = oracle(integrator, CASES[integrator])
    m, states = put_model(mj), begun(mj)
    start = np.array([d.plastic for d in states])
    _, found = program(m)(ours(m, states))
    for step in range(STEPS):
        for k, d in enumerate(states):
            mujoco.mj_step(mj, d)
            for name in FIELDS:
                mine, at = found[name][step, k], f"{name}, step {step}, world {k}"
                np.testing.assert_allclose(mine, getattr(d, name), **DYNAMICS, err_msg=at)
    moved = (np.asarray(found["plastic"][-1]) != start).any(axis=0)
    assert moved.all() != bool(mj.opt.disableflags)


@pytest.mark.slow
def test_a_tendon_that_sleeps_does_not_yield():
    """It has no length while it sleeps."""
    mj = mujoco.MjModel.from_xml_string(SLEEPER)
    m, theirs = put_model(mj), mujoco.MjData(mj)
    d, step = jaxsim.make_data(m), jax.jit(jaxsim.step, compiler_options=COMPILER)
    for _ in range(20):
        d = step(m, d)
        mujoco.mj_step(mj, theirs)
        np.testing.assert_allclose(d.plastic, theirs.plastic, **DYNAMICS)
    assert d.tree_asleep[0] >= 0
    assert d.ten_length[0] == 0
    assert d.plastic[0] > 1.88


SLEEPER = """<mujoco><option timestep=".01"><flag sleep="enable"/></option><worldbody>
  <geom type="plane" size="3 3 .1"/><site name="p" pos="0 0 2"/>
  <body pos="0 0 .0995"><freejoint/><geom size=".1" mass="1"/><site name="s"/></body></worldbody>
<tendon><spatial stiffness=".001" springyield=".02" springlength="1.88"><site site="p"/>
  <site site="s"/></spatial></tendon></mujoco>"""


def test_reset_and_key_frames():
    mj = oracle()
    m, theirs = put_model(mj), mujoco.MjData(mj)
    d = jaxsim.make_data(m)
    np.testing.assert_allclose(d.plastic, theirs.plastic, **ROUNDING)
    mujoco.mj_resetDataKeyframe(mj, theirs, 0)
    back = jaxsim.reset_data_keyframe(m, d.replace(plastic=d.plastic + 1), 0)
    np.testing.assert_allclose(back.plastic, theirs.plastic, **ROUNDING)
    again = jaxsim.reset_data(m, back)
    np.testing.assert_array_equal(again.plastic, d.plastic)
    bad = jax.jit(jaxsim.step, compiler_options=COMPILER)(m, back.replace(qvel=d.qvel + jnp.nan))
    theirs.qvel[:] = np.nan
    mujoco.mj_step(mj, theirs)
    assert theirs.warning[mujoco.mjtWarning.mjWARN_BADQVEL].number == 1
    np.testing.assert_allclose(bad.plastic, theirs.plastic, **ROUNDING)


# a slider pushed to and fro, and a spring that holds nothing
PRESS = """<mujoco><option timestep=".002" gravity="0 0 0"><flag energy="enable"/></option>
<worldbody><body><joint name="idle" type="slide"/><geom size=".1" mass="1"/></body>
<body pos="0 1 0"><joint name="press" type="slide" stiffness="50" springyield=".05" damping="5"/>
  <geom size=".1" mass="1"/></body></worldbody></mujoco>"""


@cache
def press():
    """The model, and what forces do to it: (x, rest, force of the spring), (steps, 3)."""
    m = jaxsim.load_model(PRESS)

    def step(d, force):
        d = jaxsim.step(m, d.replace(qfrc_applied=jnp.stack([0 * force, force])))
        return d, jnp.stack([d.qpos[1], d.plastic[0], d.qfrc_spring[1]])

    def run(m, forces):
        d = jaxsim.make_data(m, ["qfrc_spring"])
        return jax.lax.scan(step, d, forces)[1]

    return m, run


def test_the_force_stays_below_that_of_the_threshold():
    """Loaded slowly beyond the threshold it flows; unloaded it keeps what it flowed; the work that
    is lost is the force at the threshold times the flow."""
    m, run = press()
    up = np.concatenate([np.linspace(0, 6, 4000), np.linspace(6, 0, 4000)])
    x, rest, force = np.asarray(jax.jit(run)(m, jnp.asarray(up))).T
    assert np.abs(force).max() < 50 * 0.05 + 0.5  # the displacement of one step at most beyond
    assert rest[-1] > 0.5  # 6 N is more than the 2.5 N that it can hold
    np.testing.assert_allclose(x[-1], rest[-1], atol=0.01)
    still = rest[4000:] - rest[-1]
    assert (np.abs(still[-1000:]) < 1e-12).all()


@pytest.mark.slow
def test_gradient():
    """Gradients of the final rest state, by the threshold, the stiffness and the force."""
    m, run = press()
    push = jnp.asarray(4 * np.sin(np.linspace(0, 3, 60)) + 8)

    def end(threshold, stiffness, scale):
        changed = m.replace(
            jnt_springyield=m.jnt_springyield.at[1].set(threshold),
            jnt_stiffness=m.jnt_stiffness.at[1].set(stiffness),
        )
        return run(changed, scale * push)[-1, 1]

    at = (jnp.asarray(0.01), jnp.asarray(50.0), jnp.asarray(3.0))
    value, slopes = jax.jit(jax.value_and_grad(end, (0, 1, 2)))(*at)
    assert value > 0.01
    fast = jax.jit(end)
    for k, slope in enumerate(slopes):
        h = 1e-5 * at[k]
        both = [fast(*(a + s * h * float(i == k) for i, a in enumerate(at))) for s in (1, -1)]
        np.testing.assert_allclose(slope, (both[0] - both[1]) / (2 * h), **DIFFERENCE)


@pytest.mark.slow
def test_single_precision():
    mj = oracle()
    states = begun(mj)
    with jax.enable_x64(False):
        m = put_model(mj)
        _, found = program(m)(ours(m, states))
        assert found["plastic"].dtype == np.float32
        for k, d in enumerate(states):
            mujoco.mj_step(mj, d, 5)
            np.testing.assert_allclose(found["plastic"][4, k], d.plastic, **FLOAT32)


def test_states_are_exchanged_with_mujoco():
    mj = oracle()
    m, theirs = put_model(mj), begun(mj)[1]
    d = put_data(mj, theirs)
    bits = int(mujoco.mjtState.mjSTATE_PHYSICS)
    expected = np.zeros(mujoco.mj_stateSize(mj, bits))
    mujoco.mj_getState(mj, theirs, expected, bits)
    np.testing.assert_array_equal(mjx.get_state(m, d, bits), expected)
    back = mjx.set_state(m, jaxsim.make_data(m), jnp.asarray(expected), bits)
    np.testing.assert_array_equal(back.plastic, theirs.plastic)
    np.testing.assert_array_equal(get_data(mj, d).plastic, theirs.plastic)
    again = jaxsim.from_state_dict(jaxsim.make_data(m), jaxsim.state_dict(d))
    np.testing.assert_array_equal(again.plastic, d.plastic)
