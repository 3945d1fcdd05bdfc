"""Two legs in a plane that stand, walk or run along x.

    stand = (3 high + (1 + cos(tilt)) / 2) / 4
    move  = stand (5 fast + 1) / 6

`high` is 1 where the torso is above 1.2 m, and 0.1 at 0.6 m; `fast` is 1 from the wanted speed on,
0.5 at half of it, linear to 0 at 0.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask, random_joints
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id


class SuiteWalker(SuiteTask):
    """Task of the walker; an action takes 25 ms.

    Observations (24,): x components of the bodies' x and z axes (14,), height [m], velocities (9,).

    Args:
      speed: wanted speed [m/s]; 0: it stands.
      given: arguments of `Env`.
    """

    FILE, REPEAT = "walker", 10

    def __init__(self, *, speed: float, **given: Any):
        super().__init__(**given)
        self.speed = speed

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state at random angles, at rest."""
        return d.replace(qpos=random_joints(m, d.qpos, key))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return orientations, height, and velocities."""
        direction = d.xmat[1:, 0, ::2].ravel()
        height = d.xpos[name2id(m, "body", "torso"), 2]
        return jnp.concatenate([direction, height[None], d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        torso = name2id(m, "body", "torso")
        high = tolerance(after.xpos[torso, 2], (1.2, math.inf), margin=0.6)
        upright = (1.0 + after.xmat[torso, 2, 2]) / 2.0
        stand = (3.0 * high + upright) / 4.0
        if not self.speed:
            return stand
        speed = sensor_data(m, after, "torso_subtreelinvel")[0]
        fast = tolerance(
            speed, (self.speed, math.inf), margin=self.speed / 2, fall="linear", at_margin=0.5
        )
        return stand * (5.0 * fast + 1.0) / 6.0
