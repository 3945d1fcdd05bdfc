"""The mode ipc against MuJoCo: contacts of shells that nothing passes through."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, STIFF, STORED_SINGLE

import jaxsim
from jaxsim.physics.ipc import plan

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
WORLD = """<mujoco><option integrator="discrete" tolerance="1e-12" {option}>
<flag ipc="enable"/></option><asset><mesh name="stone" vertex="-.05 -.05 0 .05 -.05 0 .05 .05 0
-.05 .05 0 0 0 .06 .02 .01 -.04"/></asset><worldbody>{content}</worldbody>{more}</mujoco>"""
BENDS = '<elasticity young="3e3" poisson=".1" thickness=".004" elastic2d="both" damping=".01"/>'
HELD = '<edge equality="true"/>'
STATE = ("qpos", "qvel", "qacc_warmstart", "flexvert_lambda", "flexvert_conage")
OUTPUTS = (
    *("qpos", "qvel", "qacc", "qacc_smooth", "qfrc_constraint", "flexvert_lambda"),
    *("sensordata", "xpos"),
)
OF_SENSORS = ("cacc", "cfrc_ext")  # MuJoCo computes these where a sensor needs them


def shell(name: str, count: str, pos: str, law: str = BENDS, own: str = "none", **more: str) -> str:
    radius = more.get("radius", ".004")
    return (
        f'<flexcomp name="{name}" type="grid" dim="2" count="{count}" spacing=".04 .04 .04" '
        f'mass=".1" pos="{pos}" radius="{radius}">{law}{more.get("pin", "")}'
        f'<contact selfcollide="{own}" {more.get("contact", "")}/></flexcomp>'
    )


def cart() -> tuple[str, str]:
    """A shell of which three vertices ride a cart, as bodies and the flex."""
    slide = '<joint type="slide" axis="{}"/>'
    slides = "".join(slide.format(axis) for axis in ("1 0 0", "0 1 0", "0 0 1"))
    bodies = '<body name="cart" pos="0 0 .03">' + slide.format("1 0 0") + slide.format("0 0 1")
    bodies += '<geom size=".01" contype="0" conaffinity="0"/></body>'
    names, places = ["cart"] * 3, [f"0 {0.04 * j} 0" for j in range(3)]
    for k in range(3, 9):
        names.append(f"v{k}")
        places.append("0 0 0")
        bodies += (
            f'<body name="v{k}" pos="{0.04 * (k // 3)} {0.04 * (k % 3)} .03"><inertial mass=".01" '
            f'pos="0 0 0" diaginertia="1e-6 1e-6 1e-6"/>{slides}</body>'
        )
    corners = [k for k in range(6) if k % 3 < 2]
    element = " ".join(f"{k} {k + 3} {k + 1} {k + 1} {k + 3} {k + 4}" for k in corners)
    flex = (
        f'<flex name="cover" dim="2" radius=".005" body="{" ".join(names)}" element="{element}" '
        f'vertex="{" ".join(places)}"><contact selfcollide="none"/>{BENDS}</flex>'
    )
    return bodies, f"<deformable>{flex}</deformable>"


GROUND = '<geom type="plane" size="1 1 .1"/>'
STONES = """
<geom type="box" size=".03 .02 .02" pos="0 0 -.02" euler="10 20 30"/>
<geom type="capsule" size=".015 .03" pos=".06 .01 -.03" euler="80 10 0"/>
<geom type="mesh" mesh="stone" pos=".02 .08 -.06"/>
<geom type="sphere" size=".02" pos=".1 .08 -.02"/>
<geom type="cylinder" size=".02 .03" pos="-.04 .05 -.03" euler="40 0 0"/>"""
FALLING = """<body pos=".4 0 .05"><freejoint/><geom type="box" size=".02 .02 .02"/>
<site name="box"/></body>"""
SENSORS = '<sensor><accelerometer site="box"/><force site="box"/></sensor>'
CASES = {
    # steps, contents of the world, and siblings of the world
    "on stones": (60, STONES + GROUND.replace("/>", ' pos="0 0 -.1"/>')
                  + shell("c", "4 3 1", "0.02 0.03 .03"), ""),
    "on a cart": (60, GROUND + cart()[0] + FALLING, cart()[1] + SENSORS),
    "with itself": (80, '<geom type="capsule" size=".005 .1" euler="90 0 0" pos=".013 0 0"/>'
                    + shell("c", "6 2 1", "0 0 .02", HELD, "auto"), ""),
    "with each other": (56, GROUND + shell("a", "4 3 1", "0 0 .01", own="auto")
                        + shell("b", "3 3 1", ".013 .007 .03", radius=".006"), ""),
}  # fmt: skip


@cache
def program(case: str) -> tuple:
    """Both models, and the step."""
    _, content, more = CASES[case]
    text = WORLD.format(content=content, more=more, option="")
    m = jaxsim.load_model(text)
    return mujoco.MjModel.from_xml_string(text), m, jax.jit(jaxsim.step, compiler_options=COMPILER)


