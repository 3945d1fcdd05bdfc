"""`jaxsim sweep`: what it trains, skips, resumes and reports."""

import csv
import os
import shlex
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from jaxsim.cli import main
from jaxsim.cli.process.signals import STOP_SIGNALS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from learn.fake_training import FakeTraining

    from jaxsim.cli.sweep import slurm_script


@pytest.fixture
def fake(tmp_path, monkeypatch):
    made = FakeTraining(tmp_path)
    monkeypatch.setattr("jaxsim.cli.sweep.train_command", made.command)
    monkeypatch.setattr("jaxsim.cli.sweep.visible_gpus", list)
    return made


def answer(capsys, fake, *options, over="seed=0:3"):
    """Run a sweep; return its exit code and output."""
    words = ["sweep", str(fake.settings), "--over", over, "--out", str(fake.folder / "out")]
    code = main([*words, "--no-cache", *options])
    out, err = capsys.readouterr()
    return code, out, err


def log(fake, name):
    return (fake.folder / "out" / name / "log.txt").read_text()


def states(fake):
    with (fake.folder / "out" / "sweep.csv").open() as file:
        return [row["state"] for row in csv.DictReader(file)]


def test_all_points_are_trained_once(fake, capsys):
    code, out, _ = answer(capsys, fake, "--jobs", "2", "--tier", "fast", "--set", "keep=2")
    assert code == 0
    assert "out: 3 of 3 points, 0 done" in out
    assert "2 at a time on the CPU" in out
    assert "done        seed=1: return 101 +- 1, 40 actions, 3 s (" in out
    assert out.splitlines()[-4].split()[:3] == ["2", "2", "done"]  # the best one
    assert states(fake) == ["done"] * 3
    for words in ("new", "--tier fast", "--no-cache", "--set keep=2 --set seed=1"):
        assert words in log(fake, "seed=1")
    before = log(fake, "seed=1")
    code, out, _ = answer(capsys, fake, "--set", "keep=2", over="seed=[1,5]")
    assert code == 0
    assert "2 of 2 points, 1 done" in out
    assert "started     seed=5" in out
    assert "seed=1:" not in out
    assert log(fake, "seed=1") == before


def test_a_failed_point_is_reported_and_trained_again(fake, capsys):
    fake.order("seed=1", "fail")
    code, out, _ = answer(capsys, fake)
    assert code == 1
    told = out[out.index("failed ") :].splitlines()
    assert "seed=1: exit code 2;" in told[0]
    assert told[0].endswith("log.txt ends with")
    assert [line.strip() for line in told[3:6]] == ["one", "two", "three"]
    assert states(fake) == ["done", "failed", "done"]
    fake.order("seed=1", "die")
    code, out, _ = answer(capsys, fake)
    assert code == 1
    assert "failed      seed=1: killed by signal 9;" in out
    fake.order("seed=1", "")
    code, out, _ = answer(capsys, fake)
    assert code == 0
    assert "2 done" in out
    assert states(fake) == ["done"] * 3


def test_a_stopped_sweep_stops_its_trainings_and_resumes_them(fake, capsys):
    handlers = {n: signal.signal(n, signal.SIG_DFL) for n in STOP_SIGNALS}
    try:
        fake.order("seed=1", "half")
        code, out, err = answer(capsys, fake)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert code == 143
    assert err.endswith("stopped by SIGTERM\n")
    assert "asked to stop" in log(fake, "seed=1")
    assert states(fake) == ["done", "stopped", "waiting"]
    fake.order("seed=1", "")
    code, out, _ = answer(capsys, fake)
    assert code == 0
    assert "seed=0" not in out
    first, second = log(fake, "seed=1").split("$ ")[1:]
    assert "asked to stop" in first
    assert "resumed" in second
    assert "new" in log(fake, "seed=2")


def test_only_one_point_and_only_the_table(fake, capsys):
    code, out, _ = answer(capsys, fake, "--only", "2")
    assert (code, "1 of 3 points, 0 done" in out) == (0, True)
    assert states(fake) == ["waiting", "waiting", "done"]
    code, out, _ = answer(capsys, fake, "--only", "3")
    assert code == 2
    (fake.folder / "out" / "sweep.csv").unlink()
    code, out, _ = answer(capsys, fake, "--table")
    assert code == 0
    assert "started" not in out
    assert states(fake) == ["waiting", "waiting", "done"]


