"""Held-back recordings, cross-validation, and the page of a fit: on one fit of a pendulum."""

import re
import sys

import numpy as np
import pytest
from recordings import record, waves

import jaxsim
from jaxsim.identify import Sequence, cross_validate, fit, linear, log, report, validate

PENDULUM = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="arm"><joint name="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
FORMS = {"joint:hinge/damping": log(0.01, 10), "sensor:q/offset": linear()}
NOISE = 2e-3


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(PENDULUM)


@pytest.fixture(scope="module")
def sequences():
    import mujoco

    mj = mujoco.MjModel.from_xml_string(PENDULUM)
    mj.dof_damping[0] = 0.25
    rng = np.random.default_rng(0)
    found = []
    for k in range(3):
        ctrl, start = waves(rng, 100, 1, 2.0, 0.01), rng.normal(size=1)
        y = record(mj, ctrl, start)["sensordata"][:, 0] + 0.1 + NOISE * rng.normal(size=100)
        y[k::7] = np.nan
        given = {"qpos": start}
        found.append(Sequence({"q": y}, ctrl=ctrl, initial=given, sigma=NOISE, name=f"run <{k}>"))
    return found


@pytest.fixture(scope="module")
def found(m, sequences):
    return fit(m, FORMS, sequences[:2], starts=2)


@pytest.mark.slow
def test_what_was_held_back_is_predicted_to_its_noise(found, sequences):
    held = validate(found, sequences[2])
    assert 0.6 < held.chi2 < 1.5
    np.testing.assert_allclose(held.rms["q"], NOISE, rtol=0.25)
    # from a start that is a little wrong it is not, unless the start may be found
    wrong = {"qpos": np.asarray(sequences[2].initial["qpos"]) + 0.05}
    fields = {"ctrl": sequences[2].ctrl, "sigma": NOISE, "initial": wrong}
    assert validate(found, Sequence(sequences[2].measured, **fields)).chi2 > 10
    free = validate(found, Sequence(sequences[2].measured, **fields, estimate=("qpos",)))
    assert free.chi2 < 1.5
    np.testing.assert_allclose(free.x[-1], -0.05, atol=5 * NOISE)


@pytest.mark.slow
def test_each_recording_is_held_back_once(m, sequences, found):
    folds = cross_validate(m, FORMS, sequences)
    assert folds.values.shape == (3, 2)
    assert [len(f.problem.sequences) for f in folds.fits] == [2, 2, 2]
    np.testing.assert_allclose(folds.values, found.values[None] * np.ones((3, 1)), rtol=0.05)
    assert 0.7 < folds.chi2 < 1.4
    assert "3 folds" in repr(folds)


def test_folds_need_recordings(m, sequences):
    with pytest.raises(ValueError, match="folds: expected at least 2"):
        cross_validate(m, FORMS, sequences[:1])


def test_the_page_has_all_of_a_fit(found, sequences, tmp_path):
    held = validate(found, sequences[2])
    page = report(found, tmp_path / "fit.html", held=held, title="A & B")
    assert (tmp_path / "fit.html").read_text(encoding="utf-8") == page
    assert "<title>A &amp; B</title>" in page
    for name, value in zip(found.names, found.values, strict=True):
        assert f"<td>{name}" in page
        assert f"<td>{value:.5g}" in page
    # two recordings, the one held back, correlations, starts
    assert page.count("<svg") == 5
    assert "run &lt;0&gt;" in page
    assert "run <0>" not in page
    # nothing outside of the page
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert not [link for link in links if not link.startswith("#") and "data:" not in link]
    assert page.count("<table>") == 1
    few = report(found, signals=1)
    assert few.count("<svg") == 3
    assert "1 more are not shown" in few


def test_missing_package_of_the_report_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="install the extra 'identify': pip install '"):
        report(found)
