"""Adapter to rejax: its PPO, SAC and TD3 are pure functions that include the physics.

    algorithm = rejax.PPO.create(env=RejaxEnv(VectorEnv(env, length=1000)), num_envs=64)
    state = jax.jit(algorithm.init_state)(jax.random.key(0))
    state = jax.jit(algorithm.train_iteration)(state)

rejax batches `reset` and `step` of one world by `vmap`. The batching rule replaces the batch by a
step of all worlds, so differing models, frame stacks, delays and noise work. Episodes reset
automatically. `done` is true only where the task terminated: after a truncation the learner
bootstraps from the value of the new initial state. rejax supports single precision only.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxsim.envs.core.episodes import Episodes, EpisodeWorlds
from jaxsim.envs.core.programs import Programs
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.optional import require

_spaces = require("gymnax.environments.spaces", "rl")


@struct.dataclass
class RejaxParameters:
    """Environment parameters that rejax reads.

    Attributes:
      max_steps_in_episode: actions of an episode.
    """

    max_steps_in_episode: int = struct.field(pytree_node=False, default=1000)


class RejaxEnv(EpisodeWorlds, Programs):
    """Worlds with the interface of gymnax 0, which rejax uses.

    Args:
      worlds: a `VectorEnv` with `autoreset="next"`, or a wrapper of one.

    Raises:
      ValueError: `autoreset` is not "next", or JAX is in double precision, which rejax does not
        support.
    """

    name = "jaxsim"

    def __init__(self, worlds: VectorEnv | Wrapper):
        if jax.config.values["jax_enable_x64"]:
            raise ValueError("rejax runs in single precision: leave jax_enable_x64 off")
        super().__init__(worlds)
        self._compile()

    def _compile(self) -> None:
        """Compile the programs that pickles leave out."""
        count = self.worlds.count or 1
        self._reset_one = _batch_worlds_together(self.reset_all, count)
        self._step_one = _batch_worlds_together(self.step_all, count)

    @property
    def default_params(self) -> RejaxParameters:
        """Return the length of an episode."""
        return RejaxParameters(self.worlds.length)

    def observation_space(self, params: RejaxParameters) -> Any:
        """Return a box without limits."""
        return _spaces.Box(-jnp.inf, jnp.inf, self.observation_shape)

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
