"""Base class of the Control Suite's tasks: results of the state after the action, random starts.

Y. Tassa et al., DeepMind Control Suite, 2018. Rewards are between 0 and 1 for each action; an
episode has 1,000 actions and never terminates. Observations are one array here, in the order of the
Suite.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType
from jaxsim.envs.env import Env
from jaxsim.envs.reward import tolerance
from jaxsim.envs.tasks.packaged import packaged_model
from jaxsim.model.model import Model


class SuiteTask(Env):
    """A task of the Suite; subclasses set the attributes.

    Attributes:
      FILE: file of the model in the Suite.
      REPEAT: physics steps for each action.
      MEMORY: numbers that the task remembers.

    Args:
      given: arguments of `Env`.
    """

    FILE: ClassVar[str]
    REPEAT: ClassVar[int] = 1
    MEMORY: ClassVar[int] = 0

    def __init__(self, **given: Any):
        m = packaged_model("dm_control", "suite", f"suite/{self.FILE}.xml", memory=self.MEMORY)
        super().__init__(m, **{"repeat": self.REPEAT, "current": True} | given)


def random_joints(m: Model, qpos: jax.Array, key: jax.Array) -> jax.Array:
    """Return a configuration with random joint angles.

    Joints with limits are uniform between them, hinges without limits uniform on the circle; the
    quaternion of a free body is four uniform numbers between 0 and 1, normalized. All else is
    unchanged.

    Args:
      m: the model; it has no ball joints.
      qpos: configuration, (nq,).
      key: random key.
    """
    hinges, free = jax.random.split(key)
    kind, limited = np.array(m.jnt_type), np.array(m.jnt_limited, bool)
    drawn = np.flatnonzero((kind == JointType.HINGE) | limited & (kind == JointType.SLIDE))
    whole = jnp.array([-np.pi, np.pi], qpos.dtype)
    ends = jnp.where(limited[drawn, None], m.jnt_range[drawn], whole)
    low, high = ends[:, 0], ends[:, 1]
    angle = jax.random.uniform(hinges, (len(drawn),), qpos.dtype, low, high)
    qpos = qpos.at[np.array(m.jnt_qposadr)[drawn]].set(angle)
    for j in np.flatnonzero(kind == JointType.FREE):
        quat = jax.random.uniform(jax.random.fold_in(free, j), (4,), qpos.dtype)
        at = np.arange(3, 7) + m.jnt_qposadr[j]
        qpos = qpos.at[at].set(quat / jnp.sqrt(jnp.sum(quat * quat)))
    return qpos


def small_control(ctrl: jax.Array) -> jax.Array:
    """Return a term that is 1 at zero controls and 0.8 at their limits, on average."""
    small = tolerance(ctrl, margin=1.0, fall="quadratic", at_margin=0.0)
    return (4.0 + jnp.mean(small)) / 5.0
