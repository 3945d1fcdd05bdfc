"""Stages that a program calls one by one: together they are `forward` and `step`, and MuJoCo's.

The Data are those that `make_data` gives: what one stage hands to the next within a step is lost
between the calls, and found again.
"""

from copy import copy
from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import inputs, random_state, stack, world
from tolerance import SOLVER, STAGES

import jaxsim

# contacts, a limit, dry friction and equalities; sensors of all stages
XML = """
<mujoco><option {option} tolerance="1e-15" iterations="100" ls_iterations="50"/>
<worldbody><geom type="plane" size="2 2 1" condim="4"/><light mode="trackcom" pos="0 0 3"/>
  <body pos="0 0 .098"><freejoint/><geom size=".1"/><site name="sole" size=".12"/></body>
  <body name="arm" pos="0 -1 .5">
    <joint name="turn" axis="0 1 .3" range="-30 -1" frictionloss=".1"/>
    <geom size=".04" pos=".1 0 0" contype="0" conaffinity="0"/><site name="hip" pos=".1 0 .1"/>
    <body name="hand" pos=".3 0 0"><joint name="slide" type="slide" damping="2"/>
      <joint name="swing" axis="0 1 0"/>
      <geom size=".04" pos="0 0 .1" contype="0" conaffinity="0"/><site name="tip" pos="0 .1 .1"/>
    </body></body>
  <site name="post" pos="0 -.5 1"/></worldbody>
<tendon><spatial name="cord" armature=".2" stiffness="9"><site site="post"/><site site="tip"/>
  </spatial></tendon>
<equality><joint joint1="slide" joint2="turn" polycoef=".01 .2"/></equality>
<actuator><general joint="turn" dyntype="filter" dynprm=".1" gainprm="3" biastype="affine"
  biasprm="0 0 -1"/><motor tendon="cord"/></actuator>
<sensor><touch site="sole"/><accelerometer site="tip"/><force site="tip"/><framepos objtype="site"
  objname="tip"/><gyro site="tip"/><jointlimitfrc joint="turn"/>
  <contact site="sole" data="found force"/></sensor></mujoco>
"""
STAGES_OF_A_STEP = (
    *(
        jaxsim.stages.fwd_position,
        jaxsim.stages.sensor_pos,
        jaxsim.stages.fwd_velocity,
        jaxsim.stages.sensor_vel,
    ),
    *(
        jaxsim.stages.fwd_actuation,
        jaxsim.stages.fwd_acceleration,
        jaxsim.stages.solve,
        jaxsim.stages.sensor_acc,
    ),
)
# by the integrator: its function, and what else the model has
MODELS = {
    "Euler": (jaxsim.stages.euler, ""),
    "implicitfast": (jaxsim.stages.implicit, 'cone="elliptic" noslip_iterations="3"'),
}
WORLDS = 3
RESULTS = (
    *("xpos", "cvel", "ten_velocity", "actuator_force", "qfrc_passive", "qfrc_bias", "act_dot"),
    *("qfrc_smooth", "qacc_smooth", "qfrc_constraint", "qacc", "sensordata"),
)
# poses of bodies, and what hangs on them
KINEMATICS = (
    *("xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis", "geom_xpos", "geom_xmat"),
    *("site_xpos", "site_xmat", "cam_xpos", "light_xpos", "light_xdir"),
    *("subtree_com", "cdof", "cinert", "ten_length", "ten_wrapnum", "wrap_xpos"),
)
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def close(found, expected, tolerance=SOLVER):
    """All results, relative to the largest number in each of them."""
    scale = 1 + np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance["rtol"] * scale)


