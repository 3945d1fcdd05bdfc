"""Flexes of every dimension, interpolation and material against MuJoCo, and the laws they obey."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import random_state, stack
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32, STIFF

import jaxsim

pytestmark = pytest.mark.long

WORLDS, STEPS = 3, 20
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times

MODEL = """
<mujoco><option timestep="{h}" tolerance="0" iterations="50" ls_iterations="50" {option}/>
<option><flag energy="enable" {flag}/></option>
<worldbody>
  <body name="first" pos="0 0 2"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="arm" pos=".3 0 1"><joint axis="0 1 .2"/><geom size=".05" pos=".1 0 0" mass=".4"/>
    {on_arm}</body>
  {free}
</worldbody>{more}</mujoco>"""
OFF = '<contact contype="0" conaffinity="0" selfcollide="none"/>'
CLOTH = f"""
<flexcomp name="cloth" type="grid" count="3 4 1" spacing=".1 .12 .1" dim="2" radius=".01" mass=".5"
  euler="10 20 30">{{pin}}{OFF}{{edge}}
  <elasticity young="{{young}}" poisson=".3" thickness=".08" damping=".02" elastic2d="both"/>
</flexcomp>"""
SOLID = f"""
<flexcomp name="{{name}}" type="grid" count="3 3 2" spacing=".1 .12 .1" dim="3" radius=".01"
  mass=".5" pos=".5 0 .4" euler="10 20 30" dof="{{dof}}" {{more}}>{{pin}}{OFF}{{edge}}
  <elasticity young="{{young}}" poisson=".2" damping=".02" thickness=".05" elastic2d="{{walls}}"/>
</flexcomp>"""
SPRINGS = '<edge stiffness="50" damping=".2"/>'
ROPE = f"""
<flexcomp name="rope" type="grid" count="6 1 1" spacing=".1 .1 .1" dim="1" radius=".01" mass=".3"
  pos="0 1 1">{OFF}{SPRINGS}</flexcomp>"""
RING = f"""
<flexcomp name="ring" type="circle" count="7 1 1" spacing=".1 .1 .1" dim="1" radius=".01" mass=".5"
  pos="0 -1 1">{OFF}<edge stiffness="1e3"/><elasticity young="3e6" poisson=".3" damping=".002"/>
