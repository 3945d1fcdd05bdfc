"""Trees fall asleep, are woken and fall asleep again at the same steps as MuJoCo's."""

import copy
from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from sleepers import COUNTS, SHOWN, Twins, of_text, step
from states import stack
from tolerance import ROUGH_DIFFERENCE, STIFF

import jaxsim
from jaxsim.model.data import JUST_AWAKE, SLEEP_FIELDS

pytestmark = pytest.mark.long

BALL = '<geom size=".1"/>'
YARD = """
<mujoco>
  <option {option}><flag sleep="enable" energy="enable" {flags}/></option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/><site name="nail" pos="3 0 2"/>
    <body name="low" pos="0 0 .101"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body name="high" pos="0 0 .302"><joint type="slide" axis="0 0 1"/><geom size=".1"/>
      <site name="high"/></body>
    <body name="lone" pos="1 0 .103">
      <joint name="x" type="slide" axis="1 0 0" damping="3"/>
      <joint type="slide" axis="0 0 1"/><geom size=".1"/><site name="lone" size=".2"/></body>
    <body name="arm" pos="2 0 1" sleep="allowed"><joint name="arm" axis="0 1 0" damping=".2"/>
      <geom size=".1" pos="0 0 -.2"/><site name="arm" pos="0 0 -.2"/></body>
    <body name="never" pos="2 1 1" sleep="never"><joint axis="0 1 0"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="chain" pos="2 2 1"><joint name="upper" axis="0 1 0" damping=".2" stiffness=".1"/>
      <geom size=".05" pos="0 0 -.2"/>
      <body pos="0 0 -.3"><joint name="lower" axis="0 1 0" damping=".2" frictionloss=".01"/>
        <geom size=".05" pos="0 0 -.2"/></body></body>
    <body name="driven" pos="2 3 1"><joint name="driven" axis="0 1 0" damping=".2"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="left" pos="-1 0 1"><joint name="left" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="right" pos="-1 1 1"><joint name="right" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="begins" pos="-1 2 1" sleep="init"><joint type="slide" axis="0 0 1"/>
      <geom size=".1"/><site name="begins"/></body>
    <body name="hand" mocap="true" pos="0 -2 1"><geom size=".1"/>
      <body name="held" pos="0 0 -.5"><joint name="held" axis="0 1 0" damping=".3"/>
        <geom size=".05" pos="0 0 -.2"/></body></body>
  </worldbody>
  <tendon>
    <fixed name="rope" range="-.2 .02" limited="true">
      <joint joint="left" coef="1"/><joint joint="right" coef="1"/></fixed>
    <spatial name="wire" stiffness=".2" damping=".1" springlength=".5">
      <site site="nail"/><site site="arm"/></spatial>
  </tendon>
  <equality>
    <joint name="gear" joint1="x" joint2="upper" active="false"/>
    <connect name="grip" body1="high" body2="hand" anchor="0 0 0" active="false" solref=".1 1"/>
  </equality>
  <actuator>
    <general name="arm" joint="arm" dyntype="filter" dynprm=".5" gainprm="1e-4"/>
    <motor name="driven" joint="driven"/><motor tendon="wire" gear="2"/>
  </actuator>
  <sensor>
    <clock/>
    <accelerometer site="high"/> <touch site="lone"/> <velocimeter site="arm"/>
    <framepos objtype="body" objname="begins"/> <accelerometer site="begins"/>
    <jointpos joint="lower"/> <tendonpos tendon="wire"/> <actuatorfrc actuator="arm"/>
    <framelinvel objtype="body" objname="lone" reftype="body" refname="held"/>
    <contact geom1="floor" data="found force"/> <contact subtree1="low" data="found"/>
    <force site="arm"/> <subtreelinvel body="chain"/>
  </sensor>
</mujoco>
"""
LOW, HIGH, LONE, ARM, NEVER, CHAIN, DRIVEN, LEFT, RIGHT, BEGINS, HELD = range(11)
REST = 120  # steps after which all trees that may sleep are asleep


@cache
def theirs(option: str = "", flags: str = "") -> mujoco.MjModel:
    mj = mujoco.MjModel.from_xml_string(YARD.format(option=option, flags=flags))
    mj.opt.tolerance, mj.opt.iterations = 1e-14, 100
    return mj


@cache
def ours(option: str = "", flags: str = ""):
    return jaxsim.put_model(theirs(option, flags))


