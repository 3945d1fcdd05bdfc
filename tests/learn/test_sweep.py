"""Sweeps: points and their folders, faults before the start, processes, the table."""

import csv
import fcntl
import functools
import os
import re
import subprocess
import sys
import warnings

import pytest

from jaxsim.errors import ConfigError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from learn.fake_training import FakeTraining, finish, score_of

    from jaxsim.learn.finished import is_finished
    from jaxsim.learn.sweep import jobs
    from jaxsim.learn.sweep.jobs import run_points, train_command, visible_gpus
    from jaxsim.learn.sweep.log import is_running, open_log, read_end
    from jaxsim.learn.sweep.points import MAX_POINTS, read_axis, read_sweep
    from jaxsim.learn.sweep.table import format_table, read_row, write_table


@pytest.fixture
def fake(tmp_path):
    return FakeTraining(tmp_path)


def sweep_of(fake, *over, changes=()):
    return read_sweep(fake.settings, over, changes, fake.folder / "out")


def run(fake, sweep, **options):
    """Run a sweep; return its events."""
    events = []
    run_points(
        sweep.points,
        functools.partial(fake.command, sweep),
        lambda point, event: events.append((point.number, event)),
        **options,
    )
    return events


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("seed=0:3", ["0", "1", "2"]),
        ("seed=-1:5:3", ["-1", "2"]),
        ("seed=2:0:-1", ["2", "1"]),
        ("seed=7", ["7"]),
        ("ppo.gamma=[0.9, 1]", ["0.9", "1"]),
        ("ppo.hidden=[[64, 64], [8]]", ["[64, 64]", "[8]"]),
        ("algorithm=sac", ['"sac"']),
        ('task="a:B"', ['"a:B"']),
        ("task=a:B", ['"a:B"']),
        ("ppo.anneal=[true,false]", ["true", "false"]),
        ("ppo.max_grad_norm=[inf]", ["inf"]),
    ],
)
def test_values_are_a_range_an_array_or_one_value(text, values):
    axis = read_axis(text)
    assert axis.name == text.partition("=")[0]
    assert list(axis.values) == values


FIXED = {"ppo.gamma=0.98": ["ppo.gamma=0.5"], "ppo.hidden.7=[1]": ["ppo.hidden=[3]"]}  # by --set


@pytest.mark.parametrize(
    ("over", "message"),
    [
        (["seed"], "--over seed: expected NAME=VALUES, such as seed=0:8"),
        (["=1"], "--over =1: expected NAME=VALUES"),
        (["seed=3:3"], "--over seed=3:3: the range is empty; its end is excluded"),
        (["seed=0:3:0"], "expected a step other than 0"),
        (["seed=[]"], "there are no values"),
        (["algorithm=[ppo,sac]"], 'write strings in quotes, such as ["ppo", "sac"]'),
        (["ppo=[{gamma=1}]"], "expected numbers, texts or lists, got {'gamma': 1}"),
        (["seed=[2020-01-01]"], "expected numbers, texts or lists, got datetime.date"),
        (["seed=1\nsteps=2"], "expected one value; repeat the option for another setting"),
        (["seed=0:99999999999"], f"at most {MAX_POINTS:,} are possible; split the sweep"),
        (["seed=0:200", "steps=1:200"], "39,800 points, at most 10,000 are possible"),
        (["seed=1", '"seed"=2'], "is given twice; join the values in an array"),
        (["ppo.gamma=0.98"], "--over ppo.gamma: is also given by --set; omit one of them"),
        (["ppo.gama=[0,1]"], "--over ppo.gama=0: ppo.gama: unknown setting; did you mean 'gamma'?"),
        (["steps=[9,0]"], "--over steps=0: steps: expected at least 1, got 0"),
        (["ppo.hidden=[64,64]"], "--over ppo.hidden=64: ppo.hidden: expected a list, got 64"),
        (["ppo.hidden.7=[1]"], "--over ppo.hidden.7=1: there is no entry"),
        (["ppo.ent_coef=[1,1.0]"], "ppo.ent_coef=1.0: the same as point 0, ppo.ent_coef=1.0"),
    ],
)
def test_faults_are_located_and_nothing_is_written(fake, over, message):
    before = sorted(fake.folder.rglob("*"))
    fixed = FIXED.get(over[0], [])
    with pytest.raises(ConfigError) as fault:
        sweep_of(fake, *over, changes=fixed)
    assert message in str(fault.value)
    assert sorted(fake.folder.rglob("*")) == before


def test_a_fault_of_one_value_is_reported_once(fake):
    with pytest.raises(ConfigError) as fault:
        sweep_of(fake, "seed=0:3", "ppo.gamma=[0.9,1.5,-2]")
    assert [str(problem.place) for problem in fault.value.problems] == [
        "--over ppo.gamma=1.5",
        "--over ppo.gamma=-2",
    ]
    fake.settings.write_text("task = 3\n")
    with pytest.raises(ConfigError) as fault:
        sweep_of(fake, "seed=0:3")
    assert len(fault.value.problems) == 1
    assert str(fault.value).startswith(f"{fake.settings}:1: task: ")


