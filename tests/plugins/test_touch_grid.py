"""Touch grids against MuJoCo: what touches, from which side, in which cell, over which channels."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING, STIFF

import jaxsim
from jaxsim.plugins.touch_grid import _bin_weights, _edges

FORCES = STIFF | {"atol": 1e-6}  # of forces of thousands of newtons
WORLDS = 6  # more than count as few, so that the code of many worlds runs


def grid(site: str, **config) -> str:
    settings = "".join(f'<config key="{k}" value="{v}"/>' for k, v in config.items())
    name = '<plugin plugin="mujoco.sensor.touch_grid" objtype="site"'
    return f'{name} objname="{site}">{settings}</plugin>'


# The palm feels what its finger, which is welded to it, touches. Capsules come after spheres in a
# contact, so that the palm is the first body of some and the second of others.
SCENE = f"""
<mujoco><option gravity="1 .5 -9.81" cone="elliptic" tolerance="1e-14" iterations="200"
  ls_iterations="200"/>
<extension><plugin plugin="mujoco.sensor.touch_grid"><instance name="shared">
  <config key="size" value="3 2"/><config key="fov" value="90 45"/></instance></plugin></extension>
<default><geom condim="6" friction="1 .1 .1"/></default>
<worldbody><geom type="plane" size="3 3 .1" margin=".04" gap=".03"/>
  <body name="palm" pos="0 0 .19"><joint type="slide" axis="0 0 1"/><joint axis="1 .2 0"/>
    <geom size=".2"/><site name="palm" pos=".1 0 .5" euler="10 20 30"/>
    <body pos=".35 0 .1"><geom type="capsule" size=".1 .2" euler="90 0 0"/>
      <site name="finger" euler="160 10 0" pos=".02 .05 .3"/></body></body>
  <body name="ball" pos="-.02 .05 .56"><freejoint/><geom size=".2"/><site name="ball"/></body>
  <body pos=".4 .02 .48"><freejoint/><geom size=".2"/></body>
  <body name="post" pos="2 0 .09"><joint type="slide" axis="0 0 1"/><geom size=".1"/>
    <site name="post"/></body>
  <body pos="0 0 5"><joint type="slide"/><geom size=".1"/><site name="idle"/></body>
</worldbody>
<sensor><clock/>
  {grid("palm", size="7 5", fov="60 50", nchannel=3)}
  {grid("finger", size="5 5", fov="180 90", nchannel=6, gamma=0.5)}
  {grid("ball", size="8 9", fov="120 90", nchannel=4, gamma=1)}
  {grid("post", size="6 4", fov="120 90", nchannel=2, gamma=0.3)}
  {grid("idle", size="3 3", fov="180 90")}
  <plugin instance="shared" objtype="site" objname="ball"/>
  <plugin instance="shared" objtype="site" objname="palm"/>
