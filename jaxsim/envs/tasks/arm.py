"""An arm with a gripper, and a box on a table that is pushed to a goal or lifted to a height.

The reward of an action a is

    1 - tanh(5 |box - goal|) + 0.3 (1 - tanh(5 |tip - box|)) - 0.005 sum(a^2)

with distances in meters, and the tip between the ends of the fingers.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.io.load import load_model
from jaxsim.math.guard import safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id

ARM_MODEL = Path(__file__).with_name("arm.xml")
HOME_QPOS = (
    0.0,
    0.861,
    0.0,
    1.668,
    0.0,
    0.612,
    0.0,
)  # the hand points down, 0.4 m in front of the base
MAX_TARGET_STEP = 0.1  # change of the target of a joint in an action [rad]
_BOX_HALF_SIDE = 0.02  # half the side of the box, and half the travel of a finger [m]


class Arm(Env):
    """Task of the arm; subclasses define the goal.

    Actions (8,) between -1 and 1 move the targets of the seven joints by up to 0.1 rad, and set how
    far the gripper is closed; one takes 50 ms.

    Observations (48,): positions (9,) and velocities (9,) of the joints [rad, m], their targets
    (9,), the tip (3,) and the box (3,) [m], the first two columns of the rotation of the box (6,),
    its velocities (6,) [m/s, rad/s], and the vector from the box to the goal (3,) [m]. An episode
    of 200 actions terminates early where the box is out of reach: 0.8 m from the base.

    Args:
      given: arguments of `Env`.
    """

    def __init__(self, **given: Any):
        super().__init__(load_model(ARM_MODEL), **{"repeat": 10, "current": True} | given)

    @property
    def action_size(self) -> int:
        """Return 8: seven joints, and the gripper."""
        return 8

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the arm near its home, the gripper open, and the box in front at a random yaw."""
        keys = jax.random.split(key, 4)
        dtype = d.qpos.dtype
        home = jnp.array(HOME_QPOS, dtype)
        angle = home + 0.02 * jax.random.uniform(keys[0], (7,), dtype, -1.0, 1.0)
        low, high = jnp.array([0.34, -0.1], dtype), jnp.array([0.46, 0.1], dtype)
        place = jax.random.uniform(keys[1], (2,), dtype, low, high)
        half = np.pi * jax.random.uniform(keys[2], (), dtype, -0.25, 0.25)
        turned = jnp.array([1.0, 0, 0, 0], dtype) * jnp.cos(half)
        turned = turned.at[3].set(jnp.sin(half))
        box = jnp.concatenate([place, jnp.full(1, _BOX_HALF_SIDE, dtype)])
        qpos = jnp.concatenate([angle, jnp.zeros(2, dtype), box, turned])
        goal = self.goal(box, keys[3])
        return d.replace(qpos=qpos, ctrl=d.ctrl.at[:7].set(home), userdata=goal)

    def goal(self, box: jax.Array, key: jax.Array) -> jax.Array:
        """Return the goal of the box, (3,) [m], for a box that begins at `box` (3,)."""
        raise NotImplementedError

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Move the targets of the joints, and set those of the fingers."""
        action = jnp.clip(action, -1.0, 1.0)
        limits = m.actuator_ctrlrange[:7]
        target = jnp.clip(d.ctrl[:7] + MAX_TARGET_STEP * action[:7], limits[:, 0], limits[:, 1])
        closed = jnp.full(2, _BOX_HALF_SIDE, d.qpos.dtype) * (1.0 + action[7])
        return d.replace(ctrl=jnp.concatenate([target, closed]))

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the states of the arm and of the box, and the vector to the goal."""
        box = d.qpos[9:12]
        columns = d.xmat[name2id(m, "body", "box"), :, :2].ravel()
        return jnp.concatenate(
            [
                d.qpos[:9],
                d.qvel[:9],
                d.ctrl,
                _tip_position(m, d),
                box,
                columns,
                d.qvel[9:],
                d.userdata - box,
            ]
        )

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the module's documentation."""
        box = after.qpos[9:12]
        there = 1.0 - jnp.tanh(5.0 * _distance(box, after.userdata))
        near = 1.0 - jnp.tanh(5.0 * _distance(box, _tip_position(m, after)))
        return there + 0.3 * near - 0.005 * jnp.sum(action * action)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the box is out of reach."""
        return jnp.sum(d.qpos[9:12] ** 2) > 0.8**2

    def metrics(
        self, m: Model, before: Data, after: Data, action: jax.Array
    ) -> dict[str, jax.Array]:
        """Return the distance from the box to the goal [m]."""
        return {"distance": _distance(after.qpos[9:12], after.userdata)}

    def action_range(self) -> tuple[jax.Array, jax.Array]:
        """Return -1 and 1."""
        one = jnp.ones(self.action_size, self.begin.qpos.dtype)
        return -one, one


class ArmPush(Arm):
    """Task to push the box by 10 to 20 cm along the table."""

    def goal(self, box: jax.Array, key: jax.Array) -> jax.Array:
        """Return a goal on the table, in a random direction."""
        angle, far = jax.random.split(key)
        phi = jax.random.uniform(angle, (), box.dtype, -np.pi, np.pi)
        r = jax.random.uniform(far, (), box.dtype, 0.1, 0.2)
        return box + r * jnp.stack([jnp.cos(phi), jnp.sin(phi), jnp.zeros((), box.dtype)])


class ArmLift(Arm):
    """Task to lift the box by 10 to 25 cm."""

    def goal(self, box: jax.Array, key: jax.Array) -> jax.Array:
        """Return a goal above the box."""
        return box.at[2].add(jax.random.uniform(key, (), box.dtype, 0.1, 0.25))


def _tip_position(m: Model, d: Data) -> jax.Array:
    return d.site_xpos[name2id(m, "site", "tip")]


def _distance(a: jax.Array, b: jax.Array) -> jax.Array:
    return safe_sqrt(jnp.sum((a - b) ** 2))
