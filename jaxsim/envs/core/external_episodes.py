"""Worlds whose episodes are counted by wrappers of Brax and Playground: parts of both adapters.

The wrappers terminate, truncate and reset episodes, and store their values in `info`, which the
environment does not see. `metrics` reports whether the world diverged.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.model.data import Data
from jaxsim.model.model import Model


def begin_outside(env: Env, m: Model, key: jax.Array) -> State:
    """Return the state of a new episode; `info` is empty."""
    return _reset_info(env.reset(key, m), {})


def step_outside(env: Env, m: Model, d: Data, theirs: Any, action: jax.Array) -> State:
    """Return the state after an action; `info` is empty.

    Args:
      env: the task.
      m: the model of this world.
      d: the world.
      theirs: state of the other library, of which `obs`, `reward`, `done` and `metrics` are read.
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
    return _reset_info(env.step(before, action, m), theirs.metrics)


def _reset_info(state: State, old: dict[str, Any]) -> State:
    diverged = state.info["diverged"].astype(state.reward.dtype)
    return state.replace(info={}, metrics=old | state.metrics | {"diverged": diverged})
