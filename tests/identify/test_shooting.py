"""Multiple shooting: where pieces start, and parameters recovered from pieces of a motion."""

import mujoco
import numpy as np
import pytest
from recordings import record, waves

import jaxsim
from jaxsim.identify import Sequence, TimeSeries, fit, linear, log, scale
from jaxsim.identify.sequences import initial_state, sample_recording
from jaxsim.identify.shooting import Cut, cuts, guesses

# two heavy rods that rotate fully
DOUBLE = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="upper"><joint name="a" axis="0 1 0" damping="0.02"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/>
    <body name="lower" pos="0 0 -0.5"><joint name="b" axis="0 1 0" damping="0.02"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/></body>
  </body></worldbody>
  <sensor><jointpos name="qa" joint="a"/><jointvel name="vb" joint="b"/></sensor></mujoco>"""
STEPS, NOISE = 250, 0.01


def test_a_recording_is_cut():
    m = jaxsim.load_model(DOUBLE)
    s = sample_recording(m, Sequence({"qa": np.zeros(11)}))
    assert cuts(s, None) == [Cut(0, 10)]
    assert cuts(s, 4) == [Cut(0, 4), Cut(4, 8), Cut(8, 10)]
    assert cuts(s, 20) == [Cut(0, 10)]


def test_pieces_start_where_was_measured():
    """Positions as they are, velocities by differences or as they are, through gaps and noise."""
    m = jaxsim.load_model(DOUBLE)
    mj = mujoco.MjModel.from_xml_string(DOUBLE)
    motion = record(mj, np.zeros((60, 0)), [1.0, 0.5])
    vb = motion["sensordata"][:, 1].copy()
    vb[20] = np.nan
    measured = {"qpos:a": motion["qpos"][:, 0], "vb": vb}
    sequence = Sequence(measured, initial={"qpos": [1.0, 0.5]})
    s = sample_recording(m, sequence)
    (_, (qpos, qvel, act), *_) = guesses(m, initial_state(m, sequence), s, cuts(s, 20), 0)
    np.testing.assert_allclose(qpos, motion["qpos"][20], atol=1e-9)  # b: of the rollout
    np.testing.assert_allclose(qvel[0], motion["qvel"][20, 0], atol=0.05)  # a line of 9 samples
    np.testing.assert_allclose(qvel[1], (vb[19] + vb[21]) / 2, rtol=1e-9)
    assert act.shape == (0,)


@pytest.mark.slow
def test_rods_that_turn_over_are_followed():
    mj = mujoco.MjModel.from_xml_string(DOUBLE)
    mj.body_mass[2], mj.dof_damping[:] = 0.7, 0.05
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    start = [2.5, 1.0]
    motion = record(mj, np.zeros((STEPS, 0)), start)["qpos"]
    y = motion + NOISE * np.random.default_rng(0).normal(size=motion.shape)
    m = jaxsim.load_model(DOUBLE)
    t = 0.01 * np.arange(STEPS)
    sequence = Sequence(
        TimeSeries(t, y, ["qpos:a", "qpos:b"]), initial={"qpos": start}, sigma=NOISE
    )
    forms = {"body:lower/mass": scale(0.2, 5), "dof_damping": log(0.001, 1, share=True)}
    pieces = fit(m, forms, sequence, segments=50, tolerance=1e-4, iterations=25)
    z = (pieces.values - [0.7, 0.05]) / pieces.sd
    assert (np.abs(z) < 3).all()
    assert (pieces.sd < 0.05 * pieces.values).all()
    assert 0.8 < pieces.uncertainty.noise**2 < 1.2


@pytest.mark.slow
def test_pieces_of_a_driven_motion_with_a_late_control():
    xml = DOUBLE.replace("<sensor>", '<actuator><motor name="u" joint="a"/></actuator><sensor>')
    mj = mujoco.MjModel.from_xml_string(xml)
    ctrl = waves(np.random.default_rng(1), 150, 1, 6.0, 0.01)
    late = np.concatenate([np.zeros((3, 1)), ctrl[:-3]])
    y = record(mj, late)["qpos"] + 1e-3 * np.random.default_rng(2).normal(size=(150, 2))
    m = jaxsim.load_model(xml)
    commanded = TimeSeries(
        0.01 * np.arange(-8, 150), np.concatenate([np.zeros((8, 1)), ctrl]), ["u"]
    )
    measured = TimeSeries(0.01 * np.arange(150), y, ["qpos:a", "qpos:b"])
    sequence = Sequence(measured, ctrl=commanded, sigma=1e-3, start=0.0)
    found = fit(m, {"ctrl:u/delay": linear(0, 0.06)}, sequence, segments=40, tolerance=1e-5)
    assert abs(found.values[0] - 0.03) < 3 * found.sd[0]
    assert found.sd[0] < 1e-3
