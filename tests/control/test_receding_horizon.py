"""Receding horizon: a loop of plans and steps as one program."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from states import world
from tolerance import DYNAMICS, ROUNDING

from jaxsim.control import Problem, Term, cem, ilqr, mppi, predictive_sampling, receding, spline
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data

CART = """
<mujoco>
  <option timestep="0.05"><flag contact="disable" gravity="disable"/></option>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0" damping="0.3"/>
    <geom size="0.1" mass="1"/>
  </body></worldbody>
  <actuator><motor joint="x" ctrlrange="-2 2" ctrllimited="true"/></actuator>
</mujoco>
"""
STEPS = 12
HOW = {
    "ilqr": {"iterations": 2},
    "shoot": {"iterations": 20},
    "predictive_sampling": {"samples": 16},
    "mppi": {"samples": 32},
    "cem": {"samples": 32, "iterations": 2},
}


@pytest.fixture(scope="module")
def m():
    return load_model(CART)


@pytest.fixture(scope="module")
def d(m):
    return make_data(m).replace(qpos=jnp.array([0.5]))


@pytest.fixture(scope="module")
def problem():
    return Problem(
        [
            Term("home", lambda m, d: d.qpos, terminal=10.0),
            Term("slow", lambda m, d: d.qvel, weight=0.1, terminal=1.0),
            Term("effort", lambda m, d: d.ctrl, weight=0.02),
        ]
    )


def loop(m, planner, d, running, number):
    def turn(carry, _):
        d, running = carry
        u, running = planner(d, running)
        return (step(m, d.replace(ctrl=u)), running), (u, running.cost)

    return jax.lax.scan(turn, (d, running), None, length=number)


QUICK = ("ilqr", "mppi")


@pytest.mark.short("mppi")
@pytest.mark.parametrize(
    "method", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in HOW]
)
def test_receding_horizon_returns_the_cart_to_the_origin(m, d, problem, method):
    planner = receding(m, problem, steps=STEPS, method=method, knots=4, **HOW[method])
    run = jax.jit(lambda d, key: loop(m, planner, d, planner.start(d, key), 60))
    (end, _), (ctrl, _) = run(d, jax.random.key(0))
    assert abs(end.qpos[0]) < 0.05
    assert abs(end.qvel[0]) < 0.1
    assert np.abs(ctrl).max() <= 2


@pytest.mark.slow
def test_a_plan_is_moved_by_the_time_that_has_passed(m, d, problem):
    planner = receding(m, problem, steps=STEPS, iterations=1)
    plan = jax.jit(planner.plan)
    _, first = plan(d, planner.start(d))
    late = d.replace(time=d.time + 3 * m.opt.timestep)
    _, second = plan(late, first)
    old = jnp.concatenate([first.ctrl[3:], jnp.tile(first.ctrl[-1:], (3, 1))])
    expected = jax.jit(lambda u: ilqr(m, late, u, problem, iterations=1).ctrl)(old)
    np.testing.assert_allclose(second.ctrl, expected, **DYNAMICS)
    assert second.time == late.time


@pytest.mark.slow
def test_many_worlds_plan_each_alone(m, d, problem):
    planner = receding(m, problem, steps=STEPS, method="mppi", knots=3, samples=8)
    worlds = jax.vmap(lambda x: d.replace(qpos=x))(jnp.array([[0.3], [-0.4]]))
    keys = jax.random.split(jax.random.key(1))
    start = jax.vmap(planner.start)(worlds, keys)
    many, _ = jax.jit(jax.vmap(planner.plan))(worlds, start)
    for k in range(2):
        one = world((worlds, start), k)
        alone, _ = jax.jit(planner.plan)(*one)
        np.testing.assert_allclose(many[k], alone, **ROUNDING)


def home(m, d):
    return d.qpos


@pytest.fixture(scope="module")
def short(m):
    """A planner whose problem can be pickled."""
    return receding(m, Problem([Term("home", home)]), steps=3, iterations=1)


@pytest.mark.slow
def test_a_planner_is_a_function_for_jit(d, short):
    running = short.start(d)
    fast = jax.jit(short)
    expected = jax.jit(lambda d, running: short(d, running))(d, running)
    for _ in range(2):
        u, after = fast(d, running)
        np.testing.assert_array_equal(u, expected[0])
        np.testing.assert_array_equal(after.ctrl, expected[1].ctrl)
    assert fast._cache_size() == 1


@pytest.mark.slow
def test_a_planner_can_be_pickled(d, short):
    again = pickle.loads(pickle.dumps(short))
    expected, _ = jax.jit(short.plan)(d, short.start(d))
    u, _ = jax.jit(again)(d, again.start(d))
    np.testing.assert_array_equal(u, expected)


PENDULUM = """
<mujoco>
  <option timestep="0.05"/>
  <worldbody><body>
    <joint name="pivot" axis="0 1 0"/>
    <geom size="0.05" pos="0 0 -0.5" mass="1"/>
  </body></worldbody>
  <actuator><motor joint="pivot" ctrlrange="-8 8" ctrllimited="true"/></actuator>
