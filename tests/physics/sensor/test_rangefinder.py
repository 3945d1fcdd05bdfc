"""Rangefinders against MuJoCo: sites and cameras, all that they report, in several worlds."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from physics.oracle import unpack
from states import inputs, random_state, stack
from tolerance import FLOAT32, ROUGH_DIFFERENCE, ROUNDING, STAGE

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.physics.sensor.sensor import sensor_pos

# The first body has nothing that other sensors detect. Each sensor is on a body of its own shape,
# and inside others or next to them; some rays hit nothing.
SCENE = """
<mujoco><asset>
  <mesh name="stone" vertex="0 0 0 1 0 0 0 .8 0 0 0 .6 .7 .7 .7"/>
  <hfield name="hills" nrow="5" ncol="6" size="3 2.5 .6 .1"
    elevation="0 1 2 1 0 1  2 0 1 3 1 0  1 1 0 2 2 1  0 2 1 0 1 3  1 0 2 1 0 1"/>
  <material name="glass" rgba="1 1 1 0"/><material name="paint" rgba="1 0 0 1"/>
</asset>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
  <body name="idle" pos="0 0 9"><freejoint/><geom size=".3" rgba="0 0 0 0"/>
    <site name="up" pos="0 0 .5"/></body>
  <geom type="hfield" hfield="hills" pos="0 0 -1"/>
  <site name="fixed" pos="0 0 2" euler="170 10 0"/>
  <camera name="wall" pos="0 -3 1" euler="65 0 10" resolution="4 3" fovy="50"/>
  <body name="second" pos=".3 .2 .5"><freejoint/>
    <geom type="capsule" size=".3 .4"/><geom type="box" size=".1 .2 .3" pos="0 .4 0"/>
    <site name="inside" pos=".1 0 0" euler="50 60 70"/>
    <camera name="lens" pos="0 .5 0" euler="20 0 0" resolution="2 6" sensorsize=".25 .5"
      focal=".25 .375" principal=".03125 .0625"/></body>
  <body name="third" pos="-.4 .3 .8"><freejoint/><geom type="mesh" mesh="stone"/>
    <geom size=".6" material="glass"/><site name="on" pos="0 0 -.2" euler="180 0 0"/>
    <camera name="flat" pos="0 0 1" resolution="3 2" projection="orthographic" fovy="1.5"/></body>
  <body name="fourth" pos=".5 -.4 .2"><freejoint/><geom type="cylinder" size=".3 .2" rgba="1 1 1 0"
    material="paint"/><geom type="ellipsoid" size=".4 .2 .3" pos=".3 0 .2"/></body>
</worldbody>
<sensor><clock/>
  <rangefinder site="up" data="dist dir origin point normal depth"/>
  <rangefinder camera="lens" data="dist dir origin point normal depth"/>
  <rangefinder site="fixed"/>
  <rangefinder camera="wall" data="dist point normal"/><clock/>
  <rangefinder site="inside" data="dir normal depth"/>
  <rangefinder camera="flat" data="origin depth" cutoff=".8"/>
  <rangefinder site="on" data="dist depth" cutoff=".3"/>
  <rangefinder camera="wall"/>
  <rangefinder camera="flat" data="dist dir point normal depth"/>
