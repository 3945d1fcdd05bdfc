"""A training that is stopped goes on with the same numbers; what is learned is scored honestly."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learn.same_state import assert_same_state
from learn.tiny import Hold
from tensorboardX.proto.event_pb2 import Event

import jaxsim
from jaxsim.cli import main
from jaxsim.envs import VectorEnv
from jaxsim.errors import ConfigError, InputError
from jaxsim.learn.curve import Curve, read_curve
from jaxsim.learn.evaluate import evaluate

# rejax and what it imports warn of their own affairs
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn.run import new_run, old_run, train
pytestmark = [pytest.mark.usefixtures("single_precision"), pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """\
task = "learn.tiny:Hold"
steps = 12_000
every = 4_000
seeds = 2
episodes = 3

[worlds]
count = 16
length = 25
obs_noise = 0.01

[worlds.randomize]
body_mass = [0.9, 1.1]

[ppo]
learning_rate = 3e-3
num_steps = 16
num_minibatches = 2
num_epochs = 2
hidden = [8]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("learn")


@pytest.fixture(scope="module")
def settings(folder):
    path = folder / "hold.toml"
    path.write_text(SETTINGS)
    return path


class Watcher:
    """Notes the calls, and copies what the arrays contain at that time."""

    def __init__(self):
        self.updates, self.evaluations = [], []

    def after_update(self, step, state):
        self.updates.append((step, np.array(state.env_state.world.data.qpos)))

    def after_evaluation(self, step, rows, scores):
        self.evaluations.append((step, rows, scores))


@pytest.fixture(scope="module")
def watcher():
    return Watcher()


@pytest.fixture(scope="module")
def whole(settings, folder, watcher):
    """A run from its start to its end, and what it said."""
    run, said = new_run(settings, folder / "whole"), []
    return run, train(run, said.append, tier="optimized", watch=watcher), said


def test_a_watcher_gets_each_update_and_evaluation(whole, watcher):
    run, rows, _ = whole
    assert [step for step, _ in watcher.updates] == [2048 * i for i in range(1, 7)]
    assert {qpos.shape for _, qpos in watcher.updates} == {(2, 16, 1)}
    assert (watcher.updates[0][1] != watcher.updates[1][1]).all()
    np.testing.assert_array_equal(
        watcher.updates[-1][1], run.restore()[1].env_state.world.data.qpos
    )
    assert [row for _, given, _ in watcher.evaluations for row in given] == rows
    last = watcher.evaluations[-1][2]
    assert last.motion["qpos"].shape == (2, 25, 3, 1)
    assert last.score.mean(axis=1).tolist() == pytest.approx([row.score for row in rows[-2:]])


def without_time(rows):
    return [dataclasses.replace(row, seconds=0) for row in rows]


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_with_the_same_numbers(whole, settings, folder):
    def stop(report):
        if report.step > 5000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(new_run(settings, folder / "stopped"), stop, tier="optimized")
    run = old_run(folder / "stopped")
    assert run.checkpoints.steps() == [4096]
    # a row whose checkpoint was not written is made again
    with (folder / "stopped" / "curve.csv").open("a") as file:
        file.write("8192,1,0,1,1,1,0,1,1\n")
    train(run, tier="optimized")
    rows = read_curve(folder / "stopped" / "curve.csv")
    assert without_time(rows) == without_time(whole[1])
    step, state = run.restore()
    assert step == 12_288
    assert_same_state(state, whole[0].restore()[1])
    assert [row.seconds for row in rows[::2]] == sorted(row.seconds for row in rows[::2])


