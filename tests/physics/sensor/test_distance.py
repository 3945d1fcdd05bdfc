"""Sensors of distances against MuJoCo: of geoms and bodies, planes and meshes, in any order."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from physics.oracle import unpack
from programs import program_text
from states import random_state
from tolerance import ROUGH_DIFFERENCE, ROUNDING

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.math import Vec
from jaxsim.physics.sensor.sensor import sensor_pos

# a pair of sides and a cutoff each
ASKED = (
    'body1="a" body2="b" cutoff="3"',
    'body1="b" body2="a" cutoff=".3"',
    'geom1="stone" geom2="crate" cutoff=".5"',
    'body1="b" geom2="floor" cutoff="2"',
    'geom1="wall" body2="a"',
    'body1="bare" body2="a" cutoff="1"',
    'geom1="floor" body2="world" cutoff="4"',
    'geom1="rod" geom2="ball" cutoff=".05"',
    'geom1="wall" geom2="floor" cutoff=".05"',
    'geom1="drum" body2="world" cutoff="9"',
)
BETWEEN = '<clock/><framepos objtype="body" objname="b"/>'
STONE = np.random.default_rng(3).normal(size=(15, 3)) * 0.1
XML = f"""
<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/>
<default><geom contype="0" conaffinity="0"/></default>
<asset><mesh name="stone" vertex="{" ".join(map(str, STONE.ravel()))}"/></asset><worldbody>
  <geom name="floor" type="plane" size="1 1 1" euler="10 0 0"/>
  <geom name="wall" type="box" size=".5 .1 .5" pos="0 -1 .2" euler="0 20 0"/>
  <body name="a" pos="0 0 1"><freejoint/><geom name="ball" size=".1"/>
    <geom name="rod" type="capsule" size=".05 .2" pos=".1 .1 0" euler="20 0 0"/>
    <geom name="crate" type="box" size=".1 .05 .2" pos="-.3 0 0"/>
    <body name="bare"><joint/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body></body>
  <body name="b" pos=".5 .5 .9"><freejoint/>
    <geom name="egg" type="ellipsoid" size=".1 .15 .05"/>
    <geom name="drum" type="cylinder" size=".1 .1" pos="0 .3 0"/>
    <geom name="stone" type="mesh" mesh="stone" pos=".3 0 0"/></body>
</worldbody><sensor>{{}}</sensor></mujoco>"""


def sensors(asked: tuple[str, ...] = ASKED) -> str:
    lines = [f"<{kind} {a}/>" for a in asked for kind in ("fromto", "distance", "normal")]
    return BETWEEN.join(lines[k] for k in np.random.default_rng(0).permutation(len(lines)))


@cache
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML.format(sensors()))


read = jax.jit(lambda m, d: sensor_pos(m, d).sensordata)


def test_sensors_equal_the_oracle():
    """Every number of poses near and far; some of them are beyond their cutoff."""
    mj = model()
    states = [random_state(mj, seed, spread=0.3) for seed in range(40)]
    mine = np.asarray(read(*oracle.many(mj, states))).T
    expected = np.array([d.sensordata for d in states])
    # a segment is known to the root of what a distance is known to
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-5)
    of_distance = np.repeat(mj.sensor_type, mj.sensor_dim) == mujoco.mjtSensor.mjSENS_GEOMDIST
    np.testing.assert_allclose(mine[:, of_distance], expected[:, of_distance], rtol=0, atol=1e-9)
    assert (expected[:, of_distance] < 0).any(axis=0).sum() >= 4
    assert (expected == 0).mean() > 0.1


@pytest.mark.slow
def test_worlds_are_a_loop():
    mj = model()
    states = [random_state(mj, seed, spread=0.3) for seed in range(3)]
    oracle.assert_worlds_are_a_loop(
        lambda m, d: sensor_pos(m, d).sensordata, mj, states, ROUNDING | {"atol": 1e-9}
    )


def test_what_is_measured_only_by_sensors_has_a_hull():
    """A mesh that nothing can touch, as MuJoCo's own compiler gives it."""
    m = jaxsim.load_model(XML.format(sensors()))
    assert m.structure.geom_hullid[model().geom("stone").id] == 0
    assert not m.unsupported


@pytest.mark.slow
def test_the_program_does_not_grow_with_the_sensors():
    """More sensors are longer arrays, not more operations."""

    def size(number: int) -> int:
        mj = mujoco.MjModel.from_xml_string(XML.format(sensors((2 * ASKED)[:number])))
        m = unpack(put_model(mj), 0)
        _, d = oracle.pair(mj, random_state(mj))
        return program_text(lambda d: read(m, d), d).count(" = ")

    # of the first nine there are pairs of each family, of several geoms on both sides, in more than
    # one chunk of a search
    assert size(2 * len(ASKED)) <= size(9)


@pytest.mark.slow
def test_gradients_of_readings():
    """In reverse mode, through the choice of the nearest pair and the cutoff."""
    mj = model()
    m, d = oracle.pair(mj, random_state(mj, 1, spread=0.3))

    def total(pos: jax.Array, seed: jax.Array) -> jax.Array:
        return seed @ read(m, d.replace(geom_xpos=d.geom_xpos + Vec(*pos)))

    rng = np.random.default_rng(0)
    zero, seed = np.zeros((3, mj.ngeom)), jnp.asarray(rng.normal(size=mj.nsensordata))
    both = jax.jit(jax.value_and_grad(total))  # one program
    gradient = np.asarray(both(jnp.asarray(zero), seed)[1])
    way = rng.normal(size=zero.shape)
    slope = (both(1e-6 * way, seed)[0] - both(-1e-6 * way, seed)[0]) / 2e-6
    np.testing.assert_allclose(np.sum(gradient * way), slope, **ROUGH_DIFFERENCE)
    assert np.abs(gradient).max() > 0.1
