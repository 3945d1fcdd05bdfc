"""Adhesion, moving surfaces and actuators on contacts against MuJoCo, and the laws they follow.

Objects are in an unusual order: geoms of the world among the bodies, spheres before the boxes
they lie on, contacts of every dimension, in the gap and between geoms that nothing moves.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from public import public
from states import inputs, random_state, single, stack, world
from test_every_output import differences
from tolerance import DYNAMICS, FLOAT32, ROUGH_DIFFERENCE, SOLVER, STIFF

import jaxsim

SCENE = """
<mujoco><option cone="{cone}" gravity="1 .5 -9.81" impratio="2" tolerance="1e-15"
  iterations="200" ls_iterations="200" {option}/>
<worldbody>
  <body name="idle" pos="5 0 3"><freejoint/><geom size=".1" adhesion="2"/></body>
  <body name="ball" pos="-.3 .1 .115"><freejoint/>
    <geom name="ball" size=".11" adhesion="1" condim="6" friction="1 .02 .01"/></body>
  <geom name="belt" type="box" size="1 1 .1" pos="0 0 -.1" euler="5 3 20" gap=".03"
    adhesion=".5" surfacevel=".3 .2 .1 .1 .2 .5"/>
  <body name="arm" pos="0 0 .5"><joint axis="0 1 0"/>
    <geom type="capsule" size=".04 .2" pos=".2 0 0" euler="0 90 0" gap=".05" adhesion="1.5"
      surfacevel="0 0 0 1 2 3"/>
    <body name="cup" pos=".4 0 0"><joint axis="1 0 0" type="slide"/><joint axis="0 0 1"/>
      <geom name="cup" size=".08" gap=".1" margin=".01"/></body></body>
  <body name="box" pos=".42 .02 .36"><freejoint/><geom type="box" size=".1 .12 .06" priority="1"
    adhesion="3" condim="4" surfacevel="1 0 0 0 0 1"/></body>
  <geom name="wall" size=".1" pos="0 0 -.3" contype="0" conaffinity="0"/>
  <body name="rod" pos="-.3 .3 .2"><freejoint/><geom name="rod" type="capsule" size=".1 .1"
    friction=".7 .03 .02" margin=".01" gap=".02"/>
    <site name="on" type="box" size=".3 .3 .3"/></body>
  <body name="slick" pos="2 0 .33"><freejoint/><geom size=".1" condim="1" contype="2"
    conaffinity="2"/></body>
  <geom name="plate" type="box" size=".5 .8 .1" pos="2 0 .14" gap=".05" condim="1"
    contype="2" conaffinity="2"/>
  <body name="puck" pos="2 .5 .36"><freejoint/><geom size=".1" contype="2" conaffinity="2"/>
  </body>
</worldbody>
<contact><pair geom1="rod" geom2="ball" adhesion="4" condim="4" gap=".05"/>
  <pair geom1="wall" geom2="belt" adhesion="2"/></contact>
<actuator>
  <adhesion body="cup" ctrlrange="0 2" gain="3"/><adhesion body="rod" ctrlrange="0 3" gain="2"/>
  <general body="world" gainprm="1.5" biastype="affine" biasprm=".3 0 -.2"/>
</actuator>
<sensor>
  <touch site="on"/><force site="on"/><torque site="on"/><accelerometer site="on"/>
  <contact body1="rod" data="found force torque dist" num="3"/>
  <contact body1="ball" reduce="netforce" data="force torque pos"/>
  <contact data="force torque" num="3" reduce="maxforce"/><contact body1="box" data="linvel"/>
  <contact geom1="wall" data="found force"/><actuatorvel actuator="2"/>
  <subtreelinvel body="box"/><subtreeangmom body="arm"/>
