"""The command line: output, mistakes, exit codes."""

import errno
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import jaxsim
from jaxsim.batch.trajectory import load_trajectory
from jaxsim.cli import main
from jaxsim.cli.arguments import make_parser

BALL = """\
<mujoco model="ball">
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.3">
      <freejoint/>
      <geom name="ball" size="0.1"/>
    </body>
    <body name="arm" pos="2 0 1">
      <joint name="elbow" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="elbow" joint="elbow" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
  <keyframe>
    <key name="high" qpos="0 0 0.8 1 0 0 0 0.2"/>
  </keyframe>
</mujoco>
"""

COMMAND = "rollout ball.xml --worlds 8 --steps 100000000 --every 1000 --out motion.npz".split()


@pytest.fixture
def ball(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    return path


def answer(capsys, *args) -> tuple[int, str, str]:
    code = main([str(a) for a in args])
    out, err = capsys.readouterr()
    return code, out, err


def test_info_says_what_the_model_has(capsys, ball):
    code, out, _ = answer(capsys, "info", ball)
    assert code == 0
    assert "2, mass" in out
    assert "2 (1 free, 1 hinge)" in out
    assert "3 (1 plane, 1 sphere, 1 capsule)" in out
    assert "1 (high)" in out
    assert "bytes per world" in out


def test_info_describes_the_program_of_a_step(capsys, ball):
    code, out, _ = answer(capsys, "info", ball, "--program", "--worlds", 4)
    assert code == 0
    assert "program of a step: 4 worlds in tiles of 4, cpu" in out
    assert "Newton Hessian: (M + J' W J) v = -g, 7 dofs" in out
    assert "PackedLower: worlds of at most 48 dofs together" in out
    assert re.search(r"^  size +\d+ equations$", out, re.MULTILINE)


@pytest.mark.slow
def test_rollout_simulates_and_writes(capsys, ball, tmp_path):
    out_file = tmp_path / "motion.npz"
    code, out, err = answer(
        capsys, "rollout", ball, "--worlds", 3, "--steps", 25, "--key", "high", "--out", out_file
    )
    assert code == 0
    assert "compiled in" in out
    assert "3 worlds x 25 steps" in out
    assert "none: no resets, no overflow" in out
    assert "world steps/s" in out
    assert "25/25 steps" in err

    motion = load_trajectory(out_file)
    assert motion["qpos"].shape == (25, 3, 8)
    assert motion.header["worlds"] == 3
    np.testing.assert_allclose(motion["time"][:, 0], 0.002 * np.arange(1, 26))
    assert (np.diff(motion["qpos"][:, :, 2], axis=0) < 0).all()  # it falls

    # the controls of a recorded motion drive the same motion again
    again = tmp_path / "again.npz"
    answer(
        capsys, *("rollout", ball, "--worlds", 3, "--steps", 25, "--key", "high"),
        *("--ctrl", out_file, "--out", again, "--every", 10),
    )  # fmt: skip
    replay = load_trajectory(again)
    np.testing.assert_array_equal(replay["qpos"], motion["qpos"][9::10])
    assert replay.header["every"] == 10


@pytest.mark.slow
def test_compare_finds_no_difference(capsys, ball):
    code, out, _ = answer(capsys, "compare", ball, "--steps", 10)
    assert code == 0
    assert "qfrc_bias" in out
    assert "10 steps" in out
    rows = [line.split() for line in out.splitlines() if re.search(r"e[+-]\d\d$", line)]
    assert len(rows) > 15
    assert all(float(row[-1]) < 1e-9 for row in rows)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["rollout", "{ball}", "--worlds", "0"], "expected a whole number of at least 1, got '0'"),
        (
            ["rollout", "{ball}", "--steps", "1e3"],
            "expected a whole number of at least 1, got '1e3'",
        ),
        (
            ["info", "{ball}", "--limit", "size=3"],
            "there is no limit 'size'; choose one of archive_by",
        ),
        (["info", "{ball}", "--limit", "image_bytes"], "expected a whole number of at least 1"),
        (["rollout"], "the following arguments are required: MODEL.xml"),
        (["fly", "{ball}"], "invalid choice: 'fly'"),
    ],
)
def test_wrong_arguments(capsys, ball, args, message):
    with pytest.raises(SystemExit) as stop:
        main([a.format(ball=ball) for a in args])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--out", "motion.txt"], "--out: 'motion.txt' does not end in .npz\n"),
        (["--out", "absent/motion.npz"], "absent'; create it first\n"),
        (["--out", "full.npz"], "--out: 'full.npz' is no regular file; name another one\n"),
        (["--key", "hihg"], "--key: no key is named 'hihg'; did you mean 'high'?\n"),
        (["--ctrl", "absent.npz"], "absent.npz: No such file or directory; give --ctrl"),
        (["--worlds", "100000000000"], "fit\n"),
        (["--out", "a.npz", "--steps", "5", "--every", "9"], "--every 9: the rollout has only 5"),
    ],
)
def test_unsupported_request_prints_one_line(capsys, ball, monkeypatch, args, message):
    monkeypatch.chdir(ball.parent)
    (ball.parent / "full.npz").symlink_to("/dev/full")
    code, _, err = answer(capsys, "rollout", ball, *args)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_no_such_model(capsys, tmp_path):
    code, out, err = answer(capsys, "info", tmp_path / "absent.xml")
    assert code == 2
    assert "absent.xml" in err
    assert err.count("\n") == 1
    assert not out


