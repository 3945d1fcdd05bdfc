"""One leg in a plane that stands, or hops along x.

The term of standing is 1 where the torso is 0.6 to 2 m above the foot, else 0. It is multiplied by
a term of small controls; for hopping, by a term of the speed: 1 from 2 m/s on, 0.5 at 1 m/s, linear
to 0 at 0.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask, random_joints, small_control
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id


class SuiteHopper(SuiteTask):
    """Task of the hopper; an action takes 20 ms.

    Observations (15,): positions without x [m, rad], velocities, and log(1 + f) of the forces f on
    toe and heel [N] of the last physics step.

    Args:
      hop: whether it hops rather than stands.
      given: arguments of `Env`.
    """

    FILE, REPEAT = "hopper", 4

    def __init__(self, *, hop: bool, **given: Any):
        super().__init__(**given)
        self.hop = hop

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state with random angles, at rest, at 1 m."""
        return d.replace(qpos=random_joints(m, d.qpos, key))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return positions, velocities, and touch."""
        touch = jnp.concatenate([sensor_data(m, d, n) for n in ("touch_toe", "touch_heel")])
        return jnp.concatenate([d.qpos[1:], d.qvel, jnp.log1p(touch)])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        torso, foot = (after.xipos[name2id(m, "body", n), 2] for n in ("torso", "foot"))
        standing = tolerance(torso - foot, (0.6, 2.0))
        if not self.hop:
            return standing * small_control(after.ctrl)
        speed = sensor_data(m, after, "torso_subtreelinvel")[0]
        fast = tolerance(speed, (2.0, math.inf), margin=1.0, fall="linear", at_margin=0.5)
        return standing * fast
