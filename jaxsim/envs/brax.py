"""Adapter to Brax: its wrappers, PPO, SAC and APG train on these environments unchanged.

    ppo.train(environment=BraxEnv(Hop(m)), episode_length=1000, action_repeat=1, ...)

Brax terminates, truncates and resets episodes by its own wrappers. A world that diverged is done.
"""

from typing import Any

import jax

from jaxsim.envs.core.external_episodes import begin_outside, step_outside
from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.model.model import Model
from jaxsim.optional import require

_brax_base = require("brax.envs.base", "brax")


class BraxEnv(_brax_base.Env):  # type: ignore[name-defined]
    """One world as a `brax.envs.Env`; `pipeline_state` is the Data.

    Args:
      env: the task.
      model: the model of the worlds; None: that of the environment.
    """

    def __init__(self, env: Env, model: Model | None = None):
        self.env, self.sys = env, env.m if model is None else model

    def reset(self, rng: jax.Array) -> Any:
        """Return the state of a new episode, from a random key."""
        return _brax_state(begin_outside(self.env, self.sys, rng), {})

    def step(self, state: Any, action: jax.Array) -> Any:
        """Return the state after an action, (action_size,)."""
        result = step_outside(self.env, self.sys, state.pipeline_state, state, action)
        return _brax_state(result, state.info)

    @property
    def observation_size(self) -> Any:
        """Return the length of an observation, or the shapes of a dict of them."""
        return self.env.observation_size

    @property
    def action_size(self) -> int:
        """Return the length of an action."""
        return self.env.action_size

    @property
    def backend(self) -> str:
        """Return the name of the physics backend."""
        return "jaxsim"

    @property
    def dt(self) -> jax.Array:
        """Return the duration of an action [s]."""
        return self.env.dt


def _brax_state(state: State, info: dict[str, Any]) -> Any:
    return _brax_base.State(
        pipeline_state=state.data,
        obs=state.obs,
        reward=state.reward,
        done=state.done,
        metrics=state.metrics,
        info=info,
    )