def test_points_are_the_product_and_the_last_setting_varies_fastest(fake):
    sweep = sweep_of(fake, "seed=[3,1]", "ppo.gamma=[0.9,1]", changes=["steps=50"])
    assert [point.name for point in sweep.points] == [
        "ppo.gamma=0.9,seed=3",
        "ppo.gamma=1.0,seed=3",
        "ppo.gamma=0.9,seed=1",
        "ppo.gamma=1.0,seed=1",
    ]
    assert [point.number for point in sweep.points] == [0, 1, 2, 3]
    point = sweep.points[1]
    assert point.folder == fake.folder / "out" / point.name
    assert point.values == {"seed": 3, "ppo.gamma": 1.0}
    assert (point.training.seed, point.training.ppo.gamma, point.training.steps) == (3, 1.0, 50)
    command = train_command(sweep, point, ["--tier", "fast"])
    assert command[1:4] == ["-m", "jaxsim", "train"]
    assert command[4:] == [
        *(str(fake.settings), "--out", str(point.folder), "--tier", "fast"),
        *("--set", "steps=50", "--set", "seed=3", "--set", "ppo.gamma=1"),
    ]
    again = sweep_of(fake, "ppo.gamma=[1,0.5]", "seed=[1]", changes=["steps=50"])
    assert again.points[0].folder == sweep.points[3].folder  # whatever the order


def test_folder_names_need_no_quotes_and_distinguish_values(fake):
    over = ('task=["a/b:C","a-b:C","a b:C","é","../x","a:c"]', "ppo.hidden=[[64,64],[8]]")
    names = [point.name for point in sweep_of(fake, *over).points]
    assert len(set(names)) == 12
    assert all(re.fullmatch(r"[A-Za-z0-9_.,=+-]+", name) for name in names)
    assert names[0].startswith("ppo.hidden=64x64,task=a-b-C-")
    pushes = "'worlds.pushes.\"body:a/b\"'=[[1,5]]".replace("'", "")
    (point,) = sweep_of(fake, pushes).points
    assert re.fullmatch(r"[\w.,=+-]+", point.name)
    assert point.training.worlds.pushes == {"body:a/b": (1.0, 5.0)}
    long = [f'task=["{"x" * 500}a","{"x" * 500}b"]']
    first, second = (point.name for point in sweep_of(fake, *long).points)
    assert len(first) == len(second) == 150
    assert first != second


def test_a_run_with_other_settings_is_not_resumed(fake):
    finish(fake.folder / "out" / "seed=1", sweep_of(fake, "seed=1").points[0])
    with pytest.raises(ConfigError) as fault:
        sweep_of(fake, "seed=0:3", changes=["ppo.gamma=0.5", "steps=90"])
    (problem,) = fault.value.problems
    assert str(problem.place) == str(fake.folder / "out" / "seed=1")
    assert problem.message == (
        "there is a run with other settings: ppo.gamma is 0.98 there, 0.5 here; "
        "delete it, or name another folder by --out"
    )
    sweep = sweep_of(fake, "seed=0:3", changes=["steps=90", "keep=1"])
    folder = str(sweep.points[1].folder)
    assert train_command(sweep, sweep.points[1])[4:] == [
        *(folder, "--resume", "--set", "steps=90", "--set", "keep=1"),
    ]
    assert read_row(sweep.points[1]).state == "stopped"
    (fake.folder / "out/seed=1/config.toml").write_text("task = 3\n")
    with pytest.raises(ConfigError, match=r"seed=1/config.toml:1: task: expected a text"):
        sweep_of(fake, "seed=0:3")


def test_a_run_is_finished_with_the_motion_of_its_last_step(fake):
    sweep = sweep_of(fake, "seed=0")
    folder = sweep.points[0].folder
    assert not is_finished(folder, 40)
    finish(folder, sweep.points[0])
    assert is_finished(folder, 40)
    assert is_finished(folder, 30)
    assert not is_finished(folder, 41)
    later = folder / "checkpoints" / "50"
    later.mkdir()
    assert is_finished(folder, 40)  # a folder without checksums is no checkpoint
    (later / "checksums.json").touch()
    assert not is_finished(folder, 40)  # the motion is that of step 40
    (later / "checksums.json").unlink()
    (folder / "motion.npz").write_bytes(b"PK")
    assert not is_finished(folder, 40)


@pytest.mark.parametrize("number", [1, 2])
def test_at_most_so_many_trainings_run_at_a_time(fake, number):
    sweep = sweep_of(fake, "seed=0:5")
    events = run(fake, sweep, jobs=number)
    assert sorted(events) == sorted((i, e) for i in range(5) for e in ("started", "ended"))
    active = [int(read_end(point.folder, 1)[1][0].split()[1]) for point in sweep.points]
    assert max(active) <= number
    assert [event for _, event in events[: number + 1]] == ["started"] * number + ["ended"]
    assert all(read_row(point).state == "done" for point in sweep.points)


