"""Two links in a plane whose finger reaches a target: the reward is 1 where the two touch, else 0.

The target is drawn for each episode and remembered in `userdata`; the Suite moves a geom of the
model instead, which does not collide.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask, random_joints
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id

_FINGER_RADIUS = 0.01  # radius [m]


class SuiteReacher(SuiteTask):
    """Task of the reacher; an action takes 20 ms.

    Observations (6,): angles [rad], vector from finger to target (x, y) [m], velocities [rad/s].

    Args:
      size: radius of the target [m].
      given: arguments of `Env`.
    """

    FILE, MEMORY = "reacher", 2

    def __init__(self, *, size: float, **given: Any):
        super().__init__(**given)
        self.size = size

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return random angles, at rest; the target is 5 to 20 cm from the shoulder."""
        own, angle, radius = jax.random.split(key, 3)
        phi = jax.random.uniform(angle, (), d.qpos.dtype, 0.0, 2 * np.pi)
        far = jax.random.uniform(radius, (), d.qpos.dtype, 0.05, 0.2)
        target = far * jnp.stack([jnp.sin(phi), jnp.cos(phi)])
        return d.replace(qpos=random_joints(m, d.qpos, own), userdata=target)

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return angles, the vector to the target, and velocities."""
        return jnp.concatenate([d.qpos, _to_target(m, d), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return 0 or 1."""
        away = _to_target(m, after)
        return tolerance(jnp.sum(away * away), (0.0, (self.size + _FINGER_RADIUS) ** 2))


def _to_target(m: Model, d: Data) -> jax.Array:
    return d.userdata - d.geom_xpos[name2id(m, "geom", "finger"), :2]
