"""Hopper, Walker2d, HalfCheetah and Swimmer: robots that move along x.

The reward of an action is

    (x after - x before) / dt + alive - price sum(action^2)

with `alive` 1 for a hopper or walker that has not fallen; a fall terminates the episode. The other
two cannot fall, and their `alive` is 0. Observations: positions without that along x (the swimmer:
along x and y) [m, rad], and velocities [m/s, rad/s], those of hopper and walker clipped to -10 and
10.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxsim.envs.tasks.gymnasium.base import GymnasiumTask, effort
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class Runner(GymnasiumTask):
    """A robot that moves along x.

    Attributes:
      PRICE: weight of the squared action.
      UNSEEN: how many first positions are not observed.
    """

    PRICE: ClassVar[float]
    UNSEEN: ClassVar[int] = 1

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return positions and velocities."""
        return jnp.concatenate([d.qpos[self.UNSEEN :], d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the speed along x [m/s], less the cost of the action."""
        return self._speed(m, before, after) - self.PRICE * effort(action)

    def metrics(
        self, m: Model, before: Data, after: Data, action: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the speed along x [m/s]."""
        return {"speed": self._speed(m, before, after)}

    def _speed(self, m: Model, before: Data, after: Data) -> jax.Array:
        return (after.qpos[0] - before.qpos[0]) / (m.opt.timestep * self.repeat)


class HalfCheetah(Runner):
    """Half a cheetah in a plane: 6 joints, observations (17,); an action takes 50 ms."""

    FILE, REPEAT, PRICE, SPREAD, SPEED = "half_cheetah", 5, 0.1, 0.1, 0.1
    NORMAL = True


class Swimmer(Runner):
    """Three links in a fluid: 2 joints, observations (8,); an action takes 40 ms."""

    FILE, REPEAT, PRICE, SPREAD, SPEED = "swimmer", 4, 1e-4, 0.1, 0.1
    UNSEEN = 2


class Faller(Runner):
    """A runner that may fall: its height and its tilt are the second and third position."""

    PRICE, SPREAD, SPEED, REPEAT = 1e-3, 5e-3, 5e-3, 4

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return positions without that along x, and velocities clipped to -10 and 10."""
        return jnp.concatenate([d.qpos[1:], jnp.clip(d.qvel, -10.0, 10.0)])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of a runner, plus 1 as long as it has not fallen."""
        alive = (~self.terminal(m, after)).astype(after.qpos.dtype)
        return super().reward(m, before, after, action) + alive

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the robot has fallen."""
        return ~self.stands(d)

    def stands(self, d: Data) -> Any:
        """Return whether the robot has not fallen, bool ()."""
        raise NotImplementedError


class Hopper(Faller):
    """One leg in a plane: 3 joints, observations (11,); an action takes 8 ms.

    It has fallen if it is below 0.7 m or tilted by more than 0.2 rad, or if a velocity, or a
    position other than x and the height, exceeds 100.
    """

    FILE = "hopper"

    def stands(self, d: Data) -> jax.Array:
        """Return whether the robot has not fallen."""
        within = jnp.all(jnp.abs(jnp.concatenate([d.qpos[2:], d.qvel])) < 100.0)
        return within & (d.qpos[1] > 0.7) & (jnp.abs(d.qpos[2]) < 0.2)


class Walker2d(Faller):
    """Two legs in a plane: 6 joints, observations (17,); an action takes 8 ms.

    It has fallen where its height is not within 0.8 and 2 m or it is tilted by 1 rad.
    """

    FILE = "walker2d_v5"

    def stands(self, d: Data) -> jax.Array:
        """Return whether the robot has not fallen."""
        return (d.qpos[1] > 0.8) & (d.qpos[1] < 2.0) & (jnp.abs(d.qpos[2]) < 1.0)
