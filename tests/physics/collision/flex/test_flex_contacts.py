"""Contacts of flexes with geoms, with each other and with themselves, against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import random_state, stack, world
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32

import jaxsim

WORLDS = 3
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
CONTACT = (
    'selfcollide="{self}" margin=".004" gap=".01" condim="4" friction=".7 .02 .001" '
    'solref=".03 1.2" solmix="2"'
)
WORLD = """<mujoco><option tolerance="0" iterations="60" ls_iterations="50" {option}/>
<asset><mesh name="wedge" vertex="-.1 -.1 -.1 .1 -.1 -.1 0 .12 -.1 0 0 .1"/></asset>
<worldbody><body pos="0 0 2"><freejoint/><geom size=".1"/></body>{content}</worldbody>
<sensor>{sensor}</sensor></mujoco>"""


HELD = '<edge equality="true"/>'


def flex(name: str, dim: int, count: str, pos: str, more: str = "", **given: str) -> str:
    apart = 'contype="2" conaffinity="1"'  # flexes touch geoms, and not each other
    fill = {"self": "none", "contact": apart, "pin": "", "edge": HELD, **given}
    own = CONTACT.format(self=fill["self"])
    return (
        f'<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" spacing=".06 .06 .06" '
        f'radius=".01" mass=".5" pos="{pos}" {more}>{fill["edge"]}{fill["pin"]}'
        f"<contact {own} {fill['contact']}/></flexcomp>"
    )


def body(geom: str, pos: str, inside: str = "") -> str:
    return (
        f'<body pos="{pos}"><joint axis="1 .2 .3"/><geom {geom} margin=".003" pos=".01 .01 0" '
        f'euler="10 20 30"/>{inside}</body>'
    )


GROUND = '<geom name="ground" type="plane" size="1 1 1" priority="1" friction=".4"/>'
SITE = '<site name="feel" type="box" size=".1 .1 .1"/>'
SENSORS = """
<touch site="feel"/><force site="feel"/>
<contact geom1="ball" num="3" data="found force torque dist pos normal tangent"/>
<contact body2="sheet_4" num="2" reduce="mindist" data="found dist pos normal"/>
<contact geom1="ground" reduce="netforce" data="found force pos"/>"""
CASES = {
    "plain": {
        "content": GROUND
        + body('name="ball" size=".08"', "0 0 .1", SITE)
        + body('type="capsule" size=".05 .06"', ".5 0 .1")
        + body('type="box" size=".05 .06 .07" condim="6"', "1 0 .1")
        + flex("sheet", 2, "3 3 1", "0 0 .18", pin='<pin id="0"/>')
        + flex("over", 2, "3 2 1", ".5 0 .155", contact='contype="2" priority="2"')
        + flex("lid", 2, "2 3 1", "1 0 .18")
        + flex("rope", 1, "4 1 1", "0 -.05 .016")
        + flex("string", 1, "4 1 1", "1 .05 .185"),
        "sensor": SENSORS,
        "option": 'cone="elliptic"',
    },
    "lattices": {
        "content": GROUND
        + body('size=".05"', "0 0 .02")
        + flex("cells", 3, "3 2 2", "0 -.02 .1", 'dof="trilinear" cellcount="2 1 1"', edge="")
        + flex("bent", 3, "2 2 2", ".5 0 .03", 'dof="quadratic"', edge="")
        + flex("free", 2, "2 2 1", ".5 0 .08"),
        "sensor": "",
        "option": "",
    },
    "shapes": {
        "content": body('type="ellipsoid" size=".1 .08 .06"', "0 0 0")
        + body('type="cylinder" size=".06 .07"', ".5 0 0")
        + body('type="mesh" mesh="wedge"', "1 0 0")
        + body('type="box" size=".05 .06 .07"', "1.5 0 0")
        + flex("sheet", 2, "3 3 1", "0 0 .06", pin='<pin id="0"/>')
        + flex("solid", 3, "2 2 2", ".5 0 .1")
        + flex("rope", 1, "4 1 1", "1 0 .03")
        + flex("block", 3, "2 2 2", "1.5 .02 .09"),
        "sensor": "",
        "option": "",
    },
}
IDS = "geom flex elem vert dim efc_address exclude".split()
REALS = "dist pos frame includemargin friction solref solreffriction solimp".split()
FOUND = "flexvert_xpos qacc qfrc_constraint sensordata cfrc_ext cfrc_int".split()
OF_ROWS = "efc_type efc_pos efc_margin efc_D efc_aref efc_force".split()


@cache
def model(case: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(WORLD.format(**CASES[case]))


@cache
def program(case: str):
    """The oracle's states, and what we find there."""
    mj = model(case)
    states = [random_state(mj, k, spread=0.004, speed=0.3) for k in range(WORLDS)]
    m = jaxsim.load_model(WORLD.format(**CASES[case]))
    worlds = placed(m, states)
    run = jax.jit(jax.vmap(jaxsim.forward, (None, 0)), compiler_options=COMPILER)
    return states, m, worlds, run(m, worlds)