</flexcomp>"""
RIGID = f"""
<body name="box" pos="0 2 1"><joint/><geom size=".1"/><flexcomp name="block" type="grid"
  count="2 2 2" spacing=".1 .1 .1" dim="3" rigid="true">{OFF}</flexcomp></body>"""
POINT = """<body name="v{i}" pos="{x} {y} {z}"><joint type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
  <inertial pos="0 0 0" mass=".1" diaginertia="1 1 1"/></body>"""
TWISTED = f"""
<flexcomp name="{{name}}" type="direct" dim="1" {{size}} mass=".3" euler="10 20 30"
  point="0 0 0  .1 0 0  .19 .04 0  .25 .12 .02  .26 .2 .1" element="0 1 1 2 2 3 3 4">{{pin}}{OFF}
  <elasticity young="1e5" poisson=".3" damping=".01" {{section}}/></flexcomp>"""
ROUND = {"size": 'radius=".01"', "section": ""}
BOX = {"size": "", "section": 'section="box" sectionsize=".01 .02"'}
CHAIN = "".join(
    POINT.format(i=i, x=x, y=y, z=z)
    for i, (x, y, z) in enumerate([(0, 0, 0), (0.1, 0, 0), (0.2, 0, 0), (0.3, 0.1, 0.02)])
)
CHAIN_FLEX = """<deformable><flex name="chain" dim="1" radius=".01" body="v0 v1 v2 v3"
  element="0 1 1 2 2 3"><contact contype="0" conaffinity="0"/><edge stiffness="200"/>
  <elasticity young="3e6" poisson=".3" damping=".002"/></flex></deformable>"""


def solid(name: str, dof: str, **given: str) -> str:
    fill = {"more": "", "pin": "", "edge": "", "young": "3e3", "walls": "none", **given}
    return SOLID.format(name=name, dof=dof, **fill)


SHEET = CLOTH.format(pin='<pin id="0 1 2"/>', edge='<edge damping=".3"/>', young="2e3")
HELD = CLOTH.format(pin='<pin id="0 1"/>', edge='<edge equality="true"/>', young="0")
STRAIN = '<edge equality="strain"/>'
CASES = {
    "elements": {"on_arm": SHEET, "free": solid("solid", "full") + ROPE + RIGID, "h": ".001"},
    "rods": {"free": RING + CHAIN, "more": CHAIN_FLEX, "h": "1e-4"},
    "twisted": {  # held at the start, at both ends, and free
        "on_arm": TWISTED.format(name="held", pin='<pin id="0 1"/>', **BOX)
        + TWISTED.format(name="bow", pin='<pin id="0 3 4"/>', **ROUND),
        "free": ROPE + TWISTED.format(name="loose", pin="", **BOX)
        + TWISTED.format(name="rope2", pin="", **ROUND),
        "h": "2e-4",
    },
    "lattices": {
        "on_arm": solid("shell", "trilinear", more='cellcount="2 1 1"', pin='<pin id="0 1"/>',
                        walls="both"),
        "free": solid("whole", "quadratic", pin='<pin id="3"/>')
        + solid("bent", "quadratic", walls="bend"),
        "h": ".001",
    },
    "held": {
        "on_arm": HELD,
        "free": solid("tight", "trilinear", more='cellcount="2 1 1"', edge=STRAIN, young="0")
        + solid("walls", "trilinear", edge=STRAIN, walls="bend"),
        "h": ".002",
    },
}  # fmt: skip
# The oracle stops turning a cell at 1e-9 rad, and forces are stiffnesses times that.
TURNED = ("lattices", "held")
DEAR = ("twisted", "held")  # to compile
each_case = pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c in DEAR else c for c in CASES]
)


def text(case: str, **given: str) -> str:
    fill = {"on_arm": "", "free": "", "more": "", "option": "", "flag": ""}
    return MODEL.format(**{**fill, **CASES[case], **given})


@cache
def model(case: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(text(case))


@cache
def program(case: str):
    """Oracle's states, worlds of them, and what our first step and the last of 20 make."""
    mj = model(case)
    states = [random_state(mj, k, spread=0.02, speed=0.3) for k in range(WORLDS)]
    m = jaxsim.load_model(text(case))
    d = jaxsim.make_data(m, keep="all")
    names = ("qpos", "qvel", "qfrc_applied", "xfrc_applied")
    each = [d.replace(**{n: jnp.asarray(getattr(s, n)) for n in names}) for s in states]
    worlds = stack(each)

    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)
    first = end = many(m, worlds)
    for _ in range(STEPS - 1):
        end = many(m, end)
    return states, m, worlds, (first, end)


FIELDS = """flexvert_xpos flexelem_aabb flexedge_length flexedge_J flexedge_velocity qfrc_spring
    qfrc_damper qfrc_gravcomp qfrc_passive qacc_smooth qacc qfrc_constraint energy""".split()
OF_ROWS = "efc_type efc_id efc_pos efc_margin efc_D efc_aref efc_force".split()


def assert_near(ours, theirs, case: str, name: str) -> None:
    size = max(1.0, float(np.abs(theirs).max(initial=0)))
    near = STIFF if case in TURNED else DYNAMICS
    np.testing.assert_allclose(ours / size, theirs / size, **near, err_msg=name)


@each_case
def test_every_output(case):
    states, _, _, (found, _) = program(case)
    for k, state in enumerate(states):
        for name in FIELDS:
            ours = np.asarray(getattr(found, name))[k]
            assert_near(ours, getattr(state, name).reshape(ours.shape), case, name)
        n = state.nefc
        assert int(found.nefc[k]) == n
        assert int(found.ne[k]) == n
        for name in OF_ROWS:
            assert_near(np.asarray(getattr(found, name))[k][:n], getattr(state, name), case, name)
        assert_near(np.asarray(found.efc_J)[k][:n], dense_rows(model(case), state), case, "efc_J")


def dense_rows(mj, state) -> np.ndarray:
    if not mujoco.mj_isSparse(mj):
        return state.efc_J.reshape(-1, mj.nv)
    J = np.zeros((state.nefc, mj.nv))
    if state.nefc:
        sparse = state.efc_J, state.efc_J_rownnz, state.efc_J_rowadr, state.efc_J_colind
        mujoco.mju_sparse2dense(J, *sparse)
    return J


