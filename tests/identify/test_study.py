"""Identification files: files of several rates, common sigmas, columns, states, priors, zeros."""

import jax
import numpy as np
import pytest

import jaxsim
from jaxsim import identify
from jaxsim.errors import ConfigError
from jaxsim.identify.study import read_study

XML = """<mujoco><option timestep="0.01"/><worldbody><body name="arm">
  <joint name="hinge" axis="0 1 0" damping="0.1"/><geom size=".05" pos="0 0 -.5"/>
  <body pos="0 0 -.5"><joint name="tip" axis="0 1 0" damping="0.1"/>
  <site name="imu"/><geom size=".05" pos="0 0 -.3"/></body>
  </body></worldbody><actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/><jointvel name="rate" joint="hinge"/>
  <gyro name="gyro" site="imu"/></sensor></mujoco>"""
TRUE = {"hinge": 0.31, "tip": 0.07}
STUDY = """\
model = "arm.xml"
sigmas = { "qpos:*" = 0.001, angle = 0.002, gyro = 0.01 }

[parameters."joint:*/damping"]
low = 0.01
high = 3

[[data]]
measured = ["fast.csv", "slow.csv"]
columns = { "t [s]" = "time", theta = "angle", command = "ctrl:motor", "tip [rad]" = "qpos:tip" }
initial = "samples"
estimate = ["qvel"]

[fit]
starts = 1
"""


def recorded(steps=150):
    """Controls, and what an arm of other dampings does from another state."""
    m = jaxsim.load_model(XML)
    true = m.replace(dof_damping=jax.numpy.asarray(list(TRUE.values()), m.qpos0.dtype))
    ctrl = np.sin(0.02 * np.arange(steps) ** 1.3)[:, None] * 2
    d = jaxsim.make_data(m).replace(
        qpos=jax.numpy.asarray([0.4, -0.3], m.qpos0.dtype),
        qvel=jax.numpy.asarray([1.0, 0.5], m.qpos0.dtype),
    )
    start = np.asarray(d.qpos)[None]
    _, records = jaxsim.rollout(
        true, d, ctrl=jax.numpy.asarray(ctrl, m.qpos0.dtype), record=["sensordata", "qpos"]
    )
    qpos = np.concatenate([start, np.asarray(records["qpos"])[:-1]])
    return ctrl[:, 0], np.asarray(records["sensordata"]), qpos


@pytest.fixture(scope="module")
def motion():
    return recorded()


@pytest.fixture
def folder(tmp_path, motion):
    """A log of a controller at 100 Hz, and one of a camera at 20 Hz, with names of their own."""
    ctrl, sensors, qpos = motion
    time = 0.01 * np.arange(len(ctrl))
    rows = np.column_stack([ctrl, sensors[:, 0], sensors[:, 2:5], time])
    head = "command,theta,gyro[0],gyro[1],gyro[2],t [s]"
    np.savetxt(tmp_path / "fast.csv", rows, "%.9g", ",", header=head, comments="")
    rows = np.column_stack([time, qpos[:, 1]])[::5]
    np.savetxt(tmp_path / "slow.csv", rows, "%.9g", ",", header="time,tip [rad]", comments="")
    (tmp_path / "arm.xml").write_text(XML)
    (tmp_path / "arm.toml").write_text(STUDY)
    return tmp_path


CUBE = """<mujoco><option timestep="0.01"/><worldbody><body><freejoint name="root"/>
  <geom name="cube" size=".1"/></body></worldbody></mujoco>"""
CUBE_STUDY = """\
model = "cube.xml"
[parameters."geom:cube/size[0]"]
low = 0.01
high = 1
[[data]]
measured = "tosses.npz"
initial = "samples"
sigma = 0.001
"""