</mujoco>
"""


@pytest.mark.slow
def test_a_hanging_pole_swings_up_from_a_guess():
    m = load_model(PENDULUM)
    d = make_data(m)
    # at rest below, the cost has no slope: only a guess shows the way
    upright = Term("upright", lambda m, d: 1 + jnp.cos(d.qpos), norm="power", parameters=(1.0,))
    slow = Term("slow", lambda m, d: d.qvel, weight=0.01)
    planner = receding(m, Problem([upright, slow]), steps=20, iterations=3)
    run = jax.jit(lambda guess: loop(m, planner, d, planner.start(d, guess=guess), 60)[0][0])
    still, moved = (run(jnp.full((20, 1), u)) for u in (0.0, 3.0))
    assert abs(still.qpos[0]) < 1e-9
    assert np.cos(moved.qpos[0]) < -0.99


def test_guesses_are_controls_within_limits_or_knots(m, d, problem):
    controls = receding(m, problem, steps=STEPS)
    given = jnp.linspace(-3, 1, STEPS)[:, None]
    running = controls.start(d, guess=given)
    np.testing.assert_array_equal(running.guess, np.clip(given, -2, 2))
    np.testing.assert_array_equal(running.ctrl, running.guess)

    knots = jnp.array([[0.0], [1.0], [-1.0], [0.5]])
    for interpolation in ("linear", "cubic"):
        how = {"knots": 4, "interpolation": interpolation}
        sampled = receding(m, problem, steps=STEPS, method="mppi", **how)
        running = sampled.start(d, guess=knots)
        np.testing.assert_array_equal(running.guess, knots)
        np.testing.assert_allclose(running.ctrl, spline(knots, STEPS, interpolation), **ROUNDING)
        fitted = sampled.start(d, guess=running.ctrl)
        np.testing.assert_allclose(fitted.guess, knots, **DYNAMICS)
    with pytest.raises(ValueError, match=r"guess: expected shape \(4, 1\) or \(12, 1\), got"):
        sampled.start(d, guess=jnp.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"guess: expected shape \(12, 1\), got"):
        controls.start(d, guess=jnp.zeros(12))


def test_unknown_methods_are_rejected(m, problem):
    with pytest.raises(ValueError, match="method: no 'mpi'; did you mean 'mppi'"):
        receding(m, problem, steps=3, method="mpi")
    with pytest.raises(ValueError, match="receding: steps and knots are at least 1"):
        receding(m, problem, steps=0)


@pytest.mark.parametrize("method", HOW)
def test_misspelled_options_are_told_the_nearest(m, problem, method):
    with pytest.raises(TypeError, match=f"{method}: no option 'iteration'; did you mean 'iterat"):
        receding(m, problem, steps=3, method=method, iteration=2)
    receding(m, problem, steps=3, method=method, **HOW[method])


@pytest.mark.parametrize("method", [predictive_sampling, mppi, cem])
def test_misspelled_options_of_methods_are_told_the_nearest(m, d, problem, method):
    with pytest.raises(TypeError, match="no option 'sample'; did you mean 'samples'"):
        method(m, d, jnp.zeros((3, 1)), problem, jax.random.key(0), steps=3, sample=2)