@each_case
def test_steps(case):
    states, _, worlds, (_, end) = program(case)
    mj = model(case)
    for k, state in enumerate(states):
        d = mujoco.MjData(mj)
        for name in ("qpos", "qvel", "qfrc_applied", "xfrc_applied"):
            getattr(d, name)[:] = getattr(state, name)
        mujoco.mj_step(mj, d, STEPS)
        assert_near(np.asarray(end.qpos)[k], d.qpos, case, "qpos")
        assert_near(np.asarray(end.qvel)[k], d.qvel, case, "qvel")
        assert_near(np.asarray(end.plastic)[k], d.plastic, case, "plastic")
    assert not np.array_equal(end.qpos, worlds.qpos)


@pytest.mark.slow
def test_a_world_alone_is_as_among_others():
    _, m, worlds, (found, _) = program("held")
    one = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, worlds[1])
    for name in ("qfrc_passive", "qacc", "efc_J", "efc_force"):
        np.testing.assert_allclose(getattr(one, name), getattr(found, name)[1], **DYNAMICS)


def test_elastic_forces_have_no_resultant():
    """Springs and dampers within a free body neither accelerate nor, for springs, rotate it."""
    _, m, _, (found, _) = program("elements")
    (solid,) = np.flatnonzero([n == "solid" for n in m.names["flex"]])
    vert = m.flex_vertadr[solid] + np.arange(m.flex_vertnum[solid])
    dof = m.body_dofadr[m.flex_vertbodyid[vert]][:, None] + np.arange(3)
    R = np.asarray(found.xmat)[0, m.flex_vertbodyid[vert]]
    x = np.asarray(found.flexvert_xpos)[0, vert]
    for name in ("qfrc_spring", "qfrc_damper"):
        force = np.einsum("nij,nj->ni", R, np.asarray(getattr(found, name))[0, dof])
        assert np.abs(force).max() > 0.1
        np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.cross(x, force).sum(axis=0), 0, atol=1e-12)


BALL = """<mujoco><option timestep=".001" integrator="RK4" gravity="0 0 0"/><worldbody>
  <flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" radius=".01" mass=".5">
  <contact contype="0" conaffinity="0" selfcollide="none"/>
  <elasticity young="2e3" poisson=".3" thickness=".05" elastic2d="stretch" damping="{damping}"/>
  </flexcomp></worldbody></mujoco>"""


@pytest.mark.slow
def test_energy_is_conserved_without_damping():
    m = jaxsim.load_model(BALL.format(damping=0))
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    d = d.replace(
        qpos=jnp.asarray(0.01 * rng.normal(size=m.nq)), qvel=jnp.asarray(rng.normal(size=m.nv))
    )

    def run(d):
        return jax.lax.scan(lambda d, _: (jaxsim.step(m, d), None), d, length=200)[0]

    start, end = jax.jit(lambda d: (jaxsim.forward(m, d), jaxsim.forward(m, run(d))))(d)
    before, after = total_energy(m, start), total_energy(m, end)
    assert abs(elastic_energy(m, end)) > 1e-3
    np.testing.assert_allclose(after, before, rtol=1e-5)


def total_energy(m, d) -> float:
    mass = np.asarray(m.body_mass)[m.dof_bodyid]
    return float(0.5 * np.sum(mass * np.asarray(d.qvel) ** 2) + elastic_energy(m, d))


def elastic_energy(m, d) -> float:
    """1/4 s' K s, of triangles."""
    edge = m.flex_elemedge.reshape(-1, 3)
    s = np.asarray(d.flexedge_length) ** 2 - np.asarray(m.flexedge_length0) ** 2
    K = np.zeros((len(edge), 3, 3))
    upper = np.triu_indices(3)
    K[:, upper[0], upper[1]] = np.asarray(m.flex_stiffness).reshape(-1, 21)[:, :6]
    K[:, upper[1], upper[0]] = K[:, upper[0], upper[1]]
    return float(0.25 * np.einsum("ni,nij,nj", s[edge], K, s[edge]))


def forces(m, d):
    """Only what the passive forces need: a whole step takes long to compile backwards."""
    stages = (
        jaxsim.stages.kinematics,
        jaxsim.stages.com_pos,
        jaxsim.stages.flex,
        jaxsim.stages.com_vel,
        jaxsim.stages.passive,
    )
    for stage in stages:
        d = stage(m, d)
    return jnp.sum(jnp.sin(d.qfrc_passive))