@pytest.fixture
def tosses(tmp_path):
    """Three recordings of a body that rotates about its y axis at 2 rad/s and moves at 1 m/s."""
    names = [f"qpos:root[{k}]" for k in range(7)]
    recordings = []
    for n in (5, 6, 7):
        t = 0.02 * np.arange(n)
        pose = [t, 0 * t, n + 0 * t, np.cos(t), 0 * t, np.sin(t), 0 * t]
        recordings.append(identify.TimeSeries(t, np.stack(pose, 1), names))
    identify.write_recordings(tmp_path / "tosses.npz", recordings)
    (tmp_path / "cube.xml").write_text(CUBE)
    (tmp_path / "cube.toml").write_text(CUBE_STUDY)
    return tmp_path / "cube.toml"


def test_recordings_of_a_file_are_motions_of_their_own(tosses):
    reading = read_study(tosses)
    assert [s.name for s in reading.data] == ["tosses[0]", "tosses[1]", "tosses[2]"]
    assert [float(s.initial.qpos[2]) for s in reading.data] == [5, 6, 7]
    for s in reading.data:  # the velocity of a free joint is the difference of its first samples
        np.testing.assert_allclose(s.initial.qvel, [1, 0, 0, 0, 2, 0], atol=1e-5)
    for chosen, lengths in (("1", [6]), ("1:", [6, 7]), (":2", [5, 6])):
        data = read_study(tosses, [f"data.0.recordings='{chosen}'"]).data
        assert [len(s.measured.times) for s in data] == lengths


@pytest.mark.parametrize("chosen", ["3", "2:2", "0:4", "-1", "a", "0:1:2", ""])
def test_recordings_that_are_not_in_the_file(tosses, chosen):
    with pytest.raises(ConfigError) as caught:
        read_study(tosses, [f"data.0.recordings='{chosen}'"])
    assert "data.0.recordings: expected an index below 3, or a range" in str(caught.value)


def test_several_recordings_are_not_joined_with_another_file(tosses):
    with pytest.raises(ConfigError) as caught:
        read_study(tosses, ["data.0.measured=['tosses.npz', 'tosses.npz']"])
    assert "has several recordings; give it an entry of its own" in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        read_study(tosses, ["data.0.controls='tosses.npz'"])
    assert "data.0.controls: expected one recording, the file has 3" in str(caught.value)


@pytest.mark.slow
def test_what_the_recordings_were_made_with_is_found(folder):
    reading = read_study(folder / "arm.toml")
    fit = identify.fit(reading.m, reading.parameters, reading.data, starts=1, iterations=20)
    found = dict(zip(fit.names, fit.values, strict=True))
    for joint, value in TRUE.items():
        assert found[f"joint:{joint}/damping"] == pytest.approx(value, rel=2e-3)


def test_files_of_several_rates_are_one_recording(folder):
    (log,) = read_study(folder / "arm.toml").data
    fast, slow = log.measured
    assert fast.names == ("angle", "gyro[0]", "gyro[1]", "gyro[2]")
    assert slow.names == ("qpos:tip",)
    assert len(fast.times) == 5 * len(slow.times)
    assert log.ctrl.names == ("motor",)
    assert log.estimate == ("qvel",)


def test_sigmas_are_of_the_recording_then_of_all_and_names_before_wildcards(folder):
    (log,) = read_study(folder / "arm.toml").data
    gyro = {f"gyro[{k}]": 0.01 for k in range(3)}
    assert log.sigma == {"angle": 0.002, "qpos:tip": 0.001, **gyro}
    changes = ['data.0.sigmas={"qpos:*"=0.1, "gyro[1]"=0.5, "g*"=0.2}', "sigma=7"]
    (log,) = read_study(folder / "arm.toml", changes).data
    gyro = {"gyro[0]": 0.2, "gyro[1]": 0.5, "gyro[2]": 0.2}
    assert log.sigma == {"angle": 0.002, "qpos:tip": 0.1, **gyro}
    (log,) = read_study(folder / "arm.toml", ["sigmas={}"]).data
    assert log.sigma is None
    (log,) = read_study(folder / "arm.toml", ["sigmas={}", "data.0.sigma=3"]).data
    assert set(log.sigma.values()) == {3}


