"""Curves of a motion: names of numbers, what is chosen, and what is drawn."""

import numpy as np
import pytest

import jaxsim
from jaxsim.batch.trajectory import Trajectory
from jaxsim.view.columns import column_names, column_units
from jaxsim.view.curves import _record_times, draw_motion

MODEL = """
<mujoco>
  <worldbody>
    <body name="arm"><joint name="elbow"/><geom size="0.1"/>
      <body><joint type="ball" name="wrist"/><geom size="0.1"/></body></body>
    <body><freejoint name="root"/><geom size="0.1"/></body>
  </worldbody>
  <actuator><motor name="push" joint="elbow"/><motor joint="elbow"/></actuator>
  <sensor>
    <jointpos name="angle" joint="elbow"/>
    <framepos name="place" objtype="body" objname="arm"/>
  </sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


@pytest.fixture
def motion(m):
    rows = np.arange(10.0)[:, None, None] + np.arange(3.0)[:, None]
    header = {"model": "arm.xml", "timestep": 0.1, "every": 2}
    fields = {"qpos": m.nq, "ctrl": m.nu, "sensordata": m.nsensordata}
    return Trajectory(header, {n: rows + np.zeros(k) for n, k in fields.items()})


def test_numbers_have_the_names_of_their_objects(m):
    qpos = ["elbow", *(f"wrist q{k}" for k in "wxyz"), *(f"root {k}" for k in "xyz")]
    assert column_names(m, "qpos", m.nq)[:8] == qpos
    assert column_names(m, "qvel", m.nv)[-1] == "root wz"
    assert column_names(m, "qacc", m.nv)[0] == "elbow"
    assert column_names(m, "ctrl", m.nu) == ["push", "actuator 1"]
    assert column_names(m, "sensordata", 4) == ["angle", "place[0]", "place[1]", "place[2]"]
    assert column_names(None, "qpos", 2) == ["qpos[0]", "qpos[1]"]
    assert column_names(m, "energy", 2) == ["potential", "kinetic"]
    assert column_names(m, "qfrc_applied", m.nv)[-1] == "root rz"


def test_numbers_have_their_own_units(m):
    assert column_units(m, "qpos", m.nq) == ["rad", *[""] * 4, *["m"] * 3, *[""] * 4]
    assert column_units(m, "qvel", m.nv) == [*["rad/s"] * 4, *["m/s"] * 3, *["rad/s"] * 3]
    assert column_units(m, "qfrc_bias", m.nv)[3:5] == ["N m", "N"]
    assert column_units(m, "sensordata", 4) == ["rad", "m", "m", "m"]
    assert column_units(m, "energy", 2) == ["J", "J"]
    assert column_units(None, "qpos", 2) == ["m or rad"] * 2
    assert column_units(m, "something", 1) == [""]


def test_a_picture_has_the_curves_names_and_units(m, motion, tmp_path):
    """SVG keeps its text: what is drawn can be read."""
    matplotlib = pytest.importorskip("matplotlib", reason="the extra view is not installed")
    path = tmp_path / "arm.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_motion(motion, ["qpos:root", "sensordata"], path, m=m, world=1)
    text = path.read_text()
    for part in (
        "qpos [m or rad]",
        "root qw",
        "root x (m)",
        "angle (rad)",
        "place[2] (m)",
        "time [s]",
        "world 1 of 3",
    ):
        assert part in text
    assert "elbow" not in text


def test_what_cannot_be_drawn_is_answered_with_a_sentence(m, motion, tmp_path):
    with pytest.raises(ValueError, match="'qvel' was not recorded; qpos, ctrl, sensordata were"):
        draw_motion(motion, ["qvel"], tmp_path / "a.png")
    with pytest.raises(ValueError, match="no entry of qpos has 'hip' in its name: elbow, wrist"):
        draw_motion(motion, ["qpos:hip"], tmp_path / "a.png", m=m)
    with pytest.raises(ValueError, match="no world 3; the motion has 3"):
        draw_motion(motion, ["qpos"], tmp_path / "a.png", world=3)
    with pytest.raises(ValueError, match=r"does not end in \.png, \.svg or \.pdf"):
        draw_motion(motion, ["qpos"], tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_records_are_drawn_at_their_times(motion):
    """The first one is of the end of its step."""
    np.testing.assert_allclose(_record_times(motion, 0), 0.2 * np.arange(1, 11))
    told = np.arange(10.0)[:, None] + [0.0, 0.5, 0.0]
    told[5:, 2] -= 4  # a world that was reset
    of = Trajectory(motion.header, {**motion.fields, "time": told})
    np.testing.assert_allclose(_record_times(of, 1), np.arange(10) + 0.5)
    np.testing.assert_allclose(_record_times(of, 2), 0.2 * np.arange(1, 11))
