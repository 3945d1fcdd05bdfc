"""Adapter to dm_env, the interface of the Control Suite and of Acme: one world.

    env = DmEnv(Hop(m), length=1000, seed=0)
    timestep = env.reset()
    while not timestep.last():
        timestep = env.step(policy(timestep.observation))

The last discount of an episode is 0 if the task terminated or the world diverged, and 1 if the
episode was truncated at its length. Results are numpy arrays, copied from the device once a step.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.core.programs import Programs
from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.optional import require
from jaxsim.physics.public.arguments import check_count

dm_env = require("dm_env", "dm-env")
specs = require("dm_env.specs", "dm-env")


class DmEnv(Programs, dm_env.Environment):  # type: ignore[name-defined]
    """One world as a `dm_env.Environment`; after the end of an episode the next `step` resets.

    Args:
      env: the task.
      length: actions of an episode, after which it is truncated.
      seed: seed of the random numbers; None draws one.

    Attributes:
      state: the State of the world; None before the first `reset`. A control that is not finite is
        replaced by zero and counted: `jaxsim.check_warnings(env.state.data)` reports it.
    """

    def __init__(self, env: Env, *, length: int = 1000, seed: int | None = None):
        self.env, self.length = env, check_count("length", length)
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._key = jax.random.key(seed)
        self._over = True
        self.state: State | None = None
        self._compile()

    def _compile(self) -> None:
        """Compile the programs that pickles leave out."""
        self._reset, self._step = jax.jit(self.env.reset), jax.jit(self.env.step)

    def reset(self) -> Any:
        """Begin a new episode; return its first TimeStep."""
        self._key, own = jax.random.split(self._key)
        self.state = self._reset(own, self.env.m)
        self._over = False
        return dm_env.restart(_to_host(self.state.obs))

    def step(self, action: Any) -> Any:
        """Take an action, (action_size,); after a last TimeStep, reset instead.

        Raises:
          ValueError: the action has another shape.
        """
        if self.state is None or self._over:
            return self.reset()
        action = jnp.asarray(action, self.state.reward.dtype)
        self.state = self._step(self.state, action, self.env.m)
        reward, obs = _to_host(self.state.reward)[()], _to_host(self.state.obs)
        ended = bool(self.state.info["terminated"])
        self._over = ended or int(self.state.info["steps"]) >= self.length
        if ended:
            return dm_env.termination(reward, obs)
        return dm_env.truncation(reward, obs) if self._over else dm_env.transition(reward, obs)

    def observation_spec(self) -> Any:
        """Return the spec of observations: an `Array`, or a dict of them."""
        seen = jax.eval_shape(self.env.observe, self.env.m, self.env.begin)
        if isinstance(seen, dict):
            return {name: specs.Array(x.shape, x.dtype, name) for name, x in seen.items()}
        return specs.Array(seen.shape, seen.dtype, "observation")

    def action_spec(self) -> Any:
        """Return the spec of actions, a `BoundedArray` with their limits, (action_size,)."""
        low, high = (np.asarray(x) for x in self.env.action_range())
        return specs.BoundedArray(low.shape, low.dtype, low, high, "action")

    def reward_spec(self) -> Any:
        """Return the spec of rewards: an `Array` of shape () in the precision of the physics."""
        return specs.Array((), self.env.begin.qpos.dtype, "reward")


def _to_host(x: Any) -> Any:
    return jax.tree.map(np.array, x)  # own copies, which users may keep and change