def placed(m, states):
    d = jaxsim.make_data(m, keep="all")
    names = ("qpos", "qvel", "qfrc_applied", "xfrc_applied")
    each = [d.replace(**{n: jnp.asarray(getattr(s, n)) for n in names}) for s in states]
    return stack(each)


def near(ours, theirs, tolerance, name: str) -> None:
    ours = np.asarray(ours)
    theirs = np.asarray(theirs).reshape(ours.shape)
    size = max(1.0, float(np.abs(theirs).max(initial=0)))
    np.testing.assert_allclose(ours / size, theirs / size, **tolerance, err_msg=name)


@pytest.mark.slow
def test_every_output():
    case = "plain"
    states, _, _, found = program(case)
    mj = model(case)
    for k, state in enumerate(states):
        n, rows = state.ncon, state.nefc
        assert n > 8
        assert int(found.ncon[k]) == n
        assert int(found.nefc[k]) == rows
        for name in IDS:
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            theirs = getattr(state.contact, name).reshape(ours.shape)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        for name in REALS:
            near(getattr(found.contact, name)[k][:n], getattr(state.contact, name), DYNAMICS, name)
        for name in FOUND:
            near(getattr(found, name)[k], getattr(state, name), DYNAMICS, name)
        for name in OF_ROWS:
            near(getattr(found, name)[k][:rows], getattr(state, name), DYNAMICS, name)
        # each by itself: the largest would hide the others
        np.testing.assert_allclose(found.efc_D[k][:rows], state.efc_D, rtol=1e-8)
        near(found.efc_J[k][:rows], dense_rows(mj, state), DYNAMICS, "efc_J")


def dense_rows(mj, state) -> np.ndarray:
    if not mujoco.mj_isSparse(mj):
        return state.efc_J.reshape(-1, mj.nv)
    J = np.zeros((state.nefc, mj.nv))
    sparse = state.efc_J, state.efc_J_rownnz, state.efc_J_rowadr, state.efc_J_colind
    mujoco.mju_sparse2dense(J, *sparse)
    return J


# The oracle searches between shapes with a radius, up to 1e-6 of depth: what it finds of a point
# is the square root of that.
SEARCHED = {"dist": 3e-6, "pos": 1e-3, "frame": 2e-2}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["lattices", "shapes"])
def test_searched_contacts(case):
    states, _, _, found = program(case)
    for k, state in enumerate(states):
        n = state.ncon
        assert int(found.ncon[k]) == n
        for name in IDS:
            ours = np.asarray(getattr(found.contact, name))[k][:n]
            np.testing.assert_array_equal(ours, getattr(state.contact, name).reshape(ours.shape))
        for name, size in SEARCHED.items():
            near(
                getattr(found.contact, name)[k][:n],
                getattr(state.contact, name),
                {"rtol": 0, "atol": size},
                name,
            )


@pytest.mark.slow
def test_rows_of_interpolated_vertices():
    """At points that are the same: vertices of lattices on the plane."""
    states, _, _, found = program("lattices")
    for k, state in enumerate(states):
        J = dense_rows(model("lattices"), state)
        vertex = state.contact.vert[:, 1] >= 0
        first = state.contact.efc_address[vertex & (state.contact.efc_address >= 0)]
        assert len(first) > 1
        rows = (first[:, None] + np.arange(6)).ravel()  # pyramids of condim 4
        near(np.asarray(found.efc_J)[k][rows], J[rows], DYNAMICS, "efc_J")
        near(np.asarray(found.efc_D)[k][rows], state.efc_D[rows], DYNAMICS, "efc_D")
        near(np.asarray(found.efc_aref)[k][rows], state.efc_aref[rows], DYNAMICS, "efc_aref")


