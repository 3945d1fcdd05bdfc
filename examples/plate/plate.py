"""A user-defined task: keep a ball in the middle of a plate that two motors tilt."""

from pathlib import Path

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.envs import Env


class Plate(Env):
    """Actions (2,) are angles of the plate, -1 and 1 are their limits; one takes 20 ms.

    The reward of an action is exp(-50 r^2), with the ball r meters from the middle.
    """

    def __init__(self, **given):
        m = jaxsim.load_model(Path(__file__).with_name("plate.xml"))
        super().__init__(m, **{"repeat": 4} | given)

    def start(self, m, d, key):
        """Return the ball at a random point of the plate."""
        place = jax.random.uniform(key, (2,), d.qpos.dtype, -0.15, 0.15)
        return d.replace(qpos=d.qpos.at[2:4].add(place))

    def observe(self, m, d):
        """Return angles of the plate and their velocities, position and velocity of the ball."""
        ball = [jaxsim.sensor_data(m, d, "ball"), d.qvel[2:5]]
        return jnp.concatenate([d.qpos[:2], d.qvel[:2], *ball])

    def reward(self, m, before, after, action):
        """Return the reward of the class's documentation."""
        place = jaxsim.sensor_data(m, after, "ball")[:2]
        return jnp.exp(-50 * jnp.sum(place * place))

    def terminal(self, m, d):
        """Return whether the ball has fallen off."""
        return jaxsim.sensor_data(m, d, "ball")[2] < -0.05
