"""The open-loop trot: positions of the feet and joint torques, by MuJoCo's kinematics."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STAGES

from jaxsim.envs.tasks import make, trot
from jaxsim.envs.tasks.quadruped import QUADRUPED_MODEL

COMMAND = np.array([0.7, -0.3, 0.5])
FEET = ["foot_fl", "foot_fr", "foot_hl", "foot_hr"]


@pytest.fixture(scope="module")
def mj():
    return mujoco.MjModel.from_xml_path(str(QUADRUPED_MODEL))


def targets(command, times):
    return np.array(jax.vmap(trot.trot, (None, 0))(jnp.array(command), jnp.array(times)))


def feet(mj, angles):
    """Return positions of the feet in the frame of the trunk, (times, 4, 3)."""
    d, places = mujoco.MjData(mj), []
    for q in angles:
        d.qpos[:] = mj.qpos0
        d.qpos[7:] = q
        mujoco.mj_kinematics(mj, d)
        places.append([d.geom(name).xpos - d.qpos[:3] for name in FEET])
    return np.array(places)


def test_feet_pass_over_the_ground_as_commanded(mj, monkeypatch):
    monkeypatch.setattr(trot, "ROBOT_WEIGHT", 0.0)
    times = np.arange(200) / 200 / trot.CLOCK_RATE
    places = feet(mj, targets(COMMAND, times))
    stance = feet(mj, np.zeros((1, 12)))[0]
    up = places[:, :, 2] - stance[:, 2]
    np.testing.assert_allclose(up.max(0), trot.FOOT_LIFT, rtol=1e-3)
    np.testing.assert_allclose(up.min(0), 0.0, atol=1e-12)

    # on the ground at the speed of the ground, to and fro about the stance
    speed = (np.roll(places, -1, 0) - places) * 200 * trot.CLOCK_RATE
    below = (up < 1e-9) & (np.roll(up, -1, 0) < 1e-9)
    assert (below.sum(0) >= 98).all()
    for leg, r in enumerate(stance):
        expected = [-(COMMAND[0] - COMMAND[2] * r[1]), -(COMMAND[1] + COMMAND[2] * r[0])]
        found = speed[below[:, leg], leg, :2]
        np.testing.assert_allclose(found, np.tile(expected, (len(found), 1)), atol=1e-9)
    middle = 0.5 * (places.max(0) + places.min(0))
    np.testing.assert_allclose(middle[:, :2], stance[:, :2], atol=2e-3)

    # diagonal legs together, the others half a period later
    np.testing.assert_allclose(up[:, 0], up[:, 3], atol=1e-12)
    np.testing.assert_allclose(up[:, 1], up[:, 2], atol=1e-12)
    np.testing.assert_allclose(up[:, 0], np.roll(up[:, 1], 100), atol=1e-12)


def test_servos_are_told_what_the_weight_asks_of_them(mj, monkeypatch):
    """The torque is that of the transposed Jacobian for the ground's force on the feet."""
    assert mj.body_subtreemass[1] * 9.81 == pytest.approx(trot.ROBOT_WEIGHT, rel=1e-2)
    assert set(mj.actuator_gainprm[:, 0]) == {trot.SERVO_GAIN}
    times = np.linspace(0.0, 1.0, 7) / trot.CLOCK_RATE
    loaded = targets(COMMAND, times)
    monkeypatch.setattr(trot, "ROBOT_WEIGHT", 0.0)
    free = targets(COMMAND, times)
    monkeypatch.undo()
    d, jac = mujoco.MjData(mj), np.zeros((3, mj.nv))
    for time, angles, torque in zip(times, free, trot.SERVO_GAIN * (loaded - free), strict=True):
        d.qpos[:] = mj.qpos0
        d.qpos[7:] = angles
        mujoco.mj_fwdPosition(mj, d)
        expected = np.zeros(mj.nv)
        for leg, name in enumerate(FEET):
            mujoco.mj_jacGeom(mj, d, jac, None, d.geom(name).id)
            first = (
                trot.CLOCK_RATE * (time + trot.HALF_ACTION_TIME) + trot.LEG_PHASE[leg]
            ) % 1.0 < 0.5
            expected -= 0.5 * trot.ROBOT_WEIGHT * first * jac[2]
        np.testing.assert_allclose(torque, expected[6:], atol=1e-9)


def test_at_command_zero_it_stands_and_does_not_step():
    angles = targets(np.zeros(3), np.linspace(0.0, 1.0, 9))
    np.testing.assert_allclose(angles, np.tile(angles[0], (9, 1)), **STAGES)
    slow = targets([0.02, 0.0, 0.0], np.linspace(0.0, 1.0, 9))
    assert 1e-3 < np.abs(slow - angles).max() < 0.1
    grad = jax.jacfwd(trot.trot)(jnp.zeros(3), jnp.array(0.1))
    assert jnp.isfinite(grad).all()


@pytest.mark.slow
def test_precision_and_worlds():
    command = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    times = np.linspace(0.0, 20.0, 5)
    many = jax.vmap(trot.trot)(jnp.array(command), jnp.array(times))
    for c, time, angles in zip(command, times, many, strict=True):
        np.testing.assert_allclose(trot.trot(jnp.array(c), jnp.array(time)), angles, **STAGES)
    single = trot.trot(jnp.array(command[0], jnp.float32), jnp.array(0.3, jnp.float32))
    assert single.dtype == trot.clock(jnp.array(0.3, jnp.float32)).dtype == jnp.float32


def test_what_the_option_changes():
    """Size of what is seen, and what an action is."""
    trotting, plain = make("quadruped_velocity"), make("quadruped_velocity_plain")
    assert (trotting.observation_size, plain.observation_size) == (47, 45)
    action = jnp.linspace(-1.5, 1.5, 12)
    d = trotting.begin.replace(userdata=jnp.array(COMMAND), time=jnp.array(0.13))
    base, inside = trot.trot(d.userdata, d.time), np.clip(action, -1.0, 1.0)
    np.testing.assert_allclose(trotting.control(trotting.m, d, action).ctrl, base + 0.2 * inside)
    np.testing.assert_allclose(plain.control(plain.m, d, action).ctrl, 0.4 * inside)
