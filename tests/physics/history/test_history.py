"""Delays, histories and sampled sensors against MuJoCo, in worlds with different times."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack, world
from tolerance import DYNAMICS, FLOAT32, ROUGH_DIFFERENCE, ROUNDING

import jaxsim
from jaxsim import mjx
from jaxsim.derivative import transition, transition_fd
from jaxsim.errors import AssetError
from jaxsim.io.bridge import get_data, put_data, put_model
from jaxsim.io.consistency import check_structure

# The timestep divides neither delays nor periods; the first of each kind has no history.
MODEL = """
<mujoco><option timestep=".004" integrator="{integrator}"/>
<option><flag {flags}/></option>
<worldbody><geom type="plane" size="3 3 .1"/>
  <body name="idle" pos="2 0 1"><joint name="idle"/><geom size=".1" pos=".1 0 0"/></body>
  <body name="arm" pos="0 0 .5"><joint name="lift" type="slide" axis="0 0 1" damping="1"/>
    <geom size=".1" mass="1"/>
    <body pos=".2 0 0"><joint name="turn" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".03 .1" pos=".1 0 0"/><site name="tip" pos=".2 .1 0"/>
    </body></body>
  <body name="ball" pos="1 0 .09"><freejoint/><geom size=".1"/>
    <site name="under" size=".12"/></body>
</worldbody>
<actuator>
  <motor joint="idle"/>
  <motor name="held" joint="lift" nsample="4" delay=".01" ctrlrange="-.6 .6"/>
  <general joint="turn" dyntype="filter" dynprm=".03" gainprm="2" nsample="5" delay=".018"
    interp="linear"/>
  <motor joint="turn" nsample="3"/>
  <position joint="turn" kp="3" kv=".2" nsample="6" delay=".0135" interp="cubic"/>
  <motor joint="idle" nsample="2" delay=".008" gear=".3"/>
  <motor joint="lift" nsample="2" delay=".03" gear=".1"/>
  <motor joint="idle" nsample="3" delay=".0015" interp="linear"/>
</actuator>
<sensor>
  <jointpos joint="idle"/>
  <framepos objtype="site" objname="tip" nsample="4" delay=".0105"/>
  <jointpos joint="turn" nsample="3" interval=".01"/>
  <jointvel joint="lift" nsample="6" delay=".017" interp="cubic" interval=".006 -.002"/>
  <framelinvel objtype="site" objname="tip" nsample="3"/>
  <gyro site="tip" nsample="5" delay=".011" interp="linear" cutoff=".4"/>
  <touch site="under" nsample="3" delay=".008"/>
  <accelerometer site="tip" nsample="4" interval=".0101 -.003"/>
  <actuatorfrc actuator="held" nsample="2" delay=".004"/>
  <force site="tip" nsample="3" delay=".009" interp="linear"/>
  <clock nsample="4" delay=".013" interp="linear"/>
  <subtreelinvel body="arm" nsample="3" delay=".007"/>
  <framepos objtype="body" objname="ball" nsample="2" interval=".01"/>
  <velocimeter site="under" nsample="2"/>
  <velocimeter site="under" nsample="2" delay=".004"/>
