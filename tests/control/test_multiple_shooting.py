"""Multiple shooting: the linear-quadratic problem, gaps that close, guesses of states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from states import world
from tolerance import DYNAMICS, SOLVER

from jaxsim.control import Problem, Term, difference, ilqr, linearize, multiple_shooting
from jaxsim.control.multishooting import straight_line
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import step
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
SATELLITE = """
<mujoco>
  <option timestep="0.05" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="turn" type="ball" damping="0.01"/>
    <geom type="box" size="0.1 0.2 0.3" mass="1"/>
  </body></worldbody>
  <actuator>
    <motor joint="turn" gear="0.3 0 0" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="turn" gear="0 0.3 0" ctrlrange="-1 1" ctrllimited="true"/>
    <motor joint="turn" gear="0 0 0.3" ctrlrange="-1 1" ctrllimited="true"/>
  </actuator>
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
GOAL = np.array([0.0, 0.6, 0.0, 0.8])  # a rotation by 106 degrees about x and z

solve = jax.jit(multiple_shooting, static_argnames=("iterations", "nodes"))


def regulator(P):
    """x'x / 2 + 0.05 u^2 a step, x'Px / 2 at the end."""
    root = np.linalg.cholesky(P).T
    state = lambda d: jnp.concatenate([d.qpos, d.qvel])  # noqa: E731
    return Problem(
        [
            Term("x", lambda m, d: state(d), terminal=0.0),
            Term("u", lambda m, d: d.ctrl, weight=0.1),
            Term("end", lambda m, d: jnp.asarray(root) @ state(d), weight=0.0, terminal=1.0),
        ]
    )


def attitude():
    """Towards GOAL, by the vector part of the rotation that is left; slow at the end."""

    def left(m, d):
        w, x, y, z = d.qpos
        a, b, c, e = GOAL
        return jnp.stack([a * x - b * w - c * z + e * y, a * y + b * z - c * w - e * x,
                          a * z - b * y + c * x - e * w])  # fmt: skip

    return Problem(
        [
            Term("there", left, weight=0.1, terminal=100.0),
            Term("slow", lambda m, d: d.qvel, weight=0.0, terminal=1.0),
            Term("effort", lambda m, d: d.ctrl, weight=0.01),
        ]
    )


def rolled(m, d, ctrl):
    """The motion of the real step, worlds (steps + 1, ...) of qpos and qvel."""

    def advance(d, u):
        after = step(m, d.replace(ctrl=u))
        return after, (after.qpos, after.qvel)

    return jax.jit(lambda d: jax.lax.scan(advance, d, ctrl)[1])(d)


@pytest.fixture(scope="module")
def cart():
    m = load_model(CART.format(limited="false"))
    d = make_data(m)
    return m, d.replace(qpos=jnp.array([1.0]), qvel=jnp.array([-0.5]))


@pytest.mark.parametrize("nodes", [None, pytest.param(5, marks=pytest.mark.slow)])
def test_a_linear_quadratic_problem_is_solved_in_one_turn_from_any_states(cart, nodes):
    m, d = cart
    A, B, _, _ = (a if a is None else np.asarray(a) for a in jax.jit(linearize)(m, d))
    Q, R = np.eye(2), 0.1 * np.eye(1)
    P = scipy.linalg.solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    wild = np.random.default_rng(0).normal(size=(2, 31, 1))
    worlds = jax.vmap(lambda q, v: d.replace(qpos=q, qvel=v))(*map(jnp.asarray, wild))
    found = solve(m, d, jnp.zeros((30, 1)), regulator(P), nodes=nodes, iterations=3, states=worlds)
    assert found.converged
    assert found.iterations == 1
    assert found.defect < 1e-10
    x = np.array([1.0, -0.5])
    np.testing.assert_allclose(found.cost, x @ P @ x / 2, **DYNAMICS)
    for k in range(30):
        np.testing.assert_allclose(found.ctrl[k], K @ x, **DYNAMICS)
        np.testing.assert_allclose(found.gains[k], K, **DYNAMICS)
        x = A @ x + B @ (K @ x)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [None, 4])
