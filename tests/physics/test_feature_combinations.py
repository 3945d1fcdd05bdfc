"""Features that meet: each works alone; here one is used where another is, against MuJoCo."""

from functools import partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from public import public
from tolerance import DYNAMICS, SOLVER

import jaxsim
from jaxsim.enums import EnableBit, IntegratorType, SolverType

ROPE = """
<mujoco><option timestep=".002" solver="{solver}" iterations="{n}" tolerance="0"/>
<worldbody>
  <body name="ball" pos="-.05 0 .055"><freejoint/><geom size=".04"/></body>
  <flexcomp name="rope" type="grid" dim="1" count="4 1 1" spacing=".1 .1 .1" mass=".1"
    radius=".02"><edge stiffness="30" damping=".1"/><contact selfcollide="none"/></flexcomp>
</worldbody></mujoco>"""

BALLS = """
<mujoco><option solver="PGS" iterations="3" timestep=".002"/>
<worldbody><geom type="plane" size="1 1 1" condim="1"/>
  <body pos="0 0 .095"><joint type="slide" axis="0 0 1" frictionloss=".3"/>
    <geom size=".1" condim="1"/></body>
  <body pos=".3 0 .098"><freejoint/><geom size=".1" condim="1"/></body>
</worldbody></mujoco>"""

ASLEEP = """
<mujoco><option timestep=".002"><flag sleep="enable" contact="disable"/></option>
<worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size=".1"/></body>
  <body name="b" pos="0 0 2"><freejoint/><geom size=".1"/></body>
  <flexcomp name="sheet" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" mass=".1"
    pos="1 0 1"><edge equality="true"/></flexcomp>
</worldbody>
<equality><connect body1="a" body2="b" anchor="0 0 .5"/></equality></mujoco>"""


def oracle(xml: str, vel: float = 0.0) -> tuple[mujoco.MjModel, mujoco.MjData]:
    mj = mujoco.MjModel.from_xml_string(xml)
    state = mujoco.MjData(mj)
    state.qvel[:] = vel * np.sin(np.arange(mj.nv) + 1)
    mujoco.mj_forward(mj, state)
    return mj, state


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["CG", "PGS"])
def test_islands_have_all_vertices_of_an_element_that_touches(solver):
    """Nothing but its contact ties the vertices of a rope that has no elasticity."""
    xml = ROPE.format(solver=solver, n=3)
    _, state = oracle(xml, 0.3)
    assert state.ncon
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m).replace(qvel=jnp.asarray(state.qvel))
    d = jax.jit(jaxsim.forward)(m, d)
    np.testing.assert_allclose(d.qacc, state.qacc, **SOLVER)
    np.testing.assert_allclose(d.qfrc_constraint, state.qfrc_constraint, **SOLVER)


def test_rows_of_frictionless_contacts_that_pgs_has_solved():
    _, state = oracle(BALLS, 0.2)
    m = jaxsim.load_model(BALLS)
    d = jaxsim.make_data(m, keep=["efc_force", "nefc", "qacc"]).replace(
        qvel=jnp.asarray(state.qvel)
    )
    d = jax.jit(jaxsim.forward)(m, d)
    assert int(d.nefc) == state.nefc == 3
    np.testing.assert_allclose(d.efc_force[: state.nefc], state.efc_force, **SOLVER)
    np.testing.assert_allclose(d.qacc, state.qacc, **SOLVER)


@pytest.mark.slow
def test_sheets_sleep_beside_bodies_that_are_tied():
    mj, state = oracle(ASLEEP)
    m = jaxsim.load_model(ASLEEP)
    d, step = jaxsim.make_data(m), jax.jit(jaxsim.step)
    for _ in range(3):
        d = step(m, d)
        mujoco.mj_step(mj, state)
    np.testing.assert_array_equal(d.tree_asleep, state.tree_asleep)
    np.testing.assert_allclose(d.qpos, state.qpos, **DYNAMICS)


@pytest.mark.slow
def test_a_filter_of_geoms_is_not_asked_of_flexes():
    xml = ROPE.format(solver="Newton", n=100)
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)
    apart = jaxsim.Callbacks(contactfilter=lambda m, d, a, b: jnp.ones(len(a), bool))
    with_filter = jax.jit(partial(jaxsim.forward, callbacks=apart))(m, d)
    assert int(with_filter.ncon) == int(jax.jit(jaxsim.forward)(m, d).ncon) > 0