def name(kind: str, text: str, mj: mujoco.MjModel) -> int:
    return mujoco.mj_name2id(mj, getattr(mujoco.mjtObj, f"mjOBJ_{kind}"), text)


def of_yard(option: str = "", flags: str = "") -> Twins:
    """Return the model YARD in both engines."""
    return Twins(theirs(option, flags), ours(option, flags))


@cache
def rested() -> Twins:
    twins = of_yard()
    twins.run(REST)
    return twins


@pytest.fixture
def asleep() -> Twins:
    """Return YARD when all trees that may sleep are asleep."""
    twins = of_yard()
    twins.d = rested().d
    twins.mjd = copy.copy(rested().mjd)
    return twins


def test_trees_fall_asleep_when_they_rest(asleep):
    assert asleep.awake() == {NEVER, DRIVEN}
    cycle = np.asarray(asleep.d.tree_asleep)
    assert (cycle[LOW], cycle[HIGH], cycle[LONE], cycle[BEGINS]) == (HIGH, LOW, LONE, BEGINS)
    assert int(asleep.d.ncon) == 0
    assert not np.any(np.asarray(asleep.d.qvel)[cycle[asleep.m.dof_treeid] >= 0])


def test_what_begins_asleep_stays_in_the_air():
    twins = of_yard()
    assert int(twins.d.tree_asleep[BEGINS]) == BEGINS
    twins.run(30)
    assert BEGINS not in twins.awake()


@pytest.mark.parametrize(
    ("field", "index", "value", "wakes"),
    [
        ("xfrc_applied", (2, 2), 1e-3, {LOW, HIGH}),  # the body "high"
        ("qfrc_applied", 2, 1e-9, {LONE}),
        ("qvel", 6, 1e-3, {CHAIN}),
        ("qpos", 11, 0.5, {BEGINS}),
        ("ctrl", 0, 1.0, set()),  # MuJoCo lets actuators sleep
        ("qvel", 9, 0.5, {LEFT, RIGHT}),  # pulls the rope, after a while
        ("mocap_pos", (0, slice(None)), (1.0, 0.0, 0.28), {LONE, HELD}),
        ("mocap_pos", (0, 0), 0.01, {HELD}),
        ("eq_active", 0, True, {LONE, CHAIN}),
        ("eq_active", 1, True, {LOW, HIGH}),
    ],
)
def test_what_wakes_trees(asleep, field, index, value, wakes):
    asleep.change(field, index, value)
    history = asleep.run(60)
    woken = {tree for awake in history for tree in np.flatnonzero(awake)}
    assert woken - {NEVER, DRIVEN} == wakes


def test_a_tree_that_was_woken_falls_asleep_again(asleep):
    asleep.change("xfrc_applied", (2, 2), 1e-3)
    asleep.run(1)
    asleep.change("xfrc_applied", (2, 2), 0.0)
    asleep.run(30)
    assert asleep.awake() == {NEVER, DRIVEN}


def test_a_ball_that_falls_wakes_what_it_hits(asleep):
    asleep.change("qpos", 1, 0.05)  # "high", lifted
    history = asleep.run(300)
    assert any(awake[LOW] and awake[HIGH] for awake in history)
    assert asleep.awake() == {NEVER, DRIVEN}


@pytest.mark.parametrize(
    "option",
    [
        pytest.param('integrator="discrete"', marks=pytest.mark.slow),
        pytest.param('integrator="implicit"', marks=pytest.mark.slow),
        pytest.param('integrator="implicitfast"', marks=pytest.mark.slow),
        pytest.param('integrator="RK4" timestep=".01"', marks=pytest.mark.slow),
    ],
)
def test_other_integrators(option):
    twins = of_yard(option)
    twins.run(60)
    twins.change("qvel", 6, 0.1)
    twins.run(20)


PAIR = """
<mujoco>
  <option integrator="RK4" timestep=".01"><flag sleep="enable" energy="enable"/></option>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body pos="0 0 .0999"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body pos="0 1 1"><joint axis="0 1 0" damping=".05"/><geom size=".1" pos="0 0 -.2"/>
      <site name="bob" pos="0 0 -.2"/></body>
    <body pos="0 2 1" sleep="init"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
  </worldbody>
  <sensor><accelerometer site="bob"/><velocimeter site="bob"/></sensor>
</mujoco>"""


