"""Run episodes of a policy that explores, and return their rows.

Episode i of a dataset is a function of the seed and i: its start and its noise follow from one
random key. It therefore does not depend on the processes, the batch or the order in which episodes
are run.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.envs.env import Env
from jaxsim.envs.state import Observation
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.learn.dataset.layout import NEXT, OBSERVATION, Column
from jaxsim.learn.evaluate import Act

_NOISE_SALT = 7  # folded into the key of an episode for its exploration
STATE_FIELDS = ("qpos", "qvel")


class Exploration(NamedTuple):
    """Difference of the actions from those of the policy.

    Attributes:
      noise: standard deviation of Gaussian noise, in half ranges of each action.
      random: probability that an action is drawn uniformly from its range instead.
    """

    noise: float = 0.0
    random: float = 0.0

    def check(self, env: Env) -> None:
        """Check that actions of a task can be explored.

        Raises:
          ValueError: a number is out of range, or an action has no finite range.
        """
        if not 0 <= self.noise < np.inf:
            raise ValueError(f"noise: expected a finite number of at least 0, got {self.noise}")
        if not 0 <= self.random <= 1:
            raise ValueError(f"random: expected a probability from 0 to 1, got {self.random}")
        unbounded = np.flatnonzero(~np.isfinite(np.stack(env.action_range())).all(axis=0))
        if (self.noise or self.random) and len(unbounded):
            raise ValueError(
                f"noise, random: action {unbounded[0]} has no finite range; set both to 0, or "
                "define action_range in the task"
            )


NO_EXPLORATION = Exploration()


class Rows(NamedTuple):
    """Rows of a batch of episodes, and their ends.

    Attributes:
      values: columns by name, (length, episodes, ...); rows after the end of an episode are not
        meaningful.
      final: observations after the last of `length` actions, by the name of their column.
      alive: whether the episode had not ended before an action, bool (length, episodes).
      diverged: whether the world diverged at an action, bool (length, episodes).
    """

    values: dict[str, jax.Array]
    final: dict[str, jax.Array]
    alive: jax.Array
    diverged: jax.Array


def run_episodes(
    worlds: VectorEnv | Wrapper,
    act: Act,
    policy: Any,
    keys: jax.Array,
    exploration: Exploration,
    fields: tuple[str, ...] = (),
) -> Rows:
    """Run an episode in each world.

    Args:
      worlds: the worlds, which reset at the action after the last one (`autoreset="next"`).
      act: (policy, observations) -> actions.
      policy: state of a learner.
      keys: random keys of the episodes, (episodes,).
      exploration: noise and random actions.
      fields: fields of Data that are recorded too, before each action.
    """
    begun = worlds.reset(keys)
    own = jax.vmap(lambda key: jax.random.fold_in(key, _NOISE_SALT))(keys)

    def iteration(carry: Any, step: jax.Array) -> tuple[Any, Any]:
        state, alive = carry
        action = _explore(worlds.env, act(policy, state.obs), own, step, exploration)
        after = worlds.step(state, action)
        row = observation_columns(state.obs) | {
            "action": action,
            "reward": after.reward,
            "terminated": after.info["terminated"],
            "truncated": after.info["truncated"],
        }
        row |= {name: getattr(state.data, name) for name in fields}
        return (after, alive & (after.done == 0)), (row, alive, after.info["diverged"])

    start = begun, jnp.ones(begun.done.shape, bool)
    steps = jnp.arange(worlds.length)
    (last, _), (values, alive, diverged) = lax.scan(iteration, start, steps)
    return Rows(values, observation_columns(last.obs), alive, diverged)


def _explore(
    env: Env, action: jax.Array, keys: jax.Array, step: jax.Array, exploration: Exploration
) -> jax.Array:
    """Return the actions that are taken, within their range; one that is not finite is zero."""
    action = jnp.where(jnp.isfinite(action).all(axis=1, keepdims=True), action, 0)
    if not (exploration.noise or exploration.random):
        return action
    low, high = (x.astype(action.dtype) for x in env.action_range())

    def of_world(action: jax.Array, key: jax.Array) -> jax.Array:
        noise, chance, uniform = jax.random.split(jax.random.fold_in(key, step), 3)
        spread = exploration.noise * 0.5 * (high - low)
        noisy = action + spread * jax.random.normal(noise, action.shape, action.dtype)
        other = jax.random.uniform(uniform, action.shape, action.dtype, low, high)
        random = jax.random.uniform(chance) < exploration.random
        return jnp.where(random, other, jnp.clip(noisy, low, high))

    return jax.vmap(of_world)(action, keys)


def observation_columns(obs: Observation) -> dict[str, jax.Array]:
    """Return observations by the name of their column: "observation", or "observation.NAME"."""
    if not isinstance(obs, Mapping):
        return {OBSERVATION: obs}
    return {f"{OBSERVATION}.{name}": x for name, x in obs.items()}


def columns_of_rows(shapes: Rows) -> tuple[Column, ...]:
    """Return the columns of the rows of `run_episodes`, from their shapes."""
    meanings = {
        "action": ("", "the action that was taken"),
        "reward": ("", "its reward"),
        "terminated": ("", "whether the task ended the episode at this action"),
        "truncated": ("", "whether its length ended the episode at this action"),
        "qpos": ("m, rad", "positions before the action, as Data.qpos"),
        "qvel": ("m/s, rad/s", "velocities before the action, as Data.qvel"),
    }
    columns = []
    order = [*shapes.final, *(name for name in meanings if name in shapes.values)]
    for name in order:
        x = shapes.values[name]
        unit, meaning = meanings.get(name, ("", "observation before the action"))
        columns.append(Column(name, str(x.dtype), tuple(x.shape[2:]), unit, meaning))
        if name in shapes.final:
            after = "observation after the action"
            columns.append(Column(NEXT + name, str(x.dtype), tuple(x.shape[2:]), unit, after))
    return tuple(columns)


def episode_rows(rows: Rows, world: int) -> dict[str, np.ndarray]:
    """Return the columns of one episode, (steps, ...), up to its end.

    Args:
      rows: the rows of all worlds, as numpy arrays.
      world: index of the world.
    """
    steps = int(np.sum(rows.alive[:, world]))
    found = {name: np.asarray(x[:steps, world]) for name, x in rows.values.items()}
    for name, last in rows.final.items():
        # The observation after an action is the one before the next, also at the end.
        later = np.asarray(rows.values[name][1 : steps + 1, world])
        whole = later if len(later) == steps else np.concatenate([later, last[None, world]])
        found[NEXT + name] = np.asarray(whole)
    return found