@pytest.mark.slow
def test_capacities_of_contacts_ahead():
    xml = BALLS.replace("</mujoco>", "").replace('condim="1"', "").replace("PGS", "Newton")
    xml += '<option><flag speculative="enable" multiccd="disable"/></option></mujoco>'
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)
    falling = d.replace(qpos=d.qpos.at[0].set(0.6), qvel=d.qvel.at[0].set(-400.0))
    d = jax.jit(jaxsim.forward)(m, falling)
    found = jaxsim.suggest_capacities(m, jaxsim.replicate(falling, 1))
    assert found.contacts >= int(d.ncon) > 0


CLASHES = {
    "discrete": {"integrator": IntegratorType.DISCRETE, "solver": SolverType.PGS},
    "implicitfast": {"integrator": IntegratorType.IMPLICITFAST},
    "ipc": {"enableflags": EnableBit.IPC, "integrator": IntegratorType.EULER},
}


@pytest.mark.parametrize("what", CLASHES)
def test_options_that_a_made_model_cannot_have(what):
    """An option that would be refused with the model is refused when it is replaced."""
    xml = ROPE.format(solver="Newton", n=10).replace('dim="1"', 'dim="2"')
    xml = xml.replace("4 1 1", "3 3 1").replace('<edge stiffness="30" damping=".1"/>', "")
    xml = xml.replace(
        "<contact", '<elasticity young="1e3" thickness=".01" elastic2d="both"/><contact'
    )
    m = jaxsim.load_model(xml)
    with pytest.raises(ValueError, match=what):
        m.replace(opt=m.opt.replace(**CLASHES[what]))
    m.replace(opt=m.opt.replace(integrator=IntegratorType.DISCRETE))


@pytest.mark.slow
def test_what_a_callback_sets_stays_in_every_kind_of_rollout():
    """A law that goes on from the control that it has set, in chunks and step by step."""
    m = jaxsim.load_model(
        """<mujoco><worldbody><body><joint name="turn"/><geom size=".1" pos=".3 0 0"/></body>
        </worldbody><actuator><motor joint="turn"/></actuator></mujoco>"""
    )
    m = m.replace(callbacks=jaxsim.Callbacks(control=grow))
    worlds = jaxsim.replicate(jaxsim.make_data(m), 2)
    program = jaxsim.BatchProgram(m, worlds, size=3)
    *_, last = program.run(worlds, 7)
    d = jax.jit(
        lambda d: jax.lax.fori_loop(0, 7, lambda _, d: jax.vmap(jaxsim.step, (None, 0))(m, d), d)
    )(worlds)
    np.testing.assert_allclose(last.d.ctrl, d.ctrl, **DYNAMICS)
    np.testing.assert_allclose(last.d.ctrl[:, 0], 10 * (1 - 0.9**7), **DYNAMICS)
    np.testing.assert_allclose(last.d.qpos, d.qpos, **DYNAMICS)


def grow(m, d):
    """Towards 10, whatever else happens."""
    return d.replace(ctrl=0.9 * d.ctrl + 1)


@pytest.mark.parametrize("name", ["forward_skip", "inverse_skip"])
def test_skipping_functions_say_their_name(name):
    m = jaxsim.load_model(BALLS)
    function = public(name)
    with pytest.raises(ValueError, match=f"^{name}: "):
        function(m, m)
    assert jaxsim.make_data(m, keep=[function]).cvel is not None


def test_one_world_is_asked_for_where_many_would_be_mixed():
    m = jaxsim.load_model(BALLS)
    one = jaxsim.make_data(m)
    many = jaxsim.replicate(one, 2)
    for call in (
        lambda: jaxsim.get_state(m, many, jaxsim.enums.State.QPOS),
        lambda: jaxsim.copy_state(m, one, many, jaxsim.enums.State.QPOS),
        lambda: jaxsim.reset_data(m, many),
    ):
        with pytest.raises(ValueError, match="world"):
            call()
