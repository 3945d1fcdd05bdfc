"""Open-loop trot generator: joint targets of the quadruped for a velocity command at a time.

Two diagonal pairs of legs alternate, half a period each. On the ground a foot moves back at the
velocity of the ground relative to the trunk,

    v_foot = -(c_x - c_w r_y, c_y + c_w r_x)

with the command c and the nominal position r of the foot in the frame of the trunk. It begins as
far in front of r as it ends behind it; in the air it is lifted and moved forward again. Joint
angles follow from the inverse kinematics of two links with an offset abduction axis. A servo under
a load deviates by its torque over its gain: a pair of legs carries the weight, and its targets are
corrected by this deviation. The state is not used. At command zero the robot stands.

Policies that act on top of such a generator: A. Iscen et al., Policies Modulating Trajectory
Generators, 2018. The clock in the observation: also J. Siekmann et al., Sim-to-Real Learning of All
Common Bipedal Gaits via Periodic Reward Composition, 2021.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim.math.exact import cycle_fraction

CLOCK_RATE = 2.5  # frequency of the clock [Hz]
FOOT_LIFT = 0.05  # height of a foot in the air [m]
_SLOW_SPEED = 0.1  # speed of the foot below which it steps less, and not at all at 0 [m/s]
HALF_ACTION_TIME = 0.01  # half the duration of an action, for which targets are held [s]
_SERVO_LAG = 0.0133  # damping over gain: the delay with which joints follow [s]

# Dimensions of the model; legs are front left, front right, hind left, hind right.
_ABDUCTION_X = (0.19, 0.19, -0.19, -0.19)  # abduction axes, from the middle of the trunk [m]
_ABDUCTION_Y = (0.07, -0.07, 0.07, -0.07)
# From the abduction axis to the plane of the leg [m].
_HIP_OFFSET = (0.075, -0.075, 0.075, -0.075)
THIGH, SHIN = 0.2, 0.21  # [m]
HIP, KNEE = math.radians(45.0), math.radians(-90.0)  # in the stance, where joints are at 0
BEHIND, DOWN = (  # position of the foot in the stance, from the hip [m]
    THIGH * turned(HIP) + SHIN * turned(HIP + KNEE) for turned in (math.sin, math.cos)
)
ROBOT_WEIGHT = 142.0  # [N]
SERVO_GAIN = 90.0  # gain of the servos [N·m/rad]

LEG_PHASE = (0.0, 0.5, 0.5, 0.0)  # phases of the legs, in periods of the clock


def clock(time: jax.Array, low: jax.Array | None = None) -> jax.Array:
    """Return cosine and sine of the clock, (2,); `low` is the low part of `time`, `d.time_low`."""
    angle = 2 * math.pi * _clock_phase(time, low)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _clock_phase(time: jax.Array, low: jax.Array | None) -> jax.Array:
    """Return the phase of the clock in periods; in single precision without whole periods."""
    return CLOCK_RATE * time if low is None else cycle_fraction(time, low, CLOCK_RATE)


def trot(command: jax.Array, time: jax.Array, low: jax.Array | None = None) -> jax.Array:
    """Return the joint targets from the stance: abduction, hip, knee of each leg, (12,) [rad].

    Args:
      command: velocities along x and y [m/s] and about z [rad/s], (3,).
      time: time of the clock [s].
      low: low part of the time in single precision, `d.time_low` [s].
    """
    along, across, out, ahead = (
        _row(x, command) for x in (_ABDUCTION_X, _ABDUCTION_Y, _HIP_OFFSET, LEG_PHASE)
    )

    # velocity of the foot relative to the trunk
    vx = -(command[0] - command[2] * (across + out))
    vy = -(command[1] + command[2] * (along - BEHIND))
    stepping = jnp.minimum(jnp.max(vx**2 + vy**2) / _SLOW_SPEED**2, 1.0)

    # position along its path: from -1 to 1 on the ground, from 1 to -1 in the air
    now = _clock_phase(time, low)
    turn = (now + CLOCK_RATE * (HALF_ACTION_TIME + _SERVO_LAG) + ahead) % 1.0
    air = math.pi * (2.0 * turn - 1.0)
    way = jnp.where(turn < 0.5, 4.0 * turn - 1.0, jnp.cos(air))
    half = 0.25 / CLOCK_RATE * way
    lift = jnp.where(turn < 0.5, 0.0, FOOT_LIFT * stepping * jnp.sin(air) ** 2)

    # load: all legs equally, or one pair carries everything
    carries = jnp.where(
        (now + CLOCK_RATE * HALF_ACTION_TIME + ahead) % 1.0 < 0.5, stepping, -stepping
    )
    load = 0.25 * ROBOT_WEIGHT * (1.0 + carries)
    return _targets(half * vx, out + half * vy, lift, load, out)


def _row(values: Sequence[float], like: jax.Array) -> jax.Array:
    return jnp.array(values, like.dtype)


def _targets(
    dx: jax.Array, y: jax.Array, lift: jax.Array, load: jax.Array, out: jax.Array
) -> jax.Array:
    """Return targets (12,) that hold the feet at dx, y, and height `lift` under a load."""
    x, z = dx - BEHIND, lift - DOWN

    # in the transverse plane: the leg is perpendicular to its offset
    length = jnp.sqrt(y**2 + z**2 - out**2)
    abduction = jnp.arctan2(y, -z) - jnp.arctan2(out, length)
    # in the plane of the leg: two links and the law of cosines
    bend = (x**2 + length**2 - THIGH**2 - SHIN**2) / (2 * THIGH * SHIN)
    knee = -jnp.arccos(jnp.clip(bend, -0.99, 0.99))
    hip = jnp.arctan2(-x, length) - jnp.arctan2(SHIN * jnp.sin(knee), THIGH + SHIN * jnp.cos(knee))

    # the ground pushes the foot up: lever arms about the axes
    upright = jnp.cos(abduction)
    levers = jnp.stack([-y, upright * x, upright * (x + THIGH * jnp.sin(hip))])
    angles = jnp.stack([abduction, hip - HIP, knee - KNEE])
    return (angles + levers * load[None] / SERVO_GAIN).T.reshape(12)
