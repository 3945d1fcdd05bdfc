"""The clock in single precision: time, delays, sampled sensors and phases after hours."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from flax import serialization

import jaxsim
from jaxsim.enums import State
from jaxsim.envs.tasks import trot
from jaxsim.io.bridge import get_data, put_data, put_model
from jaxsim.math.exact import add, cycle_fraction, two_sum
from jaxsim.model.indices import time_indices

H = 0.001
MODEL = f"""<mujoco><option timestep="{H}" gravity="0 0 0" {{option}}/><worldbody>
  <body><joint name="a" type="slide" damping="1"/><geom size=".1"/></body></worldbody>
<actuator><motor name="now" joint="a"/><motor joint="a" nsample="7" delay=".005"/>
  <motor joint="a" nsample="9" delay=".0032" interp="cubic"/></actuator>
<sensor><actuatorfrc actuator="now"/>
  <actuatorfrc actuator="now" nsample="6" delay=".002" interval=".004"/>
  <actuatorfrc actuator="now" nsample="4" delay=".0035" interp="linear"/>
  <actuatorfrc actuator="now" nsample="2" interval=".01"/>
  <actuatorfrc actuator="now" nsample="2" interval=".0035"/></sensor>
<keyframe><key time="20000"/></keyframe></mujoco>"""
BARE = MODEL.format(option="")
STEPS = 60
STARTS = (0.0, 1000.0, 20000.0, 1e5)


def clock(d: jaxsim.Data) -> np.ndarray:
    return np.float64(d.time) + np.float64(0 if d.time_low is None else d.time_low)


@pytest.fixture
def single():
    with jax.enable_x64(False):
        yield


def run(m, d, ctrl):
    def advance(d, u):
        d = jaxsim.step(m, d.replace(ctrl=jnp.full(3, u)))
        return d, (d.actuator_force, d.sensordata)

    return jax.lax.scan(advance, d, ctrl)


def shifted(mj: mujoco.MjModel, start: float) -> mujoco.MjData:
    """A state that begins later, with its past."""
    d = mujoco.MjData(mj)
    d.time += start
    d.history[time_indices(mj)] += start
    return d


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_delays_and_samples_are_the_same_at_any_time(single, integrator):
    """In a program of one world, and of worlds that begin at other times; against MuJoCo."""
    mj = mujoco.MjModel.from_xml_string(MODEL.format(option=f'integrator="{integrator}"'))
    m = put_model(mj)
    begun = [put_data(mj, shifted(mj, t)) for t in STARTS]
    ctrl = jnp.sin(jnp.arange(STEPS, dtype=jnp.float32))
    end, first = jax.jit(run)(m, begun[0], ctrl)
    many = jax.tree.map(lambda *a: jnp.stack(a), *begun)
    ends, found = jax.jit(jax.vmap(run, (None, 0, None)))(m, many, ctrl)
    np.testing.assert_allclose(clock(ends) - STARTS, STEPS * np.float32(H), atol=2e-9)
    np.testing.assert_allclose(clock(end), STEPS * np.float32(H), atol=2e-9)
    for mine, expected in zip(found, first, strict=True):
        for world in range(len(STARTS)):
            np.testing.assert_allclose(mine[world], expected, rtol=2e-5, atol=2e-5)
    d = mujoco.MjData(mj)
    for k in range(STEPS):
        d.ctrl[:] = np.sin(k)
        mujoco.mj_step(mj, d)
        np.testing.assert_allclose(first[0][k], d.actuator_force, atol=3e-3)
        np.testing.assert_allclose(first[1][k], d.sensordata, atol=3e-3)


def test_a_jump_of_time_is_mujocos(single):
    mj = mujoco.MjModel.from_xml_string(BARE)
    m, d, theirs = put_model(mj), jaxsim.make_data(put_model(mj)), mujoco.MjData(mj)
    d, theirs.time = d.replace(time=20000.0), 20000.0
    _, found = jax.jit(run)(m, d, jnp.arange(20, dtype=jnp.float32))
    for k in range(20):
        theirs.ctrl[:] = k
        mujoco.mj_step(mj, theirs)
        np.testing.assert_allclose(found[0][k], theirs.actuator_force, rtol=2e-4, atol=1e-4)
        np.testing.assert_allclose(found[1][k], theirs.sensordata, rtol=2e-4, atol=1e-4)


@pytest.mark.slow
def test_a_period_of_whole_steps_does_not_drift(single):
    """Ticks are on the clock, though the period is not a sum of steps as numbers of 24 bits."""
    m = jaxsim.load_model(BARE)
    end, _ = jax.jit(run)(m, jaxsim.make_data(m), jnp.zeros(1000, jnp.float32))
    at = int(np.flatnonzero(time_indices(m.structure) == m.sensor_historyadr[3])[0])
    tick = np.float64(end.history[m.sensor_historyadr[3]]) + np.float64(end.history_low[at])
    assert abs(clock(end) - tick - 10 * np.float64(np.float32(H))) < 1e-11


def test_time_steps_that_are_traced_and_differ_between_worlds(single):
    m = jaxsim.load_model("<mujoco/>")
    steps = np.array([1e-3, 2e-3, 3.3e-3, 1e-4], np.float32)

    def run(h):
        other = m.replace(opt=m.opt.replace(timestep=h))
        d = jaxsim.make_data(m).replace(time=jnp.asarray(20000.0))

        def advance(i, d):
            twice = other.replace(opt=other.opt.replace(timestep=h * (1 + i % 2)))
            return jaxsim.step(twice, d)

        return jax.lax.fori_loop(0, 200, advance, d)

    end = jax.jit(jax.vmap(run))(jnp.asarray(steps))
    np.testing.assert_allclose(clock(end) - 20000, 300 * np.float64(steps), atol=2e-9)


def test_double_precision_is_mujocos_running_sum():
    mj = mujoco.MjModel.from_xml_string(BARE)
    m, theirs = put_model(mj), mujoco.MjData(mj)
    d = jaxsim.make_data(m)
    assert d.time_low is None
    assert d.history_low is None
    end, _ = jax.jit(run)(m, d, jnp.zeros(700))
    for _ in range(700):
        mujoco.mj_step(mj, theirs)
    assert float(end.time) == theirs.time != 700 * H
    np.testing.assert_array_equal(end.history[time_indices(mj)], theirs.history[time_indices(mj)])


@pytest.mark.slow
def test_setting_time_sets_the_clock(single):
    m = jaxsim.load_model(BARE)
    step = jax.jit(jaxsim.step)
    late = jaxsim.reset_data_keyframe(m, jaxsim.make_data(m), 0)
    assert float(late.time) == 20000
    assert float(late.time_low) == 0
    late = step(m, late)
    assert float(late.time_low) != 0
    for again in (
        late.replace(time=5.0),
        late.replace(time=jnp.asarray(5.0)),
        late.tree_replace({"time": jnp.asarray(5.0)}),
        jaxsim.set_state(m, late, jnp.asarray([5.0]), jaxsim.enums.State.TIME),
        late.replace_unchecked({"time": jnp.asarray(5.0)}, native=False),  # past all checks
    ):
        np.testing.assert_allclose(clock(step(m, again)), 5 + np.float32(H), atol=1e-9)
    assert float(jaxsim.reset_data(m, late).time_low) == 0
    assert not np.any(late.replace(history=late.history).history_low)
    bad = step(m, late.replace(qpos=jnp.full(1, jnp.nan)))
    np.testing.assert_allclose(clock(bad), np.float32(H), atol=1e-12)  # the automatic reset
    worlds = jaxsim.replicate(late, 3).replace(time=jnp.arange(3.0))
    assert worlds.time_low.shape == (3,)
    assert not worlds.time_low.any()
    some = jaxsim.reset_data(m, jaxsim.replicate(late, 2), where=jnp.array([True, False]))
    np.testing.assert_array_equal(some.time_low, [0, late.time_low])
    axes = jax.tree.map(lambda _: None, late).replace(time=0)
    out = jax.vmap(lambda d: d.time + d.time_low, (axes,))(late.replace(time=jnp.arange(3.0)))
    np.testing.assert_array_equal(out, np.arange(3.0))


@pytest.mark.slow
def test_what_saves_a_state_saves_its_clock(single):
    mj = mujoco.MjModel.from_xml_string(BARE)
    m = put_model(mj)
    d, _ = jax.jit(run)(m, put_data(mj, shifted(mj, 20000.0)), jnp.ones(7, jnp.float32))
    assert float(d.time_low) != 0
    theirs = get_data(mj, d)
    np.testing.assert_allclose(theirs.time, 20000 + 7 * np.float64(np.float32(H)), atol=1e-10)
    newest = np.max(theirs.history[time_indices(mj)])
    np.testing.assert_allclose(newest, 20000 + 6 * np.float64(np.float32(H)), atol=1e-9)
    for back in (
        put_data(mj, theirs),
        serialization.from_bytes(jaxsim.make_data(m), serialization.to_bytes(d)),
        jaxsim.copy_state(m, d, jaxsim.make_data(m), jaxsim.enums.State.FULLPHYSICS),
    ):
        for name in ("time", "time_low", "history", "history_low"):
            np.testing.assert_array_equal(getattr(back, name), getattr(d, name), err_msg=name)
    values = jnp.arange(7.0)
    own = jaxsim.support.init_ctrl_history(m, d, 1, None, values)
    np.testing.assert_array_equal(own.history_low, d.history_low)
    own = jaxsim.support.init_ctrl_history(m, d, 1, jnp.arange(7.0), values)
    assert not own.history_low[1:8].any()
    np.testing.assert_array_equal(own.history_low[8:], d.history_low[8:])


@pytest.mark.slow
def test_reading_now_is_what_a_step_reads(single):
    mj = mujoco.MjModel.from_xml_string(BARE)
    m = put_model(mj)
    d, _ = jax.jit(run)(m, put_data(mj, shifted(mj, 20000.0)), jnp.arange(9, dtype=jnp.float32))
    after = jax.jit(jaxsim.step)(m, d)
    for i in (1, 2):
        read = jaxsim.support.read_ctrl(m, d, i, d.time)
        np.testing.assert_allclose(read, after.actuator_force[i : i + 1], rtol=1e-5)


@pytest.mark.slow
def test_a_ball_sleeps_and_wakes_by_the_same_clock(single):
    xml = f"""<mujoco><option timestep="{H}"><flag sleep="enable"/></option><worldbody>
      <geom type="plane" size="1 1 .1"/><body pos="0 0 .1"><freejoint/><geom size=".1"/></body>
      </worldbody></mujoco>"""
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m).replace(time=jnp.asarray(20000.0))
    end = jax.jit(lambda d: jax.lax.fori_loop(0, 200, lambda _, d: jaxsim.step(m, d), d))(d)
    assert end.tree_asleep[0] >= 0
    np.testing.assert_allclose(clock(end) - 20000, 200 * np.float64(np.float32(H)), atol=2e-9)


def test_exact_sums():
    """Compared with rational numbers; compiled with all optimizations, for one and for many."""
    rng = np.random.default_rng(0)
    a = (rng.normal(size=400) * 10.0 ** rng.integers(-6, 6, 400)).astype(np.float32)
    b = (rng.normal(size=400) * 10.0 ** rng.integers(-6, 6, 400)).astype(np.float32)
    for function in (jax.jit(two_sum), jax.jit(jax.vmap(two_sum)), two_sum):
        total, error = function(jnp.asarray(a), jnp.asarray(b))
        np.testing.assert_array_equal(total, a + b)
        for numbers in zip(a, b, np.array(total), np.array(error), strict=True):
            x, y, s, e = (Fraction(float(number)) for number in numbers)
            assert x + y == s + e
    # slopes are those of the sum
    primal, slope = jax.jvp(lambda x: sum(add(x, 2 * x, 3 * x)), (1.5,), (1.0,))
    assert primal == 9
    assert slope == 6


def test_phases_after_hours(single):
    rng = np.random.default_rng(1)
    time = rng.uniform(0, 1e5, 300).astype(np.float32)
    low = (time * rng.uniform(-3e-8, 3e-8, 300)).astype(np.float32)
    for rate in (2.5, 1.3, 1 / 3, 7.77):
        found = jax.jit(lambda t, x, rate=rate: cycle_fraction(t, x, rate))(time, low)
        for t, x, f in zip(time, low, np.array(found), strict=True):
            exact = float((Fraction(float(t)) + Fraction(float(x))) * Fraction(rate) % 1)
            assert abs((f - exact + 0.5) % 1 - 0.5) < 5e-6
    m = jaxsim.load_model("<mujoco/>")
    d = jaxsim.make_data(m).replace(time=20000.0)
    assert float(jaxsim.support.phase(d, 2.5)) == 0
    np.testing.assert_allclose(
        jax.grad(lambda t: jaxsim.support.phase(d.replace(time=t), 2.5))(0.3), 2.5
    )


def test_the_gait_goes_on_after_hours(single):
    command, low = jnp.array([0.5, 0.1, 0.2]), jnp.asarray(3e-4)
    late = jnp.asarray(20000.0)  # whole periods of the clock
    for past in (0.0, 0.125, 0.25):
        here = (jnp.asarray(past) + late, low), (jnp.asarray(past), low)
        np.testing.assert_allclose(*(trot.trot(command, *t) for t in here), atol=2e-5)
        np.testing.assert_allclose(*(trot.clock(*t) for t in here), atol=2e-5)


@pytest.mark.parametrize("spec", ["INTEGRATION", "FULLPHYSICS", "TIME"])
def test_a_state_vector_has_the_clock(single, spec):
    mj = mujoco.MjModel.from_xml_string(BARE)
    m, spec = put_model(mj), State[spec]
    move = jax.jit(run)
    d, _ = move(m, put_data(mj, shifted(mj, 20000.0)), jnp.ones(7, jnp.float32))
    assert float(d.time_low) != 0
    size = mujoco.mj_stateSize(mj, int(spec))
    vector = jaxsim.get_state(m, d, spec, low=True)
    assert vector.shape == (jaxsim.state_size(m, spec, low=True),)
    assert jaxsim.state_size(m, spec) == size
    np.testing.assert_array_equal(vector[:size], jaxsim.get_state(m, d, spec))

    # restored, in one world, under jit, and for many worlds
    fresh = jaxsim.make_data(m)
    saved = ["time", "time_low"] + ["history", "history_low"] * bool(spec & State.HISTORY)
    restore = jax.jit(lambda d, x: jaxsim.set_state(m, d, x, spec))
    worlds = jax.vmap(lambda d: jaxsim.get_state(m, d, spec, low=True))(jaxsim.replicate(d, 2))
    many = jax.vmap(restore)(jaxsim.replicate(fresh, 2), worlds)
    for back in (
        jaxsim.set_state(m, fresh, vector, spec),
        restore(fresh, vector),
        jax.tree.map(lambda x: x[1], many),
    ):
        for name in saved:
            np.testing.assert_array_equal(getattr(back, name), getattr(d, name), err_msg=name)
    if spec == State.INTEGRATION:
        ends = [move(m, x, jnp.ones(7, jnp.float32))[0] for x in (d, restore(fresh, vector))]
        assert clock(ends[0]) == clock(ends[1])
        np.testing.assert_allclose(clock(ends[1]) - clock(d), 7 * np.float32(H), atol=1e-9)

    # parts of it
    time = jaxsim.extract_state(m, vector, spec, State.TIME)
    np.testing.assert_array_equal(time, [d.time, d.time_low])
    time = jaxsim.extract_state(m, vector[:size], spec, State.TIME)
    np.testing.assert_array_equal(time, [d.time])

    # a vector of MuJoCo, in double precision, and one rounded to single precision
    theirs = np.zeros(size)
    mujoco.mj_getState(mj, get_data(mj, d), theirs, int(spec))
    back = jaxsim.set_state(m, fresh, theirs, spec)
    for name in saved:
        np.testing.assert_allclose(getattr(back, name), getattr(d, name), atol=1e-12, err_msg=name)
    rounded = jaxsim.set_state(m, d, jnp.asarray(theirs, jnp.float32), spec)
    assert float(rounded.time_low) == 0
    with pytest.raises(ValueError, match=rf"state: expected shape .* \(\({size},\) without low"):
        jaxsim.set_state(m, d, vector[: size - 1], spec)


def test_a_state_vector_in_double_precision_is_mujocos():
    mj = mujoco.MjModel.from_xml_string(BARE)
    m = put_model(mj)
    for spec in (State.INTEGRATION, State.TIME):
        assert jaxsim.state_size(m, spec) == mujoco.mj_stateSize(mj, int(spec))
        assert jaxsim.state_size(m, spec, low=True) == jaxsim.state_size(m, spec)
