"""Norms, terms, and what a motion costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING

from jaxsim.control import NORMS, Problem, Term, control_limits, motion_cost
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import forward, step
from jaxsim.physics.public.make_data import make_data

XML = """
<mujoco>
  <option timestep="0.02" integrator="{integrator}"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
      <site name="tip" pos="0.5 0 0"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="a"/>
  </actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/><jointvel joint="a"/></sensor>
</mujoco>
"""

# in closed form at x = (0.3, -0.4)
VALUES = {
    "quadratic": ((), 0.125),
    "l2": ((1.2,), 0.1),
    "l22": ((1.2, 2.0), 0.1),
    "cosh": ((1.0,), np.cosh(0.3) + np.cosh(0.4) - 2),
    "power": ((2.0,), 0.25),
    "smooth_abs": ((0.4,), 0.1 + np.sqrt(0.32) - 0.4),
    "smooth_abs2": ((0.4, 2.0), 0.1 + np.sqrt(0.32) - 0.4),
    "rectify": ((0.5,), 0.5 * (np.log1p(np.exp(0.6)) + np.log1p(np.exp(-0.8)))),
    "huber": ((0.35,), 0.045 + 0.35 * 0.225),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_are_their_formulas(name):
    parameters, value = VALUES[name]
    x = jnp.array([0.3, -0.4])
    function = NORMS[name].function
    np.testing.assert_allclose(function(x, *parameters), value, **ROUNDING)
    for at in (x, jnp.zeros(2)):
        gradient = jax.grad(function)(at, *parameters)
        h = 1e-6
        slope = [
            (function(at + e, *parameters) - function(at - e, *parameters)) / (2 * h)
            for e in h * jnp.eye(2)
        ]
        np.testing.assert_allclose(gradient, slope, **DIFFERENCE)
        curvature = np.linalg.eigvalsh(jax.hessian(function)(at, *parameters))
        assert np.isfinite(curvature).all()
        assert curvature.min() > -1e-12
    assert len(NORMS[name].defaults) == len(parameters)


@pytest.fixture(scope="module")
def problem():
    return Problem(
        [
            Term("tip", "tip", weight=2.0, terminal=5.0, norm="smooth_abs"),
            Term("slow", lambda m, d: d.qvel, weight=0.1),
            Term("effort", lambda m, d: d.ctrl, weight=jnp.array(0.01)),
        ]
    )


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_a_motion_costs_what_its_states_cost(problem, integrator):
    m = load_model(XML.format(integrator=integrator))
    start = d = make_data(m)
    ctrl = jnp.asarray(np.random.default_rng(0).uniform(-2, 2, (5, 2)))
    total, one, at = 0.0, jax.jit(step), jax.jit(forward)
    for u in ctrl:
        u = u.at[0].set(jnp.clip(u[0], -1, 1))
        seen = at(m, d.replace(ctrl=u))
        tip = np.sum(np.sqrt(seen.site_xpos[0] ** 2 + 0.01) - 0.1)
        total += 2 * tip + 0.05 * d.qvel[0] ** 2 + 0.005 * u @ u
        d = one(m, d.replace(ctrl=u))
    tip = np.sum(np.sqrt(at(m, d).site_xpos[0] ** 2 + 0.01) - 0.1)
    total += 5 * tip + 0.05 * d.qvel[0] ** 2
    np.testing.assert_allclose(jax.jit(motion_cost)(m, start, ctrl, problem), total, **ROUNDING)


def test_what_diverges_costs_without_bound(problem):
    m = load_model(XML.format(integrator="Euler"))
    d = make_data(m)
    cost = jax.jit(motion_cost)
    assert cost(m, d.replace(qvel=d.qvel + 1e11), jnp.zeros((2, 2)), problem) == jnp.inf
    assert cost(m, d, jnp.zeros((2, 2)).at[1, 1].set(jnp.nan), problem) == jnp.inf


def test_limits_are_those_of_model_and_problem():
    m = load_model(XML.format(integrator="Euler"))
    np.testing.assert_array_equal(control_limits(m), [[-1, -np.inf], [1, np.inf]])
    lower, upper = Problem([], lower=jnp.array([-2.0, -3.0]), upper=jnp.full(2, 0.5)).limits(m)
    np.testing.assert_array_equal(lower, [-1, -3])
    np.testing.assert_array_equal(upper, [0.5, 0.5])


@pytest.mark.slow
def test_weights_are_traced(problem):
    m = load_model(XML.format(integrator="Euler"))
    d = make_data(m)
    ctrl = jnp.zeros((2, 2))

    def cost(weight):
        return motion_cost(m, d, ctrl, Problem([Term("a", lambda m, d: d.qpos + 1, weight)]))

    np.testing.assert_allclose(jax.jit(jax.vmap(cost))(jnp.arange(3.0))[0], 0)
    slope = jax.jit(jax.grad(cost))(2.0)
    np.testing.assert_allclose(slope, jax.jit(cost)(1.0), **ROUNDING)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "quadrtic"}, "no norm is called 'quadrtic'; did you mean 'quadratic'"),
        ({"norm": "x"}, "there are: quadratic, l2, l22, cosh"),
        ({"parameters": (1.0,)}, "norm 'quadratic' has 0, got 1"),
        ({"residual": 3}, r"residual of 'a': expected a function \(m, d\) -> vector or the name"),
    ],
)
def test_terms_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        Term(**{"name": "a", "residual": "tip"} | arguments)


def test_problems_that_do_not_fit(problem):
    m = load_model(XML.format(integrator="Euler"))
    d = make_data(m)
    with pytest.raises(ValueError, match="terms: expected Terms of different names"):
        Problem([Term("a", "tip"), Term("a", "tip")])
    with pytest.raises(ValueError, match="no sensor is named 'tap'; did you mean 'tip'"):
        Problem([Term("a", "tap")]).running(m, d)
    with pytest.raises(ValueError, match="this Data does not carry 'sensordata'; keep it"):
        problem.running(m, make_data(m, keep=()))
    with pytest.raises(ValueError, match=r"ctrl: expected shape \(steps, 2\), got .*jax.vmap"):
        motion_cost(m, d, jnp.zeros((3, 4, 2)), problem)
    with pytest.raises(ValueError, match="problem: has no terms; give it some"):
        motion_cost(m, d, jnp.zeros((4, 2)), Problem())
    with pytest.raises(ValueError, match="problem: expected a Problem, got 3"):
        motion_cost(m, d, jnp.zeros((4, 2)), 3)


def test_goal_is_an_argument_of_a_function_only():
    term = Term("home", lambda m, d, goal: jnp.arange(2.0) - goal, goal=jnp.ones(2))
    np.testing.assert_array_equal(
        term.vector(load_model(XML.format(integrator="Euler")), None), [-1, 0]
    )
    with pytest.raises(ValueError, match="goal of 'home': a sensor has none"):
        Term("home", "position", goal=1.0)
