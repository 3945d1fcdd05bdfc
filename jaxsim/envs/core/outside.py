"""Worlds whose episodes others count: what the adapters to Brax and Playground have in common.

Their wrappers end, truncate and renew episodes, and keep what they need in `info`, of which an
environment sees nothing. To `metrics` comes whether the world blew up.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.model.data import Data
from jaxsim.model.model import Model


def begin_outside(env: Env, m: Model, key: jax.Array) -> State:
    """A new episode; `info` is empty."""
    return _without_info(env.reset(key, m), {})


def step_outside(env: Env, m: Model, d: Data, theirs: Any, action: jax.Array) -> State:
    """One action; `info` is empty.

    Args:
      env: the task.
      m: the model of this world.
      d: the world.
      theirs: the state of others, of which `obs`, `reward`, `done` and `metrics` are read.
      action: (action_size,).
    """
    no = jnp.zeros((), bool)
    flags = dict.fromkeys(("terminated", "truncated", "diverged"), no)
    own = jax.eval_shape(env.reset, jax.random.key(0)).metrics
    before = State(
        data=d,
        obs=theirs.obs,
        reward=theirs.reward,
        done=theirs.done,
        metrics={name: theirs.metrics[name] for name in own},
        info={"steps": jnp.zeros((), jnp.int32), **flags},
    )
    return _without_info(env.step(before, action, m), theirs.metrics)


def _without_info(state: State, old: dict[str, Any]) -> State:
    diverged = state.info["diverged"].astype(state.reward.dtype)
    return state.replace(info={}, metrics=old | state.metrics | {"diverged": diverged})
