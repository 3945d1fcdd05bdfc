"""Half a cheetah that runs along x; the reward is proportional to the speed up to 1 at 10 m/s."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import step


class SuiteCheetah(SuiteTask):
    """Task of the cheetah; an action takes 10 ms.

    Observations (17,): positions without x [m, rad], velocities.
    """

    FILE = "cheetah"
    SETTLE = 200  # physics steps before an episode
    long_start = True

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state with random joint angles after 2 s without control."""
        limited = np.flatnonzero(np.array(m.jnt_limited))
        low, high = m.jnt_range[limited, 0], m.jnt_range[limited, 1]
        angle = jax.random.uniform(key, (len(limited),), d.qpos.dtype, low, high)
        dropped = d.replace(qpos=d.qpos.at[limited].set(angle))
        d = lax.fori_loop(0, self.SETTLE, lambda _, d: step(m, d), dropped)
        return d.replace(time=jnp.zeros_like(d.time))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return positions and velocities."""
        return jnp.concatenate([d.qpos[1:], d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        speed = sensor_data(m, after, "torso_subtreelinvel")[0]
        return tolerance(speed, (10.0, math.inf), margin=10.0, fall="linear", at_margin=0.0)
