"""Contact sensors against MuJoCo: every criterion, reduction and field, with several contacts."""

import itertools
from functools import cache

import jax
import mujoco
import numpy as np
import pytest
from programs import program_text
from tolerance import SOLVER, STIFF

import jaxsim
from jaxsim.io.bridge import put_data, put_model

FIELDS = "found force torque dist pos normal tangent"
SPEEDS = " linvel angvel"  # not of the net force

# the first body touches nothing, the last two lean on others; boxes touch in several points
SCENE = """
<mujoco><option cone="{cone}" gravity="1 .5 -9.81" tolerance="1e-14" iterations="200"
  ls_iterations="200"/><default><geom condim="4"/></default>
<worldbody><geom name="floor" type="plane" size="3 3 .1" margin=".02" gap="{gap}"/>
  <site name="ground" type="box" size="3 3 .3"/>
  <body name="idle" pos="5 0 3"><freejoint/><geom size=".1"/></body>
  <body name="a" pos="0 0 .19"><joint type="slide" axis="0 0 1"/><joint axis="0 1 1"/>
    <joint type="slide" axis="1 0 0"/><geom name="ga" size=".2" friction="1 .1 .2"/>
    <body name="b" pos=".45 0 0"><joint name="h" axis="0 1 0"/>
      <geom name="gb" size=".2 .1" type="capsule" euler="0 90 0"/>
      <site name="sb" type="capsule" size=".2 .3"/></body>
    <body pos="-.2 0 .4"><geom size=".06"/></body></body>
  <body name="c" pos="0 0 .57"><freejoint/><geom size=".2"/></body>
  <body name="e" pos="-1 0 .19"><freejoint/><geom name="ge" type="box" size=".3 .2 .2"/>
    <geom type="box" size=".1 .1 .1" pos=".35 0 -.1" condim="3"/></body>
</worldbody><sensor><clock/>{sensors}<clock/></sensor></mujoco>
"""
FIRST = ["", 'geom1="floor"', 'body1="a"', 'subtree1="a"', 'site="ground"', 'site="sb"',
         'body1="e"', 'subtree1="world"', 'body1="world"']  # fmt: skip
SECOND = ["", 'geom2="ge"', 'geom2="floor"', 'body2="a"', 'subtree2="a"', 'body2="c"',
          'subtree2="world"', 'body2="idle"']  # fmt: skip


def every_sensor() -> str:
    """All criteria and reductions with all fields, and each field alone."""
    lines = []
    for ends in map(" ".join, itertools.product(FIRST, SECOND)):
        for reduce, count in itertools.product(("none", "mindist", "maxforce"), (1, 3)):
            form = f'reduce="{reduce}" num="{count}"'
            lines.append(f'<contact {ends} {form} data="{FIELDS + SPEEDS}"/>')
        lines.append(f'<contact {ends} reduce="netforce" num="2" data="{FIELDS}"/>')
    for field, reduce in itertools.product(FIELDS.split(), ("none", "maxforce", "netforce")):
        lines.append(f'<contact body1="c" reduce="{reduce}" num="2" data="{field}"/>')
    lines += [f'<contact body1="c" num="3" data="{field}"/>' for field in SPEEDS.split()]
    return "".join(lines)


def scene(cone: str, gap: float, sensors: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SCENE.format(cone=cone, gap=gap, sensors=sensors))


def state(mj: mujoco.MjModel, seed: int, spread: float = 0.03) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    mjd = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, mjd.qpos, spread * rng.normal(size=mj.nv), 1.0)
    mjd.qvel[:] = rng.normal(size=mj.nv)
    mujoco.mj_forward(mj, mjd)
    return mjd


@cache
def forward():
    return jax.jit(jaxsim.forward)


@pytest.mark.parametrize(
    ("cone", "gap"), [pytest.param("pyramidal", 0, marks=pytest.mark.slow), ("elliptic", 0.05)]
)
def test_every_form_equals_that_of_mujoco(cone, gap):
    mj = scene(cone, gap, every_sensor())
    m = put_model(mj)
    felt = np.zeros(mj.nsensordata, bool)
    for seed in range(4):
        mjd = state(mj, seed)
        assert mjd.ncon > 9
        d = forward()(m, put_data(mj, mjd))
        np.testing.assert_allclose(d.sensordata, mjd.sensordata, **STIFF)
        felt |= mjd.sensordata != 0
    assert felt.mean() > 0.4  # the rest are criteria that exclude each other


