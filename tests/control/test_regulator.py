"""Equilibria and the regulator that holds them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from tolerance import DYNAMICS

from jaxsim.control import Regulator, equilibrium, linearize, lqr, riccati
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data

CARTPOLE = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody><body>
    <joint name="slide" type="slide" axis="1 0 0" damping="0.05"/>
    <geom type="box" size="0.15 0.1 0.07" mass="1.2" contype="0" conaffinity="0"/>
    <body>
      <joint name="hinge" axis="0 1 0" damping="0.001"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.9" size="0.03" mass="0.15" contype="0"
            conaffinity="0"/>
    </body>
  </body></worldbody>
  <actuator><motor joint="slide" gear="12" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
ARM = """
<mujoco>
  <worldbody><body>
    <joint name="a" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03" mass="1"/>
    <body pos="0.5 0 0">
      <joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="0.5"/>
    </body>
  </body></worldbody>
  <actuator>
    <motor joint="a" gear="2"/>
    <general joint="b" dyntype="filter" dynprm="0.1" gainprm="3"/>
  </actuator>
</mujoco>
"""
BALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.0995"><freejoint/><geom size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def test_the_riccati_equation_is_solved():
    random = np.random.default_rng(0)
    A, B = random.normal(size=(3, 4, 4)), random.normal(size=(3, 4, 2))
    Q, R = np.eye(4), np.diag([1.0, 0.5])
    P = jax.jit(jax.vmap(lambda A, B: riccati(A, B, jnp.asarray(Q), jnp.asarray(R))))(A, B)
    for k in range(3):
        np.testing.assert_allclose(P[k], scipy.linalg.solve_discrete_are(A[k], B[k], Q, R), 1e-8)
    hopeless = riccati(2 * jnp.eye(1), jnp.zeros((1, 1)), jnp.eye(1), jnp.eye(1))
    assert not np.isfinite(hopeless).all()


@pytest.mark.slow
def test_a_pole_is_held_upright():
    m = load_model(CARTPOLE)
    d = make_data(m)
    leaning = d.replace(qpos=jnp.array([0.2, 0.1]), ctrl=jnp.array([0.3]))
    found = jax.jit(lambda d: equilibrium(m, d))(leaning)
    assert found.acceleration < 1e-9
    np.testing.assert_allclose(found.d.qpos, [0.2, 0], atol=1e-9)
    np.testing.assert_allclose(found.d.ctrl, 0, atol=1e-9)

    hold = jax.jit(lambda d: lqr(m, d, jnp.array([1.0, 10, 0.1, 0.1]), 0.1))(found.d)
    A, B = (np.asarray(a) for a in jax.jit(linearize)(m, found.d)[:2])
    Q = np.diag([1.0, 10, 0.1, 0.1])
    P = scipy.linalg.solve_discrete_are(A, B, Q, 0.1 * np.eye(1))
    np.testing.assert_allclose(hold.P, P, rtol=1e-7)
    np.testing.assert_allclose(hold.K, -np.linalg.solve(0.1 + B.T @ P @ B, B.T @ P @ A), rtol=1e-7)

    def fall(d, _):
        return step(m, d.replace(ctrl=hold(m, d))), None

    start = found.d.replace(qpos=found.d.qpos + jnp.array([0.1, 0.1]))
    end, _ = jax.jit(lambda d: jax.lax.scan(fall, d, None, length=1500))(start)
    np.testing.assert_allclose(end.qpos, found.d.qpos, atol=1e-4)


def test_an_arm_is_held_against_gravity():
    """At the given pose, by static torques; with activation."""
    m = load_model(ARM)
    d = make_data(m).replace(qpos=jnp.array([0.3, -0.2]))
    found = jax.jit(lambda d: equilibrium(m, d, pose=1e3))(d)
    assert found.acceleration < 1e-8
    q = np.asarray(found.d.qpos)
    np.testing.assert_allclose(q, [0.3, -0.2], atol=1e-3)
    g = 9.81
    elbow = -0.5 * g * 0.2 * np.cos(q[0] + q[1])
    shoulder = elbow - g * np.cos(q[0]) * (1 * 0.25 + 0.5 * 0.5)
    np.testing.assert_allclose(found.d.ctrl[0], shoulder / 2, **DYNAMICS)
    np.testing.assert_allclose(found.d.act, elbow / 3, **DYNAMICS)
    np.testing.assert_allclose(found.d.ctrl[1], elbow / 3, **DYNAMICS)


def test_a_regulator_is_a_function_for_jit_and_a_pytree():
    m = load_model(CARTPOLE)
    d = make_data(m)
    hold = Regulator(d, jnp.ones(1), jnp.ones((1, 4)), jnp.eye(4))
    there = d.replace(qpos=jnp.array([0.2, 0.1]), qvel=jnp.array([0.3, 0.4]))
    np.testing.assert_allclose(jax.jit(hold)(m, there), [2.0])
    np.testing.assert_allclose(jax.jit(lambda hold: hold(m, there))(hold), [2.0])


@pytest.mark.slow
def test_a_ball_stands_on_the_floor():
    m = load_model(BALL)
    found = jax.jit(lambda d: equilibrium(m, d))(make_data(m))
    assert found.acceleration < 1e-6
    assert 0.09 < found.d.qpos[2] < 0.1
    settled = jax.jit(lambda d: jax.lax.scan(lambda d, _: (step(m, d), None), d, None, 300))(
        found.d
    )[0]
    np.testing.assert_allclose(settled.qpos, found.d.qpos, atol=1e-8)


@pytest.mark.slow
def test_weights_that_do_not_fit():
    m = load_model(CARTPOLE)
    with pytest.raises(ValueError, match=r"lqr: Q: expected a number, shape \(4,\) or \(4, 4\), g"):
        lqr(m, make_data(m), jnp.ones(3), 1.0)
    with pytest.raises(ValueError, match="equilibrium: iterations: expected a whole number"):
        equilibrium(m, make_data(m), iterations=-1)