def test_a_point_that_fails_does_not_stop_the_others(fake):
    sweep = sweep_of(fake, "seed=0:3")
    fake.order("seed=1", "fail")
    run(fake, sweep)
    rows = [read_row(point) for point in sweep.points]
    assert [row.state for row in rows] == ["done", "failed", "done"]
    assert rows[1].note == "three"
    assert read_end(sweep.points[1].folder, 2) == (2, ["two", "three"])
    text = (sweep.points[1].folder / "log.txt").read_text()
    assert text.startswith("$ ")
    assert "--set seed=1" in text


def test_trainings_are_assigned_to_gpus_in_turn(fake, monkeypatch):
    sweep = sweep_of(fake, "seed=0:4")
    run(fake, sweep, jobs=2, gpus=["GPU-a", "GPU-b"])
    used = [re.search(r"gpu (\S+)", (p.folder / "log.txt").read_text())[1] for p in sweep.points]
    assert set(used) == {"GPU-a", "GPU-b"}
    assert used[:2] == ["GPU-a", "GPU-b"]
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    assert jobs._environment("GPU-a", True, None)[name] == "false"
    assert name not in jobs._environment("GPU-a", False, None)
    assert name not in jobs._environment(None, True, None)


def test_gpus_are_those_that_jax_would_use(monkeypatch):
    class Plugin:
        name = "xla_cuda12"

    monkeypatch.setattr(jobs, "entry_points", lambda group: [Plugin] * (group == "jax_plugins"))
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-a,")
    assert visible_gpus() == ["3", "GPU-a"]
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert visible_gpus() == []
    monkeypatch.setenv("JAX_PLATFORMS", "cuda,cpu")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", "")
    assert visible_gpus() == []  # there is no nvidia-smi
    monkeypatch.setattr(jobs, "entry_points", lambda group: [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert visible_gpus() == []


def test_a_training_that_still_runs_is_not_started_twice(fake):
    sweep = sweep_of(fake, "seed=0:2")
    with open_log(sweep.points[0].folder, ["jaxsim"]):
        assert is_running(sweep.points[0].folder)
        assert read_row(sweep.points[0]).state == "running"
        assert open_log(sweep.points[0].folder, ["jaxsim"]) is None
        assert run(fake, sweep) == [(0, "running"), (1, "started"), (1, "ended")]
    assert not is_running(sweep.points[0].folder)
    assert read_row(sweep.points[0]).state == "waiting"
    with (sweep.points[0].folder / "log.txt").open("rb") as reader:  # a table that is written
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert not is_running(sweep.points[0].folder)


def test_a_training_keeps_its_lock_after_the_sweep_is_killed(tmp_path):
    with open_log(tmp_path, ["jaxsim"]) as file:
        wait = [sys.executable, "-S", "-c", "input()"]
        training = subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=file)
    assert is_running(tmp_path)
    training.communicate(b"\n")
    assert not is_running(tmp_path)


def test_a_sweep_starts_no_device(fake):
    """The memory of a GPU would be reserved for a process that does not compute."""
    words = ["sweep", str(fake.settings), "--over", "seed=0:2", "--out", "out", "--table"]
    code = (
        f"import sys, jax; from jaxsim.cli import main; assert main({words}) == 0;"
        "assert 'rejax' not in sys.modules; jax.config.update('jax_num_cpu_devices', 3);"
        "assert jax.device_count('cpu') == 3"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=fake.folder, check=True)


def test_modules_of_tasks_are_found_when_a_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "a")
    path = jobs._environment(None, False, tmp_path)["PYTHONPATH"]
    assert path.split(os.pathsep) == ["a", str(tmp_path)]


def test_the_table_has_the_last_evaluation_of_each_point(fake):
    sweep = sweep_of(fake, "seed=0:3", "ppo.gamma=[0.5]")
    for point in sweep.points[:2]:
        finish(point.folder, point)
    (sweep.points[2].folder).mkdir()
    (sweep.points[2].folder / "curve.csv").write_text("no curve\n")
    rows = [read_row(point) for point in sweep.points]
    write_table(sweep.folder / "sweep.csv", rows)
    lines = list(csv.DictReader((sweep.folder / "sweep.csv").read_text().splitlines()))
    assert list(lines[0]) == (
        "point seed ppo.gamma state step score sd best seconds folder note".split()
    )
    assert lines[1] == {
        "point": "1", "seed": "1", "ppo.gamma": "0.5", "state": "done", "step": "40",
        "score": "100.5", "sd": "1.0", "best": "101.5", "seconds": "3.0",
        "folder": "ppo.gamma=0.5,seed=1", "note": "",
    }  # fmt: skip
    assert (lines[2]["state"], lines[2]["score"]) == ("waiting", "")
    assert "curve.csv:1: not a curve" in lines[2]["note"]
    text = format_table(rows).splitlines()
    assert text[0].split() == "point seed ppo.gamma state actions score sd best seconds".split()
    assert [line.split()[0] for line in text[1:]] == ["1", "0", "2"]  # the best score first
    assert text[1].split() == "1 1 0.5 done 40 100.5 1 101.5 3".split()
    assert rows[1].score == score_of(sweep.points[1])
    assert "... and 40 more in sweep.csv" in format_table(rows * 30)