</sensor>
<keyframe><key time=".1" qpos="0 .1 .2 1 0 .1 1 0 0 0" ctrl="1 2 3 4 5 6 7 8"/></keyframe></mujoco>
"""
WORLDS, STEPS = 3, 40
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
FIELDS = ("history", "sensordata", "actuator_force", "act", "qpos", "qvel", "qacc")


@cache
def oracle(integrator: str, flags: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL.format(integrator=integrator, flags=flags))


def controls() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(STEPS, WORLDS, 8))


def begun(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    """Return worlds in motion: one as reset, one from a keyframe, one with an earlier time."""
    out = []
    for k in range(WORLDS):
        d = mujoco.MjData(mj)
        if k == 1:
            mujoco.mj_resetDataKeyframe(mj, d, 0)
        d.qvel[:3] = np.random.default_rng(k).normal(size=3)
        if k == 2:
            for _ in range(9):
                d.ctrl[:] += 0.3
                mujoco.mj_step(mj, d)
            d.time -= 0.0222
        out.append(d)
    return out


def ours(m: jaxsim.Model, states: list[mujoco.MjData]) -> jaxsim.Data:
    names = ("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "sensordata")
    empty = jaxsim.make_data(m)
    given = [{n: jnp.asarray(getattr(s, n), empty.qpos.dtype) for n in names} for s in states]
    return stack([empty.replace(**values) for values in given])


@cache
def program(m: jaxsim.Model):
    def advance(d, ctrl):
        d = jax.vmap(jaxsim.step, (None, 0))(m, d.replace(ctrl=ctrl))
        return d, {name: getattr(d, name) for name in FIELDS}

    return jax.jit(lambda d, ctrl: jax.lax.scan(advance, d, ctrl), compiler_options=COMPILER)


CASES = {
    "Euler": "",
    "RK4": "",
    "implicit": 'sensor="disable" actuation="disable"',
    "implicitfast": 'sleep="enable"',
}


@pytest.mark.short("Euler")
@pytest.mark.parametrize(
    "integrator",
    [
        "Euler",
        "implicit",
        *(pytest.param(i, marks=pytest.mark.slow) for i in ("RK4", "implicitfast")),
    ],
)
def test_many_steps(integrator):
    """Buffers are filled whatever is switched off, and while what is sensed sleeps."""
    mj, ctrl = oracle(integrator, CASES[integrator]), controls()
    m, states = put_model(mj), begun(mj)
    _, found = program(m)(ours(m, states), jnp.asarray(ctrl))
    fell_asleep = False
    for step in range(STEPS):
        for k, d in enumerate(states):
            d.ctrl[:] = ctrl[step, k]
            mujoco.mj_step(mj, d)
            fell_asleep |= d.tree_asleep[-1] >= 0
            for name in FIELDS:
                mine, at = found[name][step, k], f"{name}, step {step}, world {k}"
                np.testing.assert_allclose(mine, getattr(d, name), **DYNAMICS, err_msg=at)
    assert fell_asleep == bool(mj.opt.enableflags)


def test_reset_and_key_frames():
    """Samples are zero at times before zero, whatever the time of a keyframe or of a bad world."""
    mj = oracle("Euler")
    m, theirs = put_model(mj), mujoco.MjData(mj)
    d = jaxsim.make_data(m)
    np.testing.assert_array_equal(d.history, theirs.history)
    mujoco.mj_resetDataKeyframe(mj, theirs, 0)
    back = jaxsim.reset_data_keyframe(m, d.replace(history=d.history + 1), 0)
    np.testing.assert_array_equal(back.history, theirs.history)
    np.testing.assert_array_equal(jaxsim.reset_data(m, back).history, d.history)

    worlds = stack([back.replace(history=back.history + 1)] * WORLDS)
    worlds = worlds.replace(qvel=worlds.qvel.at[1].set(jnp.nan))
    zero = jnp.zeros((STEPS, WORLDS, mj.nu))
    _, found = program(m)(worlds, zero)
    theirs.qvel[:] = np.nan
    for step in range(10):
        theirs.ctrl[:] = 0
        mujoco.mj_step(mj, theirs)
        np.testing.assert_allclose(found["history"][step, 1], theirs.history, **DYNAMICS)


def test_the_first_history_with_any_interval():
    """Times of samples for periods of whole steps, of others, and of less than a step."""
    mj = mujoco.MjModel.from_xml_string(SAMPLED)
    m, rng = put_model(mj), np.random.default_rng(0)
    given, expected = [], []
    for _ in range(200):
        h = rng.choice([0.001, 0.002, 0.01, 0.1, 0.005])
        period = rng.choice([rng.integers(1, 9) * h, rng.uniform(0.2, 4) * h])
        phase = -rng.choice([0, rng.uniform(0, 1), 0.5]) * period
        mj.opt.timestep, mj.sensor_interval[1] = h, (period, phase)
        given.append((h, mj.sensor_interval.copy()))
        expected.append(mujoco.MjData(mj).history)

    def start(h, interval):
        other = m.replace(opt=m.opt.replace(timestep=h), sensor_interval=interval)
        return jaxsim.make_data(other).history

    found = jax.vmap(start)(*(jnp.asarray(np.array(a)) for a in zip(*given, strict=True)))
    np.testing.assert_array_equal(found, np.array(expected))


SAMPLED = """<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body></worldbody>
<sensor><jointpos joint="a"/><jointpos joint="a" nsample="7" interval="1"/></sensor></mujoco>"""


@cache
def filled() -> tuple:
    """A model with a history of uneven times, in both."""
    mj = mujoco.MjModel.from_xml_string(MODEL.format(integrator="Euler", flags=""))
    m, theirs = put_model(mj), mujoco.MjData(mj)
    rng = np.random.default_rng(3)
    d = jaxsim.make_data(m)
    for i in np.flatnonzero(mj.actuator_historyadr >= 0):
        times = np.cumsum(rng.uniform(0.01, 0.1, mj.actuator_history[i, 0]))
        values = rng.normal(size=(mj.actuator_history[i, 0], 1))
        mujoco.mj_initCtrlHistory(mj, theirs, i, times, values)
        d = jaxsim.support.init_ctrl_history(m, d, int(i), times, values)
    for i in np.flatnonzero(mj.sensor_historyadr >= 0):
        times = np.cumsum(rng.uniform(0.01, 0.1, mj.sensor_history[i, 0]))
        values = rng.normal(size=(mj.sensor_history[i, 0], mj.sensor_dim[i]))
        mujoco.mj_initSensorHistory(mj, theirs, i, times, values, 0.1 * i)
        d = jaxsim.support.init_sensor_history(m, d, int(i), times, values, 0.1 * i)
    return mj, m, theirs, d


def test_a_history_of_ones_own():
    mj, m, theirs, d = filled()
    np.testing.assert_array_equal(d.history, theirs.history)
    # into a ring whose oldest sample is not in its first slot
    turned = begun(mj)[2]
    values = np.arange(2.0)
    mine = d.replace(history=jnp.asarray(turned.history))
    assert mine.history[mj.actuator_historyadr[5] + 1] == 0
    mujoco.mj_initCtrlHistory(mj, turned, 5, None, values)
    mine = jaxsim.support.init_ctrl_history(m, mine, 5, None, values)
    np.testing.assert_array_equal(mine.history, turned.history)


def test_reading_at_any_time():
    """All interpolations, before, between, at and after the samples."""
    mj, m, theirs, d = filled()
    times = np.concatenate(
        [np.linspace(-0.05, 0.6, 40), d.history[mj.actuator_historyadr[2] + 2 :][:5]]
    )
    for kind, ids in (("actuator", range(mj.nactuator)), ("sensor", range(mj.nsensor))):
        read = jaxsim.support.read_ctrl if kind == "actuator" else jaxsim.support.read_sensor
        theirs_read = mujoco.mj_readCtrl if kind == "actuator" else mujoco.mj_readSensor
        size = mj.actuator_ctrlnum if kind == "actuator" else mj.sensor_dim
        for i in ids:
            for interp in (-1, 0, 1, 2):
                mine = jax.vmap(lambda t, i=i, k=interp, f=read: f(m, d, i, t, k))(
                    jnp.asarray(times)
                )
                expected = [
                    np.array(theirs_read(mj, theirs, i, t, np.zeros(size[i]), interp)).ravel()
                    for t in times
                ]
                np.testing.assert_allclose(mine, expected, **ROUNDING, err_msg=f"{kind} {i}")


def test_what_is_refused():
    _, m, _, d = filled()
    with pytest.raises(ValueError, match="actuator: the model has 8, there is no number 9"):
        jaxsim.support.read_ctrl(m, d, 9, 0.0)
    with pytest.raises(ValueError, match="interp: expected one of"):
        jaxsim.support.read_ctrl(m, d, 1, 0.0, 7)
    with pytest.raises(ValueError, match="no history; give the element nsample"):
        jaxsim.support.init_ctrl_history(m, d, 0, None, np.zeros(2))
    with pytest.raises(ValueError, match=r"values: expected shape \(4, 1\) or \(4,\), got \(3,\)"):
        jaxsim.support.init_ctrl_history(m, d, "held", None, np.zeros(3))
    with pytest.raises(ValueError, match="times: expected increasing numbers"):
        jaxsim.support.init_ctrl_history(m, d, "held", np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="compiled out a history"):
        m.replace(actuator_delay=m.actuator_delay.at[0].set(0.1))
    assert jaxsim.load_model("<mujoco/>").nhistory == 0


def test_gradient_through_the_past():
    """Gradients of a delayed push by each control that is still in the buffer, and by the delay."""
    m = jaxsim.load_model(BARE.replace('delay=".015"', 'delay=".0145" interp="cubic"'))
    ctrl = jnp.asarray(np.random.default_rng(1).normal(size=(12, 2))).at[:, 0].set(0)

    def end(ctrl, delay):
        late = m.replace(actuator_delay=m.actuator_delay.at[1].set(delay))

        def step(d, u):
            return jaxsim.step(late, d.replace(ctrl=u)), None

        d = jax.lax.scan(step, jaxsim.make_data(m), ctrl)[0]
        return 1e4 * d.qpos[0] + d.sensordata[0]

    at = (ctrl, jnp.asarray(0.0145))
    both = jax.jit(jax.value_and_grad(end, (0, 1)))  # one program
    slope, by_delay = both(*at)[1]
    assert (np.abs(slope[:7, 1]) > 1e-3).all()
    assert (slope[9:, 1] == 0).all()  # what has not come out yet
    h = 1e-6
    change = (both(ctrl, at[1] + h)[0] - both(ctrl, at[1] - h)[0]) / (2 * h)
    np.testing.assert_allclose(by_delay, change, **ROUGH_DIFFERENCE)
    way = jnp.asarray(np.random.default_rng(2).normal(size=(12, 2)))
    change = (both(ctrl + h * way, at[1])[0] - both(ctrl - h * way, at[1])[0]) / (2 * h)
    np.testing.assert_allclose(jnp.vdot(slope, way), change, **ROUGH_DIFFERENCE)


@pytest.mark.slow
def test_stages_called_one_by_one_are_a_step():
    mj = oracle("Euler")
    m = put_model(mj)
    d = world(ours(m, begun(mj)), 1)
    d = d.replace(ctrl=jnp.arange(8.0) / 8)
    whole = jax.jit(jaxsim.step, compiler_options=COMPILER)(m, d)
    apart = jax.jit(
        lambda d: jaxsim.stages.euler(m, jaxsim.forward(m, d)), compiler_options=COMPILER
    )(d)
    for name in ("history", "sensordata", "qpos"):
        np.testing.assert_allclose(getattr(apart, name), getattr(whole, name), **DYNAMICS)


@pytest.mark.slow
def test_single_precision():
    """The samples are those of double precision, not their neighbors, where the delay is a number
    of steps and the clock has run for a minute."""
    mj = mujoco.MjModel.from_xml_string(BARE)
    d = mujoco.MjData(mj)
    with jax.enable_x64(False):
        m = put_model(mj)
        step = jax.jit(jaxsim.step)
        late = jaxsim.make_data(m)
        assert late.history.dtype == np.float32
        late = late.replace(time=jnp.asarray(60.0, jnp.float32))
        d.time = 60.0
        for k in range(50):
            late = step(m, late.replace(ctrl=jnp.full(2, k, jnp.float32)))
            d.ctrl[:] = k
            mujoco.mj_step(mj, d)
            np.testing.assert_allclose(late.actuator_force, d.actuator_force, **FLOAT32)
            np.testing.assert_allclose(late.sensordata, d.sensordata, **FLOAT32)


BARE = """<mujoco><option timestep=".003" gravity="0 0 0"/><worldbody>
  <body><joint name="a" type="slide" damping="1"/><geom size=".1"/></body></worldbody>
