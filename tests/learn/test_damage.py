"""Whatever happens to the files of a run, it goes on with the same numbers or ends with one error.

The learner is a small function, so that hundreds of damages are tried on the training that users
run: its settings, checkpoints, curve, motion, and the command line.
"""

import errno
import functools
import json
import os
import random
import shutil
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import jaxsim
from jaxsim import atomic_write as whole
from jaxsim.cli import main
from jaxsim.errors import InputError
from jaxsim.learn.curve import read_curve
from jaxsim.learn.evaluate import Scores

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from jaxsim.learn import run as runs
    from jaxsim.learn.learner import Learner
pytestmark = pytest.mark.filterwarnings("ignore")

SETTINGS = 'task = "small"\nsteps = 40\nevery = 10\nseeds = 2\nepisodes = 3\nkeep = 3\n'
XML = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"


class Worlds(struct.PyTreeNode):
    world: jax.Array
    last_steps: jax.Array
    last_score: jax.Array


class State(struct.PyTreeNode):
    env_state: Worlds
    weights: jax.Array
    key: jax.Array


def begin(width, keys):
    def one(key):
        worlds = Worlds(jnp.zeros(3), jnp.ones(4, jnp.int32), jnp.zeros(4))
        return State(worlds, jax.random.normal(key, (width,)), key)

    return jax.vmap(one)(keys)


def learn(state):
    def one(state):
        key, own = jax.random.split(state.key)
        return state.replace(weights=state.weights + jax.random.normal(own, ()), key=key)

    return jax.vmap(one)(state)


def scores(state, keys):
    score = state.weights[:, :1] + jnp.arange(float(len(keys)))[None]
    time = jnp.broadcast_to(jnp.arange(4.0)[:, None], (len(score), 4, len(keys)))
    place = time[..., None] + state.weights[:, None, None, :1]
    motion = {"time": time, "qpos": place, "qvel": place, "ctrl": place[..., :0]}
    return Scores(score, jnp.full(score.shape, 4), score > 1e9, motion)


class Task:
    repeat, dt, action_size, observation_size = 2, 0.004, 0, 1

    def __init__(self):
        self.m = jaxsim.load_model(XML)
        self.begin = jaxsim.make_data(self.m)

    def observe(self, m, d):
        return d.qpos


@pytest.fixture(scope="module")
def task():
    with jax.enable_x64(False):
        return Task()


@pytest.fixture(autouse=True)
def small(task, monkeypatch):
    """Trainings whose task and learner are those above; programs are compiled once."""

    def learner(worlds, training, locations):
        width = training.ppo.hidden[0]
        return Learner(functools.partial(begin, width), learn, lambda s, obs: obs, 10)

    @functools.cache
    def programs(width, seeds):
        return runs._Programs(*map(jax.jit, (functools.partial(begin, width), learn, scores)))

    monkeypatch.setattr(runs, "make_task", lambda training, locations: task)
    monkeypatch.setattr(runs, "make_worlds", lambda *args, **options: None)
    monkeypatch.setattr(runs, "make_learner", learner)
    monkeypatch.setattr(
        runs, "_compile_training", lambda run, form, tier: programs(run.training.ppo.hidden[0], 0)
    )
    real = runs._run

    def make_run(*args):
        return real(*args)._replace(evaluate=scores)

    monkeypatch.setattr(runs, "_run", make_run)
    monkeypatch.setattr("jaxsim.learn.curve.draw_curve", _draw)
    with jax.enable_x64(False), jax.numpy_dtype_promotion("standard"):
        yield


def _draw(rows, path, title):
    whole.write_whole(path, b"\x89PNG")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damage")


@pytest.fixture
def finished(folder):
    """A run from its start to its end."""
    path = folder / "finished"
    if not path.exists():
        (folder / "small.toml").write_text(SETTINGS)
        runs.train(runs.new_run(folder / "small.toml", path))
    return path


@pytest.fixture
def stopped(folder, finished):
    """Return a copy of the run that was stopped after its second checkpoint."""
    path = folder / "stopped"
    if not path.exists():

        def stop(report):
            if report.step == 30:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            runs.train(runs.new_run(folder / "small.toml", path), stop)
    return path


def content(path):
    """Return the results of a run: its settings, curve, motion and last state, without times."""
    rows = [{**vars(row), "seconds": 0} for row in read_curve(path / "curve.csv")]
    motion = jaxsim.load_trajectory(path / "motion.npz")
    step, state = runs.old_run(path).restore()
    numbers = [np.asarray(state.weights), np.asarray(jax.random.key_data(state.key))]
    text = (path / "config.toml").read_text()
    curve = [row for row in rows if row.pop("training_score") is not None]
    return text, curve, motion.header, [*motion.fields.values()], step, numbers


def assert_same(path, other):
    (*a, na), (*b, nb) = content(path), content(other)
    for x, y in zip([*a.pop(3), *na], [*b.pop(3), *nb], strict=True):
        np.testing.assert_array_equal(x, y)
    assert a == b