def state_of(d: jaxsim.Data, theirs: mujoco.MjData) -> jaxsim.Data:
    return d.replace(**{name: jnp.array(getattr(theirs, name)) for name in STATE})


LONG = ("with itself", "on a cart")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) if c in LONG else c for c in CASES]
)
def test_steps_are_those_of_mujoco(case):
    """Every step of a run, each from MuJoCo's state, in all that a reader can see."""
    mj, m, step = program(case)
    d, theirs = jaxsim.make_data(m, keep="all"), mujoco.MjData(mj)
    theirs.qvel[:] = 0.2 * np.random.default_rng(0).normal(size=mj.nv)
    pushes = 0
    for _ in range(CASES[case][0]):
        start = state_of(d, theirs)
        mujoco.mj_step(mj, theirs)
        new = step(m, start)
        for name in OUTPUTS + (OF_SENSORS if mj.nsensor else ()):
            expected = getattr(theirs, name)
            ours = np.asarray(getattr(new, name)).reshape(expected.shape)
            size = max(1.0, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(ours / size, expected / size, **STORED_SINGLE, err_msg=name)
        np.testing.assert_array_equal(new.flexvert_conage, theirs.flexvert_conage)
        force = new.efc_force[: theirs.nefc]
        np.testing.assert_allclose(force, theirs.efc_force, **STORED_SINGLE)
        assert int(new.warning.sum()) == 0
        pushes += bool(theirs.flexvert_lambda.max() > 0)
    assert pushes > 10


@pytest.mark.parametrize("law", [BENDS, HELD])
def test_shells_that_meet_nothing(law):
    content = GROUND + shell("c", "3 2 1", "0 0 .001", law, contact='contype="2" conaffinity="2"')
    text = WORLD.format(content=content, more="", option="")
    mj, m = mujoco.MjModel.from_xml_string(text), jaxsim.load_model(text)
    theirs, d = mujoco.MjData(mj), jaxsim.make_data(m)
    theirs.qvel[:] = 0.2 * np.random.default_rng(0).normal(size=mj.nv)
    step = jax.jit(jaxsim.step, compiler_options=COMPILER)
    for _ in range(3):
        d = step(m, state_of(d, theirs))
        mujoco.mj_step(mj, theirs)
        np.testing.assert_allclose(d.qvel, theirs.qvel, **STIFF)
        np.testing.assert_allclose(d.qfrc_constraint, theirs.qfrc_constraint, **STIFF)
        np.testing.assert_array_equal(d.flexvert_conage, theirs.flexvert_conage)


def test_forward_is_free_flight():
    mj, m, _ = program("on a cart")
    theirs = mujoco.MjData(mj)
    theirs.qpos[2] = -0.03
    mujoco.mj_forward(mj, theirs)
    d = state_of(
        jaxsim.make_data(m, keep=("qacc", "qacc_smooth", "nefc", "qfrc_constraint", "efc_force")),
        theirs,
    )
    d = jax.jit(jaxsim.forward, compiler_options=COMPILER)(m, d)
    np.testing.assert_allclose(d.qacc, theirs.qacc, **STIFF)
    np.testing.assert_allclose(d.qacc, d.qacc_smooth, **STIFF)
    assert theirs.nefc == int(d.nefc)
    for name in ("qfrc_constraint", "efc_force"):
        assert not np.any(getattr(theirs, name))
        assert not np.any(getattr(d, name))


def triangle(name: str, places: list[str]) -> tuple[str, str]:
    """Three free vertices, and the flex of them."""
    slides = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    bodies = "".join(
        f'<body name="{name}{k}" pos="{place}"><inertial pos="0 0 0" mass=".01" '
        f'diaginertia="1e-6 1e-6 1e-6"/>{slides}</body>'
        for k, place in enumerate(places)
    )
    return bodies, (
        f'<flex name="{name}" dim="2" radius=".004" body="{name}0 {name}1 {name}2" '
        'vertex="0 0 0 0 0 0 0 0 0" element="0 1 2"><contact selfcollide="none"/>'
        '<elasticity young="3e3" poisson=".1" thickness=".004" elastic2d="stretch" damping=".01"/>'
        "</flex>"
    )


@cache
def triangles(ground: str = GROUND, option: str = "") -> tuple[jaxsim.Model, jaxsim.Data]:
    """One triangle over another, which lies on the ground."""
    low = triangle("a", ["0 0 .0012", ".1 0 .0012", "0 .1 .0012"])
    high = triangle("b", [".03 .03 .0028", ".13 .02 .02", ".02 .1 .015"])
    flexes = f"<deformable>{low[1]}{high[1]}</deformable>"
    text = WORLD.format(content=ground + low[0] + high[0], more=flexes, option=option)
    m = jaxsim.load_model(text)
    return m, jaxsim.make_data(m)


@pytest.mark.slow
def test_worlds_are_each_as_if_alone():
    """Worlds with different numbers of iterations, one of which has no contact."""
    m, d = triangles()
    fast = jnp.zeros((4, 18)).at[1:3, 9:].set(jnp.tile(jnp.array([0.3, 0, -2.0]), 3))
    lift = jnp.zeros((4, 18)).at[3, 2::3].set(0.3)
    worlds = jaxsim.replicate(d, 4).replace(qvel=fast * jnp.array([[0], [1], [3], [0.0]]))
    worlds = worlds.replace(qpos=worlds.qpos + lift)
    one = jax.jit(jaxsim.step, compiler_options=COMPILER)
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)
    for _ in range(3):
        each = [one(m, worlds[k]) for k in range(4)]
        turns = [int(np.abs(e.flexvert_conage).max()) for e in each]
        worlds = many(m, worlds)
        for k, alone in enumerate(each):
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, **DYNAMICS), worlds[k], alone
            )
    assert len(set(turns)) > 1


