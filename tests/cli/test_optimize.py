"""`jaxsim optimize`: what comes out, and every mistake with its line."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from jaxsim.batch.scan import rollout
from jaxsim.batch.trajectory import load_trajectory
from jaxsim.cli import main
from jaxsim.io.load import load_model
from jaxsim.physics.public.make_data import make_data

MODEL = """\
<mujoco model="cart">
  <option timestep="0.05"><flag contact="disable" gravity="disable"/></option>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0" damping="0.3"/>
      <geom size="0.1" mass="1.5"/>
      <body name="bob">{joint}<geom size="0.1" pos="0 0 -1"/></body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="x" ctrllimited="true" ctrlrange="-1 1"/></actuator>
  <sensor><jointpos name="where" joint="x"/></sensor>
  <keyframe><key name="aside" qpos="{qpos}"/></keyframe>
</mujoco>
"""
# with a ball joint for the messages, without it for the searches
PLAIN = MODEL.format(joint="", qpos="1")
MODEL = MODEL.format(joint='<joint name="turn" type="ball"/>', qpos="1 1 0 0 0")
CONFIG = """\
model = "cart.xml"
steps = 20
start.key = "aside"

method = "ilqr"
multiple_shooting.nodes = 3
iterations = 4
report = 2

[[cost]]
name = "home"
of = "sensor:where"
weight = 1.0
terminal = 10.0

[[cost]]
name = "effort"
of = "ctrl"
weight = 0.1
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "cart.xml").write_text(MODEL)
    path = tmp_path / "push.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def plain(config):
    (config.parent / "cart.xml").write_text(PLAIN)
    return config


def answer(capsys, *args) -> tuple[int, str, str]:
    code = main(["optimize", *(str(a) for a in args), "--no-cache"])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_optimized_motion_is_reported_saved_and_plotted(capsys, plain, tmp_path):
    motion, picture = tmp_path / "motion.npz", tmp_path / "motion.png"
    code, out, err = answer(capsys, plain, "--out", motion, "--plot", picture)
    assert code == 0
    assert "20 steps, 1 s" in out
    assert "home" in out
    assert "effort" in out
    assert err.splitlines()[0].startswith("iteration     2  cost ")
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = load_trajectory(motion)
    assert found.header["worlds"] == 1
    assert found["qpos"].shape == (20, 1, 1)
    # the file has the motion that its controls make
    m = load_model(PLAIN)
    d = make_data(m).replace(qpos=m.key_qpos[0])
    _, records = rollout(m, d, ctrl=np.asarray(found["ctrl"][:, 0]), record=["qpos"])
    np.testing.assert_allclose(found["qpos"][:, 0], records["qpos"], rtol=1e-12)
    assert abs(found["qpos"][-1, 0, 0]) < 0.95
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["cart.xml", "push.toml", "motion.npz", "motion.png"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["multiple_shooting", "shoot", "predictive_sampling", "mppi", "cem"]
)
def test_every_method_lowers_the_cost_of_several_guesses(capsys, plain, method):
    changes = [f"method={method}", "guesses=3", "iterations=6", "multiple_shooting.nodes=5"]
    code, out, err = answer(capsys, plain, *(x for c in changes for x in ("--set", c)))
    assert code == 0
    assert "of the guesses up to" in err
    cost = next(line for line in out.splitlines() if line.startswith("cost"))
    before, after = (float(x) for x in cost.removeprefix("cost").split("->"))
    assert after < before


