"""Evaluation of a policy: whole episodes, with the same starts each time.

The motion of every episode is recorded, so that scored episodes can be viewed.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jaxsim.envs.state import Observation
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper

_RECORDED_FIELDS = ("time", "qpos", "qvel", "ctrl")
Act = Callable[[Any, Observation], jax.Array]


class Scores(struct.PyTreeNode):
    """Episodes of a policy.

    Attributes:
      score: sum of rewards, (episodes,).
      steps: number of actions, (episodes,).
      diverged: whether the world diverged, bool (episodes,).
      motion: the states before each action and the controls, (actions, episodes, ...); entries
        after the end of an episode are not meaningful.
    """

    score: jax.Array
    steps: jax.Array
    diverged: jax.Array
    motion: dict[str, jax.Array]


def evaluate(worlds: VectorEnv | Wrapper, act: Act, policy: Any, keys: jax.Array) -> Scores:
    """Run an episode in each world.

    Args:
      worlds: the worlds.
      act: (policy, observations) -> actions.
      policy: state of a learner.
      keys: random keys of the starts, (episodes,).
    """
    state = worlds.reset(keys)
    zero = jnp.zeros_like(state.reward)
    alive = jnp.ones(zero.shape, bool)
    start = (state, alive, zero, jnp.zeros(zero.shape, jnp.int32), ~alive)

    def iteration(carry: Any, _: None) -> tuple[Any, dict[str, jax.Array]]:
        state, alive, score, steps, diverged = carry
        after = worlds.step(state, act(policy, state.obs))
        motion = {name: getattr(state.data, name) for name in _RECORDED_FIELDS}
        motion["ctrl"] = after.data.ctrl  # the control applied in the state before
        score += jnp.where(alive, after.reward, jnp.zeros_like(score))
        steps += alive.astype(steps.dtype)
        diverged |= alive & after.info["diverged"]
        return (after, alive & (after.done == 0), score, steps, diverged), motion

    (_, _, score, steps, diverged), motion = lax.scan(iteration, start, length=worlds.length)
    return Scores(score, steps, diverged, motion)
