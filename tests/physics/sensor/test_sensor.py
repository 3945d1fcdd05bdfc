"""Sensors against MuJoCo, except those of contacts and constraints (test_constraint_force.py)."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from states import random_state
from tolerance import ROUNDING, STAGE

from jaxsim.io.load import load_model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data
from jaxsim.physics.sensor.sensor import all_sensors, sensor_acc, sensor_pos, sensor_vel

WORLD = """
<mujoco><option magnetic=".1 .2 .3" gravity="1 2 -9"><flag contact="disable" {flag}/></option>
<worldbody>
  <site name="world" pos="0 0 1" euler="30 20 10"/>
  <camera name="eye" pos="1 0 1" euler="40 10 0"/><geom name="post" size=".1" pos="3 0 0"/>
  <body name="a"><joint name="free" type="free"/><geom name="ga" type="box" size=".1 .2 .3"
      pos=".02 .01 .03" euler="5 6 7"/>
    <site name="sa" pos=".1 0 .1" euler="10 20 30"/><camera name="look" pos=".2 0 0" euler="9 8 7"/>
    <body name="b" pos=".3 0 0"><joint name="hinge" axis="1 2 3" stiffness="1"/>
      <geom name="gb" size=".1" pos=".2 0 .1" euler="1 2 3"/><site name="sb" pos=".1 .1 0"/>
      <body name="c" pos=".3 0 0"><joint name="ball" type="ball"/>
        <geom size=".1" pos=".2 0 .1"/><site name="sc" pos=".1 .1 0" euler="60 20 9"/></body>
    </body>
    <body name="e" pos="-.3 0 0"><joint name="slide" type="slide" damping="2"/>
      <geom size=".1"/></body>
  </body>
  <body name="f" pos="0 1 0"><joint name="other" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
    <site name="sf" pos=".1 .1 0"/></body>
</worldbody>
<tendon><fixed name="sum"><joint joint="hinge" coef="2"/><joint joint="slide" coef="-1"/></fixed>
</tendon>
<actuator>
  <motor name="m1" joint="hinge"/><motor name="m2" tendon="sum"/><motor name="m3" tendon="sum"/>
  <motor name="m4" joint="other" gear="3"/>
</actuator>
<sensor>{sensors}</sensor></mujoco>
"""
PLAIN = """
  <accelerometer site="sa"/><clock/><velocimeter site="sb"/><gyro site="sc" cutoff=".5"/>
  <force site="sb"/><torque site="sb"/><force site="sf"/><torque site="sa"/>
  <magnetometer site="sa"/><accelerometer site="world"/><magnetometer site="sf" cutoff=".2"/>
  <jointpos joint="hinge"/><jointpos joint="slide" cutoff=".1"/><jointvel joint="slide"/>
  <tendonpos tendon="sum"/><tendonvel tendon="sum"/>
  <actuatorpos actuator="m4"/><actuatorvel actuator="m4"/><actuatorfrc actuator="m2"/>
  <jointactuatorfrc joint="hinge"/><tendonactuatorfrc tendon="sum"/>
  <ballquat joint="ball"/><ballangvel joint="ball"/>
  <subtreecom body="a"/><subtreelinvel body="a"/><subtreeangmom body="a"/>
  <subtreelinvel body="b"/><subtreeangmom body="c"/><subtreecom body="world"/>
  <subtreelinvel body="world"/><subtreeangmom body="world"/>
  <e_potential/><e_kinetic/><clock cutoff=".3"/>
