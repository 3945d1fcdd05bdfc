"""Tactile sensors against MuJoCo: all that can press, on several sensors, in several worlds."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics import oracle
from physics.oracle import unpack
from programs import program_text
from states import inputs, random_state, stack
from tolerance import ROUGH_DIFFERENCE, ROUNDING, STAGE, STAGES

import jaxsim
from jaxsim.arrays.gather import gather_static
from jaxsim.io.bridge import put_model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.sensor.sensor import sensor_vel
from jaxsim.physics.sensor.tactile_plan import tactile_plan

# Objects lie on the floor and in each other, but touch the floor only. What is fixed to the world
# feels all of them, a skate feels the floor and its own lump, and the first body touches nothing.
SCENE = """
<mujoco><option gravity="1 .5 -9.81"/><size njmax="300"/>
<extension><plugin plugin="mujoco.sdf.torus"><instance name="torus"/></plugin></extension>
<default><geom conaffinity="0"/></default>
<asset>
  <mesh name="plate" builtin="plate" params="9 7" scale="1 .8 .05"/>
  <mesh name="wedge" builtin="wedge" params="5 6 40 30 .2" scale=".5 .5 .5"/>
  <mesh name="ball" builtin="sphere" params="1" scale=".2 .25 .3"/>
  <mesh name="stone" vertex="0 0 0 1 0 0 0 .8 0 0 0 .6"/>
  <mesh name="torus"><plugin instance="torus"/></mesh>
</asset>
<worldbody>
  <body name="idle" pos="0 0 9"><freejoint/><geom name="idle" size=".3"/></body>
  <geom name="floor" type="plane" size="3 3 .1" contype="0" conaffinity="1" margin=".02"
    gap="{gap}"/>
  <body name="post" pos=".05 0 .1" euler="5 8 20">
    <geom name="mat" type="mesh" mesh="plate" contype="0"/><geom size=".1" contype="4"/></body>
  <body name="skate" pos="0 0 .1"><freejoint/><geom name="skate" type="box" size=".5 .3 .1"/>
    <geom name="lump" size=".22" contype="0"/>
    <body pos="0 0 -.1" euler="0 0 30"><geom name="sole" type="ellipsoid" size=".1 .1 .1"/></body>
  </body>
  {things}