@pytest.mark.slow
def test_contact_forces_are_those_of_the_list():
    states, m, _, found = program("plain")
    force = jax.jit(jaxsim.support.contact_forces, compiler_options=COMPILER)(m, found[0])
    for k in range(states[0].ncon):
        theirs = np.zeros(6)
        mujoco.mj_contactForce(model("plain"), states[0], k, theirs)
        near(force[k], theirs, DYNAMICS, f"contact {k}")


@pytest.mark.slow
def test_forces_between_a_flex_and_a_geom_have_no_resultant():
    """The Jacobian has the velocity of the point: a motion of the whole world changes no gap."""
    _, m, _, found = program("plain")
    (sheet,) = np.flatnonzero([name == "over" for name in m.names["flex"]])
    own = (np.asarray(found.contact.flex)[0] == sheet).any(axis=1)
    rows = np.asarray(found.contact.efc_address)[0][own]
    J = np.asarray(found.efc_J)[0][rows[rows >= 0]]
    vert = m.flex_vertadr[sheet] + np.arange(m.flex_vertnum[sheet])
    dofs = m.body_dofadr[m.flex_vertbodyid[vert]][:, None] + np.arange(3)
    whole = J[:, dofs].sum(axis=1)
    normal = np.asarray(found.contact.frame)[0][own][: len(rows)][rows >= 0][:, 0]
    np.testing.assert_allclose(whole, normal, **DYNAMICS)


@pytest.mark.slow
def test_batched_world_equals_single_world():
    _, m, worlds, found = program("plain")
    one = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, worlds[1])
    near(one.qacc, found.qacc[1], DYNAMICS, "qacc")
    near(one.contact.pos, found.contact.pos[1], DYNAMICS, "pos")


ROPES = {
    "content": flex("one", 1, "3 1 1", "0 0 .02", edge="", contact="")
    + flex("other", 1, "3 1 1", "0 .01 .035", 'euler="0 5 70"', contact="")
    + flex("whole", 1, "6 1 1", "0 0 .3", self="narrow", contact=""),
    "sensor": "",
    "option": "",
}
CASES["ropes"] = ROPES


def folded(state: mujoco.MjData) -> mujoco.MjData:
    """Vertices of the last rope on a loop that crosses itself."""
    mj = state.model
    turn = np.linspace(0, 2 * np.pi * 1.05, 6)
    to = np.stack([0.05 * np.cos(turn), 0.05 * np.sin(turn), 0.3 + 0.002 * turn], axis=1)
    start = mujoco.MjData(mj)
    mujoco.mj_forward(mj, start)
    state.qpos[-18:] += (to - start.flexvert_xpos[-6:]).ravel()
    mujoco.mj_forward(mj, state)
    return state


@cache
def ropes():
    mj = model("ropes")
    states = [folded(random_state(mj, k, spread=0.002, speed=0.3)) for k in range(WORLDS)]
    m = jaxsim.load_model(WORLD.format(**ROPES))
    return states, m, placed(m, states)


def pairs_in_order(contact: dict) -> np.ndarray:
    """Sort self-contacts of a flex, which the oracle lists in the order of its search."""
    elem = contact["elem"].reshape(-1, 2)
    height = contact["pos"].reshape(-1, 3)[:, 2]
    return np.lexsort((elem[:, 1], elem[:, 0], height > 0.2))


@pytest.mark.slow
def test_ropes_touch_each_other_and_themselves():
    states, m, worlds = ropes()
    run = jax.jit(jax.vmap(jaxsim.forward, (None, 0)), compiler_options=COMPILER)
    found = run(m, worlds)
    for k, state in enumerate(states):
        n = state.ncon
        pairs = state.contact.flex[:n]
        assert (pairs[:, 0] == 2).any()
        assert (pairs[:, 0] != pairs[:, 1]).any()
        assert int(found.ncon[k]) == n
        ours = {name: np.asarray(getattr(found.contact, name))[k][:n] for name in ("elem", *REALS)}
        theirs = {name: getattr(state.contact, name) for name in ("elem", *REALS)}
        for name, values in ours.items():
            mine, his = values[pairs_in_order(ours)], theirs[name][pairs_in_order(theirs)]
            near(mine, his, DYNAMICS, name)
        near(found.qacc[k], state.qacc, DYNAMICS, "qacc")


