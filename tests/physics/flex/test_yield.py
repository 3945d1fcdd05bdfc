"""Flexes that yield against MuJoCo, and the law of plastic flow."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack
from tolerance import DIFFERENCE, FLOAT32, ROUNDING

import jaxsim
from jaxsim.physics.flex.return_mapping import det, isochoric_shift

pytestmark = pytest.mark.long

WORLDS, STEPS = 4, 8
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
OFF = '<contact contype="0" conaffinity="0" selfcollide="none"/>'
GRID = f"""<flexcomp name="{{name}}" type="grid" count="{{count}}" spacing=".1 .12 .1" dim="{{dim}}"
  radius=".01" mass=".5" pos=".5 0 .4" euler="10 20 30" {{dof}}>{{pin}}{OFF}
  <elasticity young="{{young}}" poisson=".3" thickness=".08" damping=".02" {{more}}/></flexcomp>"""
POINT = """<body name="v{i}" pos="{x} {y} {z}"><joint type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
  <inertial pos="0 0 0" mass=".1" diaginertia="1 1 1"/></body>"""
CORNERS = ((0, 0, 0), (0.11, 0.01, 0), (0.04, 0.09, 0.03), (0.06, -0.07, 0.02))
FOLD = "".join(POINT.format(i=i, x=x, y=y, z=z) for i, (x, y, z) in enumerate(CORNERS))
PIN = '<pin id="0 1"/>'


def grid(name: str, count: str, more: str, *, dim=3, dof="", pin="", young="2e3") -> str:
    given = {"name": name, "count": count, "more": more, "dim": dim, "dof": dof, "pin": pin}
    return GRID.format(young=young, **given)


# The first flex is elastic; others are carried, solid, interpolated, and folded at rest.
MODEL = f"""
<mujoco><option timestep=".0005" integrator="{{integrator}}"/><worldbody>
<body name="first" pos="0 0 2"><freejoint/><geom size=".1" mass="1"/></body>
{grid("elastic", "2 2 2", "")}
<body name="arm" pos=".3 0 1">
  <joint axis="0 1 .2" stiffness="3" springyield=".05"/><geom size=".05" pos=".1 0 0" mass=".4"/>
  {grid("cloth", "3 3 1", 'elastic2d="both" yield=".01 .02"', dim=2, pin=PIN)}
  {
    grid(
        "walls",
        "3 3 2",
        'elastic2d="stretch" yield=".01"',
        pin=PIN,
        young="100",
        dof='dof="trilinear" cellcount="2 1 1"',
    )
}
</body>
{grid("solid", "2 2 2", 'yield=".01"')}
{grid("cells", "3 2 2", 'yield=".01"', dof='dof="quadratic"', young="100")}
{FOLD}</worldbody>
<deformable><flex name="fold" dim="2" body="v0 v1 v2 v3" element="0 1 2 1 0 3">{OFF}
  <elasticity young="100" thickness=".02" elastic2d="bend" yield="0 .02"/></flex></deformable>
</mujoco>"""
# one of each, few dofs
SMALL = f"""
<mujoco><option timestep=".001"><flag {{flags}}/></option><worldbody>
{FOLD}{grid("walls", "2 2 2", 'elastic2d="stretch" yield=".01"', dof='dof="trilinear"')}
</worldbody><deformable>
<flex name="fold" dim="2" body="v0 v1 v2 v3" element="0 1 2 1 0 3">{OFF}
  <elasticity young="100" thickness=".02" elastic2d="both" yield=".02 .02"/></flex>
<flex name="tetrahedron" dim="3" body="v0 v1 v2 v3" element="0 2 1 3">{OFF}
  <elasticity young="100" yield=".02"/></flex></deformable></mujoco>"""
FIELDS = """plastic qpos qvel qacc qfrc_spring qfrc_damper qfrc_passive xpos xquat xmat subtree_com
    cdof flexvert_xpos ten_length""".split()
# The oracle stops turning a cell at 1e-9 rad, and what it yields is proportional to that.
TURNED = {"rtol": 1e-8, "atol": 2e-9}


def begun(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    """States some of which have yielded before."""
    out = []
    for k, spread in enumerate((0.003, 0.01, 0.03, 0.1)):
        d, rng = mujoco.MjData(mj), np.random.default_rng(k)
        d.qpos[:] += spread * rng.normal(size=mj.nq)
        d.qvel[:] = 0.3 * rng.normal(size=mj.nv)
        if k % 2:
            d.plastic[:] += 0.03 * rng.normal(size=mj.nplastic)
        out.append(d)
    return out


@cache
def program(integrator: str):
    """The oracle's model, states, and what our steps make of all of them at once."""
    mj = mujoco.MjModel.from_xml_string(MODEL.format(integrator=integrator))
    m = jaxsim.load_model(MODEL.format(integrator=integrator))
    empty = jaxsim.make_data(m, FIELDS)
    names = ("qpos", "qvel", "plastic")
    states = begun(mj)
    worlds = stack(
        [empty.replace(**{n: jnp.asarray(getattr(s, n)) for n in names}) for s in states]
    )

    def advance(d, _):
        d = jax.vmap(jaxsim.step, (None, 0))(m, d)
        return d, {name: getattr(d, name) for name in FIELDS}

    run = jax.jit(lambda d: jax.lax.scan(advance, d, length=STEPS), compiler_options=COMPILER)
    return mj, states, run(worlds)[1]