"""
OBJECTS = {"body": "b", "xbody": "c", "geom": "ga", "site": "sc", "camera": "look"}
FRAMES = ["pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel"]


def frame_sensors() -> str:
    """Return frame sensors: each kind with and without a reference, on each kind of object."""
    seen_from = {"body": "e", "site": "sf", "camera": "eye", "geom": "post"}
    one = '<frame{} objtype="{}" objname="{}"/>'
    two = '<frame{} objtype="{}" objname="{}" reftype="{}" refname="{}"/>'
    lines = [one.format(kind, "site", "sc") for kind in [*FRAMES, "linacc", "angacc"]]
    lines += [two.format(kind, "geom", "gb", "xbody", "f") for kind in FRAMES]
    for kind in ("pos", "quat", "linvel"):
        lines += [one.format(kind, *obj) for obj in OBJECTS.items()]
        lines += [two.format(kind, "xbody", "c", *ref) for ref in seen_from.items()]
    return "".join(lines)


LIMITED = """
<mujoco><worldbody>
  <body><joint name="h" axis="0 1 0" range="-10 10" margin="{margin}"/>
    <geom size=".1" pos=".1 0 0"/>
    <body><joint name="s" type="slide" range="-.2 .3"/><geom size=".1" pos=".1 0 0"/>
      <body><joint name="b" type="ball" range="0 40"/><geom size=".1" pos=".1 0 0"/></body>
    </body></body>
</worldbody>
<tendon><fixed name="t" range="-.3 .1" margin="{margin}"><joint joint="h" coef="1"/>
  <joint joint="s" coef="2"/></fixed></tendon>
<sensor><jointlimitpos joint="h"/><jointlimitpos joint="s"/><jointlimitpos joint="b"/>
  <jointlimitvel joint="b"/><jointlimitvel joint="h"/><jointlimitvel joint="s"/>
  <tendonlimitpos tendon="t"/><tendonlimitvel tendon="t"/></sensor></mujoco>
