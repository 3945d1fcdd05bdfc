"""A body of 21 joints that stands, walks or runs in any direction.

    stand = gentle high upright still
    move  = gentle high upright (5 fast + 1) / 6

`high` is 1 where the head is above 1.4 m, and 0.1 at 1.05 m; `upright` 1 where the vertical
component of the torso's axis is at least 0.9, linear to 0 where it points down; `still` the mean
over x and y of a term that is 1 at rest and 0.1 at 2 m/s; `fast` is linear in the speed of the
center of mass, up to the wanted one.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.envs.core.current_results import refresh_world
from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.suite.base import SuiteTask, random_joints, small_control
from jaxsim.math.guard import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.lookup import sensor_data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id

LIMBS = ("left_hand", "left_foot", "right_hand", "right_foot")


class SuiteHumanoid(SuiteTask):
    """Task of the humanoid; an action takes 25 ms.

    Observations (67,): joint angles (21,), height of the head [m], positions of hands and feet in
    the frame of the torso (12,) [m], the vertical in that frame (3,), velocity of the center of
    mass (3,), velocities (27,).

    Args:
      speed: wanted speed [m/s]; 0: it stands.
      given: arguments of `Env`.
    """

    FILE, REPEAT = "humanoid", 5
    long_start = True

    def __init__(self, *, speed: float, **given: Any):
        super().__init__(**given)
        self.speed = speed

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state at rest with random angles and orientation, without contacts."""

        def touches_ground(found: tuple[jax.Array, jax.Array]) -> jax.Array:
            moved = refresh_world(m, d.replace(qpos=found[1]))
            return moved.ncon > 0

        def draw(found: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            key, own = jax.random.split(found[0])
            return key, random_joints(m, d.qpos, own)

        return d.replace(qpos=lax.while_loop(touches_ground, draw, draw((key, d.qpos)))[1])

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the observation of the class's documentation."""
        torso, head = (name2id(m, "body", n) for n in ("torso", "head"))
        limbs = jnp.stack([d.xpos[name2id(m, "body", n)] - d.xpos[torso] for n in LIMBS])
        return jnp.concatenate(
            [
                d.qpos[7:],
                d.xpos[head, 2:],
                (limbs @ d.xmat[torso]).ravel(),
                d.xmat[torso, 2],
                sensor_data(m, d, "torso_subtreelinvel"),
                d.qvel,
            ]
        )

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return a reward between 0 and 1."""
        torso, head = (name2id(m, "body", n) for n in ("torso", "head"))
        high = tolerance(after.xpos[head, 2], (1.4, math.inf), margin=0.35)
        upright = tolerance(
            after.xmat[torso, 2, 2], (0.9, math.inf), margin=1.9, fall="linear", at_margin=0.0
        )
        stand = high * upright * small_control(after.ctrl)
        velocity = sensor_data(m, after, "torso_subtreelinvel")[:2]
        if not self.speed:
            return stand * jnp.mean(tolerance(velocity, margin=2.0))
        speed = safe_sqrt(jnp.sum(velocity * velocity))
        fast = tolerance(
            speed, (self.speed, math.inf), margin=self.speed, fall="linear", at_margin=0.0
        )
        return stand * (5.0 * fast + 1.0) / 6.0