@pytest.mark.slow
def test_stages_of_rk4_wake_what_has_an_acceleration():
    """A ball falls asleep and wakes at once, for ever; one held in the air sleeps on."""
    twins = of_text(PAIR)
    history = np.array(twins.run(100))
    assert 3 < (~history[:, 0]).sum() < 20
    assert not history[:, 2].any()
    twins.change("qvel", 1, 0.3)
    assert np.array(twins.run(10))[:, 1].all()


@pytest.mark.slow
def test_slopes_and_worlds_of_rk4_where_trees_fall_asleep():
    twins = of_text(PAIR)
    twins.run(20)

    def ends(speed):
        return step(twins.m, twins.d.replace(qvel=twins.d.qvel.at[1].set(speed))).qpos

    _, slope = jax.jvp(ends, (0.3,), (1.0,))
    differences = (ends(0.3 + 1e-6) - ends(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(slope, differences, atol=1e-8)
    worlds = [twins.d, jaxsim.make_data(twins.m), twins.d.replace(qvel=twins.d.qvel + 0.1)]
    together = stack(worlds)
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    for _ in range(15):
        together, worlds = many(twins.m, together), [step(twins.m, d) for d in worlds]
        for i, d in enumerate(worlds):
            np.testing.assert_array_equal(together.tree_asleep[i], d.tree_asleep)
            for field in (*SHOWN, *COUNTS):
                np.testing.assert_allclose(
                    getattr(together, field)[i], getattr(d, field), err_msg=field, **STIFF
                )


@pytest.mark.slow
def test_without_islands_nothing_with_rows_sleeps():
    text = PAIR.replace("RK4", "Euler").replace("<flag", '<flag island="disable"')
    with pytest.warns(UserWarning, match="sleep='init', but its tree cannot sleep"):
        twins = of_text(text)
    twins.run(30)
    assert twins.awake() == {0, 1, 2}


@pytest.mark.slow
def test_boxes_fall_asleep_as_one_and_are_woken_by_another():
    """Two boxes begin asleep, in each other; a third falls on them and all come to rest."""
    box = '<body pos="{}" {}><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    sleeper = 'sleep="init" euler="0 0 {}"'
    text = f"""
        <mujoco>
          <option><flag sleep="enable"/></option>
          <worldbody>
            <geom type="plane" size="1 1 .1"/>
            {box.format("0 0 .09", sleeper.format(0))}
            {box.format("0 0 .27", sleeper.format(20))}
            {box.format(".02 0 .55", 'euler="4 3 0"')}
          </worldbody>
        </mujoco>"""
    twins = of_text(text)
    assert twins.d.tree_asleep.tolist() == [1, 0, JUST_AWAKE + 1]
    # Impacts amplify the difference between solvers with and without islands.
    history = twins.run(130, ROUGH_DIFFERENCE)
    assert history[0] == (False, False, True)
    assert history[-1] == (True, True, True)


def single(tree):
    return jax.tree.map(lambda a: a.astype(jnp.float32) if a.dtype == jnp.float64 else a, tree)


@pytest.mark.slow
def test_single_precision():
    """Trees fall asleep at the same steps, and another program does not wake them."""
    twins = of_text(PAIR.replace("RK4", "Euler"))
    m, d, mjd = single(twins.m), single(twins.d), twins.mjd
    for _ in range(REST):
        mujoco.mj_step(twins.mj, mjd)
        d = step(m, d)
    assert int(d.tree_asleep[0]) >= 0  # it was awake at the start
    np.testing.assert_array_equal(d.tree_asleep, mjd.tree_asleep)
    assert {a.dtype for a in jax.tree.leaves(d)} <= {np.dtype(t) for t in ("f4", "i4", "bool")}
    again = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, stack([d]))
    np.testing.assert_array_equal(again.tree_asleep[0], d.tree_asleep)


@pytest.mark.slow
def test_worlds_sleep_on_their_own(asleep):
    """Batches are a loop: of three worlds one sleeps, one is awake, one is being woken."""
    m = asleep.m
    start = jaxsim.make_data(m)
    disturbed = asleep.d.replace(xfrc_applied=asleep.d.xfrc_applied.at[2, 2].set(1e-3))
    worlds = [asleep.d, start, disturbed]
    many = jax.jit(jax.vmap(jaxsim.step, (None, 0)))
    together = stack(worlds)
    for _ in range(12):  # the one that is awake sees its first tree fall asleep
        together = many(m, together)
        worlds = [step(m, d) for d in worlds]
        for i, d in enumerate(worlds):
            np.testing.assert_array_equal(together.tree_asleep[i], d.tree_asleep)
            for field in (*SHOWN, *COUNTS):
                np.testing.assert_allclose(
                    getattr(together, field)[i], getattr(d, field), err_msg=field, **STIFF
                )
    awake = (np.asarray(together.tree_asleep) < 0).sum(axis=1)
    assert awake[0] < awake[2] < awake[1]


@pytest.mark.parametrize("field", ["qpos", "qvel", "qfrc_applied"])
def test_a_bad_world_starts_with_the_same_trees_asleep(asleep, field):
    d = asleep.d.replace(**{field: jnp.full_like(getattr(asleep.d, field), 1e30)})
    start = jaxsim.make_data(asleep.m)
    new, expected = step(asleep.m, d), step(asleep.m, start)
    if field == "qfrc_applied":  # only what follows from it is bad: the world waits
        assert float(new.time) == 0
        new = step(asleep.m, new)
    np.testing.assert_array_equal(new.tree_asleep, expected.tree_asleep)
    assert int(new.tree_asleep[BEGINS]) == BEGINS
    np.testing.assert_allclose(new.qpos, expected.qpos, **STIFF)


@pytest.mark.slow
def test_derivatives_are_those_of_what_is_awake(asleep):
    """Derivatives of awake dofs equal differences; those of sleeping dofs are zero."""
    m, d = asleep.m, asleep.d

    def speeds(push):
        return step(m, d.replace(qfrc_applied=d.qfrc_applied.at[8].set(push))).qvel

    slope = jax.jacfwd(speeds)(0.0)
    back = jax.jacrev(speeds)(0.0)
    difference = (speeds(1e-3) - speeds(-1e-3)) / 2e-3
    np.testing.assert_allclose(slope, difference, **ROUGH_DIFFERENCE)
    np.testing.assert_allclose(back, slope, **STIFF)
    assert abs(slope[8]) > 1e-3

    drift = jax.jacfwd(lambda qvel: step(m, d.replace(qvel=qvel)).qpos)(d.qvel)
    assert np.isfinite(drift).all()
    of_sleepers = np.asarray(d.tree_asleep)[np.asarray(m.dof_treeid)] >= 0
    np.testing.assert_array_equal(drift[of_sleepers], 0)


def test_a_keyframe_wakes_the_trees_that_it_moves():
    text = """
        <mujoco>
          <option><flag sleep="enable"/></option>
          <worldbody>
            <body sleep="init"><joint name="a"/><geom size=".1" pos=".1 0 0"/></body>
            <body sleep="init" pos="2 0 0"><joint name="b"/><geom size=".1" pos=".1 0 0"/></body>
          </worldbody>
          <keyframe><key qpos="0 .1"/></keyframe>
        </mujoco>"""
    m = jaxsim.load_model(text)
    d = jaxsim.reset_data_keyframe(m, jaxsim.make_data(m), 0)
    assert d.tree_asleep.tolist() == [0, 1]
    assert jax.jit(jaxsim.forward)(m, d).tree_asleep.tolist() == [0, JUST_AWAKE]


def test_a_state_goes_to_mujoco_and_back_asleep(asleep):
    mjd = jaxsim.get_data(asleep.mj, asleep.d)
    d = jaxsim.put_data(asleep.mj, mjd)
    np.testing.assert_array_equal(d.tree_asleep, asleep.d.tree_asleep)
    mujoco.mj_step(asleep.mj, mjd)
    d = step(asleep.m, d)
    np.testing.assert_array_equal(mjd.tree_asleep, asleep.d.tree_asleep)
    np.testing.assert_array_equal(d.tree_asleep, asleep.d.tree_asleep)
    np.testing.assert_allclose(mjd.qacc, d.qacc, **STIFF)


def test_poses_that_round_otherwise_do_not_wake_mujoco():
    """Poses of bodies at random orientations differ in the last bit between the engines."""
    text = """
        <mujoco>
          <option><flag sleep="enable"/></option>
          <worldbody>
            <body pos="1 0 .103" euler="3 7 17" sleep="init"><joint axis="1 .3 .2"/>
              <geom size=".1" pos=".31 .1 2"/>
              <body pos=".1 .3 .7" euler="1 2 3"><joint axis=".3 .1 .9"/><geom size=".2"/></body>
            </body>
          </worldbody>
        </mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text)
    d = jaxsim.make_data(jaxsim.put_model(mj))
    mjd = jaxsim.get_data(mj, d.replace(xpos=d.xpos * (1 + 1e-15)))
    assert mjd.tree_asleep.tolist() == [0]
    mujoco.mj_step(mj, mjd)
    assert mjd.tree_asleep.tolist() == [0]


@pytest.mark.slow
def test_tendons_along_many_trees_and_those_that_sleep():
    """A tendon couples its trees into one island; that of a sleeping tree exerts no force."""
    body = '<body pos="0 {0} 1"><joint name="j{0}" axis="0 1 0" damping="1"/>{1}</body>'
    ball = '<geom size=".1" pos="0 0 -.2"/><site name="{}" pos="0 0 -.2"/>'
    text = f"""
        <mujoco>
          <option><flag sleep="enable"/></option>
          <worldbody>
            <site name="nail" pos="0 0 3"/>
            {"".join(body.format(i, ball.format(f"s{i}")) for i in range(4))}
          </worldbody>
          <tendon>
            <fixed limited="true" range=".1 .2">
              <joint joint="j0" coef="1"/><joint joint="j1" coef="1"/><joint joint="j2" coef="1"/>
            </fixed>
            <spatial stiffness="3" springlength=".5"><site site="nail"/><site site="s3"/></spatial>
          </tendon>
          <sensor><force site="s0"/></sensor>
        </mujoco>"""
    mj = mujoco.MjModel.from_xml_string(text)
    mj.opt.tolerance, mj.opt.iterations = 1e-14, 100
    m, mjd = jaxsim.put_model(mj), mujoco.MjData(mj)
    d = jaxsim.make_data(m, keep="all")
    for _ in range(20):
        mujoco.mj_step(mj, mjd)
        d = step(m, d)
        np.testing.assert_array_equal(d.tree_asleep, mjd.tree_asleep)
        np.testing.assert_array_equal(d.tree_island, mjd.tree_island)
        for field in ("cfrc_ext", "cfrc_int", "sensordata"):
            np.testing.assert_allclose(getattr(d, field), getattr(mjd, field), **STIFF)
    assert d.tree_island.tolist() == [0, 0, 0, -1]
    assert d.tree_asleep.tolist() == [JUST_AWAKE] * 3 + [3]


@pytest.mark.parametrize("field", sorted(SLEEP_FIELDS))
def test_every_field_has_its_shape_and_is_checked(field):
    m, d = ours(), jaxsim.make_data(ours())
    shape = jaxsim.model.data.Data.fields[field].dims(m.structure.sizes)
    assert getattr(d, field).shape == shape
    wrong = d.replace_unchecked({field: jnp.zeros((99,), jnp.int32)}, native=False)
    with pytest.raises(ValueError, match=f"d.{field}: expected shape"):
        jaxsim.step(m, wrong)


def test_without_the_flag_there_is_no_trace_of_sleep():
    awake = theirs().__copy__()
    awake.opt.enableflags &= ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    m = jaxsim.put_model(awake)
    d = jaxsim.make_data(m, keep="all")
    assert all(getattr(d, field) is None for field in SLEEP_FIELDS)
    with pytest.raises(ValueError, match="made without the sleep flag"):
        jaxsim.forward(ours(), d)


@pytest.mark.slow
def test_disabling_the_sleep_flag_wakes_all_trees(asleep):
    opt = asleep.m.opt
    off = opt.enableflags & ~int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    m = asleep.m.replace(opt=opt.replace(enableflags=off))
    d = jax.jit(jaxsim.forward)(m, asleep.d)
    assert (np.asarray(d.tree_asleep) == JUST_AWAKE).all()
    assert np.asarray(d.tree_awake).all()
    assert (int(d.nv_awake), int(d.nisland)) == (m.nv, 0)
    assert int(d.ncon) > 0


@pytest.mark.parametrize(
    ("option", "flag", "more", "message"),
    [
        (
            *('integrator="discrete"', 'island="disable"', ""),
            "the integrator 'discrete' cannot be used with sleeping without islands",
        ),
        (
            "",
            "",
            "<tendon tendon1='t'/>",
            "equality 0: constraints of tendons cannot be used with sl",
        ),
    ],
)
def test_what_cannot_be_combined_is_refused(refused, option, flag, more, message):
    text = f"""
        <mujoco>
          <option {option}><flag sleep="enable" {flag}/></option>
          <worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>
          <tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
          <equality>{more}</equality>
        </mujoco>"""
    (found,) = refused(lambda: jaxsim.load_model(text))
    assert message in found


SOFT = """
<mujoco>
  <option gravity="0 0 0"><flag sleep="enable" energy="enable"/></option>
  <worldbody>
    <geom name="wall" type="plane" size="3 3 .1" pos="0 0 -.2"/>
    <body name="far" pos="3 0 0"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body name="below" pos=".03 .02 -.065">
      <joint type="slide" axis="0 0 1"/><geom size=".05" mass=".1"/></body>
    <body name="hits" pos="-.03 .02 .09"><joint type="slide" axis="0 0 1"/>
      <geom size=".05" mass=".1"/><site name="feel" size=".06"/></body>
    <body name="hand" mocap="true" pos="0 0 1"><geom size=".05"/></body>
    <flexcomp name="sheet" type="grid" dim="2" count="3 3 1" spacing=".08 .08 .08" radius=".01"
      mass=".3"><edge equality="true"/><contact selfcollide="none"/><pin id="0 1 3"/></flexcomp>
    <flexcomp name="rope" type="grid" dim="1" count="3 1 1" spacing=".08 .08 .08" radius=".01"
      mass=".1" pos="-.02 .01 .19">
      <edge equality="true"/><contact selfcollide="none" condim="1"/></flexcomp>
  </worldbody>
  <sensor><touch site="feel"/><contact geom1="wall" data="found force"/></sensor>
</mujoco>"""
BELOW, HITS, SHEET, ROPE = 1, 2, slice(3, 9), slice(9, 12)


@pytest.mark.slow
def test_flexes_sleep_and_are_woken_by_what_touches_them():
    """A hand does not wake a flex; a ball does, and the flex what it then touches."""
    twins = of_text(SOFT)
    assert not any(twins.run(14)[-1])
    twins.change("mocap_pos", 0, (0.08, 0.08, 0.03))
    assert not any(twins.run(2)[-1])
    assert twins.mjd.ncon == 0
    twins.change("mocap_pos", 0, (0, 0, 1))
    twins.change("qvel", HITS, -3.0)
    history = twins.run(12)
    first = [
        next(i for i, awake in enumerate(history) if all(np.array(awake)[tree]))
        for tree in ([HITS], SHEET, [BELOW])
    ]
    assert first == sorted(first)
    assert first[0] < first[2]
    assert not any(history[-1][ROPE])
    rope = np.flatnonzero(np.isin(twins.m.dof_treeid, np.arange(12)[ROPE]))
    twins.change("qvel", rope[2::3], -3.0)
    assert all(twins.run(12)[-1][1:])
    worlds_differ(twins)


def worlds_differ(twins: Twins) -> None:
    """Check that vmap equals a loop for two worlds: one fully asleep, and one that moves."""
    m, now = twins.m, twins.d
    still = jaxsim.make_data(m)
    for _ in range(14):
        still = step(m, still)
    worlds = [now, still]
    together = stack(worlds)
    together = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, together)
    for i, d in enumerate(worlds):
        new = step(m, d)
        for field in ("tree_asleep", "qpos", "qvel", "qacc", "ncon", "nefc", "sensordata"):
            np.testing.assert_allclose(
                getattr(together, field)[i], getattr(new, field), err_msg=field, **STIFF
            )


@pytest.mark.slow
def test_derivatives_where_a_flex_is_woken():
    """Slopes are differences, and finite, through the step in which a ball wakes it."""
    twins = of_text(SOFT)
    twins.run(14)
    m, d = twins.m, twins.d

    def speeds(speed):
        new = d.replace(qvel=d.qvel.at[HITS].set(speed))
        for _ in range(8):
            new = step(m, new)
        return new.qvel

    at, small = jnp.array(-2.9), 1e-6
    slope = jax.jvp(speeds, (at,), (jnp.ones_like(at),))[1]
    difference = (speeds(at + small) - speeds(at - small)) / (2 * small)
    assert np.abs(difference[m.dof_treeid == SHEET.start]).max() > 1e-3
    np.testing.assert_allclose(slope, difference, rtol=1e-4, atol=1e-4)