def test_a_point_that_another_process_trains_is_left_to_it(fake, capsys):
    folder = fake.folder / "out" / "seed=1"
    folder.mkdir(parents=True)
    lock = "import fcntl, sys; fcntl.flock(1, fcntl.LOCK_EX); sys.stderr.write('x'); input()"
    with (folder / "log.txt").open("w") as file:
        other = subprocess.Popen(
            [sys.executable, "-c", lock],
            stdin=subprocess.PIPE, stdout=file, stderr=subprocess.PIPE,
        )  # fmt: skip
    with other:
        assert other.stderr.read(1) == b"x"
        code, out, _ = answer(capsys, fake)
        other.communicate(b"\n")
    assert code == 1
    assert "running     seed=1: another process trains it" in out
    assert answer(capsys, fake)[0] == 0


def test_faults_are_reported_before_anything_starts(fake, capsys):
    code, _, err = answer(capsys, fake, over="ppo.gamma=[0.9,7]")
    assert code == 2
    assert err == "--over ppo.gamma=7: ppo.gamma: expected at most 1, got 7.0\n"
    code, _, err = answer(capsys, fake, "--set", "stepz=3")
    assert (code, err) == (2, "--set stepz=3: stepz: unknown setting; did you mean 'steps'?\n")
    assert not (fake.folder / "out").exists()
    code, _, err = answer(capsys, fake, "--slurm", str(fake.folder / "absent" / "a.sh"))
    assert code == 2
    assert "absent'; create it first" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "-1"], "expected a whole number of at least 0, got '-1'"),
        (["--only", "1", "--table"], "not allowed with argument"),
        (["--onyl", "1"], "did you mean '--only'?"),
        (["--jobs", "0"], "expected a whole number of at least 1"),
    ],
)
def test_wrong_options(fake, capsys, options, message):
    with pytest.raises(SystemExit):
        main(["sweep", str(fake.settings), "--over", "seed=1", *options])
    assert message in capsys.readouterr().err


def test_a_job_array_runs_one_point_in_each_task(fake, capsys):
    script = fake.folder / "job array.sh"
    options = ("--slurm", str(script), "--set", "keep=2", "--jobs", "4", "--tier", "fast")
    code, out, _ = answer(capsys, fake, *options)
    assert code == 0
    assert "3 tasks" in out
    assert f"sbatch '{script}'" in out
    text = script.read_text()
    assert "#SBATCH --array=0-2%4\n" in text
    assert "#SBATCH --job-name=pendulum-sweep\n" in text
    (command,) = [line for line in text.splitlines() if line.startswith("exec ")]
    words = shlex.split(command)
    assert words[1:5] == [sys.executable, "-m", "jaxsim", "sweep"]
    assert words[-2:] == ["--only", "$SLURM_ARRAY_TASK_ID"]
    assert not (fake.folder / "out").exists()
    assert main([*words[4:-1], "2"]) == 0
    assert states(fake) == ["waiting", "waiting", "done"]
    assert "--tier fast" in log(fake, "seed=2")


def test_the_script_of_a_job_array_passes_arguments_unchanged(tmp_path, monkeypatch):
    place = tmp_path / "a $b"
    place.mkdir()
    monkeypatch.chdir(place)
    script = slurm_script("a b", 7, ["printf", "%s\\n", "task='x y'", "$HOME"])
    assert "--array=0-6\n" in script
    assert "--job-name=a-b-sweep\n" in script
    environment = os.environ | {"SLURM_ARRAY_TASK_ID": "5"}
    told = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    assert told.stdout == "task='x y'\n$HOME\n--only\n5\n"


@pytest.mark.slow
def test_a_real_sweep(tmp_path, capsys, monkeypatch):
    tests = Path(__file__).resolve().parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{tests.parent}:{tests}")
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    (tmp_path / "hold.toml").write_text(
        'task = "learn.tiny:Hold"\nsteps = 256\nevery = 256\nepisodes = 2\n'
        "[worlds]\ncount = 4\nlength = 8\n"
        "[ppo]\nnum_steps = 8\nnum_minibatches = 2\nnum_epochs = 1\nhidden = [4]\n"
    )
    words = ["sweep", str(tmp_path / "hold.toml"), "--over", "seed=0:2", "--tier", "fast"]
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "runs/hold-sweep: 2 of 2 points, 0 done" in out
    assert (tmp_path / "runs/hold-sweep/seed=1/curve.png").exists()
    assert main(words) == 0
    assert "started" not in capsys.readouterr().out
