"""`jaxsim mpc`: what it prints and writes, and wrong options."""

import json
import sys

import numpy as np
import pytest
from control.test_closed_loop import files

from jaxsim.batch.trajectory import load_trajectory
from jaxsim.cli import main
from jaxsim.cli.mpc import describe_run


@pytest.fixture
def config(tmp_path):
    return files(tmp_path)


def answer(capsys, *args) -> tuple[int, str, str]:
    code = main(["mpc", *(str(a) for a in args), "--no-cache"])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
@pytest.mark.parametrize("mode", [(), ("--realtime",)])
def test_a_run_is_reported_and_saved(capsys, config, tmp_path, mode):
    folder = tmp_path / "run"
    code, out, _ = answer(capsys, config, "--out", folder, "--tier", "fast", *mode)
    assert code == 0
    assert "cart.xml: 100 steps of 0.02 s, 1 parameters scaled, 1 disturbances" in out
    assert "mppi, 20 steps of 0.04 s, 25 Hz, a plan every 2 steps of the plant" in out
    assert "home" in out
    assert "slow" in out
    motion = load_trajectory(folder / "motion.npz")
    assert motion["qpos"].shape == (100, 1, 1)
    assert motion.header["timestep"] == pytest.approx(0.02)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["realtime"] == bool(mode)
    assert summary["seconds"] == pytest.approx(2)
    assert abs(motion["qpos"][-1, 0, 0] - 0.25) < 0.2
    assert summary["cost"]["end"] < 0.1 * 0.75**2 / 2
    assert sorted(p.name for p in folder.iterdir()) == ["motion.npz", "summary.json"]


def test_figures_of_a_run_are_lines():
    term = {"mean": 0.5, "end": 0.25}
    plans = {"number": 4, "median_ms": 2.0, "p95_ms": 3.0, "late": 1, "failed": 2}
    found = describe_run(
        {"seconds": 2.0, "wall_seconds": 4.0, "possible_hz": 500.0, "plans": plans, "cost": term}
        | {"terms": {"home": term}}
    ).splitlines()
    assert found[0].split(None, 1) == ["run", "2 s in 4 s, 0.5 x real time"]
    assert found[1].endswith("4: 2 ms (median), 3 ms (95 %), 500 Hz possible")
    assert found[2].split() == ["late", "1"]
    assert "2 plans: each motion tried diverged" in found[3]
    assert found[5].split() == ["home", "0.5", "last", "fifth", "0.25"]


def test_wrong_options(capsys, config, tmp_path, monkeypatch):
    code, _, err = answer(capsys, config, "--view", "--out", tmp_path / "run")
    assert (code, "--out: not with --view" in err) == (2, True)
    (tmp_path / "file").write_text("")
    code, _, err = answer(capsys, config, "--out", tmp_path / "file")
    assert (code, "--out: " in err) == (2, True)
    code, _, err = answer(capsys, config, "--set", "horizn=3")
    assert (code, "did you mean 'horizon'" in err) == (2, True)
    monkeypatch.setitem(sys.modules, "viser", None)
    code, _, err = answer(capsys, config, "--view")
    assert (code, "install the extra 'view'" in err) == (2, True)


@pytest.mark.slow
def test_page_of_a_loop_changes_weights_and_goals(config):
    pytest.importorskip("viser")
    from jaxsim.control.closed_loop.live import LiveLoop, with_view_fields
    from jaxsim.control.closed_loop.program import LoopProgram
    from jaxsim.control.closed_loop.read import read_closed_loop
    from jaxsim.view.browser.holding import no_hold

    loop = with_view_fields(read_closed_loop(config))
    program = LoopProgram(loop, "fast", no_hold(loop.plant.m))
    with LiveLoop(program, port=0) as page:
        page.run(40)
        assert abs(float(page.loop.d.qpos[0]) - 0.25) < 0.2
        page._change("plan_problem", 0, goal=[-0.5])
        page.run(40)
        assert abs(float(page.loop.d.qpos[0]) + 0.5) < 0.2
        page.hold(1, np.asarray(page.loop.d.xpos[1]), 1)
        page.pull(np.asarray(page.loop.d.xpos[1]) + np.array([3.0, 0, 0]))
        page.run(10)
        assert float(page.loop.d.xfrc_applied[1, 0]) > 0
        page.let_go()
        page.ask(page._reset)
        page.paused = True
        page.run(2)
        assert float(page.loop.d.time) == 0