@cache
def start(integrator: str):
    """The model, MuJoCo's states and ours, with their inputs alone."""
    option = f'integrator="{integrator}" {MODELS[integrator][1]}'
    mj = mujoco.MjModel.from_xml_string(XML.format(option=option))
    spread = np.array([0.1, 0.1, 0.001, *[0.1] * 6])
    states = [random_state(mj, seed, spread=spread, speed=0.3) for seed in range(WORLDS)]
    assert any(s.ncon for s in states)
    assert any(s.nl for s in states)
    m = jaxsim.put_model(mj)
    return mj, m, states, stack([inputs(m, s) for s in states])


@cache
def one_by_one(integrator: str):
    """The worlds after the stages of `forward`, and one step later."""
    _, m, _, d = start(integrator)

    @jit
    @partial(jax.vmap, in_axes=(None, 0))
    def run(m, d):
        for stage in STAGES_OF_A_STEP:
            d = stage(m, d)
        return d, MODELS[integrator][0](m, d)

    return run(m, d)


@pytest.mark.parametrize(
    "integrator", ["Euler", pytest.param("implicitfast", marks=pytest.mark.slow)]
)
def test_the_stages_are_those_of_mujoco(integrator):
    mj, _, states, _ = start(integrator)
    found, after = one_by_one(integrator)
    for k, state in enumerate(states):
        d = world(found, k)
        for name in RESULTS:
            close(getattr(d, name), getattr(state, name))
        for name in ("ncon", "ne", "nf", "nl", "nefc"):
            assert getattr(d, name) == getattr(state, name), name
        next = mujoco.MjData(mj)
        mujoco.mj_copyState(mj, state, next, mujoco.mjtState.mjSTATE_INTEGRATION)
        next.qacc_warmstart[:] = 0
        mujoco.mj_step(mj, next)
        for name in ("qpos", "qvel", "act", "time"):
            close(getattr(world(after, k), name), getattr(next, name))