def flip(data, rng):
    changed = bytearray(data)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def damages(path, rng):
    """Pairs of a name and a function that damages a file."""

    def write(make):
        def damage():
            data = path.read_bytes()
            path.write_bytes(make(data))

        return damage

    def replaced():
        path.unlink()
        path.mkdir()

    def dangling():
        path.unlink()
        path.symlink_to(path.parent / "nowhere")

    yield "missing", path.unlink
    yield "empty", write(lambda data: b"")
    yield "half", write(lambda data: data[: len(data) // 2])
    yield "cut", write(lambda data: data[:-1])
    yield "longer", write(lambda data: data + b"\0garbage")
    yield "garbage", write(lambda data: rng.randbytes(len(data)))
    yield "zeros", write(lambda data: bytes(len(data)))
    yield "nested", write(lambda data: b"[" * 100_000)
    yield "folder", replaced
    yield "link to nothing", dangling
    for i in range(6):
        yield f"flip {i}", write(lambda data: flip(data, rng))


def survives(run, reference, capsys):
    """Resume a run; its result is that of the reference, or there is one error of ours."""
    valid = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    capsys.readouterr()
    code = main(["train", str(run), "--resume", "--no-cache"])
    told = capsys.readouterr()
    assert code in (0, 2), told
    if code == 2:
        assert told.err.count("\n") == 1, told.err
        assert str(run) in told.err
        # nothing was touched
        assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == valid
    else:
        assert_same(run, reference)
    return code, told.out + told.err


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("finished", 0.1),
        pytest.param("finished", 1.0, marks=pytest.mark.slow),
        pytest.param("stopped", 1.0, marks=pytest.mark.slow),
    ],
)
def test_every_damage_of_every_file_is_survived_or_told(
    name, share, request, finished, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(os, "fsync", lambda file: None)  # no power fails here
    original, rng, survived, tried = request.getfixturevalue(name), random.Random(0), 0, 0
    files = sorted(p.relative_to(original) for p in original.rglob("*") if p.is_file())
    assert len(files) > 20
    for file in files:
        newest = file.parts[:2] == ("checkpoints", "40" if name == "finished" else "20")
        kinds = list(damages(tmp_path / "run" / file, rng))
        # of other checkpoints, which are not read, a few
        for what, damage in kinds if newest or len(file.parts) == 1 else rng.sample(kinds, 1):
            if rng.random() >= share:
                continue
            shutil.copytree(original, tmp_path / "run")
            damage()
            code, told = survives(tmp_path / "run", finished, capsys)
            if newest:
                assert code == 0, (file, what, told)
                harmless = file.name == "checksums.json" and what == "cut"  # its last line break
                assert harmless or "is damaged" in told, (file, what, told)
            if code == 2:  # settings and folders cannot be guessed
                assert file.name == "config.toml" or what == "folder", (file, what, told)
            survived, tried = survived + (code == 0), tried + 1
            shutil.rmtree(tmp_path / "run")
    assert survived > 0.8 * tried


@pytest.mark.parametrize("step", [99_999_999, 40, 5])
@pytest.mark.parametrize("kind", ["empty", "file", "link"])
def test_what_is_no_checkpoint_does_not_block_real_ones(
    finished, stopped, tmp_path, capsys, step, kind
):
    run = shutil.copytree(stopped, tmp_path / "run")
    path = run / "checkpoints" / str(step)
    if kind == "empty":
        path.mkdir()
    elif kind == "file":
        path.write_text("x")
    else:
        path.symlink_to(path)
    code, told = survives(run, finished, capsys)
    assert code == 0
    assert f"checkpoint {step} is damaged" in told or step == 5


def test_without_a_whole_checkpoint_nothing_begins_anew(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    for path in (run / "checkpoints").glob("*/checksums.json"):
        path.write_text(path.read_text().replace("a", "b", 1))
    code, told = survives(run, finished, capsys)
    assert code == 2
    assert "checkpoint 40 is damaged" in told
    assert "checkpoint 20 is damaged" in told
    with pytest.raises(InputError, match="checkpoint 40 is damaged"):
        runs.old_run(run).restore(40)


def test_a_checkpoint_of_a_step_is_that_of_no_other(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    shutil.rmtree(run / "checkpoints/40")
    shutil.copytree(run / "checkpoints/20", run / "checkpoints/40")
    code, told = survives(run, finished, capsys)
    assert code == 0
    assert "it is of step 20" in told


@pytest.mark.parametrize("change", ["ppo.hidden=[4]", "seeds=3", "steps=x", "ppo.gama=1"])
@pytest.mark.parametrize("name", ["finished", "stopped"])
def test_settings_that_cannot_be_resumed_leave_the_run_as_it_is(
    name, change, request, finished, tmp_path, capsys
):
    run = shutil.copytree(request.getfixturevalue(name), tmp_path / "run")
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    assert main(["train", str(run), "--resume", "--set", change]) == 2
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert survives(run, finished, capsys)[0] == 0


def test_changed_settings_are_kept_and_edited_ones_told(finished, stopped, tmp_path, capsys):
    run = shutil.copytree(stopped, tmp_path / "run")
    assert main(["train", str(run), "--resume", "--set", "steps=50", "--set", "keep=2"]) == 0
    assert runs.old_run(run).training.steps == 50
    assert runs.old_run(run).checkpoints.steps() == [40, 50]
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("steps = 50", "steps = 60"))
    assert main(["train", str(run), "--resume"]) == 2
    assert "config.toml:1: the settings have been modified" in capsys.readouterr().err
    _, _, rest = (run / "config.toml").read_text().partition("\n")
    (run / "config.toml").write_text(rest)  # the remedy in the message
    assert main(["train", str(run), "--resume"]) == 0
    assert runs.old_run(run).checkpoints.steps() == [50, 60]


@pytest.mark.parametrize("moment", range(12))
def test_a_full_disk_is_one_error_and_the_run_goes_on_after_it(
    finished, folder, tmp_path, capsys, monkeypatch, moment
):
    """The disk is full from the n-th file that is flushed on."""
    calls, sync, write = iter(range(10**6)), os.fsync, Path.write_text

    def full(file):
        if next(calls) >= moment:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    def full_text(path, *args, **options):
        if path.name == "checksums.json" and next(calls) >= moment:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, *args, **options)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        patch.setattr(Path, "write_text", full_text)
        code = main(["train", str(folder / "small.toml"), "--out", str(run), "--no-cache"])
        told = capsys.readouterr().err
        if code:
            assert code == 2
            assert "No space left on device" in told
            assert "Traceback" not in told
    assert not [p for p in run.rglob(".*") if "checkpoints" in p.parts or p.is_file()]
    arguments = [str(run), "--resume"] if (run / "config.toml").exists() else None
    again = arguments or [str(folder / "small.toml"), "--out", str(run)]
    assert main(["train", *again]) == 0
    assert_same(run, finished)


def test_files_that_cannot_be_written_are_told_before_the_work(folder, tmp_path, capsys, finished):
    run = tmp_path / "run"
    (run / "curve.csv").mkdir(parents=True)
    assert main(["train", str(folder / "small.toml"), "--out", str(run)]) == 2
    assert "curve.csv' is a folder; name a file" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["train", str(folder / "small.toml"), "--out", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_run_without_settings_is_not_overwritten(folder, finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run")
    (run / "config.toml").unlink()
    assert main(["train", str(folder / "small.toml"), "--out", str(run)]) == 2
    assert "there are checkpoints already" in capsys.readouterr().err


def test_checksums_name_every_file(finished):
    for path in (finished / "checkpoints").iterdir():
        files = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
        named = json.loads((path / "checksums.json").read_text())["files"]
        assert files == {*named, "checksums.json"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "curve.csv:1: not a curve"),
        ("step,score\n1,2\n", "curve.csv:1: not a curve"),
        ("HEAD\n10,1,0,1,1\n", "curve.csv:2: expected 9 numbers, got 5"),
        ("HEAD\n10,1,0,1,x,1,0,1,1\n", "curve.csv:2: score_sd: expected a number, got 'x'"),
    ],
)
def test_a_curve_that_is_not_whole_is_told_with_its_line(tmp_path, text, message):
    head = "step,seconds,seed,score,score_sd,actions,diverged,training_score,training_actions"
    (tmp_path / "curve.csv").write_text(text.replace("HEAD", head))
    with pytest.raises(InputError, match=message):
        read_curve(tmp_path / "curve.csv")


def test_a_training_is_not_lost_to_a_drawing_of_its_curve(folder, finished, monkeypatch):
    """Errors of plotting are reported, and the results equal those of a run that plots."""

    def fail(rows, path, title):
        raise RuntimeError("no font\nfor this")

    monkeypatch.setattr("jaxsim.learn.curve.draw_curve", fail)
    path, said = folder / "undrawn", []
    runs.train(runs.new_run(folder / "small.toml", path), said.append)
    notes = [report.note for report in said if report.note]
    assert notes
    assert all("curve.png cannot be drawn: RuntimeError: no font" in note for note in notes)
    assert not any("\n" in note for note in notes)
    assert not (path / "curve.png").exists()
    assert_same(path, finished)


def test_a_checkpoint_is_written_before_the_curve_is_drawn(folder, finished, monkeypatch):
    def stop(rows, path, title):
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxsim.learn.curve.draw_curve", stop)
    path = folder / "stopped while drawing"
    with pytest.raises(KeyboardInterrupt):
        runs.train(runs.new_run(folder / "small.toml", path))
    assert runs.old_run(path).checkpoints.any()