@pytest.mark.parametrize("integrator", ["Euler", pytest.param("RK4", marks=pytest.mark.slow)])
def test_steps(integrator):
    mj, states, found = program(integrator)
    for k, d in enumerate(states):
        before = d.plastic.copy()
        for step in range(STEPS):
            mujoco.mj_step(mj, d)
            for name in FIELDS:
                theirs = getattr(d, name).ravel()
                mine, size = np.ravel(found[name][step, k]), max(1, np.abs(theirs).max(initial=0))
                at = f"{name}, step {step}, world {k}"
                np.testing.assert_allclose(mine / size, theirs / size, **TURNED, err_msg=at)
        assert np.sum(d.plastic != before) > 60


@cache
def small(flags: str = ""):
    """The oracle's model and a state, ours, and one step of it."""
    mj = mujoco.MjModel.from_xml_string(SMALL.format(flags=flags))
    m = jaxsim.load_model(SMALL.format(flags=flags))
    state = begun(mj)[3]
    names = ("qpos", "qvel", "plastic")
    d = jaxsim.make_data(m).replace(**{n: jnp.asarray(getattr(state, n)) for n in names})
    return mj, state, m, d, jax.jit(jaxsim.step, compiler_options=COMPILER)


def test_a_spring_that_is_disabled_does_not_yield():
    mj, state, m, d, step = small('spring="disable"')
    mujoco.mj_step(mj, state)
    np.testing.assert_array_equal(step(m, d).plastic, d.plastic)
    np.testing.assert_array_equal(state.plastic, d.plastic)


@pytest.mark.slow
def test_zero_yield_threshold_flows_completely():
    mj, state, m, d, step = small()
    mj.flex_yield[:] = 0
    mujoco.mj_step(mj, state)
    new = step(m.replace(flex_yield=0 * m.flex_yield), d)
    np.testing.assert_allclose(new.plastic, state.plastic, **TURNED)


def test_solids_flow_at_constant_volume():
    """det(A + x 1) = 1, also far from it; its derivative is that of the root."""
    rng = np.random.default_rng(0)
    A = [[jnp.asarray(a) for a in row] for row in np.moveaxis(rng.normal(size=(50, 3, 3)), 0, 2)]
    A = [[0.5 * (A[i][j] + A[j][i]) * 4 ** (i + j) for j in range(3)] for i in range(3)]

    def whole(x):
        return det([[A[i][j] + (x if i == j else 0) for j in range(3)] for i in range(3)])

    np.testing.assert_allclose(whole(isochoric_shift(A)), 1, rtol=1e-6)

    def of(t):
        return jnp.sum(isochoric_shift([[a * t for a in row] for row in A]))

    slope = jax.grad(of)(1.0)
    np.testing.assert_allclose(slope, (of(1 + 1e-6) - of(1 - 1e-6)) / 2e-6, rtol=1e-6)


def test_a_body_keeps_the_shape_that_it_was_bent_to():
    """Stretched far and let go, it comes to rest with the strain that it bears."""
    text = f"""<mujoco><option timestep=".001" gravity="0 0 0"/><worldbody>
      {grid("solid", "2 2 2", 'yield=".02"')}</worldbody></mujoco>"""
    m = jaxsim.load_model(text.replace('damping=".02"', 'damping=".2"'))
    d = jaxsim.make_data(m, ["flexedge_length"])
    run = jax.jit(
        lambda d: jax.lax.fori_loop(0, 600, lambda _, d: jaxsim.step(m, d), d),
        compiler_options=COMPILER,
    )
    end = run(d.replace(qpos=d.qpos.at[3 * 4 :: 3].set(0.05)))
    assert float(jnp.abs(end.qvel).max()) < 5e-3
    assert float(jnp.max(end.flexedge_length / m.flexedge_length0)) > 1.2


@pytest.mark.slow
def test_gradients():
    """Gradients of the final state of a step by states, stiffnesses and thresholds."""
    _, _, m, d, _ = small()
    rng = np.random.default_rng(1)
    speed, weight = (jnp.asarray(rng.normal(size=n)) for n in (m.nv, m.nplastic))

    def moved(t):
        own = m.replace(
            flex_stiffness=m.flex_stiffness * (1 + 0.1 * t), flex_yield=m.flex_yield * (1 + t)
        )
        there = d.replace(qvel=d.qvel + t * speed, plastic=d.plastic * (1 + t))
        new = jaxsim.step(own, there)
        return jnp.sum(new.plastic * weight) + 1e-3 * jnp.sum(new.qvel * speed)

    run = jax.jit(jax.value_and_grad(moved), compiler_options=COMPILER)  # one program of both
    (below, _), (_, slope), (above, _) = (run(jnp.asarray(h)) for h in (-1e-6, 0.0, 1e-6))
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **DIFFERENCE | {"rtol": 1e-6})


@pytest.mark.slow
def test_single_precision():
    _, _, m, d, step = small()
    with jax.enable_x64(False):
        single = jaxsim.load_model(SMALL.format(flags=""))
        given = {n: jnp.asarray(getattr(d, n), np.float32) for n in ("qpos", "qvel", "plastic")}
        new = step(single, jaxsim.make_data(single).replace(**given))
    assert new.plastic.dtype == np.float32
    np.testing.assert_allclose(new.plastic, step(m, d).plastic, **FLOAT32)


def test_reset():
    mj, _, m, d, _ = small()
    again = jaxsim.reset_data(m, d)
    np.testing.assert_allclose(again.plastic, mujoco.MjData(mj).plastic, **ROUNDING)
