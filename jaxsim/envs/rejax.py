"""Adapter to rejax: its PPO, SAC and TD3 are pure functions that include the physics.

    algorithm = rejax.PPO.create(env=RejaxEnv(VectorEnv(env, length=1000)), num_envs=64)
    state = jax.jit(algorithm.init_state)(jax.random.key(0))
    state = jax.jit(algorithm.train_iteration)(state)

rejax batches `reset` and `step` of one world by `vmap`. The batching rule replaces the batch by a
step of all worlds, so differing models, frame stacks, delays and noise work. Episodes reset
automatically. `done` is true only where the task terminated: after a truncation the learner
bootstraps from the value of the new initial state. rejax supports single precision only.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxsim.envs.core.programs import Programs
from jaxsim.envs.state import Observation, State
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.optional import require
from jaxsim.spelling import remedy

_spaces = require("gymnax.environments.spaces", "rl")


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


@struct.dataclass
class RejaxParameters:
    """Environment parameters that rejax reads.

    Attributes:
      max_steps_in_episode: actions of an episode.
    """

    max_steps_in_episode: int = struct.field(pytree_node=False, default=1000)


class RejaxEnv(Programs):
    """Worlds with the interface of gymnax 0, which rejax uses.

    Observations that are a dict are one vector for rejax: their arrays are concatenated in the
    order of their names; `columns` returns the indices of each.

    Args:
      worlds: a `VectorEnv` with `autoreset="next"`, or a wrapper of one.

    Raises:
      ValueError: `autoreset` is not "next", or JAX is in double precision, which rejax does not
        support.
    """

    name = "jaxsim"

    def __init__(self, worlds: VectorEnv | Wrapper):
        self.worlds = worlds
        if jax.config.values["jax_enable_x64"]:
            raise ValueError("rejax runs in single precision: leave jax_enable_x64 off")
        if worlds.autoreset != "next":
            raise ValueError(f"autoreset: rejax needs 'next', got {worlds.autoreset!r}")
        keys = jax.random.split(jax.random.key(0), worlds.count or 1)
        self._seen = jax.eval_shape(worlds.reset, keys).obs
        self._observation = jax.eval_shape(self.flat, self._seen).shape[1:]
        self._compile()

    def _compile(self) -> None:
        """Compile the programs that pickles leave out."""
        count = self.worlds.count or 1
        self._reset_one = _batch_worlds_together(self.reset_all, count)
        self._step_one = _batch_worlds_together(self.step_all, count)

    def flat(self, obs: Observation) -> jax.Array:
        """Return observations in rejax's form: (worlds, size) if they are a dict."""
        if not isinstance(obs, Mapping):
            return obs
        rows = [jnp.reshape(obs[name], (len(obs[name]), -1)) for name in sorted(obs)]
        return jnp.concatenate([x.astype(jnp.float32) for x in rows], axis=1)

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

    @property
    def default_params(self) -> RejaxParameters:
        """Return the length of an episode."""
        return RejaxParameters(self.worlds.length)

    def observation_space(self, params: RejaxParameters) -> Any:
        """Return a box without limits."""
        return _spaces.Box(-jnp.inf, jnp.inf, self._observation)

    def action_space(self, params: RejaxParameters) -> Any:
        """Return a box with the limits of actions."""
        low, high = self.worlds.env.action_range()
        return _spaces.Box(low, high, low.shape)

    def reset(self, key: jax.Array, params: RejaxParameters) -> tuple[jax.Array, Episodes]:
        """Return the state of a new episode."""
        return self._reset_one(key)

    def step(
        self, key: jax.Array, state: Episodes, action: jax.Array, params: RejaxParameters
    ) -> tuple[Any, ...]:
        """Take an action; the random key is that of the world, not `key`."""
        del key
        # rejax passes a scalar if an action has one entry
        return *self._step_one(state, jnp.reshape(action, (self.worlds.env.action_size,))), {}

    # --- all worlds ---

    def reset_all(self, keys: jax.Array) -> tuple[Any, Episodes]:
        """Return the state of new episodes of all worlds; keys (worlds,)."""
        world = self.worlds.reset(keys)
        zero = jnp.zeros_like(world.reward)
        steps = jnp.zeros(zero.shape, jnp.int32)
        return self.flat(world.obs), Episodes(world, zero, zero, steps)

    def step_all(self, state: Episodes, action: jax.Array) -> tuple[Any, ...]:
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


def _batch_worlds_together(function: Any, count: int) -> Any:
    """Return a function of one world whose batched form is `function` of all worlds.

    A single world is computed as the first of a batch of equal worlds, one for each model.
    """

    @jax.custom_batching.custom_vmap
    def one(*operands: Any) -> Any:
        many = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x))), operands)
        return jax.tree.map(lambda x: x[0], function(*many))

    @one.def_vmap
    def _(size: int, batched: Any, *operands: Any) -> Any:
        def broadcast(x: jax.Array, has: bool) -> jax.Array:
            return x if has else jnp.broadcast_to(x, (size, *jnp.shape(x)))

        out = function(*jax.tree.map(broadcast, operands, tuple(batched)))
        return out, jax.tree.map(lambda _: True, out)

    return one