def test_each_stage_ends_as_mujocos_does():
    """Compare the results of a single stage, before the next is called."""
    mj, m, (state, *_), worlds = start("Euler")
    d, theirs = world(worlds, 0), mujoco.MjData(mj)
    mujoco.mj_copyState(mj, state, theirs, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_fwdKinematics(mj, theirs)
    kept = jit(jaxsim.stages.fwd_kinematics)(m, inputs(m, state, "all"))
    for name in KINEMATICS:
        close(getattr(kept, name), getattr(theirs, name).reshape(getattr(kept, name).shape), STAGES)
    assert not kept.ncon
    mujoco.mj_fwdPosition(mj, theirs)
    d = jit(jaxsim.stages.fwd_position)(m, d)
    for name in ("ten_length", "actuator_length", "cam_xpos", "geom_xpos", "ncon", "nefc", "nl"):
        close(getattr(d, name), getattr(theirs, name), STAGES)
    mujoco.mj_fwdVelocity(mj, theirs)
    d = jit(jaxsim.stages.fwd_velocity)(m, d)
    for name in ("cvel", "qfrc_bias", "qfrc_passive", "ten_velocity"):
        close(getattr(d, name), getattr(theirs, name), STAGES)
    mujoco.mj_fwdActuation(mj, theirs)
    mujoco.mj_fwdAcceleration(mj, theirs)
    d = jit(lambda m, d: jaxsim.stages.fwd_acceleration(m, jaxsim.stages.fwd_actuation(m, d)))(m, d)
    for name in ("qfrc_smooth", "qacc_smooth"):
        close(getattr(d, name), getattr(theirs, name), STAGES)
    # contacts that the caller has changed
    theirs.contact.dist[0] -= 0.003
    theirs.contact.friction[0, :2] = 0.3
    mujoco.mj_makeConstraint(mj, theirs)
    mujoco.mj_island(mj, theirs)
    mujoco.mj_projectConstraint(mj, theirs)
    mujoco.mj_referenceConstraint(mj, theirs)
    mujoco.mj_fwdConstraint(mj, theirs)
    before = jit(jaxsim.stages.solve)(m, d)
    dist, friction = d.contact.dist.at[0].add(-0.003), d.contact.friction.at[0, :2].set(0.3)
    d = d.replace(contact=d.contact.replace(dist=dist, friction=friction))
    after = jit(jaxsim.stages.solve)(m, d)
    close(after.qacc, theirs.qacc)
    assert np.abs(after.qacc - before.qacc).max() > 1
    kept = jaxsim.make_data(
        m, keep=[*(n for n in d.fields if getattr(d, n) is not None), "cfrc_int"]
    )
    kept = kept.replace(**{n: v for n in d.fields if (v := getattr(after, n)) is not None})
    mujoco.mj_rnePostConstraint(mj, theirs)
    close(jit(jaxsim.stages.rne_postconstraint)(m, kept).cfrc_int, theirs.cfrc_int)


def test_an_integrator_is_its_own_whatever_the_model_has():
    mj, m, (state, *_), _ = start("Euler")
    d = world(one_by_one("Euler")[0], 0)
    after = jit(
        lambda m, d: [f(m, d) for f in (jaxsim.stages.implicit, jaxsim.stages.rungekutta4)]
    )(m, d)
    other = copy(mj)
    other.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    turns = (mujoco.mj_implicit, other), (lambda m, d: mujoco.mj_RungeKutta(m, d, 4), mj)
    for found, (function, theirs) in zip(after, turns, strict=True):
        end = copy(state)
        end.qacc_warmstart[:] = 0
        function(theirs, end)
        for name in ("qpos", "qvel", "act", "time"):
            close(getattr(found, name), getattr(end, name))


def test_what_depends_on_contacts_asks_for_them():
    _, m, _, _ = start("Euler")
    d = jaxsim.make_data(m, keep=[*jaxsim.Data.fields.keys() - {"contact"}])
    with pytest.raises(ValueError, match=r"depends on the contacts.* does not carry 'contact'"):
        jaxsim.stages.make_constraint(m, d)


def test_the_bias_of_tendons_is_what_the_velocity_adds_to_the_bodies():
    _, m, _, _ = start("Euler")
    d = world(one_by_one("Euler")[0], 0)
    bodies = d.replace(qfrc_bias=jax.jit(jaxsim.stages.rne)(m, d))
    assert np.abs(d.qfrc_bias - bodies.qfrc_bias).max() > 1e-4
    close(jax.jit(jaxsim.stages.tendon_bias)(m, bodies).qfrc_bias, d.qfrc_bias, STAGES)


def test_applied_forces_are_a_generalized_force():
    mj, m, (state, *_), _ = start("Euler")
    d = world(one_by_one("Euler")[0], 0)
    expected = np.zeros(mj.nv)
    for body in range(mj.nbody):
        wrench = state.xfrc_applied[body]
        mujoco.mj_applyFT(mj, state, wrench[:3], wrench[3:], state.xipos[body], body, expected)
    close(jax.jit(jaxsim.stages.xfrc_accumulate)(m, d), expected, STAGES)


@pytest.mark.slow
def test_trees_fall_asleep_in_an_integrator_alone():
    xml = """<mujoco><option sleep_tolerance="10"><flag sleep="enable"/></option><worldbody>
      <geom type="plane" size="2 2 1"/><body pos="0 0 .0999"><freejoint/><geom size=".1"/></body>
      </worldbody></mujoco>"""
    m = jaxsim.load_model(xml)

    @jit
    def run(m, d):
        for stage in STAGES_OF_A_STEP:
            d = stage(m, d)
        return jaxsim.stages.euler(m, d)

    step, found, expected = jit(jaxsim.step), jaxsim.make_data(m), jaxsim.make_data(m)
    for _ in range(15):
        found, expected = run(m, found), step(m, expected)
    assert expected.tree_asleep[0] == 0
    for name in ("tree_asleep", "qpos", "qvel", "qacc", "nv_awake", "body_awake"):
        close(getattr(found, name), getattr(expected, name))
    assert jnp.all(found.qvel == 0)