def test_a_state_begins_at_the_first_samples(folder, motion):
    """Positions are those of the samples; a velocity that was not measured is their slope."""
    _, _, qpos = motion
    (log,) = read_study(folder / "arm.toml").data
    np.testing.assert_allclose(log.initial.qpos, [0.4, -0.3], atol=1e-6)
    slopes = [(qpos[1, 0] - qpos[0, 0]) / 0.01, (qpos[5, 1] - qpos[0, 1]) / 0.05]
    np.testing.assert_allclose(log.initial.qvel, slopes, rtol=1e-4)
    (log,) = read_study(folder / "arm.toml", ["data.0.qvel=[1, 2]"]).data
    np.testing.assert_allclose(log.initial.qvel, [1, 2])
    (log,) = read_study(folder / "arm.toml", ["data.0.start=0.05"]).data
    np.testing.assert_allclose(log.initial.qpos, qpos[5], atol=1e-6)
    text = (folder / "fast.csv").read_text().replace("gyro[0]", "rate", 1).splitlines()
    text[1] = ",".join([*text[1].split(",")[:2], "0.75", *text[1].split(",")[3:]])
    (folder / "fast.csv").write_text("\n".join(text))
    (log,) = read_study(folder / "arm.toml", ["data.0.signals=['angle','rate']", "sigma=1"]).data
    assert log.initial.qvel[0] == 0.75


def test_wildcards_choose_signals(folder):
    (log,) = read_study(folder / "arm.toml", ["data.0.signals=['gyro','qpos:*']"]).data
    assert [s.names for s in log.measured] == [("gyro[0]", "gyro[1]", "gyro[2]"), ("qpos:tip",)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data.0.columns.nothing='rate'", "no file has a column 'nothing'"),
        ("data.0.signals=['angel']", "no signal 'angel'; did you mean 'angle'?"),
        ("data.0.sigmas={angel=1}", "data.0.sigmas.angel: nothing is measured of 'angel'"),
        ("sigmas.angel=1", "sigmas.angel: nothing is measured of 'angel'"),
        ("data.0.measured=[]", "expected at least one file"),
        ("data.0.measured=3", "data.0.measured: expected a text or a list, got 3"),
        ("data.0.estimate=['speed']", "estimate: expected some of"),
        ("data.0.estimate=1", "data.0.estimate: expected a list or a table, got 1"),
        ("data.0.signals=['gyro']", "no signal is a position or velocity of a joint"),
    ],
)
def test_faults_have_their_place(folder, change, message):
    with pytest.raises(ConfigError) as caught:
        read_study(folder / "arm.toml", [change])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"form": "linear", "low": 0, "high": 0.3}, (0.0, 0.3, None, None)),
        ({"form": "linear", "low": -1, "high": 0, "nominal": -0.5}, (-1.0, 0.0, -0.5, None)),
        ({"form": "linear", "nominal": 0}, (None, None, 0.0, None)),
        ({"form": "linear", "mean": 0, "sd": 2}, (None, None, None, 0.0)),
        ({"form": "linear", "mean": 1, "sd": 2, "nominal": 0.0}, (None, None, 0.0, 1.0)),
    ],
)
def test_a_zero_is_a_number(folder, given, expected):
    """0 equals False, the value of what was not given."""
    table = ", ".join(f"{k} = {v!r}".replace("'", '"') for k, v in given.items())
    changes = ['parameters={"joint:tip/damping"={' + table + "}}"]
    form = read_study(folder / "arm.toml", changes).parameters["joint:tip/damping"].form
    assert (form.low, form.high, form.nominal, form.mean) == expected


def test_a_mean_without_a_deviation_is_no_prior(folder):
    with pytest.raises(ConfigError, match="mean: a prior has a deviation too, give sd"):
        read_study(folder / "arm.toml", ['parameters."joint:*/damping".mean=0.1'])
