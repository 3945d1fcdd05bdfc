"""Elasticity of flexes in the discrete step, and asleep, against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import random_state, stack
from tolerance import DIFFERENCE, FLOAT32

import jaxsim
from jaxsim.errors import UnsupportedWarning

pytestmark = pytest.mark.long

WORLDS = 3
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
OFF = '<contact contype="0" conaffinity="0" selfcollide="none"/>'
GRID = f"""<flexcomp name="{{name}}" type="grid" count="{{count}}" spacing=".1 .12 .1" dim="{{dim}}"
  radius=".01" mass=".5" pos="{{pos}}" euler="10 20 30" {{dof}}>{{pin}}{OFF}{{edge}}
  <elasticity young="{{young}}" poisson=".3" thickness=".05" damping=".02" {{more}}/></flexcomp>"""
MODEL = """
<mujoco><option timestep=".002" integrator="{integrator}" tolerance="0" iterations="50" {option}/>
<option><flag {flag}/></option><worldbody>
<body name="first" pos="0 0 2"><freejoint/><geom type="box" size=".1 .2 .05" mass="1"/></body>
<body name="arm" pos=".3 0 1"><joint axis="0 1 .2" range="-20 1" stiffness="2" damping=".1"
  frictionloss=".1"/><geom size=".05" pos=".1 0 0" mass=".4"/>{arm}</body>{free}
</worldbody>{more}</mujoco>"""
PIN = '<pin id="0 1"/>'
POINT = """<body name="v{i}" pos="{x} {y} {z}"><joint type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
  <inertial pos="0 0 0" mass=".1" diaginertia="1 1 1"/></body>"""


def grid(name: str, count="2 2 2", dim=3, **given: str) -> str:
    fill = {"dof": "", "pin": "", "edge": "", "young": "2e3", "more": "", "pos": ".5 0 .4"}
    return GRID.format(name=name, count=count, dim=dim, **{**fill, **given})


def text(**given: str) -> str:
    fill = {"arm": "", "free": "", "more": "", "option": "", "flag": "", "integrator": "discrete"}
    return MODEL.format(**{**fill, **given})


ROD = f"""<flexcomp name="{{name}}" type="direct" dim="1" {{size}} mass=".3" euler="10 20 30"
  point="0 0 0  .1 0 0  .19 .04 0  .25 .12 .02" element="0 1 1 2 2 3">{{pin}}{OFF}
  <elasticity young="1e5" poisson=".3" damping=".01" {{section}}/></flexcomp>"""
RING = f"""<flexcomp name="ring" type="circle" count="5 1 1" spacing=".1 .1 .1" dim="1"
  radius=".01" mass=".5" pos="0 -1 1">{OFF}<elasticity young="1e5" poisson=".3" damping=".002"/>
</flexcomp>"""
BOX = 'section="box" sectionsize=".01 .02"'
# elements and hinges that yield, cells, walls and rods, some on what moves, one on a free body
FULL = text(
    arm=grid("cloth", "3 2 1", 2, pin=PIN, more='elastic2d="both" yield=".01"')
    + grid("cells", pin=PIN, dof='dof="trilinear"', young="1e2")
    + ROD.format(name="bow", size='radius=".01"', pin='<pin id="0 1"/>', section=""),
    free=grid("walls", dof='dof="trilinear"', more='elastic2d="both"', young="1e2")
    + ROD.format(name="loose", size="", pin="", section=BOX)
    + RING
    + POINT.format(i=1, x=0.2, y=0, z=2) + POINT.format(i=2, x=0, y=0.2, z=2)
    + POINT.format(i=3, x=0, y=0, z=2.2),
    more=f"""<deformable><flex name="on free" dim="3" body="first v1 v2 v3" element="0 1 2 3">{OFF}
      <elasticity young="1e2" damping=".03"/></flex></deformable>""",
)  # fmt: skip
SMALL = text(arm=grid("cloth", "2 2 1", 2, pin=PIN, more='elastic2d="both"'))
FIELDS = """qpos qvel plastic qacc qacc_smooth qfrc_smooth qfrc_constraint qfrc_spring
    qfrc_damper""".split()
# The oracle stops turning a cell at 1e-9 rad, and forces are stiffnesses times that.
TURNED = {"rtol": 1e-7, "atol": 1e-8}


INPUTS = ("qpos", "qvel", "qfrc_applied", "xfrc_applied", "plastic")


def begun(xml: str, keep: list):
    """The oracle's model and states, ours, and our data in these states."""
    mj = mujoco.MjModel.from_xml_string(xml)
    states = [random_state(mj, k, spread=0.02, speed=1.0) for k in range(WORLDS)]
    m = jaxsim.load_model(xml)
    empty = jaxsim.make_data(m, keep=keep)
    each = [empty.replace(**{n: jnp.asarray(getattr(s, n)) for n in INPUTS}) for s in states]
    return mj, states, m, stack(each)


@pytest.mark.slow
def test_steps():
    mj, states, m, worlds = begun(FULL, FIELDS[3:])
    found = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)(m, worlds)
    for k, state in enumerate(states):
        d = mujoco.MjData(mj)
        for name in INPUTS:
            getattr(d, name)[:] = getattr(state, name)
        mujoco.mj_step(mj, d)
        for name in FIELDS:
            theirs = getattr(d, name)
            size = max(1, np.abs(theirs).max(initial=0))
            ours = np.asarray(getattr(found, name))[k]
            np.testing.assert_allclose(ours / size, theirs / size, **TURNED, err_msg=name)


@cache
def small():
    """A state of the small model, and what forward and inverse dynamics make of it."""
    mj, states, m, worlds = begun(SMALL, [jaxsim.inverse, "qacc_smooth"])

    def there_and_back(m, d):
        return jaxsim.inverse(m, jaxsim.forward(m, d))

    run = jax.jit(there_and_back, compiler_options=COMPILER)
    return mj, states[1], m, worlds[1], run