</sensor></mujoco>
"""
WORLDS = 6


@cache
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SCENE)


@cache
def state(seed: int) -> mujoco.MjData:
    return random_state(model(), seed, spread=0.3)


def read(m, d):
    return sensor_pos(m, d).sensordata


def places(mj: mujoco.MjModel, sensor: int) -> slice:
    first = mj.sensor_adr[sensor]
    return slice(first, first + mj.sensor_dim[sensor])


def test_readings_equal_those_of_mujoco():
    mj, run = model(), jax.jit(read)
    m = put_model(mj)
    seen = []
    for seed in range(8):
        mjd = state(seed)
        mine = run(unpack(m, 0), unpack(oracle.data(mj, mjd), 0))
        np.testing.assert_allclose(mine, mjd.sensordata, **STAGE)
        seen.append(mjd.sensordata.copy())
    seen = np.array(seen)
    assert (seen[:, places(mj, 1)][:, 0] == -1).any()
    dist = np.concatenate([seen[:, places(mj, k)].ravel() for k in (3, 9)])
    assert 0.1 < (dist < 0).mean() < 0.9


@pytest.mark.slow
def test_many_worlds_are_a_loop():
    oracle.assert_worlds_are_a_loop(read, model(), [state(k) for k in range(WORLDS)], STAGE)


@pytest.mark.slow
def test_a_step_reads_them():
    """Values in single precision too, and where they are read under `vmap`."""
    mj = model()
    with jax.enable_x64(False):
        m = put_model(mj)
        d = stack([inputs(m, state(k)) for k in range(WORLDS)])
        mine = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, d).sensordata
        assert mine.dtype == jnp.float32
        for k in range(WORLDS):
            # an edge of an outline may be on either side of a ray
            near = np.isclose(mine[k], state(k).sensordata, rtol=1e-3, atol=1e-3)
            assert near.mean() > 0.98
            np.testing.assert_allclose(
                np.asarray(mine[k])[near], state(k).sensordata[near], **FLOAT32 | {"atol": 1e-4}
            )


@pytest.mark.slow
def test_readings_have_derivatives():
    """Derivatives of all fields by the configuration, in both modes, against differences."""
    mj, m = model(), put_model(model())
    d = inputs(m, state(3))

    def readings(way):
        qpos = jaxsim.support.integrate_pos(m, d.qpos, way, 1.0)
        return jaxsim.forward(m, d.replace(qpos=qpos)).sensordata

    run = jax.jit(readings)
    way = np.random.default_rng(0).normal(size=mj.nv)
    step = 1e-6
    difference = (run(step * way) - run(-step * way)) / (2 * step)
    zero = jnp.zeros(mj.nv)
    value, forward = jax.jit(lambda w: jax.jvp(readings, (zero,), (w,)))(way)
    # a value that jumps, or is clipped there, has no derivative to compare
    smooth = np.abs(difference) < 100
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(forward[smooth], difference[smooth], **ROUGH_DIFFERENCE)
    assert (np.abs(forward) > 0.01).mean() > 0.3
    weight = np.random.default_rng(1).normal(size=len(value))
    back = jax.jit(lambda w: jax.vjp(readings, zero)[1](w)[0])(weight)
    assert np.isclose(back @ way, forward @ weight, **STAGE)


def test_a_distance_that_is_not_known_is_refused():
    plugin = '<plugin plugin="mujoco.sdf.torus"/>'
    ring = f'<mesh name="ring">{plugin}</mesh>'
    xml = SCENE.replace("<asset>", f"<extension>{plugin}</extension><asset>{ring}")
    xml = xml.replace("<worldbody>", '<worldbody><geom name="ring" type="sdf" mesh="ring"/>')
    with pytest.warns(jaxsim.errors.UnsupportedWarning, match="not known"):
        m = jaxsim.load_model(xml)
    assert any("geom 'ring', whose distance is not known" in r[2] for r in m.unsupported)


@pytest.mark.slow
def test_invisible_sdf_needs_no_distance_function():
    """A geom of the body of the sensor, with a plugin's mesh and without the plugin."""
    plugin = '<plugin plugin="mujoco.sdf.torus"/>'
    xml = f"""<mujoco><extension>{plugin}</extension>
      <asset><mesh name="ring">{plugin}</mesh></asset>
      <worldbody><geom name="ring" type="sdf" mesh="ring" contype="0" conaffinity="0"/>
      <site name="eye" pos=".3 0 1" euler="180 0 0"/>
      <body pos=".3 0 .05"><freejoint/><geom size=".1"/></body></worldbody>
      <sensor><rangefinder site="eye"/></sensor></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    state = mujoco.MjData(mj)
    mujoco.mj_forward(mj, state)
    m = jaxsim.load_model(xml)
    assert not m.unsupported
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    np.testing.assert_allclose(d.sensordata, state.sensordata, **ROUNDING)
    assert state.sensordata[0] > 0