@pytest.mark.slow
def test_a_search_goes_on_from_a_motion_file(capsys, plain, tmp_path):
    motion = tmp_path / "motion.npz"
    answer(capsys, plain, "--out", motion)
    _, out, _ = answer(capsys, plain, "--set", "guess.motion=motion.npz")
    cost = next(line for line in out.splitlines() if line.startswith("cost"))
    before, after = (float(x) for x in cost.removeprefix("cost").split("->"))
    assert before == pytest.approx(after, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (('of = "ctrl"', 'of = "sensor:wher"'), 18, "did you mean 'where'"),
        (('of = "ctrl"', 'of = "qpos:y"'), 18, "no joint is named 'y'"),
        (('of = "ctrl"', 'of = "ctr"'), 18, "did you mean 'ctrl'"),
        (('of = "ctrl"', 'of = "body:cart.xpo"'), 18, "did you mean 'xpos'"),
        (('of = "ctrl"', 'of = "angle:x"'), 18, "joint 'x' is no hinge; use qpos:x"),
        (('of = "ctrl"', 'of = "python:motion.py:cost"'), 18, "there is no file"),
        (('of = "ctrl"', 'of = "ctrl"\ntarget = [1, 2]'), 19, "needs 1 numbers, got 2"),
        (('of = "ctrl"', 'of = "ctrl"\nminus = "qvel"'), 19, "has 4 numbers, 'ctrl' has 1"),
        (('of = "ctrl"', 'of = "ctrl"\nnorm = "quadatic"'), 19, "did you mean 'quadratic'"),
        (('of = "ctrl"', 'of = "ctrl"\nparameters = [1]'), 19, "norm 'quadratic' has 0"),
        (("weight = 0.1", "wieght = 0.1"), 19, "did you mean 'weight'"),
        (("weight = 0.1", "weight = -1"), 19, "expected at least 0"),
        (('"effort"', '"home"'), 17, "there is a cost 'home' already"),
        (('"cart.xml"', '"car.xml"'), 1, "there is no file"),
        (('"cart.xml"', '"task:cartpole"'), 1, "did you mean 'cartpole_"),
        (('"aside"', '"asid"'), 3, "did you mean 'aside'"),
        (("steps = 20", "steps = 20\nseconds = 1.0"), 3, "is given besides `steps`"),
        (("steps = 20", "start.qpos.x = [1, 2]\nsteps = 20"), 2, "needs 1 numbers, got 2"),
        (("steps = 20", "start.qvel.z = [1]\nsteps = 20"), 2, "no joint is named 'z'"),
        (("steps = 20", "limits.push = [1, -1]\nsteps = 20"), 2, "expected [least, most]"),
        (("steps = 20", "limits.pull = [-1, 1]\nsteps = 20"), 2, "no actuator is named 'pull'"),
        (("steps = 20", "guess.ctrl.pull = 1\nsteps = 20"), 2, "no actuator is named 'pull'"),
        (("steps = 20", 'guess.motion = "a.npz"\nsteps = 20'), 2, "a.npz"),
        (("steps = 20", 'record = ["qpo"]\nsteps = 20'), 2, "did you mean 'qpos'"),
        (('"ilqr"', '"ilq"'), 5, "did you mean 'ilqr'"),
        (("report = 2", "samples = 2"), 8, "samples: unknown setting"),
        (("report = 2", 'multiple_shooting.line_to = "up"'), 8, "no key is named 'up'"),
        (
            ('"ilqr"', '"multiple_shooting"'),
            6,
            "3 pieces do not make 20 steps; there can be 1, 2, 4, 5, 10, 20",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(capsys, config, change, line, says):
    assert change[0] in CONFIG
    config.write_text(CONFIG.replace(*change))
    code, _, err = answer(capsys, config)
    assert code == 2
    assert f"{config}:{line}: " in err
    assert says in err


def test_mistakes_outside_of_the_file(capsys, config, tmp_path):
    code, _, err = answer(capsys, tmp_path / "none.toml")
    assert (code, "none.toml: cannot be read" in err) == (2, True)
    code, _, err = answer(capsys, config, "--set", "iteratons=3")
    assert code == 2
    assert "--set iteratons=3: " in err
    assert "did you mean 'iterations'" in err
    code, _, err = answer(capsys, config, "--out", tmp_path / "motion.txt")
    assert (code, "does not end in .npz" in err) == (2, True)
    code, _, err = answer(capsys, config, "--plot", tmp_path / "none" / "a.png")
    assert (code, "there is no folder" in err) == (2, True)
    (tmp_path / "cart.xml").write_text(MODEL.replace("damping", "dumping"))
    code, _, err = answer(capsys, config)
    assert code == 2
    assert "cart.xml:5" in err
    config.write_text(CONFIG.split("[[cost]]")[0] + "cost = []\n")
    code, _, err = answer(capsys, config)
    assert code == 2


def test_a_package_that_is_missing_is_named(capsys, config, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = answer(capsys, config, "--plot", tmp_path / "a.png")
    assert code == 2
    assert "install the extra 'control': pip install '" in err


@pytest.mark.slow
def test_an_interrupted_search_leaves_nothing(plain, tmp_path):
    command = [sys.executable, "-c", "import sys; from jaxsim.cli import main; sys.exit(main())"]
    options = "--set method=cem --set iterations=100000000 --out m.npz --plot m.png"
    with subprocess.Popen(
        [*command, "optimize", plain.name, *options.split(), "--no-cache"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("iteration")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cart.xml", "push.toml"]