"""
SHAPES = {
    "sphere": ".5", "capsule": ".3 .3", "ellipsoid": ".3 .5 .7", "cylinder": ".4 .3",
    "box": ".3 .4 .5",
}  # fmt: skip

run = jax.jit(lambda m, d: all_sensors(m, d).sensordata)


def compare(xml: str, seeds: int, spread: float = 1.0) -> list[np.ndarray]:
    mj = oracle.compile_xml(xml)
    seen = []
    for seed in range(seeds):
        mjd = random_state(mj, seed, spread=spread)
        np.testing.assert_allclose(run(*oracle.pair(mj, mjd)), mjd.sensordata, **STAGE)
        seen.append(mjd.sensordata.copy())
    return seen


@pytest.mark.parametrize("flag", ["", 'actuation="disable"', 'gravity="disable"'])
def test_plain_sensors_equal_those_of_mujoco(flag):
    compare(WORLD.format(sensors=PLAIN, flag=flag), 3)


def test_frame_sensors_equal_those_of_mujoco():
    compare(WORLD.format(sensors=frame_sensors(), flag=""), 3)


def test_projections_equal_those_of_mujoco():
    """Lenses in lengths, in pixels and by angle; sites behind the camera, and at its center.

    MuJoCo stores sizes of lenses in single precision: those of the test are exact in it.
    """
    xml = """<mujoco><worldbody>
      <camera name="fixed" pos="0 -2 1" euler="80 10 0" resolution="640 480" fovy="50"/>
      <body name="b"><freejoint/><geom size=".1"/><site name="s" pos=".1 .2 .3"/>
        <camera name="lens" pos="0 0 1" resolution="300 200" focal=".125 .375" sensorsize=".25 .5"
          principal=".001 .002"/>
        <camera name="pixels" pos="1 0 1" resolution="300 200" focalpixel="75 50"
          sensorsize=".25 .5" principalpixel="3 4"/></body>
      <body><joint axis="1 1 1"/><geom size=".1"/><site name="t" pos="1 0 0"/></body>
      <camera name="wide" mode="targetbody" target="b" pos="1 1 1" fovy="120"/>
      <camera name="here"/><site name="here"/><site name="near" pos="1 2 0"/>
    </worldbody><sensor>
      <camprojection site="t" camera="lens"/><camprojection site="s" camera="fixed" cutoff="100"/>
      <camprojection site="s" camera="wide"/><camprojection site="t" camera="pixels"/>
      <clock/><camprojection site="here" camera="here"/><camprojection site="near" camera="here"/>
    </sensor></mujoco>"""
    seen = np.array(compare(xml, 6))
    assert (seen[:, 0] < 0).any()
    assert (seen[:, 0] > 0).any()


@pytest.mark.short("0.1")
@pytest.mark.parametrize("margin", [0, 0.1])
def test_limit_sensors_equal_those_of_mujoco(margin):
    seen = np.array(compare(LIMITED.format(margin=margin), 20, spread=0.4))
    assert (
        (seen != 0).any(0) & (seen == 0).any(0)
    ).all()  # each limit was active in one state, and inactive in another


@pytest.mark.short("box", "capsule", "ellipsoid")
@pytest.mark.parametrize("shape", SHAPES)
def test_inside_site_equals_that_of_mujoco(shape):
    xml = f"""<mujoco><worldbody><site name="s" type="{shape}" size="{SHAPES[shape]}"
      euler="10 20 30"/><body name="b"><freejoint/><geom size=".1"/></body></worldbody>
      <sensor><insidesite site="s" objtype="xbody" objname="b"/></sensor></mujoco>"""
    seen = compare(xml, 30, spread=0.3)
    assert 0 < np.sum(seen) < 30


@pytest.mark.slow
def test_stages_one_by_one_equal_all_sensors():
    mj = oracle.compile_xml(WORLD.format(sensors=PLAIN + frame_sensors(), flag=""))
    m, d = oracle.pair(mj, random_state(mj, 0))
    d = d.replace(sensordata=jnp.zeros_like(d.sensordata))

    def stages(m, d):
        return sensor_acc(m, sensor_vel(m, sensor_pos(m, d))).sensordata

    np.testing.assert_array_equal(jax.jit(stages)(m, d), run(m, d))


@pytest.mark.slow
def test_vmap_equals_a_loop_over_worlds():
    mj = oracle.compile_xml(WORLD.format(sensors=PLAIN + frame_sensors(), flag=""))
    states = [random_state(mj, seed) for seed in range(3)]
    oracle.assert_worlds_are_a_loop(run, mj, states, ROUNDING)


@pytest.mark.slow
def test_gradients_are_finite_at_rest():
    mj = oracle.compile_xml(WORLD.format(sensors=PLAIN + frame_sensors(), flag=""))
    mjd = mujoco.MjData(mj)
    mujoco.mj_forward(mj, mjd)
    m, d = oracle.pair(mj, mjd)

    def loss(d):
        return all_sensors(m, d).sensordata.sum()

    grads = jax.jit(jax.grad(loss, allow_int=True))(d)
    real = [g for g in jax.tree.leaves(grads) if g.dtype == jnp.float64]
    assert all(np.isfinite(g).all() for g in real)


def test_disabled_sensors_keep_their_values():
    mj = oracle.compile_xml(WORLD.format(sensors=PLAIN, flag='sensor="disable"'))
    m, d = oracle.pair(mj, random_state(mj, 0))
    d = d.replace(sensordata=jnp.ones_like(d.sensordata))
    assert (run(m, d) == 1).all()


@pytest.mark.slow
def test_step_of_a_data_without_sensordata():
    """The model has sensors of later stages alone, and the Data no `sensordata`."""
    m = load_model(
        """<mujoco><worldbody><body>
        <joint name="a" axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/><site name="s"/>
        </body></worldbody><actuator><motor joint="a"/></actuator>
        <sensor><gyro site="s"/><accelerometer site="s"/></sensor></mujoco>"""
    )
    d = make_data(m).replace(qvel=jnp.ones(1))
    without = make_data(m, keep=()).replace(qvel=jnp.ones(1))
    run = jax.jit(step)
    np.testing.assert_array_equal(run(m, d).qvel, run(m, without).qvel)
