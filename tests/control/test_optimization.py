"""Optimization files: costs, starts, limits, guesses, stages."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.control.optimization.quantity import quantity
from jaxsim.control.optimization.read import read_optimization
from jaxsim.io.load import load_model
from jaxsim.physics.public.make_data import make_data

CONFIGS = sorted((Path(__file__).parents[2] / "configs/optimize").glob("*.toml"))
MODEL = """
<mujoco>
  <worldbody>
    <body name="ball.a" pos="0 0 1"><freejoint name="root"/><geom name="g" size="0.1"/></body>
    <body name="arm" pos="1 0 1">
      <joint name="turn" type="ball"/>
      <geom size="0.1" mass="1"/>
      <body name="hand" pos="0 0 -1">
        <joint name="hinge" axis="0 1 0"/>
        <geom size="0.1" pos="0 0 -0.5"/>
        <site name="tip" pos="0 0 -1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="one" joint="hinge"/><motor name="two" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
</mujoco>
"""
QUAT = np.array([0.8, 0.0, 0.6, 0.0])


@pytest.fixture(scope="module")
def world():
    m = load_model(MODEL)
    d = make_data(m, keep="all")
    qpos = np.array([1.0, 2.0, 3.0, *QUAT, 1.0, 0.0, 0.0, 0.0, 0.4])
    d = d.replace(qpos=jnp.asarray(qpos), qvel=jnp.arange(10.0), ctrl=jnp.array([3.0, 4.0]))
    return m, jax.jit(jaxsim.forward)(m, d)


def value(world, text, target=None):
    m, d = world
    found = quantity(m, text, Path())
    read = found.read(m, d)
    assert all(getattr(d, name) is not None for name in found.keep)
    return np.asarray(found.target_error(read, np.zeros(read.size) if target is None else target))


@pytest.mark.slow
def test_what_costs_read(world):
    _, d = world
    np.testing.assert_allclose(value(world, "ctrl"), [3, 4])
    np.testing.assert_allclose(value(world, "ctrl:two", [1]), [3])
    np.testing.assert_allclose(value(world, "qvel:turn"), [6, 7, 8])
    np.testing.assert_allclose(value(world, "qvel"), np.arange(10.0))
    np.testing.assert_allclose(value(world, "sensor:angle", [0.1]), [0.3], **ROUNDING)
    np.testing.assert_allclose(value(world, "angle:hinge", [0.4 - 2 * np.pi]), [0, 0], atol=1e-12)
    np.testing.assert_allclose(value(world, "site:tip.xpos"), d.site_xpos[0])
    np.testing.assert_allclose(value(world, "body:hand.xpos.z"), d.xpos[3, 2:])
    np.testing.assert_allclose(value(world, "body:ball.a.com"), [1, 2, 3], **ROUNDING)
    np.testing.assert_allclose(value(world, "geom:g.xpos.x", [1]), [0], **ROUNDING)


def test_positions_miss_their_targets_by_tangent_coordinates(world):
    m, d = world
    target = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *QUAT, 0.1])
    there = d.replace(qpos=jnp.asarray(target))
    expected = jaxsim.control.difference(m, there, d)[: m.nv]
    np.testing.assert_allclose(value(world, "qpos", target), expected, **ROUNDING)
    np.testing.assert_allclose(value(world, "qpos:root", target[:7]), expected[:6], **ROUNDING)
    np.testing.assert_allclose(value(world, "qpos:turn", QUAT), expected[6:9], **ROUNDING)
    np.testing.assert_allclose(value(world, "body:ball.a.xquat", QUAT), 0, atol=1e-12)


def test_an_own_function(world, tmp_path):
    (tmp_path / "motion.py").write_text("def height(m, d):\n    return d.xpos[1, 2] - 1\n")
    m, d = world
    found = quantity(m, "python:motion.py:height", tmp_path)
    np.testing.assert_allclose(found.read(m, d), [2.0], **ROUNDING)
    assert found.keep is None
    with pytest.raises(ValueError, match="has no function 'hight'"):
        quantity(m, "python:motion.py:hight", tmp_path)
    with pytest.raises(ValueError, match="No module named"):
        quantity(m, "python:no_such_module:f", tmp_path)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_the_files_of_configs_are_read(path):
    found = read_optimization(path)
    assert found.controls().shape == (found.form.guesses, found.steps, found.m.nu)
    assert len(found.stages) == max(1, len(found.form.smooth))
    assert found.m.smooth is None


@pytest.mark.slow
def test_starts_limits_and_guesses(tmp_path):
    (tmp_path / "model.xml").write_text(MODEL)
    (tmp_path / "a.toml").write_text("""
model = "model.xml"
seconds = 0.1
timestep = 0.01
integrator = "implicitfast"
guesses = 3
smooth = [0.1, 0.0]
start.qpos.root = [0, 0, 2, 1, 0, 0, 0]
start.qvel.hinge = [0.5]
limits.two = [-0.2, 0.1]
guess.ctrl.two = 5

[[cost]]
name = "tip"
of = "site:tip.xpos"
minus = "body:ball.a.xpos"
""")
    found = read_optimization(tmp_path / "a.toml", ("spread=0.5",))
    assert found.steps == 10
    assert found.m.opt.integrator == 3
    assert found.d.qpos[2] == 2
    assert found.d.qvel[-1] == 0.5
    assert [float(m.smooth) for m in found.stages] == [0.1, 0.0]
    ctrl = found.controls()
    np.testing.assert_allclose(ctrl[0, :, 1], 0.1)
    np.testing.assert_allclose(ctrl[0, :, 0], 0)
    assert ctrl[:, :, 1].min() >= -0.2
    assert ctrl[:, :, 1].max() <= 0.1
    assert np.abs(ctrl[1:, :, 0]).max() > 0.1
    d = jax.jit(jaxsim.forward)(found.m, found.d)
    (r,) = found.problem.residuals(found.m, d)
    np.testing.assert_allclose(r, d.site_xpos[0] - d.xpos[1], **ROUNDING)
