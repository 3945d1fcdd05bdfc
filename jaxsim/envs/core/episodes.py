"""Worlds as learners use them: observations of one array, and the results of past episodes."""

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxsim.envs.state import Observation, State
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.spelling import remedy


class Episodes(struct.PyTreeNode):
    """A world and the results of its episodes.

    Attributes:
      world: the State.
      score: return of the current episode so far, ().
      last_score: return of the last complete episode.
      last_steps: number of actions in it; 0: there was none.
    """

    world: State
    score: jax.Array
    last_score: jax.Array
    last_steps: jax.Array


class EpisodeWorlds:
    """Worlds with flat observations that record the results of their episodes.

    Observations that are a dict are one vector: their arrays are concatenated in the order of their
    names; `columns` returns the indices of each.

    Args:
      worlds: a `VectorEnv` with `autoreset="next"`, or a wrapper of one.

    Raises:
      ValueError: `autoreset` is not "next".
    """

    def __init__(self, worlds: VectorEnv | Wrapper):
        self.worlds = worlds
        if worlds.autoreset != "next":
            raise ValueError(f"autoreset: learners need 'next', got {worlds.autoreset!r}")
        keys = jax.random.split(jax.random.key(0), worlds.count or 1)
        self._seen = jax.eval_shape(worlds.reset, keys).obs
        flat = jax.eval_shape(self.flat, self._seen)
        self.observation_shape: tuple[int, ...] = flat.shape[1:]
        self.dtype = flat.dtype

    def flat(self, obs: Observation) -> jax.Array:
        """Return observations as one array: (worlds, size) if they are a dict."""
        if not isinstance(obs, Mapping):
            return obs
        rows = [jnp.reshape(obs[name], (len(obs[name]), -1)) for name in sorted(obs)]
        dtype = jnp.result_type(float)
        return jnp.concatenate([x.astype(dtype) for x in rows], axis=1)

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Return the indices of some observations in the vector, ascending.

        Raises:
          ValueError: observations are not a dict, or have no such name.
        """
        if not isinstance(self._seen, Mapping):
            raise ValueError(f"observations are one array, not a dict with {names[0]!r}")
        sizes = {n: math.prod(self._seen[n].shape[1:]) for n in sorted(self._seen)}
        for name in names:
            if name not in sizes:
                there = "; there are: " + ", ".join(sizes)
                raise ValueError(f"no observation {name!r}{remedy(name, sizes, there)}")
        return np.flatnonzero(np.concatenate([np.full(n, x in names) for x, n in sizes.items()]))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the observations in order; () if they are one array."""
        return tuple(sorted(self._seen)) if isinstance(self._seen, Mapping) else ()

    def reset_all(self, keys: jax.Array) -> tuple[jax.Array, Episodes]:
        """Return the observations and states of new episodes of all worlds; keys (worlds,)."""
        world = self.worlds.reset(keys)
        zero = jnp.zeros_like(world.reward)
        steps = jnp.zeros(zero.shape, jnp.int32)
        return self.flat(world.obs), Episodes(world, zero, zero, steps)

    def step_all(
        self, state: Episodes, action: jax.Array
    ) -> tuple[jax.Array, Episodes, jax.Array, jax.Array]:
        """Take an action in each world; return observation, state, reward, termination."""
        world = self.worlds.step(state.world, action)
        over = world.done > 0
        score = state.score + world.reward
        after = Episodes(
            world,
            jnp.where(over, jnp.zeros_like(score), score),
            jnp.where(over, score, state.last_score),
            jnp.where(over, world.info["steps"], state.last_steps),
        )
        return self.flat(world.obs), after, world.reward, world.info["terminated"]
