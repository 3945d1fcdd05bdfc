"""The derivative of a step, exact and by differences, against MuJoCo's differences."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import inputs, random_state, single, stack, world
from tolerance import DIFFERENCE, ROUGH_DIFFERENCE

from jaxsim.derivative import transition, transition_fd
from jaxsim.io.bridge import put_model

XML = """
<mujoco>
  <option timestep="0.01" integrator="{integrator}"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
      <body pos="0.5 0 0">
        <joint name="b" type="ball" damping="0.05"/>
        <geom type="capsule" fromto="0 0.1 0 0.4 0.1 0.1" size="0.03"/>
        <site name="s" pos="0.2 0.1 0"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="3" ctrlrange="-1 1"/>
    <general joint="a" dyntype="filter" dynprm="0.05" gainprm="2" ctrlrange="-1 1"/>
    <velocity joint="b" kv="0.1" gear="0.3 0.1 0.2" ctrlrange="-1 1"/>
    <motor joint="b" gear="1 0 0"/>
  </actuator>
  <sensor><framepos objtype="site" objname="s"/><gyro site="s"/><accelerometer site="s"/></sensor>
</mujoco>
"""
# inside its limits, at the upper one, outside, and without limits
CTRL = np.array([[0.2, -0.5, 0.1, 0.3], [1.0, -1.0, 1.5, 0.2]])


@cache
def model(integrator):
    """The oracle's model and states, ours, and the worlds of these states."""
    mj = mujoco.MjModel.from_xml_string(XML.format(integrator=integrator))
    states = [random_state(mj, seed) for seed in range(len(CTRL))]
    for state, ctrl in zip(states, CTRL, strict=True):
        state.ctrl[:] = ctrl
        state.qacc_warmstart[:] = 0
    m = put_model(mj)
    return mj, states, m, stack([inputs(m, s) for s in states])


def theirs(mj, state, eps, centered):
    nx = 2 * mj.nv + mj.na
    shapes = (nx, nx), (nx, mj.nu), (mj.nsensordata, nx), (mj.nsensordata, mj.nu)
    out = [np.zeros(shape) for shape in shapes]
    mujoco.mjd_transitionFD(mj, state, eps, centered, *out)
    return out


@cache
def exact(integrator):
    _, _, m, worlds = model(integrator)
    return jax.jit(jax.vmap(transition, (None, 0)))(m, worlds)


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("implicit", marks=pytest.mark.slow)])
def test_exact(integrator):
    """The other integrators: tests/control/test_linearize.py."""
    mj, states, _, _ = model(integrator)
    for k, state in enumerate(states):
        expected = theirs(mj, state, 1e-6, True)
        for name, a, b in zip("ABCD", exact(integrator), expected, strict=True):
            np.testing.assert_allclose(a[k], b, **ROUGH_DIFFERENCE, err_msg=f"{name} {k}")


@pytest.mark.slow
@pytest.mark.parametrize("centered", [pytest.param(False, marks=pytest.mark.slow), True])
def test_differences(centered):
    """The finite differences are those of MuJoCo, up to rounding divided by eps."""
    mj, states, m, worlds = model("Euler")
    find = jax.jit(jax.vmap(lambda m, d: transition_fd(m, d, 1e-5, centered), (None, 0)))
    found = find(m, worlds)
    for k, state in enumerate(states):
        for name, a, b in zip("ABCD", found, theirs(mj, state, 1e-5, centered), strict=True):
            np.testing.assert_allclose(a[k], b, **DIFFERENCE, err_msg=f"{name} {k}")


def test_a_control_at_its_limit_and_beyond():
    B = exact("Euler").B
    assert np.abs(B[1, :, 0]).max() > 0.01
    assert not np.any(B[1, :, 2])
    assert np.any(B[0, :, 2])


@pytest.mark.slow
def test_without_sensors_and_in_single_precision():
    _, _, m, worlds = model("Euler")
    d = single(world(worlds, 0))
    for find in (transition, transition_fd):
        shapes = jax.eval_shape(lambda d: find(single(m), d, sensors=False), d)  # noqa: B023
        assert shapes.C is None
        assert shapes.A.shape == (9, 9)
        assert {s.dtype for s in shapes[:2]} == {np.dtype(np.float32)}


def test_a_wrong_state_is_named():
    _, _, m, worlds = model("Euler")
    with pytest.raises(ValueError, match=r"transition: d\.time: expected shape"):
        transition(m, worlds)
    with pytest.raises(ValueError, match="transition_fd: m: expected a Model"):
        transition_fd(worlds, jnp.zeros(3))
