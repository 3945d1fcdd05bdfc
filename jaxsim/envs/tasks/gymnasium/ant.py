"""Ant: a four-legged robot that walks along x."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.tasks.gymnasium.base import GymnasiumTask, effort
from jaxsim.envs.tasks.gymnasium.contact import contact_wrenches
from jaxsim.model.data import Data
from jaxsim.model.model import Model

_TORSO_ID = 1


class Ant(GymnasiumTask):
    """Ant task: 8 joints, actions of 50 ms; ends when the torso's height leaves 0.2 to 1 m.

    The reward of an action is

        (x after - x before) / dt + alive - 0.5 sum(action^2) - 5e-4 sum(wrench^2)

    alive is 1, or 0 at the end. x is `xpos` of the torso, which belongs to the state before the
    last physics step (base.py). The components of wrenches are clipped to -1 and 1.

    Observations (105,): positions without x and y (13,), velocities (14,), and the wrenches of
    contacts on the 13 bodies (78,) [N m, N].
    """

    FILE, REPEAT, SPREAD, SPEED = "ant", 5, 0.1, 0.1
    NORMAL = True
    MEMORY = 1  # x of the torso before the action

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state near `qpos0`, with the x of the torso in `userdata`."""
        d = super().start(m, d, key)
        return d.replace(userdata=d.qpos[:1])

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Apply the action as the control; store the x of the torso in `userdata`."""
        # At the first action of an episode no pose has been computed: `start` has stored x.
        here = jnp.where(d.time > 0, d.xpos[_TORSO_ID, :1], d.userdata)
        return d.replace(ctrl=action, userdata=here)

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return positions, velocities, and wrenches of contacts."""
        return jnp.concatenate([d.qpos[2:], d.qvel, _touch(m, d)[1:].ravel()])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward, see the class."""
        alive = (~self.terminal(m, after)).astype(after.qpos.dtype)
        touch = _touch(m, after)
        cost = 0.5 * effort(action) + 5e-4 * jnp.sum(touch * touch)
        return self._speed(m, after) + alive - cost

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the torso is too low or too high."""
        return (d.qpos[2] < 0.2) | (d.qpos[2] > 1.0)

    def metrics(self, m: Model, before: Data, after: Data, action: jax.Array) -> dict[str, Any]:
        """Return the speed along x [m/s]."""
        return {"speed": self._speed(m, after)}

    def _speed(self, m: Model, after: Data) -> jax.Array:
        return (after.xpos[_TORSO_ID, 0] - after.userdata[0]) / (m.opt.timestep * self.repeat)


def _touch(m: Model, d: Data) -> jax.Array:
    return jnp.clip(contact_wrenches(m, d), -1.0, 1.0)
