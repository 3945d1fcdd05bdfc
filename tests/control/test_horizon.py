"""Receding horizon: a loop of plans and steps as one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from states import world
from tolerance import DYNAMICS, ROUNDING

from jaxsim.control import Problem, Term, ilqr, receding
from jaxsim.io.load import load_model
from jaxsim.physics import step
from jaxsim.physics.make_data import make_data

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


@pytest.mark.parametrize(
    "method", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in HOW]
)
def test_the_cart_comes_home(m, d, problem, method):
    planner = receding(m, problem, steps=STEPS, method=method, knots=4, **HOW[method])
    run = jax.jit(lambda d, key: loop(m, planner, d, planner.start(d, key), 60))
    (end, _), (ctrl, _) = run(d, jax.random.key(0))
    assert abs(end.qpos[0]) < 0.05
    assert abs(end.qvel[0]) < 0.1
    assert np.abs(ctrl).max() <= 2


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


def test_methods_that_there_are_not(m, problem):
    with pytest.raises(ValueError, match="method: no 'mpi'; did you mean 'mppi'"):
        receding(m, problem, steps=3, method="mpi")
    with pytest.raises(ValueError, match="receding: steps and knots are at least 1"):
        receding(m, problem, steps=0)
