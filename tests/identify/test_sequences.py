"""Recordings: files and their faults, gaps, samples between the steps, controls that are held."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.identify import (
    Sequence,
    TimeSeries,
    read_recordings,
    read_series,
    write_recordings,
)
from jaxsim.identify.sequences import initial_state, sample_recording
from jaxsim.identify.signals import signal

XML = """<mujoco><option timestep="0.01"/><worldbody>
  <body><joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0 0 -1"/><site name="s"/></body>
  <body><freejoint name="root"/><geom size="0.1"/></body>
  </worldbody><actuator><motor name="a" joint="hinge"/><motor name="b" joint="hinge"/></actuator>
  <sensor><gyro name="gyro" site="s"/><jointpos name="q" joint="hinge"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_a_file_comes_back(tmp_path, suffix):
    values = np.random.default_rng(0).normal(size=(5, 2))
    values[2, 1] = np.nan
    series = TimeSeries(np.arange(5) / 3, values, ("q", "gyro[1]"))
    series.write(tmp_path / f"a.{suffix}")
    back = read_series(tmp_path / f"a.{suffix}")
    assert back.names == series.names
    np.testing.assert_array_equal(back.times, series.times)
    np.testing.assert_array_equal(back.values, series.values)


def test_several_recordings_are_one_file(tmp_path):
    path, rng = tmp_path / "tosses.npz", np.random.default_rng(0)
    written = [TimeSeries(np.arange(n) / 3, rng.normal(size=(n, 2)), ("q", "r")) for n in (4, 1, 7)]
    write_recordings(path, written)
    back = read_recordings(path, {"r": "gyro[1]"})
    assert [x.names for x in back] == [("q", "gyro[1]")] * 3
    for x, y in zip(written, back, strict=True):
        np.testing.assert_array_equal(x.times, y.times)
        np.testing.assert_array_equal(x.values, y.values)
    with pytest.raises(ValueError, match=r"tosses.npz: has 3 recordings; use read_recordings"):
        read_series(path)
    written[0].write(tmp_path / "a.csv")
    (alone,) = read_recordings(tmp_path / "a.csv")
    np.testing.assert_array_equal(alone.values, written[0].values)
    with pytest.raises(ValueError, match="expected one or more series with the same names"):
        write_recordings(path, [])
    with pytest.raises(ValueError, match=r"several recordings are one .npz file"):
        write_recordings(tmp_path / "a.csv", written)


@pytest.mark.parametrize("starts", [[1, 2], [0, 2, 2], [0, 5], [0.0, 2.0], [[0, 2]], []])
def test_starts_of_recordings_cover_all_rows(tmp_path, starts):
    times, values = np.array([0.0, 1, 0, 1, 2]), np.zeros((5, 1))
    np.savez(tmp_path / "a.npz", times=times, values=values, names=["q"], starts=np.array(starts))
    with pytest.raises(ValueError, match=r"a.npz: starts: expected the first row of each"):
        read_recordings(tmp_path / "a.npz")


def test_a_fault_of_a_recording_has_its_number(tmp_path):
    times, values = np.array([0.0, 1, 0, 0, 2]), np.zeros((5, 1))
    np.savez(tmp_path / "a.npz", times=times, values=values, names=["q"], starts=[0, 2])
    with pytest.raises(ValueError, match=r"a.npz: recording 1: .* they do not at row 1"):
        read_recordings(tmp_path / "a.npz")