ALONE = "<mujoco><worldbody>{}</worldbody></mujoco>"


def test_a_rope_touches_itself_where_there_are_no_geoms():
    rope = ALONE.format(flex("whole", 1, "6 1 1", "0 0 .3", self="narrow", contact="", edge=""))
    mj = mujoco.MjModel.from_xml_string(rope)
    state = folded(random_state(mj, 1, spread=0.002, speed=0.3))
    m = jaxsim.load_model(rope)
    d = world(placed(m, [state]), 0)
    found = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    assert mj.ngeom == 0
    assert int(found.ncon) == state.ncon > 0
    near(found.qacc, state.qacc, DYNAMICS, "qacc")


@pytest.mark.slow
def test_gradient():
    """Along one direction of states and of the contacts' own numbers."""
    _, m, worlds = ropes()
    d, rng = worlds[0], np.random.default_rng(1)
    turn = jnp.asarray(rng.normal(size=m.nv))

    def moved(t):
        own = m.replace(
            flex_radius=m.flex_radius * (1 + 0.1 * t),
            flex_solref=m.flex_solref * (1 + t),
            flex_friction=m.flex_friction * (1 - t),
            flex_solmix=m.flex_solmix * (1 + t),
        )
        there = d.replace(qpos=jaxsim.support.integrate_pos(m, d.qpos, turn, 0.1 * t))
        return jnp.sum(jnp.sin(0.01 * jaxsim.forward(own, there).qacc))

    run = jax.jit(moved, compiler_options=COMPILER)
    forwards = jax.jit(
        lambda t: jax.jvp(moved, (t,), (jnp.ones_like(t),))[1], compiler_options=COMPILER
    )
    slope = forwards(jnp.zeros(()))
    above, below = run(jnp.asarray(1e-6)), run(jnp.asarray(-1e-6))
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **DIFFERENCE | {"rtol": 2e-6})


@pytest.mark.slow
def test_single_precision():
    _, _, worlds, found = program("plain")
    with jax.enable_x64(False):
        m = jaxsim.load_model(WORLD.format(**CASES["plain"]))
        d = jaxsim.make_data(m, keep=["contact", "ncon"]).replace(
            qpos=jnp.asarray(worlds.qpos[0], np.float32)
        )
        new = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    assert int(new.ncon) == int(found.ncon[0])
    n = int(new.ncon)
    assert new.contact.dist.dtype == np.float32
    np.testing.assert_array_equal(new.contact.elem[:n], found.contact.elem[0][:n])
    np.testing.assert_allclose(new.contact.pos[:n], found.contact.pos[0][:n], **FLOAT32)


@pytest.mark.slow
def test_contacts_beyond_capacity_are_counted():
    m = jaxsim.load_model(WORLD.format(**CASES["plain"]), contacts=4, pairs=3)
    _, _, worlds, _ = program("plain")
    d = jaxsim.make_data(m).replace(qpos=worlds.qpos[0])
    new = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    assert int(new.warning[1]) == 1
    assert int(new.ncon) == 4


def under_ipc(text: str) -> str:
    return text.replace("<asset>", '<option><flag ipc="enable"/></option><asset>')


MODE = {
    "rods": GROUND + flex("rope", 1, "3 1 1", "0 0 .012", contact=""),
    "shells": body('type="box" size=".08 .08 .08"', "0 0 .02")
    + flex("sheet", 2, "3 3 1", "0 0 .12", pin='<pin id="0"/>'),
}


@pytest.mark.slow
@pytest.mark.parametrize("content", MODE)
def test_rows_under_the_flag_ipc(content):
    """Contacts with what moves are rows under the flag too."""
    fill = {"content": MODE[content], "sensor": "", "option": 'integrator="discrete"'}
    text = under_ipc(WORLD.format(**fill))
    mj, m = mujoco.MjModel.from_xml_string(text), jaxsim.load_model(text)
    state, d = mujoco.MjData(mj), jaxsim.make_data(m)
    step = jax.jit(jaxsim.step, compiler_options=COMPILER)
    for _ in range(5):
        mujoco.mj_step(mj, state)
        d = step(m, d)
        assert int(d.ncon) == state.ncon > 0
        near(d.qpos, state.qpos, DYNAMICS, "qpos")
        near(d.qvel, state.qvel, DYNAMICS, "qvel")
