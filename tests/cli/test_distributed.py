"""Commands in several processes: one set of files and messages, the numbers of one process."""

import signal
import time

import numpy as np
import pytest
from many_processes import finish, run_commands, start, start_commands, wait_until

from jaxsim.batch.trajectory import load_trajectory
from jaxsim.cli import main

ARM = """\
<mujoco model="arm">
  <worldbody>
    <body>
      <joint name="elbow" axis="0 1 0" damping="0.1"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
    </body>
  </worldbody>
  <actuator><motor joint="elbow" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
WORLDS = 7  # no number of processes below divides it


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def motion_of_one(folder, devices):
    """The motion that one process with some devices writes."""
    command = ["-m", "jaxsim", *rollout(f"one{devices}.npz")]
    (result,) = finish([start(command, devices, cwd=folder)])
    assert result.code == 0, result.err
    return load_trajectory(folder / f"one{devices}.npz")


def rollout(out):
    return f"rollout arm.xml --worlds {WORLDS} --steps 25 --every 2 --out {out}".split()


def same_bits(a, b):
    assert a.fields.keys() == b.fields.keys()
    for name, x in a.fields.items():
        np.testing.assert_array_equal(x, b[name], err_msg=name)


def test_rollout_in_two_processes_writes_the_file_of_one(arm):
    folder = arm.parent
    first, second = run_commands(rollout("two.npz"), 2, cwd=folder)
    assert first.code == 0, first.err
    assert second.code == 0, second.err
    assert "2 of kind cpu, 2 processes" in first.out
    assert f"{WORLDS} worlds x 25 steps" in first.out
    assert "two.npz: 12 records of each world" in first.out
    assert "simulated" not in second.out
    assert second.err == ""
    motion = load_trajectory(folder / "two.npz")
    assert motion["qpos"].shape == (12, WORLDS, 1)
    assert np.ptp(motion["ctrl"][0]) > 0.1  # each world has controls of its own
    same_bits(motion, motion_of_one(folder, devices=2))  # of the same number of worlds each
    assert sorted(path.name for path in folder.iterdir()) == ["arm.xml", "one2.npz", "two.npz"]


def test_a_wrong_input_is_reported_once_and_ends_all_processes(arm):
    first, second = run_commands(rollout("absent/two.npz"), 2, cwd=arm.parent)
    assert (first.code, second.code) == (2, 2)
    assert first.err.strip().endswith("absent'; create it first")
    assert second.err == ""


@pytest.mark.slow
def test_rollout_in_four_processes_has_the_numbers_of_one(arm):
    folder = arm.parent
    results = run_commands(rollout("four.npz"), 4, cwd=folder)
    assert [result.code for result in results] == [0] * 4, results[0].err
    motion = load_trajectory(folder / "four.npz")
    same_bits(motion, motion_of_one(folder, devices=4))
    # One device computes all worlds in a larger tile, which rounds differently.
    alone = motion_of_one(folder, devices=1)
    np.testing.assert_array_equal(motion["ctrl"], alone["ctrl"])
    np.testing.assert_allclose(motion["qpos"], alone["qpos"], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_the_others_end_when_a_process_is_killed(arm, killed):
    folder = arm.parent
    command = [*"rollout arm.xml --worlds 8 --steps 100000000 --every 10".split()]
    command += ["--out", "never.npz", "--heartbeat", "10"]
    processes = start_commands(command, 2, cwd=folder)
    wait_until(lambda: any(path.is_dir() for path in folder.iterdir()))  # records of the run
    time.sleep(1.0)
    processes[killed].kill()
    began = time.monotonic()
    results = finish(processes)
    assert time.monotonic() - began < 60
    assert results[killed].code == -signal.SIGKILL
    other = results[1 - killed]
    # 3: its next computation failed; SIGABRT: JAX noticed first.
    assert other.code in (3, -signal.SIGABRT), other.err
    assert "another process has ended" in other.err or "another task died" in other.err
    assert not (folder / "never.npz").exists()
    if killed == 1 and other.code == 3:
        assert [path.name for path in folder.iterdir()] == ["arm.xml"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--processes", "2"], "--coordinator: missing; --coordinator, --processes, --process"),
        (
            ["--coordinator", "a:1", "--processes", "2", "--process", "2"],
            "--process 2: expected at most 1, as there are 2 processes",
        ),
    ],
)
def test_incomplete_arguments(arm, capsys, args, message):
    assert main(["rollout", str(arm), *args]) == 2
    assert message in capsys.readouterr().err


def test_no_cluster(arm):
    (result,) = finish(
        [start(["-m", "jaxsim", *rollout("a.npz"), "--distributed"], cwd=arm.parent)]
    )
    assert result.code == 2
    assert "a cloud TPU is not detected" in result.err
    assert "give --coordinator HOST:PORT" in result.err


@pytest.mark.slow
def test_one_process_needs_no_coordinator(arm, capsys):
    assert main(["rollout", str(arm), "--worlds", "2", "--steps", "2", "--processes", "1"]) == 0
    assert "2 worlds x 2 steps" in capsys.readouterr().out