@pytest.mark.slow
def test_inverse_dynamics():
    mj, d, m, world, run = small()
    back = run(m, world)
    mujoco.mj_forward(mj, d)
    np.testing.assert_allclose(back.qacc_smooth, d.qacc_smooth, **TURNED)
    pushed = d.qfrc_applied.copy()
    for body, wrench in enumerate(d.xfrc_applied):
        mujoco.mj_applyFT(mj, d, wrench[:3], wrench[3:], d.xipos[body], body, pushed)
    np.testing.assert_allclose(back.qfrc_inverse, pushed, atol=1e-7)


def test_a_stiff_body_is_stable():
    """At a step many times the limit of explicit methods it only loses energy."""
    stiff = text(free=grid("stiff", young="1e7"), flag='gravity="disable"')
    m = jaxsim.load_model(stiff.replace('timestep=".002"', 'timestep=".02"'))
    d = jaxsim.make_data(m)
    d = d.replace(
        qpos=d.qpos + 0.01 * np.random.default_rng(0).normal(size=m.nq) * (np.arange(m.nq) > 7)
    )
    run = jax.jit(
        lambda d: jax.lax.fori_loop(0, 50, lambda _, d: jaxsim.step(m, d), d),
        compiler_options=COMPILER,
    )
    assert float(jnp.abs(run(d).qvel[7:]).max()) < 1


@pytest.mark.slow
def test_gradient():
    """Along a direction of velocities, stiffnesses and damping."""
    m = jaxsim.load_model(SMALL)
    d, rng = jaxsim.make_data(m), np.random.default_rng(0)
    turn, speed, weight = (jnp.asarray(rng.normal(size=m.nv)) for _ in range(3))

    def moved(t):
        own = m.replace(
            flex_stiffness=m.flex_stiffness * (1 + 0.1 * t), flex_damping=m.flex_damping * (1 + t)
        )
        qpos = jaxsim.support.integrate_pos(m, d.qpos, turn, 0.02 + 0.1 * t)
        return jnp.sum(jaxsim.step(own, d.replace(qpos=qpos, qvel=t * speed)).qvel * weight)

    run = jax.jit(jax.value_and_grad(moved), compiler_options=COMPILER)  # one program of both
    (below, _), (_, slope), (above, _) = (run(jnp.asarray(h)) for h in (-1e-6, 0.0, 1e-6))
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **DIFFERENCE | {"rtol": 1e-5})


@pytest.mark.slow
def test_single_precision():
    _, _, m, world, run = small()
    with jax.enable_x64(False):
        single = jaxsim.load_model(SMALL)
        given = {n: jnp.asarray(getattr(world, n), np.float32) for n in INPUTS}
        empty = jaxsim.make_data(single, keep=[jaxsim.inverse, "qacc_smooth"])
        new = run(single, empty.replace(**given))
    assert new.qacc.dtype == np.float32
    found = np.asarray(run(m, world).qacc_smooth)
    ours, size = np.asarray(new.qacc_smooth), np.abs(found).max()
    np.testing.assert_allclose(ours / size, found / size, **FLOAT32)


SLEEPERS = (
    grid("held", "2 2 1", 2, young="0", edge='<edge equality="true"/>')
    + grid("soft", pos="3 0 1")
    + grid("strain", pos="6 0 1", dof='dof="trilinear"', young="0",
           edge='<edge equality="strain"/>')
)  # fmt: skip
ASLEEP = """tree_asleep tree_awake nisland tree_island qpos qvel qacc qfrc_passive
    qfrc_constraint flexvert_xpos flexedge_length flexedge_velocity""".split()


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["Euler", "discrete"])
def test_sleep(integrator):
    """Without gravity they rest; two are pushed. What is only elastic never sleeps under Euler."""
    given = {"integrator": integrator, "free": SLEEPERS, "flag": 'sleep="enable" gravity="disable"'}
    xml = text(**given)
    mj, m = mujoco.MjModel.from_xml_string(xml), jaxsim.load_model(xml)
    theirs, d = mujoco.MjData(mj), jaxsim.make_data(m, keep=ASLEEP)
    step, slept = jax.jit(jaxsim.step, compiler_options=COMPILER), set()
    for i in range(45):
        for dof in {15: (-5,), 30: (20,)}.get(i, ()):
            theirs.qvel[dof] = 0.01
            d = d.replace(qvel=d.qvel.at[m.nv + dof if dof < 0 else dof].set(0.01))
        mujoco.mj_step(mj, theirs)
        d = step(m, d)
        slept |= set(np.flatnonzero(theirs.tree_asleep >= 0))
        for name in ASLEEP:
            want = np.ravel(getattr(theirs, name))
            if name == "tree_island" and not theirs.nisland:
                continue  # nothing is written there
            ours = np.ravel(getattr(d, name))
            np.testing.assert_allclose(ours, want, **TURNED, err_msg=f"{name}, step {i}")
    assert len(slept) == (m.ntree if integrator == "discrete" else m.ntree - 8)


REFUSED = {
    "solver='PGS', as in MuJoCo": 'solver="PGS"',
    "noslip_iterations, as in MuJoCo": 'noslip_iterations="2"',
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_says_why(message):
    """The error is raised where the oracle raises one."""
    xml = text(option=REFUSED[message], free=grid("soft"))
    with pytest.warns(UnsupportedWarning, match="flex"):
        m = jaxsim.load_model(xml)
    with pytest.raises(Exception, match=message):
        jaxsim.make_data(m)
    with pytest.raises(ValueError, match="not yet supported with flex"):
        mujoco.MjModel.from_xml_string(xml)
