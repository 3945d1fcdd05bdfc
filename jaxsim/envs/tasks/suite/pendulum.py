"""A pendulum that is swung up by a weak motor, and an acrobot: two links with a motor at the elbow.

Pendulum: 1 where the pole is within 8 degrees of upright, else 0. Acrobot: a term of the distance
from the tip to its place above, in full within 0.2 m and 0.1 at 1.2 m; the sparse task pays only
within 0.2 m.
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
    """Seen (3,): cosine and sine of the angle, velocity [rad/s]; an action takes 20 ms."""

    FILE = "pendulum"
    UPRIGHT = math.cos(math.radians(8.0))

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """At any angle, at rest."""
        return d.replace(qpos=jax.random.uniform(key, (1,), d.qpos.dtype, -np.pi, np.pi))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Direction and velocity."""
        return jnp.concatenate([jnp.cos(d.qpos), jnp.sin(d.qpos), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """0 or 1."""
        return tolerance(jnp.cos(after.qpos[0]), (self.UPRIGHT, 1.0))


class Acrobot(SuiteTask):
    """Seen (6,): sines and cosines of the directions of the links, velocities [rad/s].

    An action takes 10 ms.

    Args:
      sparse: whether only a tip in its place is paid.
      given: arguments of `Env`.
    """

    FILE = "acrobot"
    RADIUS = 0.2  # of the place [m]

    def __init__(self, *, sparse: bool = False, **given: Any):
        super().__init__(**given)
        self.sparse = sparse

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """At any angles, at rest."""
        return d.replace(qpos=jax.random.uniform(key, (2,), d.qpos.dtype, -np.pi, np.pi))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Directions and velocities."""
        direction = jnp.cumsum(d.qpos)
        return jnp.concatenate([jnp.sin(direction), jnp.cos(direction), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Between 0 and 1."""
        tip, place = (after.site_xpos[name2id(m, "site", n)] for n in ("tip", "target"))
        away = safe_sqrt(jnp.sum((tip - place) ** 2))
        margin = 0.0 if self.sparse else 1.0
        return tolerance(away, (0.0, self.RADIUS), margin=margin)