def test_the_curve(whole, folder):
    run, rows, said = whole
    assert [row.step for row in rows] == [4096, 4096, 8192, 8192, 12288, 12288]
    assert [row.seed for row in rows] == [0, 1] * 3
    assert rows == read_curve(folder / "whole" / "curve.csv")
    assert all(10 < row.actions <= 25 for row in rows)
    assert all(0 < row.training_score < 25 for row in rows)
    assert rows[0].score != rows[1].score
    assert (folder / "whole" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert [report.step for report in said if not report.rows] == [2048 * i for i in range(1, 7)]
    assert run.checkpoints.steps() == [4096, 8192, 12288]


def events(data):
    """Numbers by name and step, of records of a length, its checksum, an event, its checksum."""
    found = {}
    while data:
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        found |= {(v.tag, event.step): v.simple_value for v in event.summary.value}
        data = data[16 + size :]
    return found


def test_events_for_tensorboard(whole, tmp_path):
    rows = whole[1][:2]
    Curve(tmp_path, (), tensorboard=True).add(rows)
    found, tries = {}, 0
    while len(found) < 6 and tries < 300:  # another thread writes them
        time.sleep(0.1)
        found, tries = events(next(tmp_path.glob("events*")).read_bytes()), tries + 1
    for row in rows:
        assert found[f"score/{row.seed}", row.step] == pytest.approx(row.score)
        assert found[f"actions/{row.seed}", row.step] == pytest.approx(row.actions)


@pytest.mark.slow
def test_scores_are_the_rewards_of_whole_episodes(whole):
    """Compared with a loop over single worlds with the actions that the policy takes."""
    run, rows, _ = whole
    _, states = run.restore()
    state = jax.tree.map(lambda x: x[1], states)
    keys = run.test_keys(3)
    scores = jax.jit(run.evaluate)(states, keys)
    np.testing.assert_allclose(scores.score.mean(axis=1), [r.score for r in rows[-2:]], rtol=1e-6)
    worlds = VectorEnv(Hold(), length=25)
    step = jax.jit(worlds.step)
    world = jax.jit(worlds.reset)(keys)
    total = np.zeros(3)
    act = jax.jit(run.learner.act)
    for i in range(25):
        np.testing.assert_allclose(scores.motion["qpos"][1, i], world.data.qpos, atol=1e-6)
        world = step(world, act(state, world.obs))
        total += np.asarray(world.reward)
        np.testing.assert_allclose(scores.motion["ctrl"][1, i], world.data.ctrl, atol=1e-6)
    np.testing.assert_allclose(scores.score[1], total, rtol=1e-5)
    motion = jaxsim.load_trajectory(run.folder / "motion.npz")
    best = int(rows[-1].score > rows[-2].score)
    np.testing.assert_allclose(motion["qpos"], scores.motion["qpos"][best], atol=1e-6)
    assert motion.header["every"] == 2


@pytest.mark.slow
def test_an_episode_is_scored_to_its_end():
    """A policy that pushes with all force is stopped by its speed."""
    worlds = VectorEnv(Hold(), length=60)

    def push(force, obs):
        return jnp.full((len(obs), 1), force)

    keys = jax.random.split(jax.random.key(0), 4)
    scores = jax.jit(lambda f: evaluate(worlds, push, f, keys))(jnp.array(1.0))
    assert (scores.steps < 60).all()
    speeds = np.abs(scores.motion["qvel"][:, :, 0])
    for i, steps in enumerate(np.asarray(scores.steps)):
        assert (speeds[:steps, i] <= 8).all()
        assert speeds[steps, i] > 8
    rewards = np.exp(-4 * (np.asarray(scores.motion["qpos"])[1:, :, 0] - 1) ** 2)
    expected = [rewards[:n, i].sum() for i, n in enumerate(np.asarray(scores.steps))]
    np.testing.assert_allclose(scores.score, expected, rtol=1e-6)
    assert not scores.diverged.any()


def test_checkpoints_are_those_of_these_settings(whole, settings, folder):
    run = whole[0]
    with pytest.raises(InputError, match="no checkpoint of step 5; there are 4096, 8192, 12288"):
        run.restore(5)
    with pytest.raises(InputError, match="checkpoint 12288 has other settings"):
        old_run(run.folder, ["ppo.hidden=[9]"]).restore()
    with pytest.raises(InputError, match="there is a run already"):
        new_run(settings, run.folder)
    with pytest.raises(InputError, match="there is no run"):
        old_run(folder / "none")
    with pytest.raises(InputError, match="no checkpoint; there are none"):
        new_run(settings, folder / "fresh").restore()


@pytest.mark.slow
def test_a_task_stands_beside_its_settings(folder, monkeypatch):
    """Or where the command runs; what is imported is found there alone."""
    beside = folder / "beside"
    beside.mkdir()
    (beside / "own_hold").with_suffix(".py").write_text("from learn.tiny import Hold\n")
    file = beside / "own.toml"
    file.write_text(SETTINGS.replace("learn.tiny", "own_hold"))
    path = list(sys.path)
    assert type(new_run(file, folder / "own").env).__name__ == "Hold"
    assert sys.path == path
    sys.modules.pop("own_hold")
    (folder / "moved.toml").write_text(file.read_text())
    with pytest.raises(ConfigError, match="No module named 'own_hold'"):
        new_run(folder / "moved.toml", folder / "own2")
    monkeypatch.chdir(beside)
    new_run(folder / "moved.toml", folder / "own2")
    sys.modules.pop("own_hold")


def test_double_precision_is_refused(settings, folder):
    with jax.enable_x64(True), pytest.raises(ConfigError, match="leave jax_enable_x64 off"):
        new_run(settings, folder / "double")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("task=cartpole_swing", "task: no task is named 'cartpole_swing'; did you mean"),
        ("task=learn.tiny:Hol", "module 'learn.tiny' has no attribute 'Hol'"),
        ("task=learn.none:Hold", "No module named 'learn.none'"),
        (
            "task=learn.tiny:number",
            "takes 0 positional arguments|does not create a jaxsim.envs.Env",
        ),
        ("task=learn.tiny:Pair", "Pair.reward: expected a real number, shape (), got float32 of"),
        ("actor_obs=['angle']", "observations are one array, not a dict with 'angle'"),
        ("ppo.num_minibatches=7", "16 worlds x 16 actions cannot be divided by 7"),
        ("worlds.randomize.body_mas=[1,2]", "body_mas"),
        ("worlds.randomize.body_mass=[2,1]", "expected [lowest, highest] factor, got [2.0, 1.0]"),
        ("worlds.randomize.dof_frictionloss=[1,2]", "dof_frictionloss"),
        ("worlds.randomize.joint:hing/damping=[1,2]", "did you mean 'hinge'"),
        ("worlds.randomize_shift.body_inertia=[0,1]", "moments change by a factor"),
        ("worlds.randomize_value.joint:hinge/damping=[-1,1]", "expected at least 0"),
        ("worlds.pushes.torso=[0,1]", "no body is named 'torso'"),
        ("worlds.delay_most=-1", "expected at least 0"),
        ("ppo.learning_rat=1", "did you mean 'learning_rate'"),
        ("algorithm=dqn", "no 'dqn'; there are: ppo, sac, shac, apg"),
    ],
)
def test_wrong_settings_are_told_with_their_place(settings, folder, change, message):
    with pytest.raises(ConfigError) as caught:
        new_run(settings, folder / "wrong", [change])
    assert any(part in str(caught.value) for part in message.split("|"))
    assert str(caught.value).startswith((f"--set {change}", str(settings)))
    assert not (folder / "wrong").exists()