</sensor></mujoco>
"""
IDLE, SHARED, SECOND = 5, 6, 7  # sensors


def states(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    """The first one is not displaced: contacts lie straight below, on edges of cells."""
    found = []
    for k in range(WORLDS):
        rng, mjd = np.random.default_rng(k), mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, mjd.qpos, 0.03 * (k > 0) * rng.normal(size=mj.nv), 1.0)
        mjd.qvel[:] = rng.normal(size=mj.nv)
        mujoco.mj_forward(mj, mjd)
        found.append(mjd)
    return found


@cache
def model() -> tuple[mujoco.MjModel, jaxsim.Model]:
    return mujoco.MjModel.from_xml_string(SCENE), jaxsim.load_model(SCENE)


def readings(mj: mujoco.MjModel, data: np.ndarray, sensor: int) -> np.ndarray:
    start = mj.sensor_adr[sensor]
    return np.asarray(data[..., start : start + mj.sensor_dim[sensor]])


def test_readings_equal_those_of_mujoco():
    mj, m = model()
    expected = states(mj)
    # it needs the contacts, which this Data does not carry
    many = jax.vmap(lambda q, v: jaxsim.make_data(m, ["sensordata"]).replace(qpos=q, qvel=v))(
        jnp.array([e.qpos for e in expected]), jnp.array([e.qvel for e in expected])
    )
    ours = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, many).sensordata
    theirs = np.array([e.sensordata for e in expected])
    for i in range(1, SECOND):
        a, b = readings(mj, ours, i), readings(mj, theirs, i)
        np.testing.assert_allclose(a, b, err_msg=f"sensor {i}", **FORCES)
        assert (b != 0).any() == (i != IDLE)
    # of several sensors that share an instance MuJoCo computes the first alone
    assert not readings(mj, theirs, SECOND).any()
    total = readings(mj, theirs, 1).reshape(WORLDS, 3, -1).sum((1, 2))
    assert (readings(mj, ours, SECOND).any(-1) == (total != 0)).all()


@pytest.mark.slow
def test_all_directions_together_carry_the_weight():
    xml = f"""<mujoco><extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
    <worldbody><geom type="plane" size="3 3 .1"/>
      <body pos="0 0 .199"><joint type="slide" axis="0 0 1" damping="300"/>
        <geom size=".2" mass="2"/><site name="s" euler="30 0 40"/></body></worldbody>
    <sensor>{grid("s", size="4 4", fov="180 90", nchannel=3)}</sensor></mujoco>"""
    m = jaxsim.load_model(xml)
    d, _ = jax.jit(lambda m, d: jaxsim.rollout(m, d, steps=1500))(m, jaxsim.make_data(m))
    d = jax.jit(jaxsim.forward)(m, d)
    zxy = d.sensordata.reshape(3, 16).sum(1)
    np.testing.assert_allclose(
        d.site_xmat[0] @ zxy[np.array([1, 2, 0])], [0, 0, 19.62], rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
def test_gradients_of_readings():
    mj, m = model()
    state = states(mj)[2]
    move = np.random.default_rng(9).normal(size=mj.nv)
    d = jaxsim.make_data(m, ["sensordata"]).replace(qpos=state.qpos)

    def read(velocity):
        return jaxsim.forward(m, d.replace(qvel=velocity)).sensordata

    value, slope = jax.jit(lambda v: jax.jvp(read, (v,), (jnp.array(move),)))(state.qvel)
    differ = []
    for h in (1e-6, -1e-6):
        moved = mujoco.MjData(mj)
        moved.qpos[:], moved.qvel[:] = state.qpos, state.qvel + h * move
        mujoco.mj_forward(mj, moved)
        differ.append(moved.sensordata.copy())
    by_difference = (differ[0] - differ[1]) / 2e-6
    assert np.abs(by_difference).max() > 10
    first = slice(0, mj.sensor_adr[SECOND])
    np.testing.assert_allclose(value[first], state.sensordata[first], **FORCES)
    np.testing.assert_allclose(slope[first], by_difference[first], **DIFFERENCE)


def test_cells_have_their_upper_edges():
    edges = _edges(4, 60, 0.5)
    np.testing.assert_allclose(edges[[0, 2, 4]], [-np.pi / 3, 0, np.pi / 3], atol=1e-15)
    u = 0.5
    np.testing.assert_allclose(edges[3], np.pi / 3 * (0.5 * u**5 + 0.5 * u), **ROUNDING)
    at_edges = np.asarray(_bin_weights(jnp.array(edges), edges))
    np.testing.assert_array_equal(at_edges, np.eye(5, 4, -1))  # the lowest edge is outside
    beyond = np.asarray(_bin_weights(jnp.array([-1.1, 1.1]), edges))
    assert not beyond.any()


@pytest.mark.slow
def test_single_precision():
    _, m = model()
    with jax.enable_x64(False):
        m = jaxsim.load_model(SCENE)
        d = jaxsim.make_data(m)
        assert jax.eval_shape(jaxsim.forward, m, d).sensordata.dtype == jnp.float32
