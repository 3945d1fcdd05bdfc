"""Reacher and Pusher: an arm that reaches a target, or pushes an object to a goal."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.tasks.gymnasium.base import GymnasiumTask, effort
from jaxsim.math.guard import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id


class Reacher(GymnasiumTask):
    """Task of two links in a plane; an action takes 20 ms, an episode has 50.

    The reward is -|tip - target| - sum(action^2). Observations (10,): cosines and sines of the
    angles, the target (x, y) [m], velocities of the joints [rad/s], and the vector from the target
    to the tip (x, y) [m].
    """

    FILE, REPEAT, SPREAD, SPEED = "reacher", 2, 0.1, 5e-3
    RADIUS = 0.2

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the arm near straight, with a random target in a disk of 0.2 m."""
        own, angle, radius = jax.random.split(key, 3)
        d = super().start(m, d, own)
        far = self.RADIUS * jnp.sqrt(jax.random.uniform(radius, (), d.qpos.dtype))
        phi = 2 * np.pi * jax.random.uniform(angle, (), d.qpos.dtype)
        target = far * jnp.stack([jnp.cos(phi), jnp.sin(phi)])
        return d.replace(qpos=d.qpos.at[2:].set(target), qvel=d.qvel.at[2:].set(0.0))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return angles, target, velocities, and the vector to the tip."""
        angle = d.qpos[:2]
        away = _body_offset(m, d, "target", "fingertip")[:2]
        return jnp.concatenate([jnp.cos(angle), jnp.sin(angle), d.qpos[2:], d.qvel[:2], away])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the class's documentation."""
        return -_distance(m, after, "target", "fingertip") - effort(action)


class Pusher(GymnasiumTask):
    """Task of an arm of 7 joints that pushes a cylinder to a goal; an action takes 50 ms.

    An episode has 100 actions. The reward is -|cylinder - goal| - 0.5 |cylinder - tip| - 0.1
    sum(action^2). Observations (23,): positions [rad] and velocities [rad/s] of the arm, the tip,
    the cylinder and the goal [m].
    """

    FILE, REPEAT, SPREAD, SPEED = "pusher_v5", 5, 0.0, 5e-3
    LEAST = 0.17  # least distance from the cylinder to the goal at the start [m]
    DRAWS = 64  # draws of the cylinder; the probability that all are too near is 1e-27

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the cylinder at a random point of a rectangle that is not too near to the goal."""
        own, place = jax.random.split(key)
        d = super().start(m, d, own)
        low, high = (jnp.array(x, d.qpos.dtype) for x in ([-0.3, -0.2], [0.0, 0.2]))
        drawn = jax.random.uniform(place, (self.DRAWS, 2), d.qpos.dtype, low, high)
        first = jnp.argmax(jnp.sum(drawn * drawn, 1) > self.LEAST**2)
        qpos = jnp.concatenate([d.qpos[:-4], drawn[first], jnp.zeros(2, d.qpos.dtype)])
        return d.replace(qpos=qpos, qvel=d.qvel.at[-4:].set(0.0))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the arm, the tip, the cylinder, and the goal."""
        bodies = [name2id(m, "body", n) for n in ("tips_arm", "object", "goal")]
        return jnp.concatenate([d.qpos[:7], d.qvel[:7], *(d.xpos[b] for b in bodies)])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the class's documentation."""
        near = _distance(m, after, "tips_arm", "object")
        left = _distance(m, after, "goal", "object")
        return -left - 0.5 * near - 0.1 * effort(action)


def _body_offset(m: Model, d: Data, first: str, second: str) -> jax.Array:
    """Return the vector from one body to another, (3,) [m]."""
    return d.xpos[name2id(m, "body", second)] - d.xpos[name2id(m, "body", first)]


def _distance(m: Model, d: Data, first: str, second: str) -> jax.Array:
    """Return the distance between two bodies, () [m]."""
    return safe_sqrt(jnp.sum(_body_offset(m, d, first, second) ** 2))