</worldbody>
<contact><pair geom1="skate" geom2="lump"/></contact>
<sensor><clock/>{sensors}<clock/></sensor></mujoco>
"""
THINGS = {
    "sphere": 'type="sphere" size=".2"',
    "box": 'type="box" size=".2 .1 .15"',
    "capsule": 'type="capsule" size=".12 .15"',
    "cylinder": 'type="cylinder" size=".15 .12"',
    "ellipsoid": 'type="ellipsoid" size=".2 .15 .12"',
    "octree": 'type="mesh" mesh="stone" pos="-.2 -.2 -.2"',
    "hull": 'type="mesh" mesh="ball"',  # no octree: no sensor reads it
    "torus": 'type="sdf" mesh="torus"><plugin instance="torus"/></geom',
}
SENSORS = (
    '<tactile geom="idle" mesh="ball"/>',
    '<tactile geom="mat" mesh="plate"/>',
    '<tactile geom="sole" mesh="wedge"/>',
    '<tactile geom="skate" mesh="ball"/>',
    '<tactile geom="mat" mesh="wedge" cutoff=".03"/>',
)


@cache
def model(number: int = len(SENSORS), gap: float = 0.01) -> mujoco.MjModel:
    things = "".join(
        f'<body pos="{0.1 * np.cos(k):.2f} {0.1 * np.sin(k):.2f} .1"><freejoint/>'
        f'<geom name="{name}" {form}{"" if form.endswith("geom") else "/"}></body>'
        for k, (name, form) in enumerate(THINGS.items())
    )
    xml = SCENE.format(things=things, gap=gap, sensors="".join(SENSORS[:number]))
    spec = mujoco.MjSpec.from_string(xml)
    spec.mesh("stone").needsdf = 1
    return spec.compile()


@cache
def state(seed: int) -> mujoco.MjData:
    return random_state(model(), seed, spread=0.05)


def read(m, d):
    return sensor_vel(m, collision(m, d)).sensordata


def places(mj: mujoco.MjModel, sensor: int) -> slice:
    """Return the addresses of a tactile sensor; the first one comes after a clock."""
    first = mj.sensor_adr[1 + sensor]
    return slice(first, first + mj.sensor_dim[1 + sensor])


@pytest.mark.parametrize("room", [None, pytest.param(28, marks=pytest.mark.slow)])
def test_readings_equal_those_of_mujoco(room):
    """Capacity for every contact that may exist, and for fewer."""
    mj, run = model(), jax.jit(read)
    m = put_model(mj, contacts=room)
    assert collision_layout(m).fits_all_points == (room is None)
    felt = np.zeros(mj.nsensordata, bool)
    apart = 0
    for seed in range(6):
        mjd = state(seed)
        assert mjd.ncon <= 28
        mine = run(unpack(m, 0), unpack(oracle.data(mj, mjd), 0))
        np.testing.assert_allclose(mine, mjd.sensordata, **STAGE)
        felt |= mjd.sensordata != 0
        apart += (mjd.contact.dist > 0).sum()
    assert apart  # contacts without force count too
    counts = [felt[places(mj, k)].sum() for k in range(len(SENSORS))]
    assert counts[0] == 0
    assert min(counts[1:]) > 15
    assert felt[places(mj, 3)].reshape(3, -1).any(1).tolist() == [True, False, False]


@pytest.mark.parametrize("name", THINGS)
def test_every_kind_of_geom_was_felt(name):
    """In the states of these tests readings change when a geom goes away, but for a mere hull."""
    mj = model()
    changes = 0
    for seed in range(6):
        mjd = mujoco.MjData(mj)
        mujoco.mj_copyData(mjd, mj, state(seed))
        mjd.joint(mj.body_jntadr[mj.geom(name).bodyid[0]]).qpos[2] += 50
        mujoco.mj_forward(mj, mjd)
        changes += (np.abs(mjd.sensordata - state(seed).sensordata) > 1e-3).sum()
    assert (changes > 0) == (name != "hull")


@pytest.mark.slow
def test_many_worlds_and_nothing_kept_but_the_readings():
    mj = model()
    m, states = put_model(mj), [state(seed) for seed in range(4)]
    worlds = [inputs(m, s, keep=["sensordata"]) for s in states]
    together = stack(worlds)
    out = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, together)
    assert out.cvel is None
    for k, one in enumerate(states):
        np.testing.assert_allclose(out.sensordata[k], one.sensordata, **STAGES)


@pytest.mark.slow
def test_worlds_are_a_loop():
    oracle.assert_worlds_are_a_loop(read, model(), [state(seed) for seed in range(3)], ROUNDING)


@pytest.mark.slow
def test_gradients_of_readings():
    """In both modes, by poses and velocities, through the choice of what presses."""
    mj = model()
    m, d = oracle.pair(mj, state(0))
    seed = jnp.asarray(np.random.default_rng(0).normal(size=mj.nsensordata))

    def total(way):
        moved = {n: jax.tree.map(jnp.add, getattr(d, n), way[n]) for n in NAMES}
        return seed @ sensor_vel(m, collision(m, d).replace(**moved)).sensordata

    rng = np.random.default_rng(1)
    way = {n: jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), getattr(d, n))
           for n in NAMES}  # fmt: skip
    way["cvel"] = gather_static(way["cvel"], mj.body_weldid)  # what is welded moves together
    zero = jax.tree.map(jnp.zeros_like, way)
    both = jax.jit(jax.value_and_grad(total))  # one program
    gradient = both(zero)[1]
    _, forward = jax.jit(lambda t: jax.jvp(total, (zero,), (t,)))(way)
    for n in NAMES:
        some = {**zero, n: way[n]}
        ahead, behind = (jax.tree.map(lambda a: e * a, some) for e in (1e-6, -1e-6))  # noqa: B023
        slope = (both(ahead)[0] - both(behind)[0]) / 2e-6
        pieces = zip(jax.tree.leaves(gradient[n]), jax.tree.leaves(way[n]), strict=True)
        backward = sum(jnp.sum(a * b) for a, b in pieces)
        np.testing.assert_allclose(backward, slope, **ROUGH_DIFFERENCE)
        assert abs(slope) > 0.1
    pieces = zip(jax.tree.leaves(gradient), jax.tree.leaves(way), strict=True)
    np.testing.assert_allclose(sum(jnp.sum(a * b) for a, b in pieces), forward, **ROUNDING)


NAMES = ("geom_xpos", "geom_xmat", "cvel")


@pytest.mark.slow
def test_gradients_are_finite_where_things_coincide():
    """All geoms in one point at rest: no distance and no speed has a direction."""
    mj = model()
    mjd = mujoco.MjData(mj)
    mujoco.mj_forward(mj, mjd)
    m, d = oracle.pair(mj, mjd)

    def total(pos, cvel):
        found = collision(m, d)
        return sensor_vel(m, found.replace(geom_xpos=pos, cvel=cvel)).sensordata.sum()

    together, rest = (jax.tree.map(jnp.zeros_like, a) for a in (d.geom_xpos, d.cvel))
    gradient = jax.jit(jax.grad(total, (0, 1)))(together, rest)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))
    assert any(np.any(g) for g in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_the_program_does_not_grow_with_the_sensors():
    """More sensors and more taxels are longer arrays, not more operations."""

    def size(number: int) -> int:
        m, d = oracle.pair(model(number), random_state(model(number)))
        return program_text(read, m, d).count(" = ")

    assert size(len(SENSORS)) <= size(2) + 10


def test_taxels_are_cut_into_patches():
    """Each vertex is in a patch, and at most half of all slots are padding."""
    mj = model()
    plan = tactile_plan(put_model(mj).structure, 0)
    count = [mj.mesh(mj.sensor_objid[1 + k]).vertnum[0] for k in range(len(SENSORS))]
    assert len(plan.vertex) == min(count)
    assert sum(count) <= plan.vertex.size < 2 * sum(count)
    assert len(np.unique(plan.rows)) == len(plan.rows) == 3 * sum(count)


def test_a_height_field_is_refused(refused):
    """MuJoCo stops the program when it meets one."""
    xml = """<mujoco><asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>
      <mesh name="plate" builtin="plate" params="3 3"/></asset><worldbody>
      <geom name="hill" type="hfield" hfield="h" {}/><body><freejoint/><geom name="g" size=".1"/>
      </body></worldbody><sensor><tactile name="skin" geom="g" mesh="plate"/></sensor></mujoco>"""
    (message,) = refused(lambda: jaxsim.load_model(xml.format("")))
    assert "sensor 'skin'" in message
    assert "geom 'hill', a height field" in message
    assert "contype" in message
    assert not jaxsim.load_model(xml.format('contype="0" conaffinity="0"')).unsupported