def test_rotations_are_joined_and_the_real_step_agrees(nodes):
    m = load_model(SATELLITE)
    d = make_data(m).replace(qvel=jnp.array([0.5, -0.3, 0.2]))
    line = straight_line(m, d, d.replace(qpos=jnp.asarray(GOAL)), 40)
    found = solve(m, d, jnp.zeros((40, 3)), attitude(), nodes=nodes, states=line, iterations=40)
    assert found.converged
    assert found.defect < 1e-10
    assert np.abs(found.ctrl).max() <= 1
    np.testing.assert_allclose(abs(found.states.qpos[-1] @ GOAL), 1, atol=1e-3)
    qpos, qvel = rolled(m, d, found.ctrl)
    np.testing.assert_allclose(found.states.qpos[1:], qpos, **SOLVER)
    np.testing.assert_allclose(found.states.qvel[1:], qvel, **SOLVER)
    # the same optimum as that of the motion in one piece
    other = jax.jit(lambda u: ilqr(m, d, u, attitude(), iterations=60, tolerance=1e-10))(found.ctrl)
    assert other.defect == 0
    np.testing.assert_allclose(found.cost, other.cost, rtol=1e-5)


@pytest.mark.slow
def test_limits_hold():
    m = load_model(CART.format(limited="true"))
    d = make_data(m).replace(qpos=jnp.array([1.0]), qvel=jnp.array([0.3]))
    problem = regulator(np.eye(2))
    found = solve(m, d, jnp.zeros((40, 1)), problem, nodes=8, iterations=30)
    single = jax.jit(lambda u: ilqr(m, d, u, problem, iterations=30))(jnp.zeros((40, 1)))
    assert found.converged
    assert np.abs(found.ctrl).max() == 1
    np.testing.assert_allclose(found.cost, single.cost, rtol=1e-6)


@pytest.mark.slow
def test_many_guesses_are_each_alone(cart):
    _, d = cart
    m = load_model(CART.format(limited="true"))
    guesses = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (3, 20, 1)))
    problem = regulator(np.eye(2))
    many = jax.jit(jax.vmap(lambda u: multiple_shooting(m, d, u, problem, nodes=5, iterations=4)))(
        guesses
    )
    for k in range(3):
        alone = solve(m, d, guesses[k], problem, nodes=5, iterations=4)
        np.testing.assert_allclose(many.ctrl[k], alone.ctrl, **DYNAMICS)
        np.testing.assert_allclose(many.history[k], alone.history, **DYNAMICS)
    assert many.states.qpos.shape == (3, 21, 1)


def test_a_line_of_states():
    m = load_model(SATELLITE)
    d = make_data(m).replace(qvel=jnp.array([0.5, -0.3, 0.2]))
    end = d.replace(qpos=jnp.asarray(GOAL))
    line = straight_line(m, d, end, 10)
    np.testing.assert_allclose(line.qpos[0], d.qpos)
    np.testing.assert_allclose(line.qpos[-1] @ GOAL, 1, rtol=1e-12)
    np.testing.assert_allclose(line.time[-1], 0.5)
    each = difference(m, world(line, 3), world(line, 4))
    np.testing.assert_allclose(each[:3], line.qvel[3] * 0.05, rtol=1e-9)


def test_invalid_arguments_are_rejected(cart):
    m, d = cart
    problem, ctrl = regulator(np.eye(2)), jnp.zeros((6, 1))
    with pytest.raises(ValueError, match=r"nodes: 4 pieces .* 6 steps; there can be 1, 2, 3, 6"):
        multiple_shooting(m, d, ctrl, problem, nodes=4)
    with pytest.raises(ValueError, match=r"states: expected worlds .* 7, got"):
        multiple_shooting(m, d, ctrl, problem, states=d)


@pytest.mark.slow
def test_a_pendulum_swings_up_from_a_line_of_states():
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
    line = straight_line(m, d, d.replace(qpos=jnp.array([np.pi])), 75)
    found = solve(m, d, jnp.zeros((75, 1)), problem, states=line, iterations=150)
    guess = jnp.asarray(0.1 * np.random.default_rng(0).normal(size=(75, 1)))
    single = jax.jit(lambda u: ilqr(m, d, u, problem, iterations=150))(guess)
    assert found.cost < single.cost
    # both creep along a valley of switching times, so that the pieces still move a little
    assert found.defect < 1e-4
    assert abs(np.cos(found.states.qpos[-1, 0]) + 1) < 0.02
    assert np.abs(found.ctrl).max() <= 1
