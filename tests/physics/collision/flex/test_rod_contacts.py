"""Contacts of rods whose edges rotate by hinges, round and with a box section, against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import random_state, stack, world
from tolerance import DYNAMICS

import jaxsim

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
WORLDS = 3
WORLD = """<mujoco>
<option integrator="discrete" cone="elliptic" jacobian="dense" tolerance="0" iterations="60"
  ls_iterations="50"/>
<worldbody>
<body pos="0 0 2"><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>
<geom name="ground" type="plane" size="2 2 .1" pos="0 0 -.03" euler="5 3 0"/>{content}
</worldbody><sensor>{sensor}</sensor></mujoco>"""


def rod(name: str, pos: str, more: str = "", section: str = 'radius=".02"', **given: str) -> str:
    fill = {"condim": "4", "pin": "", "own": "1", **given}
    radius, box = (section, "") if section.startswith("radius") else ("", section)
    return (
        f'<flexcomp name="{name}" type="grid" dim="1" count="3 1 1" spacing=".1 .1 .1" {radius} '
        f'mass=".3" pos="{pos}" {more}>{fill["pin"]}<elasticity young="1e4" poisson=".3" '
        f'damping=".01" {box}/><contact selfcollide="none" condim="{fill["condim"]}" '
        f'friction=".8 .02 .01" margin=".004" gap=".01" contype="{fill["own"]}"/></flexcomp>'
    )


ARM = (
    '<body name="arm" pos=".5 0 0"><joint axis="0 1 0" pos=".2 0 0"/><joint type="slide"/>'
    '<geom size=".01" contype="0" conaffinity="0"/><site name="feel" type="box" size="1 1 1"/>{}'
    "</body>"
)
BALL = '<body pos=".05 .02 -.1"><joint axis="1 .2 .3"/><geom size=".1" pos=".01 .01 0"/></body>'
BOX = (
    '<body pos="-.1 0 -.07"><joint axis="1 .2 .3"/>'
    '<geom type="box" size=".03 .06 .05" euler="4 5 30" contype="0" conaffinity="2"/></body>'
)
FLAT = 'section="box" sectionsize=".03 .015"'
TALL = 'section="box" sectionsize=".015 .03"'
SENSOR = '<force site="feel"/><contact geom1="ground" num="2" data="found force torque pos"/>'
CASES = {
    "round": {
        "content": ARM.format(rod("held", "0 0 0", pin='<pin id="0 1"/>', condim="6"))
        + rod("across", ".45 0 .035", 'euler="0 0 80"')
        + BALL
        + rod("on", "0 0 .005", condim="3"),
        "sensor": SENSOR,
        "touch": {(0, 1), (-1, 2)},
    },
    "boxes": {
        "content": ARM.format(rod("held", "0 0 0", section=FLAT, pin='<pin id="0 1"/>'))
        + rod("across", ".45 0 .03", 'euler="0 0 80"', condim="3")
        + rod("over", ".55 0 .035", 'euler="0 0 85"', section=TALL, condim="6")
        + BALL
        + rod("on", "0 0 .005", section=TALL, condim="3", own="2")
        + BOX,
        "sensor": SENSOR,
        "touch": {(0, 1), (0, 2), (-1, 3)},
    },
}
IDS = "geom flex elem vert dim efc_address exclude".split()
REALS = "dist pos frame includemargin friction solref solreffriction solimp".split()
FOUND = "flexvert_xpos qacc qfrc_constraint sensordata cfrc_ext cfrc_int".split()
OF_ROWS = "efc_type efc_pos efc_margin efc_D efc_aref efc_force".split()


@cache
def program(case: str):
    """The oracle's states, and what we find there."""
    mj = mujoco.MjModel.from_xml_string(WORLD.format(**CASES[case]))
    states = [random_state(mj, k, spread=0.01, speed=0.3) for k in range(WORLDS)]
    m = jaxsim.load_model(WORLD.format(**CASES[case]))
    d = jaxsim.make_data(m, keep="all")
    names = ("qpos", "qvel", "qfrc_applied", "xfrc_applied")
    each = [d.replace(**{n: jnp.asarray(getattr(s, n)) for n in names}) for s in states]
    worlds = stack(each)
    run = jax.jit(jax.vmap(jaxsim.forward, (None, 0)), compiler_options=COMPILER)
    return states, m, worlds, run(m, worlds)


def near(ours, theirs, name: str) -> None:
    ours = np.asarray(ours)
    theirs = np.asarray(theirs).reshape(ours.shape)
    size = max(1.0, float(np.abs(theirs).max(initial=0)))
    np.testing.assert_allclose(ours / size, theirs / size, **DYNAMICS, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_output(case):
    states, m, _, found = program(case)
    touched = set()
    for k, state in enumerate(states):
        n, rows = state.ncon, state.nefc
        assert (int(found.ncon[k]), int(found.nefc[k])) == (n, rows)
        for name in IDS:
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            theirs = getattr(state.contact, name).reshape(ours.shape)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        for name in REALS:
            near(getattr(found.contact, name)[k][:n], getattr(state.contact, name), name)
        near(found.efc_J[k][:rows], state.efc_J.reshape(-1, m.nv), "efc_J")
        for name in OF_ROWS:
            near(getattr(found, name)[k][:rows], getattr(state, name), name)
        # each by itself: rows of bodies that nothing moves would hide the others
        np.testing.assert_allclose(found.efc_D[k][:rows], state.efc_D, rtol=1e-8)
        for name in FOUND:
            near(getattr(found, name)[k], getattr(state, name), name)
        touched |= {tuple(pair) for pair in state.contact.flex.tolist()}
    assert touched >= CASES[case]["touch"]


def test_numbers_of_rods_equal_those_of_mujoco():
    """A record has the joint of its hinge, which is no dof where a free joint comes before it."""
    mj = mujoco.MjModel.from_xml_string(WORLD.format(**CASES["boxes"]))
    ours, theirs = jaxsim.load_model(WORLD.format(**CASES["boxes"])), jaxsim.put_model(mj)
    near(ours.flex_bending, mj.flex_bending, "flex_bending")
    np.testing.assert_array_equal(ours.rod_dof, theirs.rod_dof)
    joint = mujoco.mj_name2id(mj, mujoco.mjtObj.mjOBJ_JOINT, "on_twist")
    assert mj.jnt_dofadr[joint] in ours.rod_dof.tolist()


@pytest.mark.slow
def test_gradient():
    """Contacts and their rows along one direction of the states: the same as differences."""
    _, m, worlds, found = program("boxes")
    d = world(worlds, 0)
    turn = jnp.asarray(np.random.default_rng(1).normal(size=m.nv))
    n, rows = int(found.ncon[0]), int(found.nefc[0])

    def moved(t):
        there = d.replace(qpos=jaxsim.support.integrate_pos(m, d.qpos, turn, 0.1 * t))
        new = jaxsim.stages.make_constraint(m, jaxsim.stages.fwd_position(m, there))
        return new.contact.dist[:n], new.contact.pos[:n], new.efc_J[:rows]

    run = jax.jit(moved, compiler_options=COMPILER)
    forwards = jax.jit(
        lambda t: jax.jvp(moved, (t,), (jnp.ones_like(t),))[1], compiler_options=COMPILER
    )
    slope = forwards(jnp.zeros(()))
    above, below = run(jnp.asarray(1e-6)), run(jnp.asarray(-1e-6))
    for ours, up, down in zip(slope, above, below, strict=True):
        np.testing.assert_allclose(ours, (up - down) / 2e-6, rtol=1e-5, atol=1e-5)