def accelerations(m, d):
    return jnp.sum(jnp.sin(0.01 * jaxsim.forward(m, d).qacc))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "function"),
    [
        ("rods", forces),
        pytest.param("twisted", forces, marks=pytest.mark.slow),
        pytest.param("lattices", forces, marks=pytest.mark.slow),
        pytest.param("held", accelerations, marks=pytest.mark.slow),
    ],
)
def test_gradients(case, function):
    """Along one direction of states and of the model's numbers."""
    m = jaxsim.load_model(text(case))
    state = random_state(model(case), 0, spread=0.02, speed=0.3)
    d = jaxsim.make_data(m, keep="all").replace(qpos=state.qpos, qvel=state.qvel)
    rng = np.random.default_rng(1)
    turn, speed = (jnp.asarray(rng.normal(size=m.nv)) for _ in range(2))

    def moved(t):
        own = m.replace(
            flex_stiffness=m.flex_stiffness * (1 + 0.1 * t), flex_damping=m.flex_damping * (1 + t)
        )
        there = d.replace(
            qpos=jaxsim.support.integrate_pos(m, d.qpos, turn, 0.1 * t), qvel=d.qvel + t * speed
        )
        return function(own, there)

    run = jax.jit(jax.value_and_grad(moved), compiler_options=COMPILER)  # one program of both
    (below, _), (_, slope), (above, _) = (run(jnp.asarray(h)) for h in (-1e-6, 0.0, 1e-6))
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **DIFFERENCE | {"rtol": 2e-6})


@pytest.mark.slow
def test_single_precision():
    _, _, worlds, (found, _) = program("elements")
    with jax.enable_x64(False):
        m = jaxsim.load_model(text("elements"))
        d = jaxsim.make_data(m, keep=["qfrc_spring", "flexvert_xpos"]).replace(
            qpos=jnp.asarray(worlds.qpos[0], np.float32),
            qvel=jnp.asarray(worlds.qvel[0], np.float32),
        )
        new = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    assert new.qfrc_spring.dtype == np.float32
    size = np.abs(found.qfrc_spring[0]).max()
    np.testing.assert_allclose(
        np.asarray(new.qfrc_spring) / size, np.asarray(found.qfrc_spring[0]) / size, **FLOAT32
    )
    np.testing.assert_allclose(new.flexvert_xpos, found.flexvert_xpos[0], **FLOAT32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        "spring equality",
        *(pytest.param(flag, marks=pytest.mark.slow) for flag in ("spring", "damper", "equality")),
    ],
)
def test_disable_flags(flags):
    disabled = " ".join(f'{flag}="disable"' for flag in flags.split())
    mj = mujoco.MjModel.from_xml_string(text("elements", flag=disabled))
    _, m, worlds, _ = program("elements")
    off = m.replace(opt=m.opt.replace(disableflags=int(mj.opt.disableflags)))
    state = mujoco.MjData(mj)
    state.qpos[:], state.qvel[:] = worlds.qpos[0], worlds.qvel[0]
    mujoco.mj_forward(mj, state)
    fields = jax.jit(
        lambda m, d: (lambda n: (n.qfrc_spring, n.qfrc_damper, n.energy))(jaxsim.forward(m, d)),
        compiler_options=COMPILER,
    )(off, worlds[0])
    for ours, name in zip(fields, ("qfrc_spring", "qfrc_damper", "energy"), strict=True):
        np.testing.assert_allclose(ours, getattr(state, name), **DYNAMICS, err_msg=name)


def test_flexes_without_contacts_are_those_of_the_flag():
    """Candidate pairs have no effect where contacts are disabled."""
    touching = ROPE.replace(OFF, "")
    m = jaxsim.load_model(text("elements", on_arm="", free=touching, flag='contact="disable"'))
    assert jaxsim.make_data(m).qpos.shape == (m.nq,)


def test_strain_that_an_equality_holds_goes_with_every_integrator():
    """Nothing elastic is left of it; with walls that bend there is."""
    for integrator in ("implicit", "implicitfast", "discrete"):
        option = f'integrator="{integrator}"'
        held = solid("tight", "trilinear", edge=STRAIN, young="0")
        xml = text("held", on_arm="", free=held, option=option)
        assert (
            mujoco.MjModel.from_xml_string(xml).opt.integrator
            == jaxsim.load_model(xml).opt.integrator
        )
        jaxsim.make_data(jaxsim.load_model(xml))