</sensor></mujoco>
""".replace('actuator="2"', 'actuator="hold"').replace("<general body", '<general name="hold" body')
WORLDS = 6  # more than count as few, so that the code of many worlds runs
CASES = {
    "pyramids": ("pyramidal", 'integrator="implicitfast"'),
    "cones": ("elliptic", 'integrator="implicit" jacobian="sparse"'),
}
each = pytest.mark.parametrize("case", CASES)
quick = pytest.mark.parametrize("case", ["pyramids", pytest.param("cones", marks=pytest.mark.slow)])


@cache
def models(case: str) -> tuple[mujoco.MjModel, jaxsim.Model]:
    cone, option = CASES[case]
    mj = mujoco.MjModel.from_xml_string(SCENE.format(cone=cone, option=option))
    return mj, jaxsim.put_model(mj)


def starts(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    return [random_state(mj, seed, spread=0.01, speed=0.5) for seed in range(WORLDS)]


def run(stage: str, m: jaxsim.Model, d: jaxsim.Data) -> tuple:
    """A stage and the forces of all contacts after it."""
    d = public(stage)(m, d)
    return d, jaxsim.support.contact_forces(m, d)


step_all = jax.jit(jax.vmap(partial(run, "step"), (None, 0)))
inverse_of_one = jax.jit(partial(run, "inverse"))


def wrong_forces(mj: mujoco.MjModel, forces, mjd: mujoco.MjData) -> list[str]:
    """Contacts whose force is not that of `mj_contactForce`."""
    expected = np.zeros((len(forces), 6))
    for i in range(mjd.ncon):
        mujoco.mj_contactForce(mj, mjd, i, expected[i])
    error = np.abs(forces - expected).max(axis=1) / (1 + np.abs(expected).max())
    return [f"force of contact {i}: {e:.1e}" for i, e in enumerate(error) if not e < STIFF["rtol"]]


@quick
def test_every_output_of_several_steps_equals_that_of_mujoco(case):
    mj, m = models(case)
    states = starts(mj)
    d = stack([inputs(m, s, "all") for s in states])
    kinds, wrong = set(), []
    for n in range(4):
        d, forces = step_all(m, d)
        for k, mjd in enumerate(states):
            mujoco.mj_step(mj, mjd)
            found = differences(mj, world(d, k), forces[k], mjd)
            there = [*found, *wrong_forces(mj, forces[k], mjd)]
            wrong += [f"step {n}, world {k}: {w}" for w in there]
            kinds |= set(zip(mjd.contact.dim.tolist(), mjd.contact.exclude.tolist(), strict=True))
            assert mjd.qfrc_adhesion.any()
    assert not wrong, "\n".join(wrong)
    # each dimension, and no rows for each reason
    assert {dim for dim, why in kinds if not why} == {1, 3, 4, 6}
    assert {why for _, why in kinds} == {0, 1, 3}


@pytest.mark.slow
@each
def test_inverse_dynamics_equal_those_of_mujoco(case):
    """Forces of the contacts at any acceleration, the attraction among the rest."""
    mj, m = models(case)
    states = starts(mj)
    for seed, mjd in enumerate(states):
        mjd.qacc[:] = 9 * np.random.default_rng(seed).normal(size=mj.nv)
    for mjd in states:
        given = inputs(m, mjd, "all").replace(qacc=jnp.asarray(mjd.qacc))
        d, forces = inverse_of_one(m, given)
        mujoco.mj_inverse(mj, mjd)
        for name in ("qfrc_inverse", "qfrc_constraint", "qfrc_passive", "sensordata"):
            ours, theirs = getattr(d, name), getattr(mjd, name)
            error = np.abs(ours - theirs).max()
            assert error < DYNAMICS["rtol"] * (1 + np.abs(theirs).max()), name
        assert not wrong_forces(mj, forces, mjd)


LAWS = """
<mujoco><option cone="elliptic"/><default><geom condim="4"/></default><worldbody>
  <geom type="plane" size="1 1 1" pos="0 0 1" euler="180 0 0" adhesion="3" gap=".01"/>
  <body name="light" pos="0 0 .9"><freejoint/><geom size=".1" mass=".2"/></body>
  <body name="heavy" pos=".5 0 .9"><freejoint/><geom size=".1" mass=".4"/></body>
  <geom type="box" size="1 1 .1" surfacevel="0 .3 0 0 0 0" pos="0 0 -1"/>
  <body name="goods" pos="0 0 -.85"><freejoint/><geom type="box" size=".1 .1 .05"/></body>
  <geom type="box" size=".5 .5 .1" pos="3 0 -1" surfacevel="0 0 0 0 0 2"/>
  <body name="top" pos="3 0 -.8"><freejoint/><geom size=".1" friction="1 .1 .01"/></body>
</worldbody></mujoco>
"""


@pytest.mark.slow
def test_what_sticks_hangs_and_what_lies_on_a_belt_goes_along():
    m = jaxsim.load_model(LAWS)

    def step(d, _):
        return jaxsim.step(m, d), None

    @jax.jit
    def settled(d):
        d = jax.lax.scan(step, d, length=1500)[0]
        return jaxsim.forward(m, d)

    d = settled(jaxsim.make_data(m))
    forces = jax.jit(jaxsim.support.contact_forces)(m, d)
    light, heavy, goods, top = (
        m.names["body"].index(n) for n in ("light", "heavy", "goods", "top")
    )
    # 2 N hang on a contact that may pull with 3 N; 4 N do not
    first = np.asarray(d.contact.geom[:, 1] == m.body_geomadr[light]) & (d.contact.dist < 1)
    np.testing.assert_allclose(forces[first][:, 0], -0.2 * 9.81, rtol=1e-4)
    assert d.xpos[light, 2] > 0.89
    assert d.xpos[heavy, 2] < -0.5
    # the belt's speed; the table's angular velocity
    np.testing.assert_allclose(d.cvel[goods, 3:], [0, 0.3, 0], atol=1e-3)
    np.testing.assert_allclose(d.cvel[top, 2], 2, rtol=1e-2)


SMALL = """
<mujoco><option cone="{cone}" timestep=".002" tolerance="1e-15" iterations="100"
  ls_iterations="100"/><worldbody>
  <body name="bob" pos="0 0 .095"><joint type="slide" axis="0 0 1"/>
    <joint type="slide" axis="1 0 0"/><joint type="ball" damping=".01"/>
    <geom size=".1" mass="1" condim="6" adhesion="2" surfacevel=".1 .2 .3 .4 .5 .6"/>
    <site name="s" size=".2"/></body>
  <geom name="belt" type="plane" size="1 1 1" adhesion="3" gap=".02" surfacevel=".3 -.2 0 0 0 1"/>
  <body name="high" pos=".5 0 .11"><joint type="slide" axis="0 0 1"/>
    <geom name="high" size=".1" mass=".5"/></body>
