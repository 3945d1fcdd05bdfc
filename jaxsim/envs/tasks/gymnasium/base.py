"""Base class of Gymnasium's tasks: the action is the control, and starts are near `qpos0`.

Results are those of `mj_step`: poses and forces belong to the state before the last physics step,
or with RK4 to its last stage. M. Towers et al., Gymnasium, 2024; version 5 of the tasks.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxsim.enums import SolverType
from jaxsim.envs.env import Env
from jaxsim.envs.tasks.packaged import packaged_model
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class GymnasiumTask(Env):
    """A task of Gymnasium; subclasses set the attributes.

    Attributes:
      FILE: file of the model in Gymnasium. Newton's method is used whatever solver it sets, as it
        is the fastest here.
      REPEAT: physics steps for each action.
      SPREAD: half width of the uniform distribution of positions about `qpos0` [m, rad].
      SPEED: half width of the uniform distribution of initial velocities [m/s, rad/s]; their
        standard deviation if `NORMAL`.
      NORMAL: initial velocities are normally distributed.
      MEMORY: length of `userdata`, which keeps values between actions.

    Args:
      given: arguments of `Env`.
    """

    FILE: ClassVar[str]
    REPEAT: ClassVar[int]
    SPREAD: ClassVar[float]
    SPEED: ClassVar[float]
    NORMAL: ClassVar[bool] = False
    MEMORY: ClassVar[int] = 0

    def __init__(self, **given: Any):
        path = f"envs/mujoco/assets/{self.FILE}.xml"
        m = packaged_model("gymnasium", "rl", path, memory=self.MEMORY)
        m = m.replace(opt=m.opt.replace(solver=SolverType.NEWTON))
        super().__init__(m, **{"repeat": self.REPEAT} | given)

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state near `qpos0`, nearly at rest; quaternions are disturbed by components."""
        position, velocity = jax.random.split(key)
        draw = jax.random.normal if self.NORMAL else _uniform
        qpos = d.qpos + self.SPREAD * _uniform(position, d.qpos.shape, d.qpos.dtype)
        return d.replace(qpos=qpos, qvel=self.SPEED * draw(velocity, d.qvel.shape, d.qvel.dtype))

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Apply the action as the control; actuators clip it to their range."""
        return d.replace(ctrl=action)

    def action_range(self) -> tuple[jax.Array, jax.Array]:
        """Return the limits of the controls."""
        limits = self.m.actuator_ctrlrange
        return limits[:, 0], limits[:, 1]


def _uniform(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    """Return uniform numbers between -1 and 1."""
    return jax.random.uniform(key, shape, dtype, -1.0, 1.0)


def effort(action: jax.Array) -> jax.Array:
    """Return the sum of the squares of an action."""
    return jnp.sum(action * action)
