"""Control loops of files: the plant, the plans, and their times."""

import dataclasses
import time

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxsim.control import ilqr
from jaxsim.control.closed_loop.program import Followed, LoopProgram, planned_control
from jaxsim.control.closed_loop.read import read_closed_loop
from jaxsim.control.closed_loop.run import run_realtime, run_simulated
from jaxsim.control.closed_loop.run_log import summarize
from jaxsim.errors import ConfigError

CART = """\
<mujoco model="cart">
  <option timestep="0.02"><flag contact="disable" gravity="disable"/></option>
  <worldbody><body name="cart">
    <joint name="x" type="slide" axis="1 0 0" damping="0.3"/>
    <geom size="0.1" mass="1.5"/>
  </body></worldbody>
  <actuator><motor name="push" joint="x" ctrllimited="true" ctrlrange="-2 2" gear="5"/></actuator>
  <keyframe><key name="aside" qpos="1"/></keyframe>
</mujoco>
"""
LOOP = """\
model = "cart.xml"
timestep = 0.04
start.key = "aside"

method = "mppi"
horizon = 20
rate = 25
seconds = 2.0
sampling.samples = 32
plant.scale."body:cart/mass" = 1.5

[[disturbance]]
body = "cart"
at = 1.0
seconds = 0.1
force = [-20, 0, 0]

[[cost]]
name = "home"
of = "qpos:x"
target = [0.25]
weight = 1.0
terminal = 10.0

[[cost]]
name = "slow"
of = "qvel"
weight = 0.05
terminal = 1.0
"""


def files(folder):
    (folder / "cart.xml").write_text(CART)
    path = folder / "loop.toml"
    path.write_text(LOOP)
    return path


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return files(tmp_path_factory.mktemp("loop"))


@pytest.fixture(scope="module")
def program(config):
    return LoopProgram(read_closed_loop(config), "fast")


@pytest.fixture(scope="module")
def run(program):
    return run_simulated(program)


def test_plant_has_its_own_time_step_and_mass(program):
    loop = program.loop
    ours, plant = loop.planner.m, loop.plant.m
    assert (float(ours.opt.timestep), float(plant.opt.timestep)) == (0.04, 0.02)
    np.testing.assert_allclose(plant.body_mass[1], 1.5 * ours.body_mass[1], rtol=1e-12)
    assert (loop.every, loop.periods) == (2, 50)


def test_simulated_run_reaches_the_goal_and_is_deterministic(program, run):
    before_push = run.records["qpos"][45:50, 0]
    assert np.abs(before_push - 0.25).max() < 0.08  # from 0.75, with a wrong mass
    assert np.abs(run.records["qpos"][-5:, 0] - 0.25).max() < 0.08
    again = run_simulated(program)
    np.testing.assert_array_equal(again.records["qpos"], run.records["qpos"])


def test_plant_moves_as_in_mujoco(program, run):
    """The recorded controls and the disturbance make the recorded motion."""
    m = mujoco.MjModel.from_xml_string(CART)
    m.body_mass[1] *= 1.5
    m.body_inertia[1] *= 1.5
    d = mujoco.MjData(m)
    mujoco.mj_setConst(m, d)
    mujoco.mj_resetDataKeyframe(m, d, 0)
    path = []
    for k, ctrl in enumerate(run.records["ctrl"]):
        d.ctrl[:] = ctrl
        d.xfrc_applied[1, 0] = -20 if 50 <= k < 55 else 0
        mujoco.mj_step(m, d)
        path.append(d.qpos.copy())
    np.testing.assert_allclose(run.records["qpos"], path, atol=1e-9)


def test_weights_and_goals_are_arguments_of_the_program(program):
    problem, _ = program.problems()
    running, d = program.start()
    terms = list(problem.terms)
    far = dataclasses.replace(terms[0], goal=np.array([5.0]))
    moved = dataclasses.replace(problem, terms=[far, terms[1]])
    state = program.state_of(d)
    toward, away = (program.plan(p, state, running).ctrl.mean() for p in (problem, moved))
    assert toward < 0 < away
    slow = dataclasses.replace(terms[1], weight=1e6 * np.ones(()), terminal=1e6 * np.ones(()))
    still = program.plan(dataclasses.replace(problem, terms=[terms[0], slow]), state, running)
    assert abs(still.ctrl.mean()) < abs(toward) / 4


def test_control_of_a_plan_is_that_of_its_time(program):
    _, d = program.start()
    plan = Followed(jnp.zeros(()), None, jnp.arange(20.0)[:, None])
    step = program.loop.planner.m.opt.timestep
    for time_now, row in ((0.0, 0), (0.02, 0), (0.04, 1), (3 * 0.04, 3), (9.0, 19)):
        u = planned_control(plan, d.replace(time=jnp.asarray(time_now)), step)
        assert u == row