def shard(seed: int) -> str:
    """Corners of a mesh whose hull is nowhere symmetric."""
    return " ".join(map(str, np.random.default_rng(seed).normal(size=36) * 0.3))


@pytest.mark.slow
def test_sites_that_are_meshes_have_the_volume_of_their_hulls(refused):
    xml = f"""<mujoco><asset><mesh name="one" vertex="{shard(5)}"/>
      <mesh name="other" vertex="{shard(6)}"/><mesh name="third" vertex="{shard(7)}"/></asset>
      <worldbody><site name="ball" size=".4"/>
      <geom type="box" size=".2 .2 .2" pos=".3 0 0"/>
      <body name="b"><freejoint/><geom size=".2"/><geom size=".15" pos="0 .3 .1"/>
      <site name="t" type="mesh" mesh="third" pos=".1 0 .2" euler="50 10 20"/></body>
      <site name="s" type="mesh" mesh="one" pos=".2 0 .1" euler="10 20 30"/></worldbody>
      <sensor><insidesite site="ball" objtype="body" objname="b"/>
      <insidesite site="t" objtype="xbody" objname="world"/>
      <insidesite site="s" objtype="body" objname="b"/><contact site="s" data="found dist"/>
      <contact site="ball" data="found"/><contact site="t" num="2" data="found"/>{{touch}}</sensor>
      </mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml.format(touch=""))
    m, seen = put_model(mj), []
    for seed in range(40):
        mjd = state(mj, seed, spread=0.2)
        d = forward()(m, put_data(mj, mjd))
        np.testing.assert_allclose(d.sensordata, mjd.sensordata, **STIFF)
        seen.append(mjd.sensordata != 0)
    share = np.mean(seen, axis=0)[[0, 1, 2, 3, 5, 6]]  # `dist` aside
    assert (share > 0.05).all()
    assert (share < 0.95).all()
    touch = '<touch name="felt" site="t"/>'  # at which MuJoCo stops with a fatal error
    (message,) = refused(lambda: jaxsim.load_model(xml.format(touch=touch)))
    assert "sensor 'felt': touch in a site that is a mesh is not supported" in message


@pytest.mark.slow
def test_many_worlds_are_many_loops():
    mj = scene("pyramidal", 0.0, every_sensor())
    m = put_model(mj)
    states = [put_data(mj, state(mj, seed), keep=["sensordata"]) for seed in range(6)]
    worlds = jax.tree.map(lambda *a: jax.numpy.stack(a), *states)
    together = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, worlds)
    for k, one in enumerate(states):
        alone = forward()(m, one)
        np.testing.assert_allclose(together.sensordata[k], alone.sensordata, **SOLVER)


def test_the_program_does_not_grow_with_the_sensors():
    """The program has as many equations as with one sensor for each number of slots."""

    def size(sensors: str) -> int:
        m = put_model(scene("pyramidal", 0.0, sensors))
        return program_text(jaxsim.forward, m, jaxsim.make_data(m)).count(" = ")

    form = 'reduce="{}" num="{}" data="found force dist"'
    few = "".join(
        f'<contact site="{site}" {form.format(reduce, count)}/>'
        for reduce, count in (("mindist", 1), ("maxforce", 3), ("netforce", 1), ("netforce", 2))
        for site in ("ground", "sb")
    )
    assert size(every_sensor()) <= 1.05 * size(few)


def test_a_model_without_contacts_reports_none():
    xml = """<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody>
      <sensor><contact num="2" data="found pos"/><contact reduce="netforce" data="force"/></sensor>
      </mujoco>"""
    m = jaxsim.load_model(xml)
    d = forward()(m, jaxsim.make_data(m))
    np.testing.assert_array_equal(d.sensordata, np.zeros(11))