<actuator><motor name="now" joint="a"/><motor joint="a" nsample="7" delay=".015"/></actuator>
<sensor><actuatorfrc actuator="now"/>
  <actuatorfrc actuator="now" nsample="6" delay=".006" interval=".012"/></sensor></mujoco>"""


def test_one_step_alone_is_not_linearized():
    """The state of a linearization does not have the past."""
    m = jaxsim.load_model(BARE)
    for function in (transition, transition_fd):
        with pytest.raises(ValueError, match="depends on past controls or readings"):
            function(m, jaxsim.make_data(m))


def test_states_are_exchanged_with_mujoco():
    mj, m, theirs, d = filled()
    bits = int(mujoco.mjtState.mjSTATE_PHYSICS)
    expected = np.zeros(mujoco.mj_stateSize(mj, bits))
    mujoco.mj_getState(mj, theirs, expected, bits)
    assert mjx.state_size(m, bits) == len(expected)
    np.testing.assert_array_equal(mjx.get_state(m, d, bits), expected)
    back = mjx.set_state(m, jaxsim.make_data(m), jnp.asarray(expected), bits)
    np.testing.assert_array_equal(back.history, d.history)
    np.testing.assert_array_equal(put_data(mj, theirs).history, d.history)
    np.testing.assert_array_equal(get_data(mj, d).history, theirs.history)
    again = jaxsim.from_state_dict(jaxsim.make_data(m), jaxsim.state_dict(d))
    np.testing.assert_array_equal(again.history, d.history)


def test_a_saved_model_whose_samples_leave_the_history_is_refused():
    s = filled()[1].structure
    check_structure(s)
    more = s.actuator_history.copy()
    more[2, 0] = 1000
    with pytest.raises(AssetError, match=r"actuator_historyadr\[2\] is .* exceed nhistory"):
        check_structure(s.replace(actuator_history=more))
