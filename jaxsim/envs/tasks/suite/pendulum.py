"""A pendulum that a weak motor swings up, and an acrobot: two links with a motor at the elbow.

The reward of the pendulum is 1 where the pole is within 8 degrees of upright, else 0. That of the
acrobot depends on the distance of the tip from a target above it: 1 within 0.2 m, and decreasing to
0.1 at 1.2 m; in the sparse task it is 0 beyond 0.2 m.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask
from jaxsim.math.guard import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id


class Pendulum(SuiteTask):
    """Task of the pendulum; an action takes 20 ms.

    Observations (3,): cosine and sine of the angle, velocity [rad/s].
    """

    FILE = "pendulum"
    UPRIGHT = math.cos(math.radians(8.0))

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state at a random angle, at rest."""
        return d.replace(qpos=jax.random.uniform(key, (1,), d.qpos.dtype, -np.pi, np.pi))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return direction and velocity."""
        return jnp.concatenate([jnp.cos(d.qpos), jnp.sin(d.qpos), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return 1 where the pole is upright, else 0."""
        return tolerance(jnp.cos(after.qpos[0]), (self.UPRIGHT, 1.0))


class Acrobot(SuiteTask):
    """Task of the acrobot; an action takes 10 ms.

    Observations (6,): sines and cosines of the directions of the links, velocities [rad/s].

    Args:
      sparse: no reward beyond 0.2 m.
      given: arguments of `Env`.
    """

    FILE = "acrobot"
    RADIUS = 0.2  # radius of the target [m]

    def __init__(self, *, sparse: bool = False, **given: Any):
        super().__init__(**given)
        self.sparse = sparse

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state at random angles, at rest."""
        return d.replace(qpos=jax.random.uniform(key, (2,), d.qpos.dtype, -np.pi, np.pi))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return directions and velocities."""
        direction = jnp.cumsum(d.qpos)
        return jnp.concatenate([jnp.sin(direction), jnp.cos(direction), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        tip, target = (after.site_xpos[name2id(m, "site", n)] for n in ("tip", "target"))
        distance = safe_sqrt(jnp.sum((tip - target) ** 2))
        margin = 0.0 if self.sparse else 1.0
        return tolerance(distance, (0.0, self.RADIUS), margin=margin)
