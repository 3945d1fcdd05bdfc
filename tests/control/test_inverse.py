"""Inverse kinematics, computed torque, and what of a motion the physics does not explain."""

import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest
from tolerance import DYNAMICS

from jaxsim.batch.scan import rollout
from jaxsim.control import Target, computed_torque, equilibrium, inverse_kinematics, violation
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.make_data import make_data
from jaxsim.stages import kinematics

ARM = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody><body>
    <joint name="a" type="ball" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03" mass="1"/>
    <body pos="0.5 0 0">
      <joint name="b" axis="0 1 0" limited="true" range="-60 60" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="0.5" contype="0"/>
      <site name="hand" pos="0.4 0 0"/>
    </body>
  </body></worldbody>
  <actuator>
    <motor joint="a" gear="1 0 0"/><motor joint="a" gear="0 1 0"/><motor joint="a" gear="0 0 2"/>
    <position joint="b" kp="5" ctrlrange="-20 20" ctrllimited="true"/>
  </actuator>
</mujoco>
"""
CART = """
<mujoco>
  <worldbody><body>
    <joint name="slide" type="slide" axis="1 0 0" damping="0.05"/>
    <geom size="0.1" mass="1"/>
    <body>
      <joint name="hinge" axis="0 1 0" damping="0.01"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.9" size="0.03" mass="0.15"/>
    </body>
  </body></worldbody>
  <actuator><motor joint="slide" gear="12"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return load_model(ARM)


@pytest.fixture(scope="module")
def d(m):
    return make_data(m)


@pytest.mark.short("None")
@pytest.mark.parametrize("solver", [None, optimistix.LevenbergMarquardt(rtol=1e-12, atol=1e-12)])
def test_a_reachable_pose_is_found(m, d, solver):
    quat = np.array([0.9, 0.2, -0.3, 0.1])
    there = jax.jit(kinematics)(m, d.replace(qpos=jnp.array([*quat, 0.7])))

    def find(pos):
        hand, start = Target("site", "hand", pos=pos), d.replace(qpos=d.qpos.at[4].set(0.2))
        return inverse_kinematics(m, start, [hand], solver=solver)

    found = jax.jit(find)(there.site_xpos[0])
    assert found.error < 1e-7
    assert found.outside < 1e-7
    at = jax.jit(kinematics)(m, d.replace(qpos=found.qpos))
    np.testing.assert_allclose(at.site_xpos[0], there.site_xpos[0], atol=1e-7)


@pytest.mark.slow
def test_an_orientation_is_found(m, d):
    goal = jax.jit(kinematics)(m, d.replace(qpos=jnp.array([0.5, 0.5, 0.5, -0.5, 0.4])))
    w, x, y, z = goal.xquat[2]

    @jax.jit
    def find(pos, quat):
        return inverse_kinematics(m, d, [Target("site", "hand", pos, quat)])

    found = find(goal.site_xpos[0], jnp.stack([w, x, y, z]))
    at = jax.jit(kinematics)(m, d.replace(qpos=found.qpos))
    assert found.error < 1e-7
    np.testing.assert_allclose(at.site_xmat[0], goal.site_xmat[0], atol=1e-6)
    np.testing.assert_allclose(np.abs(at.xquat[2] @ goal.xquat[2]), 1, atol=1e-9)


@pytest.mark.slow
def test_limits_of_joints_hold_and_what_is_out_of_reach_is_approached(m, d):
    """Fully stretched towards a far point, and as far folded as the elbow goes to a near one."""

    @jax.jit
    def find(pos):
        start = d.replace(qpos=d.qpos.at[4].set(0.3))
        return inverse_kinematics(m, start, [Target("site", "hand", pos)], limits=1e3)

    far = find(jnp.array([0.0, 2.0, 0.0]))
    at = jax.jit(kinematics)(m, d.replace(qpos=far.qpos))
    np.testing.assert_allclose(at.site_xpos[0], [0, 0.9, 0], atol=1e-4)
    near = find(jnp.array([0.1, 0.0, 0.0]))
    assert near.outside < 1e-4
    np.testing.assert_allclose(np.abs(near.qpos[4]), np.pi / 3, atol=1e-4)