@pytest.mark.slow
def test_nothing_is_passed_through_and_momentum_stays():
    """Two triangles thrown at each other at 20 m/s, 20 times their gap a step."""
    m, d = triangles("", 'gravity="0 0 0"')
    d = d.replace(qvel=jnp.zeros(18).at[11::3].set(-20.0).at[2:9:3].set(5.0))
    step = jax.jit(jaxsim.step, compiler_options=COMPILER)
    before = jnp.sum(d.qvel.reshape(6, 3), axis=0)
    for _ in range(10):
        d = step(m, d)
        at = np.asarray(d.flexvert_xpos)
        low, high = at[:3], at[3:]
        across = np.cross(low[1] - low[0], low[2] - low[0])
        over = (high - low[0]) @ (across / np.linalg.norm(across))
        assert over[0] > 0
        np.testing.assert_allclose(jnp.sum(d.qvel.reshape(6, 3), axis=0), before, **STIFF)
    assert float(d.flexvert_lambda.max()) >= 0
    assert int(d.warning.sum()) == 0


@pytest.mark.slow
def test_derivatives():
    """Derivatives of a step of one iteration, by configuration, velocity and multipliers."""
    m, d = triangles()
    step = jax.jit(jaxsim.step, compiler_options=COMPILER)
    for _ in range(40):
        before, d = d, step(m, d)
    assert np.abs(np.abs(d.flexvert_conage) - np.abs(before.flexvert_conage)).max() <= 1
    weights = [
        jnp.array(np.random.default_rng(k).normal(size=n)) for k, n in enumerate((18, 18, 6))
    ]
    at = (d.qpos, d.qvel, d.flexvert_lambda)

    def value(qpos, qvel, force):
        new = jaxsim.step(m, d.replace(qpos=qpos, qvel=qvel, flexvert_lambda=force))
        names = ("qpos", "qvel", "flexvert_lambda")
        return sum(jnp.dot(w, getattr(new, n)) for w, n in zip(weights, names, strict=True))

    slopes = jax.jit(jax.grad(value, (0, 1, 2)), compiler_options=COMPILER)(*at)
    plain = jax.jit(value, compiler_options=COMPILER)
    way = [jnp.array(np.random.default_rng(7).normal(size=a.shape)) for a in at]
    for k, size in enumerate((1e-9, 1e-7, 1e-7)):
        ahead, behind = list(at), list(at)
        ahead[k], behind[k] = at[k] + size * way[k], at[k] - size * way[k]
        expected = (plain(*ahead) - plain(*behind)) / (2 * size)
        np.testing.assert_allclose(jnp.vdot(slopes[k], way[k]), expected, rtol=1e-5)


def test_pairs_without_a_place_are_counted(monkeypatch):
    """Capacity for one row: the deepest pairs have forces, and the others are dropped."""
    monkeypatch.setattr(plan, "ROWS_PER_POINT", 0)
    monkeypatch.setattr(plan, "SPARE_CAPACITY", 1)
    m, d = triangles(GROUND.replace("type", 'name="ground" type'))  # of which no plan is made yet
    falling = d.replace(qvel=jnp.full(18, -1.0))
    new = jax.jit(jaxsim.step, compiler_options=COMPILER)(m, falling)
    assert int(new.warning[1]) == 1


def test_data_that_was_made_without_the_flag_is_refused():
    m, _ = triangles()
    ipc = m.opt.enableflags
    without = m.replace(opt=m.opt.replace(enableflags=0))
    d = jaxsim.make_data(without)
    assert d.flexvert_lambda is None
    with pytest.raises(ValueError, match="made without the flag ipc"):
        jaxsim.step(without.replace(opt=m.opt.replace(enableflags=ipc)), d)
