"""iLQR: the linear-quadratic problem, limits, descent, many guesses, a swing-up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from tolerance import DYNAMICS, ROUNDING

from jaxsim.control import Problem, Term, box_qp, ilqr, linearize, motion_cost
from jaxsim.io.load import load_model
from jaxsim.physics.public.make_data import make_data

CART = """
<mujoco>
  <option timestep="0.05"><flag contact="disable" gravity="disable"/></option>
  <worldbody><body>
    <joint name="x" type="slide" axis="1 0 0" damping="0.3" stiffness="-0.5"/>
    <geom size="0.1" mass="1.5"/>
  </body></worldbody>
  <actuator><motor joint="x" ctrlrange="-1 1" ctrllimited="{limited}"/></actuator>
</mujoco>
"""
PENDULUM = """
<mujoco>
  <option timestep="0.04"/>
  <worldbody><body>
    <joint name="a" axis="0 1 0" damping="0.05"/>
    <geom type="sphere" pos="0 0 -0.5" size="0.05" mass="1"/>
  </body></worldbody>
  <actuator><motor joint="a" gear="2.5" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>
"""
STEPS = 100

solve = jax.jit(ilqr, static_argnames="iterations")


def regulator(terminal=None):
    """x'x / 2 + 0.05 u^2 a step; in closed form with the given terminal weight matrix."""
    root = np.eye(2) if terminal is None else np.linalg.cholesky(terminal).T
    return Problem(
        [
            Term("x", lambda m, d: jnp.concatenate([d.qpos, d.qvel]), terminal=0.0),
            Term("u", lambda m, d: d.ctrl, weight=0.1),
            Term(
                "end",
                lambda m, d: jnp.asarray(root) @ jnp.concatenate([d.qpos, d.qvel]),
                weight=0.0,
                terminal=1.0,
            ),
        ]
    )


@pytest.fixture(scope="module")
def cart():
    m = load_model(CART.format(limited="false"))
    d = make_data(m)
    return m, d.replace(qpos=jnp.array([1.0]), qvel=jnp.array([-0.5]))


@pytest.mark.slow
def test_a_linear_quadratic_problem_is_solved_in_one_turn(cart):
    m, d = cart
    A, B, _, _ = (a if a is None else np.asarray(a) for a in jax.jit(linearize)(m, d))
    Q, R = np.eye(2), 0.1 * np.eye(1)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    found = solve(m, d, jnp.zeros((STEPS, 1)), regulator(P), iterations=3)
    assert found.converged
    assert found.iterations == 1
    x = np.array([1.0, -0.5])
    np.testing.assert_allclose(found.cost, x @ P @ x / 2, **DYNAMICS)
    for k in range(STEPS):
        np.testing.assert_allclose(found.ctrl[k], K @ x, **DYNAMICS)
        np.testing.assert_allclose(found.gains[k], K, **DYNAMICS)
        x = A @ x + B @ (K @ x)
    assert found.history[0] > found.history[1] == found.cost


def test_limits_hold_and_what_they_do_not_hold_is_stationary():
    m = load_model(CART.format(limited="true"))
    d = make_data(m)
    d = d.replace(qpos=jnp.array([1.0]), qvel=jnp.array([0.3]))
    found = solve(m, d, jnp.zeros((STEPS, 1)), regulator(), iterations=30)
    assert found.converged
    assert np.abs(found.ctrl).max() == 1
    assert np.all(np.diff(found.history) <= 0)
    cost = jax.jit(motion_cost)
    np.testing.assert_allclose(cost(m, d, found.ctrl, regulator()), found.cost, **ROUNDING)
    free = load_model(CART.format(limited="false"))
    gradient = jax.jit(jax.grad(motion_cost, argnums=2))(free, d, found.ctrl, regulator())
    inside = np.abs(found.ctrl) < 1
    assert 0 < inside.sum() < STEPS
    # the tolerance is one of the cost, which is quadratic in what is left of the gradient
    assert np.abs(gradient[inside]).max() < 1e-2
    assert np.all((gradient * found.ctrl)[~inside] < 0)


@pytest.mark.slow
def test_many_guesses_are_each_alone(cart):
    _, d = cart
    m = load_model(CART.format(limited="true"))
    guesses = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (3, 20, 1)))
    problem = regulator()
    many = jax.jit(jax.vmap(lambda u: ilqr(m, d, u, problem, iterations=4)))(guesses)
    for k in range(3):
        alone = solve(m, d, guesses[k], problem, iterations=4)
        np.testing.assert_allclose(many.ctrl[k], alone.ctrl, **DYNAMICS)
        np.testing.assert_allclose(many.history[k], alone.history, **DYNAMICS)
    assert many.states.qpos.shape == (3, 21, 1)


@pytest.mark.slow
def test_goals_may_be_traced():
    """A residual may close over what is batched."""
    m = load_model(CART.format(limited="true"))
    d = make_data(m)

    def reach(goal):
        there = Term("there", lambda m, d: d.qpos - goal, weight=10.0)
        return ilqr(m, d, jnp.zeros((20, 1)), Problem([there]), iterations=3).ctrl[0, 0]

    left, right = jax.jit(jax.vmap(reach))(jnp.array([-1.0, 1.0]))
    assert left == -1
    assert right == 1


def test_a_quadratic_program_with_a_box():
    random = np.random.default_rng(0)
    roots = random.normal(size=(20, 5, 5))
    H = jnp.asarray(roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(5))
    q = jnp.asarray(3 * random.normal(size=(20, 5)))
    lower, upper = (sign * jnp.asarray(random.uniform(size=(20, 5))) for sign in (-1, 1))
    x, free, *_ = jax.jit(jax.vmap(box_qp))(H, q, lower, upper)
    gradient = np.einsum("bij,bj->bi", H, x) + q
    assert np.abs(gradient[free]).max() < 1e-12
    assert np.all(gradient[~free & (x == lower)] > 0)
    assert np.all(gradient[~free & (x == upper)] < 0)
    assert np.all(free | (x == lower) | (x == upper))
    assert 20 < free.sum() < 80
    bad = jax.jit(box_qp)(-jnp.eye(2), jnp.ones(2), -jnp.ones(2), jnp.ones(2))
    assert not np.isfinite(bad.x).all()


@pytest.mark.slow
def test_a_pendulum_swings_up():
    m = load_model(PENDULUM)
    d = make_data(m)
    problem = Problem(
        [
            Term(
                "up",
                lambda m, d: jnp.concatenate([1 + jnp.cos(d.qpos), jnp.sin(d.qpos)]),
                weight=0.5,
                terminal=50.0,
            ),
            Term("slow", lambda m, d: d.qvel, weight=0.01, terminal=5.0),
            Term("effort", lambda m, d: d.ctrl, weight=0.02),
        ]
    )
    guess = jnp.asarray(0.1 * np.random.default_rng(0).normal(size=(75, 1)))
    found = solve(m, d, guess, problem, iterations=150)
    end = found.states.qpos[-1, 0], found.states.qvel[-1, 0]
    assert abs(np.cos(end[0]) + 1) < 0.02
    assert abs(end[1]) < 0.3
    assert np.abs(found.ctrl).max() <= 1
    assert np.all(np.diff(found.history) <= 0)
