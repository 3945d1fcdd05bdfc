"""Passive contacts of flexes against MuJoCo: springs along normals that a discrete step sees."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import INPUTS, inputs, random_state, stack
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32, STIFF

import jaxsim
from jaxsim.errors import ModelError, UnsupportedWarning

pytestmark = pytest.mark.long

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
WORLD = """<mujoco><option integrator="discrete" tolerance="1e-15" iterations="500"
  ls_iterations="50" ccd_tolerance="1e-12" {option}/><option><flag {flag}/></option><worldbody>
  <body pos="0 0 2"><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>
  {content}</worldbody>{more}</mujoco>"""
ELASTIC = '<elasticity young="1e3" poisson=".3" damping=".01" {more}/>'
TOUCHED = 'contype="2" conaffinity="0"'
FLOOR = f'<geom name="floor" type="plane" size="1 1 1" {TOUCHED} adhesion="3"/>'
PASSIVE = 'passive="true" contype="1" conaffinity="2"'
PIN = '<pin id="0"/>'


def world(content: str, **given: str) -> str:
    return WORLD.format(content=content, **{"option": "", "flag": "", "more": "", **given})


def flex(name: str, dim: int, count: str, pos: str, more: str = "", **given: str) -> str:
    fill = {"contact": PASSIVE, "pin": "", "elastic": "", "self": "none", **given}
    return (
        f'<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" spacing=".06 .06 .06" '
        f'radius=".01" mass=".5" pos="{pos}" {more}>{fill["elastic"]}{fill["pin"]}'
        f'<contact selfcollide="{fill["self"]}" margin=".002" gap=".004" {fill["contact"]}/>'
        "</flexcomp>"
    )


def ball(pos: str, size: str, inside: str = "", more: str = "") -> str:
    return f'<body pos="{pos}">{inside}<geom size="{size}" {TOUCHED} {more}/></body>'


HINGE = '<joint axis="1 .2 .3" damping=".1"/>'
ASKED = 'contype="0" conaffinity="1"'
SLIDES = "".join(f'<joint type="slide" axis="{a}" {{}}/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
POINT = """<body name="{name}" pos="{pos}">{joint}
  <geom type="box" size=".01 .02 .03" mass="{mass}" contype="0" conaffinity="0"/>{inside}</body>"""


def odd(name: str, x: float, joints: list[str], inside: str = "") -> tuple[str, str]:
    """A triangle of three bodies, whatever joints they have, over a ball; and its flex."""
    place = [(x, 0), (x + 0.1, 0), (x, 0.1)]
    points = [
        POINT.format(
            name=f"{name}{k}", pos=f"{a} {b} 1", joint=j, mass=0.1 + 0.1 * k, inside=inside
        )
        for k, ((a, b), j) in enumerate(zip(place, joints, strict=True))
    ]
    bodies = " ".join(f"{name}{k}" for k in range(3))
    shell = f"""<flex name="{name}" dim="2" body="{bodies}" vertex="0 0 0  0 0 0  0 0 0"
      element="0 1 2" radius=".02"><contact {PASSIVE} selfcollide="none"/></flex>"""
    return "".join(points) + ball(f"{x + 0.03} .03 .89", ".1"), shell


def triangles() -> str:
    """Vertices on bodies with armature, with children, with hinges, balls and free joints."""
    arm = SLIDES.replace("{}", 'armature=".3"', 1).replace("{}", "")
    slides = SLIDES.replace("{}", "")
    turns = '<joint type="ball" pos=".1 .2 .1"/>', '<joint axis="0 1 0" pos=".1 .2 .1"/>'
    child = '<body><joint axis="0 1 0"/><geom size=".01" mass=".7" contype="0"/></body>'
    parts = [
        odd("a", 0, [arm, slides, arm]),
        odd("b", 1, [slides] * 3, child),
        odd("c", 2, [slides, turns[0], slides]),
        odd("d", 3, [turns[1], "<freejoint/>", slides]),
        odd("e", 4, ["<freejoint/>", turns[1], "<freejoint/>"]),
    ]
    bodies, flexes = ("".join(part) for part in zip(*parts, strict=True))
    return world(bodies, more=f"<deformable>{flexes}</deformable>")


# each with the contacts that the oracle finds
SCENES = {
    "two shells, one of them asks": world(
        flex("a", 2, "2 3 1", "0 0 1", contact=ASKED)
        + flex("b", 2, "3 2 1", ".02 .01 1.018", pin=PIN)
        + flex("c", 2, "2 2 1", "1 0 1.01", contact='passive="true" contype="0" conaffinity="2"')
        + ball("1.03 .03 .95", ".05")
        + ball("1.01 .0 1.07", ".06", HINGE),
        option='solver="CG"',
    ),
    "lattices and a rod": world(
        flex("a", 3, "3 2 2", "0 0 1", 'dof="trilinear" cellcount="2 1 1"', pin='<pin id="0 5"/>')
        + flex("b", 3, "2 2 2", ".02 .01 1.078", 'dof="quadratic"', contact=ASKED)
        + flex("c", 1, "4 1 1", "0 -.02 .955", contact=ASKED + ' passive="true"')
        + flex("d", 2, "2 2 1", ".05 .02 1.123", contact='contype="0" conaffinity="4"')
        + flex("e", 2, "2 2 1", ".05 .03 1.135", contact=PASSIVE.replace('"1"', '"4"'))
    ),
    "a shell with itself": world(
        flex("a", 2, "4 4 1", "0 0 1", contact='passive="true"', self="narrow"),
        option='cone="elliptic"',
    ),
    "quadratic walls": world(
        flex("a", 3, "3 3 3", "0 0 .065", 'dof="quadratic" cellcount="1 1 2"',
             elastic=ELASTIC.format(more='elastic2d="both" thickness=".01"')) + FLOOR
    ),
    "odd bodies": triangles(),
}  # fmt: skip
FORCES = "qfrc_spring qfrc_damper qfrc_adhesion qfrc_passive qfrc_bias".split()


def each_row(ours, theirs, name: str, tolerance=DYNAMICS) -> None:
    """Compare each number relative to the larger of its size and one."""
    np.testing.assert_allclose(np.ravel(ours), np.ravel(theirs), **tolerance, err_msg=name)


@pytest.mark.parametrize(
    "scene",
    [pytest.param(name, marks=pytest.mark.slow) for name in SCENES if name != "odd bodies"]
    + ["odd bodies"],
)
def test_forces_and_acceleration(scene):
    """Forces and accelerations of the contacts that the oracle has detected."""
    mj = mujoco.MjModel.from_xml_string(SCENES[scene])
    spread = 0.03 if "itself" in scene else 0.004
    state = random_state(mj, 1, spread=spread, speed=0.3)
    mujoco.mj_forward(mj, state)
    assert (state.contact.exclude == 4).any()
    m = jaxsim.put_model(mj, contacts=state.ncon)
    d = jaxsim.put_data(mj, state, contacts=state.ncon, keep="all")

    def found(d):
        d = jaxsim.stages.fwd_velocity(m, d)
        d = jaxsim.stages.fwd_acceleration(m, jaxsim.stages.fwd_actuation(m, d))
        return jaxsim.stages.solve(m, d)

    new = jax.jit(found, compiler_options=COMPILER)(d)
    # the oracle stops turning a wall at 1e-9 rad
    near = STIFF if "walls" in scene else DYNAMICS
    for name in (*FORCES, "qacc_smooth"):
        each_row(getattr(new, name), getattr(state, name), name, near)
    for name in ("qfrc_constraint", "qacc"):
        each_row(getattr(new, name), getattr(state, name), name, STIFF)


# contacts on the floor and on balls that stand still are passive, those with the hinged ball not
STEPS = world(
    FLOOR
    + ball("0 0 .1", ".05", '<site name="feel" size=".3"/>', 'name="ball"')
    + ball(".05 .05 .2", ".04", HINGE)
    + flex("sheet", 2, "2 3 1", "0 0 .157", pin=PIN,
           elastic=ELASTIC.format(more='elastic2d="both" thickness=".02"'))
    + flex("block", 3, "2 2 2", ".5 0 .038", elastic=ELASTIC.format(more=""))
    + flex("cells", 3, "3 2 2", "1 0 .037", 'dof="trilinear" cellcount="2 1 1"', pin=PIN),
    more="""<sensor><contact geom1="ball" num="3" data="found force dist pos normal"/>
      <contact geom1="floor" reduce="netforce" data="found force"/><touch site="feel"/>
      <accelerometer site="feel"/></sensor>""",
    flag='energy="enable"',
)  # fmt: skip
OF_CONTACTS = "geom flex elem vert dim efc_address exclude dist pos frame includemargin".split()
AFTER = "qpos qvel qacc_warmstart qacc_smooth qfrc_smooth qfrc_constraint sensordata energy".split()


@cache
def stepped():
    """States, one of them in the air, and what a step makes of them; with inverse dynamics."""
    mj = mujoco.MjModel.from_xml_string(STEPS)
    states = [random_state(mj, k, spread=0.004, speed=0.3) for k in range(3)]
    states[1].qpos[10::3] += 0.5
    m = jaxsim.load_model(STEPS)
    worlds = stack([inputs(m, s, keep="all") for s in states])

    def step(m, d):
        new = jaxsim.step(m, d)
        return new, jaxsim.inverse(m, d.replace(qacc=new.qacc)).qfrc_inverse

    run = jax.jit(jax.vmap(step, (None, 0)), compiler_options=COMPILER)
    return mj, states, m, worlds, run(m, worlds)


@pytest.mark.slow
def test_every_output_of_a_step():
    mj, states, _, _, (found, back) = stepped()
    for k, start in enumerate(states):
        state = mujoco.MjData(mj)
        for name in INPUTS:
            setattr(state, name, getattr(start, name))
        mujoco.mj_step(mj, state)
        n = state.ncon
        assert (int(found.ncon[k]), int(found.nefc[k])) == (n, state.nefc)
        for name in OF_CONTACTS:
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            each_row(ours, getattr(state.contact, name), name)
        for name in (*FORCES, *AFTER):
            each_row(np.asarray(getattr(found, name))[k], getattr(state, name), name, STIFF)
        pushed = start.qfrc_applied.copy()
        for body, wrench in enumerate(start.xfrc_applied):
            mujoco.mj_applyFT(mj, state, wrench[:3], wrench[3:], start.xipos[body], body, pushed)
        each_row(back[k], pushed, "qfrc_inverse", STIFF)


SMALL = world(
    FLOOR + flex("cloth", 2, "2 2 1", "0 0 .007") + flex("cells", 3, "2 2 2", ".5 0 .038",
                                                        'dof="trilinear"')
)  # fmt: skip


@cache
def small():
    """A model, a state that touches the floor, and a direction of states and masses."""
    m = jaxsim.load_model(SMALL)
    d, rng = jaxsim.make_data(m), np.random.default_rng(1)
    turn, speed, weight = (jnp.asarray(rng.normal(size=m.nv)) for _ in range(3))

    def moved(t):
        own = m.replace(body_mass=m.body_mass * (1 + t), flex_radius=m.flex_radius * (1 + 0.1 * t))
        qpos = jaxsim.support.integrate_pos(m, d.qpos, turn, 0.002 + 0.01 * t)
        new = jaxsim.step(own, d.replace(qpos=qpos, qvel=0.1 * speed * (1 + t)))
        return jnp.sum(new.qvel * weight)

    return m, d, moved


@pytest.mark.slow
def test_gradient():
    """Along one direction of states, masses and radii."""
    _, _, moved = small()
    run = jax.jit(jax.value_and_grad(moved), compiler_options=COMPILER)  # one program of both
    (below, _), (_, slope), (above, _) = (run(jnp.asarray(h)) for h in (-1e-6, 0.0, 1e-6))
    assert abs(slope) > 0.1
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **DIFFERENCE | {"rtol": 2e-6})


@pytest.mark.slow
def test_worlds_and_single_precision():
    """One of the worlds touches, the other does not; the same each by itself."""
    m, d, _ = small()
    worlds = stack([d, d.replace(qpos=d.qpos.at[9::3].add(0.3))])
    run = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)(m, worlds)
    one = jax.jit(jaxsim.step, compiler_options=COMPILER)
    for k in range(2):
        alone = one(m, jax.tree.map(lambda a, k=k: a[k], worlds))
        each_row(run.qvel[k], alone.qvel, "qvel")
        each_row(run.contact.dist[k], alone.contact.dist, "dist")
    assert abs(run.qvel[0] - run.qvel[1]).max() > 1e-3
    with jax.enable_x64(False):
        single = jaxsim.load_model(SMALL)
        given = jaxsim.make_data(single).replace(qpos=jnp.asarray(d.qpos, np.float32))
        new = one(single, given)
    assert new.qvel.dtype == np.float32
    np.testing.assert_allclose(new.qvel, run.qvel[0], **FLOAT32 | {"atol": 1e-3})


SLEEPERS = world(
    FLOOR
    + flex("low", 2, "2 2 1", "0 0 .0105")
    + flex("up", 2, "2 2 1", ".05 .05 .031", contact=ASKED)
    + flex("far", 2, "2 2 1", "1 0 .5"),
    flag='sleep="enable" gravity="disable"',
)
ASLEEP = "tree_asleep nisland tree_island qpos qvel qacc qfrc_passive".split()


@pytest.mark.slow
def test_islands_and_sleep():
    """One flex touches nothing and falls asleep, then is pushed; two that touch stay awake."""
    mj, m = mujoco.MjModel.from_xml_string(SLEEPERS), jaxsim.load_model(SLEEPERS)
    theirs, d = mujoco.MjData(mj), jaxsim.make_data(m, keep=ASLEEP)
    np.testing.assert_array_equal(m.tree_sleep_policy, mj.tree_sleep_policy)
    step, slept = jax.jit(jaxsim.step, compiler_options=COMPILER), set()
    for i in range(30):
        if i == 20:
            theirs.qvel[-1], d = 0.01, d.replace(qvel=d.qvel.at[-1].set(0.01))
        mujoco.mj_step(mj, theirs)
        d = step(m, d)
        slept |= set(np.flatnonzero(theirs.tree_asleep >= 0))
        for name in ASLEEP:
            if name != "tree_island" or theirs.nisland:
                each_row(getattr(d, name), getattr(theirs, name), f"{name}, step {i}")
    assert slept == {0, 9, 10, 11, 12}


ASKS = flex("c", 2, "2 2 1", "0 0 1", contact=PASSIVE)
REFUSED = {
    "solver='PGS', as in MuJoCo": 'solver="PGS"',
    "noslip_iterations, as in MuJoCo": 'noslip_iterations="2"',
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused_says_why(message):
    """The error is raised where the oracle raises one; the attribute has no effect on rods."""
    text = world(FLOOR + ASKS).replace("<option><flag", f"<option {REFUSED[message]}><flag")
    with pytest.warns(UnsupportedWarning, match="flex"):
        m = jaxsim.load_model(text)
    with pytest.raises(Exception, match=message):
        jaxsim.make_data(m)
    with pytest.raises(ValueError, match="flex"):
        mujoco.MjModel.from_xml_string(text)
    rod = flex("c", 1, "3 1 1", "0 0 1")
    jaxsim.make_data(jaxsim.load_model(text.replace(ASKS, rod)))


def test_other_integrators_are_refused():
    text = world(FLOOR + ASKS)
    m = jaxsim.load_model(text)
    with pytest.raises(ValueError, match="passive contacts need the integrator 'discrete'"):
        m.replace(opt=m.opt.replace(integrator=jaxsim.enums.IntegratorType.EULER))
    with pytest.raises(ModelError, match="passive contacts need integrator='discrete'"):
        jaxsim.load_model(text.replace('"discrete"', '"RK4"'))
    rod = text.replace(ASKS, flex("c", 1, "3 1 1", "0 0 1"))  # the attribute has no effect on rods
    jaxsim.make_data(jaxsim.load_model(rod.replace('"discrete"', '"RK4"')))
