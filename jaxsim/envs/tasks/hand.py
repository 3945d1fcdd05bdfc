"""A hand of four fingers that rotates a cube on its palm about the vertical as fast as it can.

The reward of an action a is

    min(max(s w_z, -2), 2) - 0.01 sum(a^2)

with w_z the angular velocity of the cube [rad/s] and s, 1 or -1, the sense of rotation of the
episode.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.io.load import load_model
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id

HAND_MODEL = Path(__file__).with_name("hand.xml")


class HandCube(Env):
    """Task of the hand.

    Actions (12,) are the targets of the joints, -1 and 1 are their limits; one takes 50 ms.

    Observations (40,): positions (12,) [rad] and velocities (12,) [rad/s] of the joints; position
    (3,) [m], the first two columns of the rotation (6,), and velocities (6,) [m/s, rad/s] of the
    cube; the sense of rotation (1,). An episode of 200 actions terminates early where the cube is
    more than 5 cm from the middle, or 8 cm above the palm.

    Args:
      given: arguments of `Env`.
    """

    def __init__(self, **given: Any):
        super().__init__(load_model(HAND_MODEL), **{"repeat": 10, "current": True} | given)

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the fingers nearly straight, and the cube near the middle at a random yaw."""
        keys = jax.random.split(key, 4)
        dtype = d.qpos.dtype
        finger = d.qpos[:12] + 0.05 * jax.random.uniform(keys[0], (12,), dtype)
        place = d.qpos[12:15].at[:2].add(5e-3 * jax.random.uniform(keys[1], (2,), dtype, -1.0, 1.0))
        half = np.pi * jax.random.uniform(keys[2], (), dtype, -0.5, 0.5)
        turned = d.qpos[15:].at[0].set(jnp.cos(half)).at[3].set(jnp.sin(half))
        way = jax.random.rademacher(keys[3], (1,), dtype)
        return d.replace(qpos=jnp.concatenate([finger, place, turned]), userdata=way)

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the states of the fingers and of the cube, and the sense of rotation."""
        columns = d.xmat[name2id(m, "body", "cube"), :, :2].ravel()
        cube = [d.qpos[12:15], columns, d.qvel[12:]]
        return jnp.concatenate([d.qpos[:12], d.qvel[:12], *cube, d.userdata])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the module's documentation."""
        turning = after.userdata[0] * sensor_data(m, after, "cube")[2]
        return jnp.clip(turning, -2.0, 2.0) - 0.01 * jnp.sum(action * action)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the cube has left the palm."""
        x, y, z = d.qpos[12:15]
        return (x * x + y * y > 0.05**2) | (z > 0.08)

    def metrics(
        self, m: Model, before: Data, after: Data, action: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the angular velocity of the cube in the wanted sense [rad/s]."""
        return {"turning": after.userdata[0] * sensor_data(m, after, "cube")[2]}