@pytest.mark.slow
def test_the_commands(whole, settings, folder, capsys):
    out = str(folder / "played.npz")
    assert main(["play", str(whole[0].folder), "--episodes", "2", "--out", out]) == 0
    told = capsys.readouterr().out
    assert "checkpoint  12,288 actions" in told
    assert "seed 1      return" in told
    assert jaxsim.load_trajectory(out)["qpos"].shape == (25, 2, 1)
    assert main(["train", str(whole[0].folder), "--resume"]) == 0
    assert "done        already; use --set steps=N" in capsys.readouterr().out
    assert main(["train", str(settings), "--out", str(whole[0].folder)]) == 2
    assert "there is a run already" in capsys.readouterr().err
    assert main(["train", str(settings), "--set", "ppo.gamma=2"]) == 2
    assert "--set ppo.gamma=2: ppo.gamma: expected at most 1" in capsys.readouterr().err
    assert main(["train", str(folder / "none.toml")]) == 2


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_with_the_same_numbers(whole, settings, folder):
    """Killed by SIGKILL at some time after the first checkpoint, in another process."""
    out = folder / "killed"
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}"}
    program = "import sys; from jaxsim.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "train", str(settings), "--out", str(out)]
    run = subprocess.Popen(command, env=environment)
    while not list(out.glob("checkpoints/*/checksums.json")):
        assert run.poll() is None
        time.sleep(0.1)
    run.send_signal(signal.SIGKILL)
    run.wait()
    train(old_run(out))
    scores = [row.score for row in read_curve(out / "curve.csv")]
    np.testing.assert_allclose(scores, [row.score for row in whole[1]], rtol=1e-5)


LOWERED = """
import sys, warnings
warnings.simplefilter("ignore")
import jax
from jaxsim.learn import run
one = run.new_run(sys.argv[1], sys.argv[2])
form = one.form()
print(jax.jit(one.learner.learn).lower(form).as_text())
print(jax.jit(one.evaluate).lower(form, one.test_keys(3)).as_text())
"""


@pytest.mark.slow
def test_programs_are_the_same_text_in_every_process(settings, folder):
    """Compiled programs are kept by their text: no order of a set may be in it."""
    texts = []
    for seed in "12":
        environment = os.environ | {
            "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}",
            "PYTHONHASHSEED": seed,
        }
        command = [sys.executable, "-c", LOWERED, str(settings), str(folder / "none")]
        texts.append(subprocess.run(command, env=environment, check=True, capture_output=True))
    assert texts[0].stdout == texts[1].stdout
    assert len(texts[0].stdout) > 10_000


@pytest.mark.slow
def test_first_actions_are_near_zero_with_the_deviation_that_is_set(settings, folder):
    run = new_run(settings, folder / "quiet", ["ppo.initial_std=0.3"])
    state = jax.tree.map(lambda x: x[0], jax.jit(run.learner.begin)(run.start_keys()))
    obs = jax.random.normal(jax.random.key(0), (64, *state.last_obs.shape[1:]))
    assert float(jnp.abs(run.learner.act(state, obs)).max()) < 0.05
    std = jnp.exp(state.actor_ts.params["params"]["action_log_std"])
    np.testing.assert_allclose(std, 0.3, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_learners_learn(settings, folder, algorithm):
    changes = [f"algorithm={algorithm}", "steps=40_000", "every=20_000", "seeds=1"]
    changes += ["sac.hidden=[32,32]", "sac.fill_buffer=1000", "sac.learning_rate=1e-3"]
    rows = train(new_run(settings, folder / algorithm, changes))
    begun = new_run(settings, folder / f"{algorithm}0", changes)
    state = jax.jit(begun.learner.begin)(begun.start_keys())
    before = jax.jit(begun.evaluate)(state, begun.test_keys(3)).score.mean()
    assert rows[-1].score > before + 5
