"""A pole on a cart that is balanced or swung up; the cart-pole of the Control Suite.

Observations: position of the cart, cosine and sine of the angle, both velocities. The reward of an
action, between 0 and 1, is a product of how upright the pole is, how near the cart is to the
middle, and how small the control and the angular velocity are. The reward of the sparse tasks is 1
where the cart is within 0.25 m of the middle and the cosine of the angle of the pole is at least
0.995, else 0.
"""

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.env import Env
from jaxsim.envs.reward import tolerance
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.model import Model

CARTPOLE_MODEL = Path(__file__).with_name("cartpole.xml")


class Cartpole(Env):
    """Task of the cart-pole: an episode has 1,000 actions of 10 ms and never terminates.

    Args:
      swing_up: whether the pole begins below.
      sparse: whether the reward is the sparse one.
      given: arguments of `Env`.
    """

    def __init__(self, *, swing_up: bool, sparse: bool = False, **given: Any):
        super().__init__(load_model(CARTPOLE_MODEL), **given)
        self.swing_up, self.sparse = swing_up, sparse

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the pole near the top or the bottom, nearly at rest."""
        position, velocity = jax.random.split(key)
        dtype = d.qpos.dtype
        if self.swing_up:
            spread = 0.01 * jax.random.normal(position, (2,), dtype)
            qpos = spread + jnp.array([0.0, math.pi], dtype)
        else:
            most = jnp.array([0.1, 0.034], dtype)
            qpos = most * jax.random.uniform(position, (2,), dtype, -1.0, 1.0)
        return d.replace(qpos=qpos, qvel=0.01 * jax.random.normal(velocity, (2,), dtype))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return position [m], cosine and sine of the angle, velocities [m/s, rad/s], (5,)."""
        angle = d.qpos[1]
        return jnp.concatenate([jnp.stack([d.qpos[0], jnp.cos(angle), jnp.sin(angle)]), d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        if self.sparse:
            standing = tolerance(jnp.cos(after.qpos[1]), (0.995, 1.0))
            return standing * tolerance(after.qpos[0], (-0.25, 0.25))
        upright = 0.5 * (1 + jnp.cos(after.qpos[1]))
        centered = 0.5 * (1 + tolerance(after.qpos[0], margin=2.0))
        effort = tolerance(after.ctrl[0], margin=1.0, fall="quadratic", at_margin=0.0)
        slow = tolerance(after.qvel[1], margin=5.0)
        return upright * centered * (4 + effort) / 5 * (1 + slow) / 2

    def metrics(
        self, m: Model, before: Data, after: Data, action: jax.Array
    ) -> dict[str, jax.Array]:
        """Return how upright the pole is, 0 to 1."""
        return {"upright": 0.5 * (1 + jnp.cos(after.qpos[1]))}
