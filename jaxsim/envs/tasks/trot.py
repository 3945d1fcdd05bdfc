"""A trot by a clock: what joints of the quadruped are told at a time, to make it go as commanded.

Two diagonal pairs of legs take turns, half a period each. On the ground a foot is carried back at
the speed at which the ground passes under it,

    v_foot = -(c_x - c_w r_y, c_y + c_w r_x)

with the command c and the foot's place r in the trunk's frame, as far behind that place as it began
before it; in the air it is brought forward again and lifted. Joint angles follow by the inverse
kinematics of two links that turn about an offset axis. The servos give way under a load by its
torque over their gain: a pair of legs carries the weight, and is told so much more. Nothing of the
state is used: the generator is open-loop. At command zero it stands.

A policy that acts on top of such a generator: A. Iscen et al., Policies Modulating Trajectory
Generators, 2018. The clock in what is seen: also J. Siekmann et al., Sim-to-Real Learning of All
Common Bipedal Gaits via Periodic Reward Composition, 2021.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim.math.exact import cycle_fraction

CLOCK_RATE = 2.5  # of the clock [Hz]
FOOT_LIFT = 0.05  # of a foot in the air [m]
_SLOW_SPEED = 0.1  # speed of the foot below which it steps less, and not at all at 0 [m/s]
HALF_ACTION_TIME = 0.01  # half the time of an action, for which targets stand [s]
_SERVO_LAG = 0.0133  # damping over gain, by which joints follow [s]

# of the model; legs are front left, front right, hind left, hind right
_ABDUCTION_X = (0.19, 0.19, -0.19, -0.19)  # axes of abduction, from the trunk's middle [m]
_ABDUCTION_Y = (0.07, -0.07, 0.07, -0.07)
_HIP_OFFSET = (
    0.075,
    -0.075,
    0.075,
    -0.075,
)  # from the axis of abduction to the plane of the leg [m]
THIGH, SHIN = 0.2, 0.21  # [m]
HIP, KNEE = math.radians(45.0), math.radians(-90.0)  # in the stance, where joints are at 0
BEHIND, DOWN = (  # the foot there, from the hip [m]
    THIGH * turned(HIP) + SHIN * turned(HIP + KNEE) for turned in (math.sin, math.cos)
)
ROBOT_WEIGHT = 142.0  # [N]
SERVO_GAIN = 90.0  # of the servos [N·m/rad]

LEG_PHASE = (0.0, 0.5, 0.5, 0.0)  # turns of the clock by which legs are ahead


def clock(time: jax.Array, low: jax.Array | None = None) -> jax.Array:
    """Cosine and sine of the clock, (2,); `low` is what `time` lacks, `d.time_low`."""
    angle = 2 * math.pi * _clock_phase(time, low)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _clock_phase(time: jax.Array, low: jax.Array | None) -> jax.Array:
    """Turns of the clock; in single precision without whole ones."""
    return CLOCK_RATE * time if low is None else cycle_fraction(time, low, CLOCK_RATE)


def trot(command: jax.Array, time: jax.Array, low: jax.Array | None = None) -> jax.Array:
    """Targets of the joints from the stance: abduction, hip and knee of each leg, (12,) [rad].

    Args:
      command: velocities along x and y [m/s] and about z [rad/s], (3,).
      time: of the clock [s].
      low: what it lacks in single precision, `d.time_low` [s].
    """
    along, across, out, ahead = (
        _row(x, command) for x in (_ABDUCTION_X, _ABDUCTION_Y, _HIP_OFFSET, LEG_PHASE)
    )

    # how the foot goes over the ground
    vx = -(command[0] - command[2] * (across + out))
    vy = -(command[1] + command[2] * (along - BEHIND))
    stepping = jnp.minimum(jnp.max(vx**2 + vy**2) / _SLOW_SPEED**2, 1.0)

    # where it is: from -1 to 1 on the ground, from 1 to -1 in the air
    now = _clock_phase(time, low)
    turn = (now + CLOCK_RATE * (HALF_ACTION_TIME + _SERVO_LAG) + ahead) % 1.0
    air = math.pi * (2.0 * turn - 1.0)
    way = jnp.where(turn < 0.5, 4.0 * turn - 1.0, jnp.cos(air))
    half = 0.25 / CLOCK_RATE * way
    lift = jnp.where(turn < 0.5, 0.0, FOOT_LIFT * stepping * jnp.sin(air) ** 2)

    # what it carries: all legs the same, or one pair everything
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
    """Targets (12,) that hold the feet dx before the stance, across at y, lifted, under a load."""
    x, z = dx - BEHIND, lift - DOWN

    # in the plane across: the leg hangs at a right angle to its offset
    length = jnp.sqrt(y**2 + z**2 - out**2)
    abduction = jnp.arctan2(y, -z) - jnp.arctan2(out, length)
    # in the plane of the leg: two links and the law of cosines
    bend = (x**2 + length**2 - THIGH**2 - SHIN**2) / (2 * THIGH * SHIN)
    knee = -jnp.arccos(jnp.clip(bend, -0.99, 0.99))
    hip = jnp.arctan2(-x, length) - jnp.arctan2(SHIN * jnp.sin(knee), THIGH + SHIN * jnp.cos(knee))

    # the ground pushes the foot up: its levers about the axes
    upright = jnp.cos(abduction)
    levers = jnp.stack([-y, upright * x, upright * (x + THIGH * jnp.sin(hip))])
    angles = jnp.stack([abduction, hip - HIP, knee - KNEE])
    return (angles + levers * load[None] / SERVO_GAIN).T.reshape(12)