FAULTS = {
    "0,1\n": r"a.csv:1: expected a line of names, 'time' first, got '0'",
    "time,q\n0,1\n1\n": r"a.csv:3: expected 2 numbers, as there are names, got 1",
    "time,q\n0,1\n1,x\n": r"a.csv:3: q: expected a number, got 'x'",
    "# c\ntime,q\n\n0,1\n0,2\n": r"a.csv:5: time: expected more than in the line before, got '0'",
    "time,q\n": r"a.csv: expected a line of names and lines of numbers",
    "time,q,q\n0,1,1\n": r"a.csv: TimeSeries: names: 'q' occurs twice",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_has_its_line(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=FAULTS[text]):
        read_series(tmp_path / "a.csv")


def test_other_faults_of_files_and_series(tmp_path):
    np.savez(tmp_path / "a.npz", times=np.zeros(1))
    with pytest.raises(ValueError, match=r"a.npz: expected the arrays .* 'values' is missing"):
        read_series(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"expected a .csv or .npz file"):
        read_series(tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"expected shape \(3, 1\)"):
        TimeSeries(np.arange(3), np.zeros((3, 2)), ["q"])
    with pytest.raises(ValueError, match="they do not at row 2"):
        TimeSeries([0, 1, 1], np.zeros(3), ["q"])


def test_signals_have_their_places(m):
    assert signal(m, "q")[1:] == ("sensordata", 3, 1)
    assert signal(m, "gyro[2]")[1:] == ("sensordata", 2, 1)
    assert signal(m, "qpos:root")[1:] == ("qpos", 1, 7)
    assert signal(m, "qvel:root[5]")[1:] == ("qvel", 6, 1)
    for name, message in {
        "gyr": "did you mean 'gyro'",
        "gyro[3]": "index below 3",
        "qpos:hing": "did you mean 'hinge'",
        "qacc:hinge": "expected a sensor",
    }.items():
        with pytest.raises(ValueError, match=message):
            signal(m, name)


def test_different_rates_and_gaps(m):
    """Series of 10 ms with a gap, and of 25 ms from another time: each sample where it is."""
    fast = TimeSeries(1 + 0.01 * np.arange(4), [0.0, np.nan, 2.0, 3.0], ["q"])
    slow = TimeSeries(1.004 + 0.025 * np.arange(2), np.ones((2, 1)), ["gyro[1]"])
    s = sample_recording(m, Sequence([fast, slow], sigma={"q": 0.1, "gyro": 0.5}))
    np.testing.assert_array_equal(s.step, [0, 2, 3, 0, 2])
    np.testing.assert_allclose(s.part, [0, 0, 0, 0.4, 0.9], **ROUNDING)
    np.testing.assert_array_equal(s.value, [0, 2, 3, 1, 1])
    np.testing.assert_allclose(s.weight, [10, 10, 10, 2, 2], **ROUNDING)
    np.testing.assert_array_equal(s.signal, [0, 0, 0, 1, 1])
    assert s.steps == 4
    assert s.ctrl.shape == (4, 2)


def test_controls_are_held_or_joined(m):
    ctrl = TimeSeries([0.0, 0.02, 0.04], [1.0, 3.0, 5.0], ["b"])
    measured = {"q": np.zeros(6)}
    zero = sample_recording(m, Sequence(measured, ctrl=ctrl), history=2).ctrl
    np.testing.assert_array_equal(zero[:, 0], np.zeros(8))
    np.testing.assert_array_equal(zero[:, 1], [1, 1, 1, 1, 3, 3, 5, 5])
    line = sample_recording(m, Sequence(measured, ctrl=ctrl, hold="linear")).ctrl
    np.testing.assert_allclose(line[:, 1], [1, 2, 3, 4, 5, 5], rtol=1e-5)
    rows = sample_recording(
        m, Sequence(measured, ctrl=np.arange(8.0).reshape(4, 2)), history=1
    ).ctrl
    np.testing.assert_array_equal(rows[:, 0], [0, 0, 2, 4, 6, 6, 6])


def test_the_start_is_a_data_or_numbers(m):
    d = jaxsim.make_data(m, keep="all").replace(qvel=jnp.ones(m.nv))
    np.testing.assert_array_equal(initial_state(m, Sequence({}, initial=d)).qvel, np.ones(m.nv))
    given = initial_state(m, Sequence({}, initial={"qvel": [2.0] * 7}))
    np.testing.assert_array_equal(given.qvel, 2 * np.ones(m.nv))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sequence({"q": [0.0]}, estimate=("pos",)), "estimate: expected some of"),
        (lambda: Sequence({"q": [0.0]}, hold="cubic"), "hold: expected one of"),
        (lambda: Sequence({"gyro": np.zeros((2, 2))}), r"gyro: expected shape \(steps, 3\)"),
        (lambda: Sequence({"q": [np.nan]}), "no sample after its start"),
        (lambda: Sequence({"q": [0.0]}, sigma={"p": 1.0}), "nothing is measured of 'p'"),
        (lambda: Sequence({"q": [0.0]}, sigma=0.0), "expected a number above 0"),
        (lambda: Sequence({"q": [0.0]}, ctrl=np.zeros((3, 1))), r"expected shape \(steps, 2\)"),
        (lambda: Sequence({"q": [0.0]}, ctrl=np.full((3, 2), np.nan)), "fill the gap"),
        (lambda: Sequence(TimeSeries([0], [1], ["gyro"])), r"name each: 'gyro\[0\]'"),
        (lambda: Sequence([TimeSeries([0], [1], ["q"])] * 2), "'q' occurs twice"),
    ],
)
def test_what_cannot_be_meant(m, make, message):
    with pytest.raises(ValueError, match=message):
        sample_recording(m, make())
    with pytest.raises(ValueError, match="initial: expected a Data or some of"):
        initial_state(m, Sequence({}, initial={"speed": 1}))


@pytest.mark.parametrize("digits", [3, 5])
def test_a_long_log_stays_on_the_steps_in_single_precision(digits):
    """A log in decimals; 1 / 300 s is no decimal, and its times miss the steps."""
    step = 0.005 if digits == 3 else 1 / 300
    with jax.enable_x64(False):
        m = jaxsim.load_model(XML.replace('timestep="0.01"', f'timestep="{step}"'))
        times = np.round(step * np.arange(3000), digits)
        rows = np.arange(3000.0)
        log = Sequence(TimeSeries(times, rows, ["q"]), ctrl=TimeSeries(times, rows, ["b"]))
        found = sample_recording(m, log)
    np.testing.assert_array_equal(found.ctrl[:, 1], np.clip(np.arange(found.steps), 0, 2999))
    if digits == 3:
        np.testing.assert_array_equal(found.step, np.arange(3000))
        np.testing.assert_array_equal(found.part, 0)
    np.testing.assert_allclose(found.step + found.part, rows, atol=2e-3)


def test_samples_of_a_step_that_is_no_decimal_stay_on_it_in_single_precision():
    """148 samples a second of four steps each: an error of 6e-9 adds up over 2000 steps."""
    with jax.enable_x64(False):
        m = jaxsim.load_model(XML.replace('timestep="0.01"', f'timestep="{1 / 592}"'))
        series = TimeSeries(np.arange(500) / 148, np.arange(500.0), ["q"])
        found = sample_recording(m, Sequence(series, ctrl=np.zeros((2000, m.nu))))
    np.testing.assert_array_equal(found.step, 4 * np.arange(500))
    np.testing.assert_array_equal(found.part, 0)