</worldbody>
<contact><pair geom1="high" geom2="belt" adhesion="1.5" gap=".02"/></contact>
<actuator><adhesion body="bob" ctrlrange="0 2" gain="3"/><adhesion body="high" ctrlrange="0 2"/>
</actuator>
<sensor><touch site="s"/><contact data="force torque" num="2"/><force site="s"/></sensor></mujoco>
"""


@cache
def small(cone: str) -> tuple[jaxsim.Model, jaxsim.Data]:
    """One contact that slides, one across the gap."""
    m = jaxsim.load_model(SMALL.format(cone=cone))
    d = jaxsim.make_data(m, "all")
    qvel = 0.1 * np.random.default_rng(0).normal(size=m.nv)
    return m, d.replace(qvel=jnp.asarray(qvel), ctrl=jnp.asarray([0.7, 1.2]))


def felt(m, d, x):
    """Return the forces of surfaces and actuators in a step, with the forces of contacts."""
    m = m.replace(**{name: x[name] for name in x if name != "ctrl"})
    d = jaxsim.step(m, d.replace(ctrl=x["ctrl"]))
    one = jaxsim.support.contact_force(m, d, 1)
    return d.qacc, d.qvel, d.sensordata, d.qfrc_adhesion, jaxsim.support.contact_forces(m, d), one


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_derivatives_by_surfaces_and_controls(cone):
    """Forward mode against central differences, reverse mode against forward mode."""
    m, d = small(cone)
    names = ("geom_adhesion", "geom_surfacevel", "pair_adhesion")
    at = {name: getattr(m, name) for name in names} | {"ctrl": d.ctrl}
    rng = np.random.default_rng(1)
    # zeros stay: without adhesion a contact in the gap has no row
    along = {n: jnp.asarray(rng.normal(size=a.shape)) * a for n, a in at.items()}

    def moved(h):
        return felt(m, d, jax.tree.map(lambda a, v: a + h * v, at, along))

    @jax.jit
    def both(h):
        out, forwards = jax.jvp(moved, (h,), (jnp.ones_like(h),))
        return out, forwards, jax.vjp(moved, h)[1](out)[0]

    run, h = jax.jit(moved), 1e-6
    out, forwards, backwards = both(jnp.zeros(()))
    high, low = run(jnp.asarray(h)), run(jnp.asarray(-h))
    for value, slope, a, b in zip(out, forwards, high, low, strict=True):
        scale = 1 + np.abs(value).max()
        assert np.any(slope)
        np.testing.assert_allclose(
            slope, (a - b) / (2 * h), rtol=0, atol=ROUGH_DIFFERENCE["atol"] * scale
        )
    total = sum(jnp.vdot(a, b) for a, b in zip(out, forwards, strict=True))
    np.testing.assert_allclose(backwards, total, rtol=DYNAMICS["rtol"])


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_single_precision(cone):
    m, d = small(cone)
    x = {name: getattr(m, name) for name in ("geom_adhesion", "geom_surfacevel")}
    double = jax.jit(felt)(m, d, x | {"ctrl": d.ctrl})
    found = jax.jit(felt)(single(m), single(d), single(x | {"ctrl": d.ctrl}))
    for a, b in zip(found, double, strict=True):
        assert a.dtype == jnp.float32
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=0, atol=FLOAT32["rtol"] * (1 + np.abs(b).max()))


@pytest.mark.slow
def test_a_contact_force_by_number():
    """One at a time, its number traced; none where there is no contact."""
    m, d = small("elliptic")
    d = jax.jit(jaxsim.forward)(m, d)
    forces = jax.jit(jaxsim.support.contact_forces)(m, d)
    numbers = jnp.arange(-1, m.ncontact + 2)
    one = jax.jit(jax.vmap(partial(jaxsim.support.contact_force, m, d)))(numbers)
    assert d.ncon == 2 <= m.ncontact
    np.testing.assert_allclose(one[1:-2], forces, **SOLVER)
    assert not np.any(one[0])
    assert not np.any(one[-2:])
    assert np.any(forces[0])
    assert forces[1].tolist() == [-1.5, 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="'contact'; keep it"):
        jaxsim.support.contact_forces(m, jaxsim.make_data(m, keep=["qacc"]))


def test_what_a_model_has_not_costs_nothing():
    """No field of the list, unless a zero may become a number later."""
    xml = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    m = jaxsim.load_model(xml)
    contact = jaxsim.make_data(m).contact
    assert contact.adhesion is None
    assert contact.surfacevel is None
    free = jaxsim.load_model(xml, free=("geom_adhesion",))
    contact = jaxsim.make_data(free).contact
    assert contact.adhesion.shape == contact.dist.shape
    assert contact.surfacevel is None