def test_broken_xml(capsys, ball):
    ball.write_text(BALL.replace("</body>\n    <body", "<body"))
    code, _, err = answer(capsys, "rollout", ball)
    assert code == 2
    assert "ball.xml:" in err


def test_every_mistake_of_a_model_is_listed_with_its_line(capsys, ball):
    ball.write_text(BALL.replace('size="0.1"', 'siz="0.1"').replace("damping=", "dampening="))
    code, _, err = answer(capsys, "info", ball)
    assert code == 2
    assert "ball.xml:6: " in err
    assert "did you mean 'size'?" in err
    assert "ball.xml:9: " in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["veiw", "a.xml"], "invalid choice: 'veiw'; did you mean 'view'?"),
        (["trian"], "invalid choice: 'trian'; did you mean 'train'?"),
        (["zzz"], "invalid choice: 'zzz'; there are: info, rollout,"),
        (
            ["rollout", "a.xml", "--wrolds", "3"],
            "unrecognized arguments: --wrolds 3; did you mean '--worlds'?",
        ),
        (
            ["train", "a.toml", "--resmue"],
            "unrecognized arguments: --resmue; did you mean '--resume'?",
        ),
        (["info", "a.xml", "b.xml"], "unrecognized arguments: b.xml"),
        (["--verson"], "unrecognized arguments: --verson; did you mean '--version'?"),
    ],
)
def test_misspelled_commands_and_options_have_their_remedy(capsys, args, message):
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_fault_of_the_system_is_one_line(capsys, ball, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/a")

    monkeypatch.setattr("jaxsim.cli.info.load_model", full)
    code, _, err = answer(capsys, "info", ball)
    assert code == 2
    assert err == "/tmp/a: No space left on device\n"


def test_an_interrupt_is_no_error(capsys, ball, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxsim.cli.info.load_model", interrupted)
    code, _, err = answer(capsys, "info", ball)
    assert code == 130
    assert "interrupted" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "stopped by SIGTERM"),
        (signal.SIGHUP, 129, "stopped by SIGHUP"),
    ],
)
def test_a_run_that_is_stopped_leaves_no_half_written_file(ball, number, code, said):
    command = f"import sys; from jaxsim.cli import main; sys.exit(main({COMMAND}))"
    run = subprocess.Popen(
        [sys.executable, "-c", command],
        cwd=ball.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(ball.parent.glob(".motion.npz-*/qpos")):  # the first records are there
        assert run.poll() is None
        time.sleep(0.2)
    run.send_signal(number)
    _, err = run.communicate(timeout=60)
    assert run.returncode == code
    assert err.rstrip().endswith(said)
    assert [path.name for path in ball.parent.iterdir()] == ["ball.xml"]


@pytest.mark.slow
def test_a_run_that_cannot_be_written_is_kept_and_said(capsys, ball, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    motion = tmp_path / "motion.npz"
    code, out, err = answer(capsys, "rollout", ball, "--worlds", 3, "--steps", 5, "--out", motion)
    kept = tmp_path / "motion-1.npz"
    assert code == 2
    assert "3 worlds x 5 steps" in out
    assert err.splitlines()[-1] == (
        f"--out: '{motion}' cannot be written: No space left on device; "
        f"5 records of each world are kept in the file '{kept}'"
    )
    assert load_trajectory(kept)["qpos"].shape == (5, 3, 8)


@pytest.mark.slow
def test_a_run_is_written_where_a_link_leads(capsys, ball, tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "motion.npz"
    link.symlink_to(tmp_path / "far" / "motion.npz")
    code, _, _ = answer(capsys, "rollout", ball, "--worlds", 3, "--steps", 5, "--out", link)
    assert code == 0
    assert link.is_symlink()
    assert load_trajectory(tmp_path / "far" / "motion.npz")["qpos"].shape == (5, 3, 8)


def test_limits_are_raised_by_an_option(capsys, tmp_path):
    path = tmp_path / "large.xml"
    path.write_text(
        "<mujoco><asset><texture name='t' type='2d' builtin='flat' width='6' height='30000000'/>"
        "</asset></mujoco>"
    )
    code, _, err = answer(capsys, "info", path)
    assert code == 2
    assert "large.xml:1: <texture name='t'>: 1 times 30000000 x 6 pixels: 540000000 bytes" in err
    assert "--limit image_bytes=540000000" in err
    path.write_text(path.read_text().replace("30000000", "30"))
    code, _, err = answer(capsys, "info", path, "--limit", "image_bytes=539")
    assert (code, "the limit is 539" in err) == (2, True)
    assert answer(capsys, "info", path, "--limit", "image_bytes=540")[0] == 0


def test_plugins_of_a_folder(capsys, tmp_path):
    name = "springs"
    (tmp_path / f"{name}.py").write_text(
        "import jaxsim\n@jaxsim.extend.register_plugin\nclass Spring(jaxsim.extend.Plugin):\n"
        "    name = 'lab.spring'\n    def passive(self, m, d, at):\n        return -d.qpos\n"
    )
    model = tmp_path / "model.xml"
    model.write_text(
        "<mujoco><extension><plugin plugin='lab.spring'/></extension><worldbody><body>"
        "<plugin plugin='lab.spring'/><joint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    code, _, err = answer(capsys, "info", model)
    assert (code, "plugin='lab.spring' is not known" in err) == (2, True)
    try:
        assert answer(capsys, "info", model, "--plugins", tmp_path)[0] == 0
    finally:
        jaxsim.extend.unregister_plugin("lab.spring")
    code, _, err = answer(capsys, "info", model, "--plugins", tmp_path / "nowhere")
    assert (code, "--plugins: load_plugins: there is no folder" in err) == (2, True)


CALLS = (["-c", "from jaxsim.cli import main; main(['--version'])"], ["-m", "jaxsim", "--version"])


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_the_command_is_installed(call):
    done = subprocess.run([sys.executable, *call], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("jaxsim 0.")


def test_the_module_has_the_exit_code_of_the_command():
    run = [sys.executable, "-m", "jaxsim", "info", "no.xml"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, "no.xml" in done.stderr) == (2, True)


def test_a_command_does_not_wait_for_a_program_that_is_being_optimized(tmp_path, monkeypatch):
    (tmp_path / "ball.xml").write_text(BALL)
    codes: list[int] = []
    monkeypatch.setattr("sys.argv", ["jaxsim", "info", str(tmp_path / "ball.xml"), "--no-cache"])
    monkeypatch.setattr("jaxsim.cli.command_line.end_process", codes.append)
    assert main() == 0
    assert codes == []
    monkeypatch.setattr("jaxsim.batch.tiered_program.is_compiling", lambda: True)
    assert main() == 0
    assert codes == [0]


def test_trainings_are_optimized_from_the_start_and_fits_quickly_compiled_at_first():
    commands = ["train", "identify", "optimize", "mpc"]
    tiers = [make_parser().parse_args([command, "x.toml"]).tier for command in commands]
    assert tiers == ["optimized", "auto", "auto", "auto"]
