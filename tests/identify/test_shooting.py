"""Multiple shooting: where pieces start, and parameters recovered from pieces of a motion."""

from pathlib import Path

import jax
import mujoco
import numpy as np
import pytest
from recordings import record, waves
from scipy.spatial.transform import Rotation

import jaxsim
from jaxsim.identify import (
    Sequence,
    TimeSeries,
    build_residual_fn,
    fit,
    linear,
    log,
    parameters,
    scale,
)
from jaxsim.identify.joint_velocity import line_velocity
from jaxsim.identify.sequences import initial_state, sample_recording
from jaxsim.identify.shooting import Cut, cuts, guesses
from jaxsim.identify.study import read_study

# two heavy rods that rotate fully
DOUBLE = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="upper"><joint name="a" axis="0 1 0" damping="0.02"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/>
    <body name="lower" pos="0 0 -0.5"><joint name="b" axis="0 1 0" damping="0.02"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/></body>
  </body></worldbody>
  <sensor><jointpos name="qa" joint="a"/><jointvel name="vb" joint="b"/></sensor></mujoco>"""
CUBE = """<mujoco><option timestep="0.002" cone="elliptic"/><worldbody>
  <geom type="plane" size="1 1 .1"/><body><freejoint name="root"/>
  <geom name="cube" type="box" size="0.05 0.05 0.05" mass="0.4" friction="0.3 0 0" condim="3"
    priority="1" solref="0.01 0.8"/></body></worldbody></mujoco>"""
STEPS, NOISE = 250, 0.01
TOSSES = Path(__file__).resolve().parents[2] / "examples/cube_tosses"


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
    (_, (qpos, qvel, act), *_) = guesses(m, initial_state(m, sequence), s, cuts(s, 20), 0, 4)
    np.testing.assert_allclose(qpos, motion["qpos"][20], atol=1e-9)  # b: of the rollout
    np.testing.assert_allclose(qvel[0], motion["qvel"][20, 0], atol=0.05)  # a line of 9 samples
    np.testing.assert_allclose(qvel[1], (vb[19] + vb[21]) / 2, rtol=1e-9)
    assert act.shape == (0,)


def test_the_velocity_of_a_free_joint_is_that_of_its_samples():
    """In the frame of the middle sample, whatever the signs of the quaternions."""
    m = jaxsim.load_model(CUBE)
    spin, h = np.array([0.6, -1.1, 2.0]), 0.01
    poses = []
    for k in range(3):
        quat = np.array([0.5, 0.5, -0.5, 0.5])
        mujoco.mju_quatIntegrate(quat, spin, k * h)
        poses.append([0.3 * k * h, 0, 1, *(quat * (-1) ** k)])
    velocity = line_velocity(m, 0, h * np.arange(3), np.array(poses))
    np.testing.assert_allclose(velocity, [0.3, 0, 0, *spin], atol=1e-9)
    still = line_velocity(m, 0, h * np.arange(3), np.repeat(poses[:1], 3, 0))
    np.testing.assert_array_equal(still, 0)


@pytest.mark.parametrize("reach", [1, 4])
def test_the_velocity_at_a_cut_is_in_the_frame_of_the_cut(reach):
    """Rotation vectors from the pose at the cut, whose axis changes from sample to sample."""
    m = jaxsim.load_model(CUBE)
    rng, h, cut = np.random.default_rng(3), 0.002, 10
    turns = [Rotation.identity()]
    for spin in 20 * rng.normal(size=(20, 3)):
        turns.append(turns[-1] * Rotation.from_rotvec(h * spin))
    poses = [[0, 0, 1, *turn.as_quat(scalar_first=True)] for turn in turns]
    names = [f"qpos:root[{k}]" for k in range(7)]
    sequence = Sequence(TimeSeries(h * np.arange(21), np.array(poses), names))
    s = sample_recording(m, sequence)
    (_, (qpos, qvel, _), *_) = guesses(m, initial_state(m, sequence), s, cuts(s, cut), 0, reach)
    np.testing.assert_allclose(qpos, poses[cut], rtol=1e-12)
    times = h * np.arange(-reach, reach + 1)
    near = turns[cut - reach : cut + reach + 1]
    vectors = np.array([(turns[cut].inv() * turn).as_rotvec() for turn in near])
    np.testing.assert_allclose(qvel[3:], times @ vectors / (times @ times), rtol=1e-9)


def test_pieces_of_measured_tosses_move_as_in_mujoco():
    """Predictions equal MuJoCo's for another side, inertia and contact than the file's."""
    values = {"size": 0.049, "friction[0]": 0.15, "solref[0]": 0.007, "solref[1]": 0.6}
    values = {f"geom:cube/{n}": v for n, v in values.items()}
    values |= {"geom:table/pos[2]": 0.003, "body:cube/inertia": 1.4}
    study = read_study(TOSSES / "identify.toml", ["data.0.recordings='0'"])
    P = study.parameters
    problem = build_residual_fn(study.m, P, study.data, segments=48, tied=False)
    (found,) = problem.predictions(problem.start(P.vector(values)))
    spec = mujoco.MjSpec.from_file(str(TOSSES / "cube.xml"))
    cube, table = spec.geom("cube"), spec.geom("table")
    cube.size, cube.friction, cube.solref = [0.049] * 3, [0.15, 0, 0], [0.007, 0.6]
    table.pos = [0, 0, 0.003]
    mj = spec.compile()
    mj.body_inertia[1] *= 1.4
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    starts, touched = problem._pieces.start, 0
    (s,) = problem.samples
    for k, (_, ids) in enumerate(problem._places):
        d = mujoco.MjData(mj)
        d.qpos, d.qvel = starts.qpos[k], starts.qvel[k]
        motion = []
        for _ in range(49):
            motion.append(np.concatenate([d.qpos, d.qvel]))
            mujoco.mj_step(mj, d)
            touched += d.ncon
        columns = [problem._columns[j] - study.m.nsensordata for j in s.signal[ids]]
        expected = np.array(motion)[s.step[ids] - 48 * k, columns]
        # both solvers stop at a tolerance of 1e-8, which impacts amplify
        np.testing.assert_allclose(found[ids], expected, rtol=0, atol=1e-5)
    assert touched > 100


def test_untied_pieces_start_as_was_measured():
    """No states are unknown; the cost of a piece does not depend on the pieces before it."""
    m = jaxsim.load_model(DOUBLE)
    q = record(mujoco.MjModel.from_xml_string(DOUBLE), np.zeros((60, 0)), [1.0, 0.5])["qpos"]
    t = 0.01 * np.arange(60)
    sequence = Sequence(TimeSeries(t, q, ["qpos:a", "qpos:b"]), initial={"qpos": q[0]}, sigma=1e-3)
    P = parameters(m, {"dof_damping": log(0.001, 1, share=True)})
    problem = build_residual_fn(m, P, sequence, segments=20, tied=False)
    assert problem.size == 1
    starts = problem._pieces.start
    np.testing.assert_allclose(starts.qpos, q[[0, 20, 40]], atol=1e-9)
    central = (q[[21, 41]] - q[[19, 39]]) / 0.02
    np.testing.assert_allclose(starts.qvel[1:], central, atol=1e-9)
    with pytest.raises(ValueError, match="tied: without it recordings are cut into pieces"):
        build_residual_fn(m, P, sequence, tied=False)


def test_outliers_have_a_loss_that_grows_linearly():
    """Half the squares of the rows are the pseudo-Huber loss, with its exact derivative."""
    m = jaxsim.load_model(DOUBLE)
    q = record(mujoco.MjModel.from_xml_string(DOUBLE), np.zeros((30, 0)), [1.0, 0.5])["qpos"]
    q[7] += 0.3
    sequence = Sequence({"qpos:a": q[:, 0]}, initial={"qpos": [1.0, 0.4]}, sigma=0.01)
    P = parameters(m, {"dof_damping": log(0.001, 1, share=True)})
    problems = [build_residual_fn(m, P, sequence, robust=c) for c in (None, 2.0)]
    (u, plain), (r, J) = (jax.jit(p.jacobian)(p.start(P.nominal())) for p in problems)
    assert np.abs(u).max() > 20
    np.testing.assert_allclose(r**2 / 2, 4 * (np.sqrt(1 + (u / 2) ** 2) - 1), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(r @ J, (u / np.sqrt(1 + (u / 2) ** 2)) @ plain, rtol=1e-9)
    predicted = problems[1].predictions(problems[1].start(P.nominal()))[0]
    np.testing.assert_allclose((predicted - q[:, 0]) / 0.01, u, atol=1e-9)
    with pytest.raises(ValueError, match="robust: expected a number of sigmas above 0, got 0"):
        build_residual_fn(m, P, sequence, robust=0)


@pytest.mark.slow
def test_friction_and_size_of_a_tossed_cube_are_found():
    """Two tosses of MuJoCo with impacts and sliding, from pieces that start as was measured."""
    m = jaxsim.load_model(CUBE)
    true = CUBE.replace("0.3 0 0", "0.2 0 0").replace("0.05 0.05 0.05", "0.052 0.052 0.052")
    mj, rng, sequences = mujoco.MjModel.from_xml_string(true), np.random.default_rng(0), []
    for _ in range(2):
        qpos = np.concatenate([[0, 0, 0.12], rng.normal(size=4)])
        qpos[3:] /= np.linalg.norm(qpos[3:])
        qvel = np.concatenate([[1.0, 0.5, 0], rng.normal(size=3)])
        poses = record(mj, np.zeros((120, 0)), qpos, qvel)["qpos"]
        names = [f"qpos:root[{k}]" for k in range(7)]
        series = TimeSeries(0.002 * np.arange(120), poses, names)
        initial = {"qpos": qpos, "qvel": qvel}
        sequences.append(Sequence(series, initial=initial, sigma=1e-4))
    forms = {"geom:cube/friction[0]": log(0.05, 1), "geom:cube/size": log(0.04, 0.06, share=True)}
    found = fit(m, forms, sequences, segments=20, tied=False, robust=3, iterations=15)
    np.testing.assert_allclose(found.values, [0.2, 0.052], rtol=0.02)


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