def test_computed_torque_gives_the_acceleration(m, d):
    random = np.random.default_rng(0)
    d = d.replace(
        qpos=jnp.array([0.8, 0.6, 0, 0, 0.3]),
        qvel=jnp.asarray(random.normal(size=4)),
        qfrc_applied=jnp.asarray(random.normal(size=4)),
    )
    wanted = jnp.asarray(random.normal(size=4))
    torque = jax.jit(lambda wanted: computed_torque(m, d, wanted))
    found = torque(wanted)
    np.testing.assert_allclose(found.missing, 0, atol=1e-10)
    qacc = jax.jit(forward)(m, d.replace(ctrl=found.ctrl)).qacc
    np.testing.assert_allclose(qacc, wanted, **DYNAMICS)
    too_much = torque(wanted + 1e4)
    assert abs(too_much.ctrl[3]) == 20
    assert np.abs(too_much.missing).max() > 1


@pytest.mark.slow
def test_a_motion_of_the_engine_is_explained():
    m = load_model(CART)
    d = make_data(m).replace(qpos=jnp.array([0.1, 0.5]))
    ctrl = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (12, 1)))
    _, motion = jax.jit(lambda d: rollout(m, d, ctrl=ctrl, record=["qpos"]))(d)
    explain = jax.jit(lambda q: violation(m, d, q))
    found = explain(motion["qpos"])
    assert found.force.shape == (10, 2)
    # differences of configurations over the time step squared: 1e-16 / 4e-6, times the masses
    np.testing.assert_allclose(found.force, 0, atol=1e-9)
    np.testing.assert_allclose(found.ctrl, ctrl[2:], atol=1e-9)

    # a pole that hangs in the air as drawn: gravity is missing at the hinge, and only there
    found = explain(jnp.tile(jnp.array([0.1, 0.5]), (12, 1)))
    np.testing.assert_allclose(found.force[:, 0], 0, atol=1e-10)
    np.testing.assert_allclose(found.force[:, 1], -0.15 * 9.81 * 0.45 * np.sin(0.5), **DYNAMICS)


def test_arguments_that_do_not_fit(m, d):
    with pytest.raises(ValueError, match="kind: no 'sight'; did you mean 'site'"):
        Target("sight", "hand")
    with pytest.raises(ValueError, match=r"quat: expected shape \(4,\), got float64\[3\]"):
        Target("site", "hand", quat=jnp.ones(3))
    with pytest.raises(ValueError, match="no site is named 'hadn'; did you mean 'hand'"):
        inverse_kinematics(m, d, [Target("site", "hadn", pos=jnp.ones(3))])
    with pytest.raises(ValueError, match=r"qpos: expected shape \(steps, 5\) with at least 3 step"):
        violation(m, d, jnp.ones((2, 5)))
    with pytest.raises(ValueError, match=r"computed_torque: vec: expected shape \(4,\)"):
        computed_torque(m, d, jnp.ones(5))


@pytest.mark.slow
def test_a_world_need_not_carry_results(m):
    """A world without results gets abstract values for what is read: traced, not run."""
    d = make_data(m, keep=())
    shape = jax.eval_shape(lambda q: violation(m, d, q).force, jnp.ones((5, 5)))
    assert shape.shape == (3, 4)
    assert jax.eval_shape(lambda d: computed_torque(m, d, jnp.ones(4)).ctrl, d).shape == (4,)
    hand = [Target("site", "hand", pos=jnp.ones(3))]
    assert jax.eval_shape(lambda d: inverse_kinematics(m, d, hand).qpos, d).shape == (5,)
    found = jax.eval_shape(lambda d: equilibrium(m, d).d, d)
    assert jax.tree.structure(found) == jax.tree.structure(d)
