"""Planning by sampling and by gradients of whole motions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tolerance import ROUNDING

from jaxsim.control import (
    Problem,
    Term,
    cem,
    ilqr,
    motion_cost,
    motion_costs,
    mppi,
    predictive_sampling,
    shoot,
    spline,
)
from jaxsim.io.load import load_model
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
STEPS = 30
METHODS = {"predictive": predictive_sampling, "mppi": mppi, "cem": cem}
SIGMA = {"cem": 1.0}  # its spread shrinks by itself
HOW = {"steps": STEPS, "samples": 32, "iterations": 20, "sigma": 0.2}


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


@pytest.fixture(scope="module")
def least(m, d, problem):
    """The least cost: the problem is quadratic."""
    return ilqr(m, d, jnp.zeros((STEPS, 1)), problem, iterations=20)


@pytest.mark.parametrize("name", METHODS)
def test_sampling_comes_near_the_least_cost(m, d, problem, least, name):
    plan = jax.jit(lambda knots, key: METHODS[name](m, d, knots, problem, key, **how))
    how = HOW | {"sigma": SIGMA.get(name, 0.2)}
    start, key = jnp.zeros((6, 1)), jax.random.key(0)
    found = plan(start, key)
    # a spline through six knots is not quite the best motion
    assert least.cost <= found.cost < 1.02 * least.cost
    assert found.history.shape == (20,)
    assert found.history[-1] < 0.5 * found.history[0]
    assert np.abs(found.ctrl).max() <= 2
    cost = jax.jit(motion_cost)(m, d, found.ctrl, problem)
    np.testing.assert_allclose(cost, found.cost, **ROUNDING)

    # equal keys, equal plans; others, others
    jax.tree.map(np.testing.assert_array_equal, plan(start, key), found)
    assert plan(start, jax.random.key(1)).cost != found.cost


@pytest.mark.slow
def test_motions_are_evaluated_each_alone(m, d, problem):
    ctrl = jnp.asarray(np.random.default_rng(0).uniform(-3, 3, (5, 8, 1)))
    many = jax.jit(motion_costs)(m, d, ctrl, problem)
    one = jax.jit(motion_cost)
    for k in range(5):
        np.testing.assert_allclose(many[k], one(m, d, ctrl[k], problem), **ROUNDING)


@pytest.mark.short("cem")
@pytest.mark.parametrize("name", METHODS)
def test_diverged_samples_have_zero_weight(m, d, problem, name):
    wild = d.replace(qvel=d.qvel + 1e11)
    how = HOW | {"iterations": 1, "samples": 9}
    plan = jax.jit(
        lambda d: METHODS[name](m, d, jnp.ones((3, 1)), problem, jax.random.key(0), **how)
    )
    found = plan(wild)
    assert found.cost == jnp.inf
    assert np.isfinite(found.knots).all()
    assert np.isfinite(found.sigma).all()


def test_splines_go_through_their_knots():
    knots = jnp.asarray(np.random.default_rng(0).normal(size=(5, 2)))
    np.testing.assert_allclose(spline(knots, 40, "linear")[::10], knots[:4], **ROUNDING)
    np.testing.assert_allclose(spline(knots, 40, "cubic")[::10], knots[:4], **ROUNDING)
    np.testing.assert_allclose(spline(knots, 40, "zero"), np.repeat(knots, 8, axis=0), **ROUNDING)
    line = jnp.linspace(0, 1, 5)[:, None]
    for kind in ("linear", "cubic"):
        np.testing.assert_allclose(spline(line, 8, kind)[:, 0], np.arange(8) / 8, **ROUNDING)
    square = line**2  # the slopes of central differences are exact inside
    inner = spline(square, 40, "cubic")[10:30, 0]
    np.testing.assert_allclose(inner, (np.arange(10, 30) / 40) ** 2, **ROUNDING)
    np.testing.assert_array_equal(spline(knots[:1], 3), np.repeat(knots[:1], 3, axis=0))


def test_shooting_reaches_the_least_cost(m, d, problem, least):
    optimizer = optax.adam(optax.cosine_decay_schedule(0.3, 300))
    how = {"iterations": 300, "optimizer": optimizer}
    found = jax.jit(lambda u: shoot(m, d, u, problem, **how))(jnp.zeros((STEPS, 1)))
    np.testing.assert_allclose(found.cost, least.cost, rtol=1e-5)
    assert found.cost == found.history.min()
    assert found.slope < 1e-2
    assert np.abs(found.ctrl).max() <= 2


def test_arguments_that_do_not_fit(m, d, problem):
    key, knots = jax.random.key(0), jnp.zeros((3, 1))
    with pytest.raises(ValueError, match="none is called 'cubik'; did you mean 'cubic'"):
        mppi(m, d, knots, problem, key, steps=5, interpolation="cubik")
    with pytest.raises(ValueError, match=r"knots: expected shape \(n, nu\), with n at least 1"):
        cem(m, d, jnp.zeros(3), problem, key, steps=5)
    with pytest.raises(ValueError, match=r"mppi: ctrl: expected shape \(steps, 1\), got"):
        mppi(m, d, jnp.zeros((3, 2)), problem, key, steps=5)
    with pytest.raises(ValueError, match=r"cem: samples: expected a whole number, got 2\.5"):
        cem(m, d, knots, problem, key, steps=5, samples=2.5)
    with pytest.raises(ValueError, match="steps, samples and iterations are at least 1"):
        cem(m, d, knots, problem, key, steps=5, samples=0)


def test_without_the_extra(monkeypatch, m, d, problem):
    monkeypatch.setitem(__import__("sys").modules, "optax", None)
    with pytest.raises(
        ImportError, match="needs optax; install the extra 'control': pip install '"
    ):
        shoot(m, d, jnp.zeros((3, 1)), problem)
