"""Typical identifications: a motor with delay, a standing robot, a chaotic motion.

MuJoCo C makes the recordings, with parameters that differ from those of the model, and noise is
added. The true values are within three reported standard deviations, and chi2 is about 1.
"""

from pathlib import Path

import mujoco
import numpy as np
import pytest
from recordings import record, waves

import jaxsim
from jaxsim.identify import Fit, Sequence, TimeSeries, fit, linear, log, scale

ROOT = Path(__file__).resolve().parents[2]


def explains(found: Fit, truth: list[float], most: float = 3.0) -> None:
    """Check that the truth is within the reported intervals, and that the residual is noise."""
    z = (found.values - np.array(truth)) / found.sd
    assert (np.abs(z) < most).all(), found
    assert 0.8 < found.uncertainty.noise**2 < 1.2


MOTOR = """<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>
  <body><joint name="shaft" axis="0 0 1" armature="0.002" damping="0.01" frictionloss="0.02"/>
    <geom type="cylinder" size="0.05 0.01" mass="0.3"/></body></worldbody>
  <actuator><position name="drive" joint="shaft" kp="2" kv="0.02"/></actuator>
  <sensor><jointpos name="angle" joint="shaft"/>
    <actuatorfrc name="torque" actuator="drive"/></sensor>
</mujoco>"""


@pytest.mark.slow
def test_actuator_delay_is_identified():
    """Commands arrive 6.7 ms late, on a clock of 2 ms; gain, damping and friction are not known."""
    mj = mujoco.MjModel.from_xml_string(MOTOR)
    truth = [0.0067, 2.6, 0.017, 0.035]
    mj.actuator_gainprm[0, 0], mj.actuator_biasprm[0, 1] = 2.6, -2.6
    mj.dof_damping[0], mj.dof_frictionloss[0] = 0.017, 0.035
    rng = np.random.default_rng(0)
    steps, history = 500, 16
    command = np.repeat(rng.uniform(-1, 1, (steps + history) // 12 + 1), 12)[: steps + history]
    # The control of a step is the mean of the commands that arrive in it: 0.35 of the older one.
    acts = 0.35 * command[history - 3 - 1 : -3 - 1] + 0.65 * command[history - 3 : -3]
    sensors = record(mj, acts[:, None])["sensordata"]
    sigma = {"angle": 1e-3, "torque": 0.02}
    y = sensors + np.array([1e-3, 0.02]) * rng.normal(size=sensors.shape)
    times = 0.002 * np.arange(-history, steps)
    sequence = Sequence(
        TimeSeries(times[history:], y, ["angle", "torque"]),
        ctrl=TimeSeries(times, command, ["drive"]),
        sigma=sigma,
        start=0.0,
    )
    forms = {
        "ctrl:drive/delay": linear(0, 0.02),
        "actuator:drive/kp": scale(0.2, 5),
        "joint:shaft/damping": log(1e-3, 1),
        "joint:shaft/frictionloss": log(1e-3, 1),
    }
    found = fit(jaxsim.load_model(MOTOR), forms, sequence, starts=4)
    explains(found, truth)
    assert found.sd[0] < 2e-4  # a tenth of a step


@pytest.mark.slow
def test_fit_of_a_standing_robot_with_contacts():
    """A quadruped that shuffles: trunk, friction of the feet, gain and damping of all joints."""
    xml = (ROOT / "jaxsim/envs/tasks/quadruped.xml").read_text()
    xml = xml.replace('iterations="4" ls_iterations="8"', 'integrator="implicitfast"')
    xml = xml.replace('friction="0.8 0.02 0.01" rgba', 'friction="0.1 0.02 0.01" rgba')
    mj = mujoco.MjModel.from_xml_string(xml)
    truth = [1.25 * mj.body("trunk").mass[0], 0.55, 110.0, 1.6]
    mj.body("trunk").mass[0] = truth[0]
    for leg in ("fl", "fr", "hl", "hr"):
        mj.geom(f"foot_{leg}").friction[0] = 0.55
    mj.actuator_gainprm[:, 0], mj.actuator_biasprm[:, 1] = 110, -110
    mj.dof_damping[6:] = 1.6
    mujoco.mj_setConst(mj, mujoco.MjData(mj))

    # Short motions, each from the state where the previous one ended: over longer ones the cost is
    # rough, because a foot may land a step earlier.
    d = mujoco.MjData(mj)
    mujoco.mj_step(mj, d, 250)
    rng = np.random.default_rng(1)
    noise = np.concatenate([np.full(12, 1e-3), np.full(6, 0.01)])
    names = [f"qpos:{mj.joint(i).name}" for i in range(1, 13)]
    names += [f"{s}[{k}]" for s in ("rotation", "velocity") for k in range(3)]
    sequences = []
    for ctrl in waves(rng, 200, 12, 0.5, 0.004).reshape(5, 40, 12):
        qpos, qvel = d.qpos.copy(), d.qvel.copy()
        motion = record(mj, ctrl, qpos, qvel)
        y = np.concatenate([motion["qpos"][:, 7:], motion["sensordata"]], 1)
        y = y + noise * rng.normal(size=y.shape)
        sequences.append(
            Sequence(
                TimeSeries(0.004 * np.arange(40), y, names),
                ctrl=ctrl,
                initial={"qpos": qpos, "qvel": qvel},
                sigma=dict(zip(names, noise, strict=True)),
            )
        )
        for u in ctrl:
            d.ctrl[:] = u
            mujoco.mj_step(mj, d)
    forms = {
        "body:trunk/mass": scale(0.5, 2),
        "geom:foot_*/friction[0]": linear(0.2, 1.5, share=True),
        "actuator:*/kp": log(30, 300, share=True),
        "joint:[ahk]*/damping": log(0.1, 10, share=True),
    }
    found = fit(jaxsim.load_model(xml), forms, sequences, starts=2)
    explains(found, truth)
    assert (found.sd < 0.05 * found.values).all()


RODS = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>
  <body name="upper"><joint name="a" axis="0 1 0" damping="0.005"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/>
    <body name="lower" pos="0 0 -0.5"><joint name="b" axis="0 1 0" damping="0.005"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/></body>
  </body></worldbody></mujoco>"""


@pytest.mark.slow
def test_fit_of_a_chaotic_motion_by_pieces():
    """Six seconds of two rods that rotate fully: one rollout fails, multiple shooting succeeds."""
    mj = mujoco.MjModel.from_xml_string(RODS)
    mj.body_mass[2], mj.dof_damping[:] = 0.7, 0.01
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    start = [2.8, 0.5]
    clean = record(mj, np.zeros((600, 0)), start)["qpos"]
    y = clean + 0.01 * np.random.default_rng(0).normal(size=clean.shape)
    measured = TimeSeries(0.01 * np.arange(600), y, ["qpos:a", "qpos:b"])
    sequence = Sequence(measured, initial={"qpos": start}, sigma=0.01)
    m = jaxsim.load_model(RODS)
    forms = {"body:lower/mass": scale(0.2, 5), "dof_damping": log(0.001, 1, share=True)}
    plain = fit(m, forms, sequence)
    assert plain.cost > 100 * len(y)
    pieces = fit(m, forms, sequence, segments=50)
    explains(pieces, [0.7, 0.01])
    assert (pieces.sd < 0.02 * pieces.values).all()