def test_late_plans_are_counted_and_the_newest_is_used(program, monkeypatch):
    plan, begun = program.plan, []

    def slow_plan(problem, state, running):
        begun.append(float(state["time"]))
        time.sleep(2.5 * program.loop.period)
        return plan(problem, state, running)

    short = dataclasses.replace(program.loop, periods=13)
    monkeypatch.setattr(program, "loop", short)
    monkeypatch.setattr(program, "plan", slow_plan)
    run = run_realtime(program)
    assert run.seconds >= 13 * short.period - 1e-3
    assert run.late >= 13 - len(begun)
    assert 1 < len(begun) <= 5
    assert len(run.plan_seconds) >= len(begun) - 1
    assert run.plan_seconds.min() >= 2.5 * short.period
    # nothing is planned before the first plan: the guess is followed
    assert (run.records["ctrl"][:4] == 0).all()
    assert (run.records["ctrl"][-1] != 0).all()


def test_summary_has_means_of_each_term(program, run):
    found = summarize(program.loop, run)
    assert found["plans"]["number"] == 50
    assert found["plans"]["late"] == found["plans"]["failed"] == 0
    assert found["rate_hz"] == pytest.approx(25)
    q, v = run.records["qpos"][:-1, 0], run.records["qvel"][:-1, 0]
    home = np.concatenate([[0.75], q - 0.25]) ** 2 / 2
    slow = 0.05 * np.concatenate([[0.0], v]) ** 2 / 2
    assert found["terms"]["home"]["mean"] == pytest.approx(home.mean(), rel=1e-6)
    assert found["terms"]["slow"]["end"] == pytest.approx(slow[-20:].mean(), rel=1e-6)
    assert found["cost"]["mean"] == pytest.approx((home + slow).mean(), rel=1e-6)


OTHER = CART.replace('"x"', '"y"')
SCALE = 'plant.scale."body:cart/mass" = 1.5'
PLAIN = LOOP.replace(SCALE, "plant.timestep = 0.02")  # scaling takes a second


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("rate = 25", "rate = 200"), 7, "200 Hz is more than one plan per step of the plant, 50"),
        (("rate = 25", "rate = 20"), 7, "no multiple of the time step of the plant"),
        (("horizon = 20", "horizon = 0"), 6, "expected at least 1"),
        (('"mppi"', '"multiple_shooting"'), 5, "no 'multiple_shooting'"),
        (('"mppi"', '"mpi"'), 5, "did you mean 'mppi'"),
        (("plant.timestep = 0.02", SCALE.replace("cart", "car")), 10, "'car'"),
        (("plant.timestep = 0.02", 'plant.model = "none.xml"'), 10, "no file"),
        (("plant.timestep = 0.02", 'plant.model = "y.xml"'), 10, "joint 0 is 'y'"),
        (("plant.timestep = 0.02", "plant.timestep = 0"), 10, "more than 0"),
        (('body = "cart"', 'body = "cat"'), 13, "did you mean 'cart'"),
        (("force = [-20, 0, 0]", "force = [1]"), 16, "needs 3 numbers, got 1"),
        (("force = [-20, 0, 0]", ""), 12, "neither force nor torque"),
        (("seconds = 2.0", "guess.ctrl.pull = 1"), 8, "'pull'"),
        (("samples = 32", "samples = 10_000_000_000"), 9, "expected at most"),
        (("target = [0.25]", "target = [1, 2]"), 21, "needs 1 numbers, got 2"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, change, line, says):
    path = files(tmp_path)
    (tmp_path / "y.xml").write_text(OTHER)
    assert change[0] in PLAIN
    path.write_text(PLAIN.replace(*change))
    with pytest.raises(ConfigError) as caught:
        read_closed_loop(path)
    assert f"{path}:{line}: " in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.slow
def test_ilqr_without_feedback_finds_the_same_controls(program):
    loop = program.loop
    m, problem, guess = loop.planner.m, loop.planner.problem, loop.guess
    found, lean = (
        jax.jit(lambda d, feedback=f: ilqr(m, d, guess, problem, iterations=3, feedback=feedback))(
            loop.d
        )
        for f in (True, False)
    )
    np.testing.assert_allclose(lean.ctrl, found.ctrl, rtol=1e-9)
    np.testing.assert_allclose(lean.history, found.history, rtol=1e-9)
    assert int(lean.iterations) == int(found.iterations)
