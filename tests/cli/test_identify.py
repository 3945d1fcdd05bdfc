"""`jaxsim identify`: the arm of configs/identify, and faults with their lines."""

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim.cli import main
from jaxsim.errors import ConfigError
from jaxsim.identify.study import read_study

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "identify"
TRUE = {  # the numbers that MuJoCo made the log with
    "body:upper/mass": 1.3,
    "body:lower/mass": 0.55,
    "joint:shoulder/damping": 0.25,
    "joint:elbow/damping": 0.12,
    "joint:shoulder/frictionloss": 0.20,
    "joint:elbow/frictionloss": 0.08,
}


@pytest.fixture
def arm(tmp_path):
    """The folder, copied: the settings may be changed."""
    return Path(shutil.copytree(FOLDER, tmp_path / "arm"))


@pytest.mark.slow
def test_the_arm_is_found_again(tmp_path, capsys):
    out = tmp_path / "found"
    config = str(FOLDER / "arm.toml")
    with jax.enable_x64(False):
        assert main(["identify", config, "--out", str(out), "--set", "fit.starts=2"]) == 0
    told = capsys.readouterr().out
    assert "1 recordings, 1,284 numbers; 1 held back" in told
    found = json.loads((out / "fit.json").read_text())
    assert set(found["parameters"]) == set(TRUE)
    for name, true in TRUE.items():
        assert abs(found["parameters"][name]["value"] - true) < 3 * found["parameters"][name]["sd"]
    assert 0.8 < found["held_chi2"] < 1.2
    assert "<svg" in (out / "report.html").read_text()
    with jax.enable_x64(False):
        m = jaxsim.load_model(out / "model.jxm")
    np.testing.assert_allclose(
        m.body_mass[1:, 0] if m.body_mass.ndim > 1 else m.body_mass[1:], [1.3, 0.55], rtol=2e-3
    )


def test_a_log_is_taken_apart(arm):
    reading = read_study(arm / "arm.toml", ["data.0.signals=['q2','v1']"])
    log, held = reading.data[0], reading.held[0]
    assert log.measured.names == ("q2", "v1")
    assert log.ctrl.names == ("shoulder", "elbow")
    assert log.measured.times[-1] == 1.6
    assert held.measured.times[-1] == 2.0
    assert held.measured.names == ("q1", "q2", "v1", "v2")
    table = np.genfromtxt(arm / "arm.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(log.measured.values[:, 0], table["q2"][:321])
    np.testing.assert_array_equal(log.ctrl.values[:, 1], table["ctrlelbow"])
    assert dict(log.sigma)["v1"] == 0.01
    assert reading.parameters.size == 6


def test_recordings_of_the_command_line(arm):
    shutil.copy(arm / "arm.csv", arm / "b.csv")
    files = [str(arm / "b.csv"), str(arm / "arm.csv")]
    reading = read_study(arm / "arm.toml", [], files)
    assert [s.name for s in reading.data] == ["b", "arm"]
    assert len(reading.held) == 1


def test_the_state_at_the_start(arm):
    given = ["data.0.qpos=[0.1,0.2]", "data.0.estimate={qvel=0.1}", "timestep=0.001"]
    reading = read_study(arm / "arm.toml", given)
    np.testing.assert_array_equal(reading.data[0].initial.qpos, [0.1, 0.2])
    assert reading.data[0].estimate == {"qvel": 0.1}
    assert float(reading.m.opt.timestep) == 0.001


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ("model=none.xml", "--set", "model: there is no file"),
        ("data.0.measured=none.csv", "--set", "none.csv' cannot be read: No such file"),
        ("data.0.signals=['q3']", "--set", "no signal 'q3'; there are: q1, q2, v1, v2"),
        ("data.0.qpos=[1]", "arm.toml:20", "qpos: expected 2 numbers, got 1"),
        ("data.0.key=home", "arm.toml:20", "home"),
        ("data.0.sigmas={q1=0.001}", "arm.toml:20", "sigma: give the standard deviation of 'q2'"),
        ("data=[]", "--set", "expected at least one recording"),
        ("fit.starts=0", "--set", "fit.starts: expected at least 1, got 0"),
    ],
)
def test_faults_have_their_place(arm, change, place, message):
    with pytest.raises(ConfigError) as caught:
        read_study(arm / "arm.toml", [change])
    text = str(caught.value)
    assert any(part in text for part in place.split("|")), text
    assert message in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"joint:*/damping"', '"joint:*/dampin"', "arm.toml:10: parameters.joint:*/dampin: "),
        ("low = 0.01\n", "low = 5\n", "arm.toml:10: parameters.joint:*/damping: log: expected low"),
        ('form = "scale"', 'form = "pseudo_inertia"', "of form 'pseudo_inertia' has no 'low'"),
        ('form = "log"', 'form = "lgo"', "arm.toml:11: parameters.joint:*/damping.form: no 'lgo'"),
    ],
)
def test_faults_of_parameters(arm, old, new, message):
    text = (arm / "arm.toml").read_text()
    assert old in text
    (arm / "arm.toml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        read_study(arm / "arm.toml")
    assert message in str(caught.value)


def test_a_gap_is_a_gap_and_a_broken_log_is_told(arm, capsys):
    lines = (arm / "arm.csv").read_text().splitlines()
    lines[5] = "0.020,,0.0100,nan,0.1,1,1"
    (arm / "arm.csv").write_text("\n".join(lines))
    values = read_study(arm / "arm.toml").data[0].measured.values
    assert np.isnan(values[4]).tolist() == [True, False, True, False]
    lines[7] = "0.030,1,2"
    (arm / "arm.csv").write_text("\n".join(lines))
    assert main(["identify", str(arm / "arm.toml")]) == 2
    assert "arm.csv:8: expected 7 numbers, as there are names, got 3" in capsys.readouterr().err
