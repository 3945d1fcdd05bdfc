"""A four-legged robot that follows velocity commands on flat or on rough ground.

The reward of an action of dt seconds is

    dt max(0, exp(-|v - c|^2 / s) + 0.5 exp(-(w_z - c_w)^2 / s)
              - 2 v_z^2 - 0.05 (w_x^2 + w_y^2) - 2e-4 sum(torque^2) - 0.01 sum((a - a_before)^2))

with s = 0.25, v and w the velocities of the trunk in its own frame, v in the first term along x and
y, and the command (c_x, c_y, c_w) of the episode. The return of an episode that tracks the command
exactly is 1.5 per second. The terms are those of N. Rudin et al., Learning to Walk in Minutes,
2021.

With `gait` an action is added to an open-loop trot (trot.py) that follows the command, so the
policy improves a gait instead of discovering one; the reward is the same.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.envs.tasks.trot import clock, trot
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.spec import Spec

QUADRUPED_MODEL = Path(__file__).with_name("quadruped.xml")
MAX_COMMANDS = (1.0, 0.5, 1.0)  # largest commands: along x and y [m/s], about z [rad/s]
_ACTION_SCALE = 0.4  # unit of actions: an angle from the stance [rad]
_TROT_ACTION_SCALE = 0.2  # unit of actions that are added to the trot [rad]
_TRACKING_SCALE = 0.25  # width of the tracking terms [m^2/s^2, rad^2/s^2]


class Quadruped(Env):
    """Task of the quadruped.

    Actions (12,) are targets of joint angles, from -1 to 1, held for 20 ms. With `gait` they are
    added to the trot, in units of 0.2 rad; without it, to the stance, in units of 0.4 rad.

    Observations (47,): angular velocity (3,) [rad/s] and direction of gravity (3,) in the frame of
    the trunk, the command (3,), joint angles from the stance (12,) [rad], their velocities (12,)
    [rad/s], their last targets from the stance (12,) [0.4 rad], and, with `gait`, cosine and sine
    of the clock (2,). An episode terminates when the trunk is tilted by more than 60 degrees, or
    its origin is below 0.13 m.

    Args:
      rough: whether the ground is a field of bumps, up to 8 cm high, rather than a plane.
      gait: whether actions are added to a trot that follows the command.
      given: arguments of `Env`.
    """

    def __init__(self, *, rough: bool = False, gait: bool = True, **given: Any):
        self.gait = gait
        spec = Spec.from_file(QUADRUPED_MODEL)
        if rough:
            _roughen(spec)
        super().__init__(load_model(spec), **{"repeat": 5, "current": True} | given)

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the robot near the stance at a random yaw, with a random command."""
        keys = jax.random.split(key, 4)
        dtype = d.qpos.dtype
        half = np.pi * jax.random.uniform(keys[0], (), dtype, -0.5, 0.5)
        yaw = jnp.stack([jnp.cos(half), jnp.zeros((), dtype), jnp.zeros((), dtype), jnp.sin(half)])
        bent = jax.random.uniform(keys[1], (12,), dtype, -0.1, 0.1)
        qpos = jnp.concatenate([d.qpos[:3], yaw, d.qpos[7:] + bent])
        qvel = jax.random.uniform(keys[2], d.qvel.shape, dtype, -0.1, 0.1)
        largest = jnp.array(MAX_COMMANDS, dtype)
        command = largest * jax.random.uniform(keys[3], (3,), dtype, -1.0, 1.0)
        return d.replace(qpos=qpos, qvel=qvel, userdata=command)

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Set the targets of the joint angles."""
        action = jnp.clip(action, -1.0, 1.0)
        if self.gait:
            return d.replace(
                ctrl=trot(d.userdata, d.time, d.time_low) + _TROT_ACTION_SCALE * action
            )
        return d.replace(ctrl=_ACTION_SCALE * action)

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the proprioceptive measurements and the command, (45,), with `gait` (47,)."""
        down = -d.xmat[name2id(m, "body", "trunk"), 2]
        stance = m.qpos0[7:]
        measured = [
            sensor_data(m, d, "rotation"),
            down,
            d.userdata,
            d.qpos[7:] - stance,
            d.qvel[6:],
            d.ctrl / _ACTION_SCALE,
        ]
        return jnp.concatenate([*measured, clock(d.time, d.time_low)] if self.gait else measured)

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of an action, (); the module's docstring has the equation."""
        v, w, command = (
            sensor_data(m, after, "velocity"),
            sensor_data(m, after, "rotation"),
            after.userdata,
        )
        linear = jnp.exp(-jnp.sum((v[:2] - command[:2]) ** 2) / _TRACKING_SCALE)
        yaw = jnp.exp(-((w[2] - command[2]) ** 2) / _TRACKING_SCALE)
        shaking = 2.0 * v[2] ** 2 + 0.05 * jnp.sum(w[:2] ** 2)
        effort = 2e-4 * jnp.sum(after.actuator_force**2)
        action_rate = 0.01 * jnp.sum((after.ctrl - before.ctrl) ** 2) / _ACTION_SCALE**2
        per_second = linear + 0.5 * yaw - shaking - effort - action_rate
        return m.opt.timestep * self.repeat * jnp.maximum(per_second, 0.0)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the trunk is tilted by more than 60 degrees, or lies on the ground, ()."""
        return (d.xmat[name2id(m, "body", "trunk"), 2, 2] < 0.5) | (d.qpos[2] < 0.13)

    def metrics(
        self, m: Model, before: Data, after: Data, action: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the errors of the velocities [m/s, rad/s]."""
        v, w = sensor_data(m, after, "velocity"), sensor_data(m, after, "rotation")
        error = jnp.abs(jnp.stack([v[0], v[1], w[2]]) - after.userdata)
        return {"error_x": error[0], "error_y": error[1], "error_turn": error[2]}

    def action_range(self) -> tuple[jax.Array, jax.Array]:
        """Return -1 and 1."""
        one = jnp.ones(self.action_size, self.begin.qpos.dtype)
        return -one, one


def _roughen(spec: Spec) -> None:
    """Replace the floor by a height field with bumps everywhere but where the robot begins."""
    side = 61  # samples along x and along y
    half, high = 6.0, 0.08  # half the side of the field, and height of the highest bump [m]
    x = np.linspace(-half, half, side)
    X, Y = np.meshgrid(x, x)
    rng = np.random.default_rng(0)
    # The maximum of Gaussian bumps, flat around the start.
    heights = np.zeros_like(X)
    for x0, y0 in rng.uniform(-half, half, (150, 2)):
        bump = np.exp(-((X - x0) ** 2 + (Y - y0) ** 2) / (2 * 0.3**2))
        heights = np.maximum(heights, rng.uniform(0.3, 1.0) * bump)
    heights *= 1.0 - np.exp(-(((X**2 + Y**2) / 0.6**2) ** 2))
    heights /= heights.max()
    spec.at("asset").add(
        "hfield", name="bumps", nrow=side, ncol=side, size=[half, half, high, 0.1],
        elevation=heights.ravel().tolist(),
    )  # fmt: skip
    floor = spec["geom", "floor"]
    floor.update(type="hfield", hfield="bumps")
    floor.unset("size")
