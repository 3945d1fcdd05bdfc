"""Results are not lost to a drawing of them: a failure is one line, and what was found is kept."""

from types import SimpleNamespace

import numpy as np
import pytest
from cli.test_optimize import CONFIG, PLAIN

import jaxsim
from jaxsim.batch.trajectory import TrajectoryWriter
from jaxsim.cli import main
from jaxsim.control.optimization.batched_search import Batch, Found, JudgedMotion

FAULTS = {
    "by the library": RuntimeError("no font\nfor this"),
    "by the disk": OSError(28, "No space left on device"),
    "by memory": MemoryError("too large"),
}


@pytest.fixture(params=FAULTS)
def fail(request):
    """A drawing that fails."""

    def draw(*args, **options):
        raise FAULTS[request.param]

    return draw


def told(capsys, args):
    """The one line that a command ends with."""
    code = main([*map(str, args), "--no-cache"] if args[0] != "plot" else [*map(str, args)])
    assert code == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "cannot be" in x]
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("out", [True, False])
def test_a_motion_that_was_found_is_kept(capsys, tmp_path, monkeypatch, fail, out):
    (tmp_path / "cart.xml").write_text(PLAIN)
    (tmp_path / "push.toml").write_text(CONFIG)
    ctrl = np.linspace(0, 1, 20)[:, None]

    def find(whole, tell, tier):
        names = {n: np.zeros((20, *getattr(whole.d, n).shape)) for n in whole.form.record}
        motion = JudgedMotion(1.0, {}, names | {"ctrl": ctrl})
        return Found(ctrl, motion, motion, [Batch(0, 1, np.ones(1), 0.1, 0.0)], 0.1)

    monkeypatch.setattr("jaxsim.cli.optimize.search", find)
    monkeypatch.setattr("jaxsim.cli.optimize.draw_search", fail)
    args = ["optimize", tmp_path / "push.toml", "--plot", tmp_path / "p.png"]
    line = told(capsys, args + (["--out", tmp_path / "m.npz"] if out else []))
    (kept,) = tmp_path.glob("*.npz")
    assert str(kept) in line
    assert (kept.name == "m.npz") == out
    np.testing.assert_array_equal(jaxsim.load_trajectory(kept)["ctrl"][:, 0], ctrl)
    assert not (tmp_path / "p.png").exists()


def test_a_fit_is_kept(capsys, tmp_path, monkeypatch, fail):
    m = jaxsim.load_model(PLAIN)
    one = np.ones(1)
    fit = SimpleNamespace(
        names=("a",), values=one, sd=one, intervals=lambda level: np.ones((1, 2)), cost=1.0,
        costs=one, warnings=(), model=m, times={},
    )  # fmt: skip
    how = SimpleNamespace(
        starts=1,
        seed=0,
        iterations=1,
        segments=None,
        tolerance=1e-4,
        tied=True,
        robust=None,
        batch=None,
        level=0.95,
    )
    study = SimpleNamespace(model="cart.xml", fit=how)
    unknowns = SimpleNamespace(size=1)
    reading = SimpleNamespace(study=study, m=m, parameters=unknowns, data=(), held=())
    monkeypatch.setattr("jaxsim.cli.identify.read_study", lambda *args: reading)
    monkeypatch.setattr("jaxsim.cli.identify.fit", lambda *args, **options: fit)
    monkeypatch.setattr("jaxsim.cli.identify.report", fail)
    out = tmp_path / "found"
    assert str(out) in told(capsys, ["identify", "arm.toml", "--out", out])
    assert {p.name for p in out.iterdir()} == {"fit.json", "model.jxm"}


@pytest.mark.parametrize("command", ["plot", "render"])
def test_pictures_of_a_motion_fail_in_one_line(capsys, tmp_path, monkeypatch, fail, command):
    (tmp_path / "cart.xml").write_text(PLAIN)
    header = {"model": "cart.xml", "timestep": 0.04, "every": 1, "worlds": 1}
    with TrajectoryWriter(tmp_path / "m.npz", header) as writer:
        writer.append({"qpos": np.zeros((3, 1, 1))})
    name = {"plot": "plot.draw_motion", "render": "render._write_images"}[command]
    monkeypatch.setattr(f"jaxsim.cli.display.{name}", fail)
    args = [command, tmp_path / "m.npz", "--out", tmp_path / "p.png"]
    code = main([str(a) for a in args])
    err = capsys.readouterr().err.strip()
    assert code == 2
    assert len(err.splitlines()) == 1
    assert {p.name for p in tmp_path.iterdir()} == {"cart.xml", "m.npz"}
