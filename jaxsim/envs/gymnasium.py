"""Environments as Gymnasium's: many worlds, or one; for CleanRL and its kin.

    worlds = GymnasiumVectorEnv(Hop(m), 256, length=1000)
    obs, info = worlds.reset(seed=0)
    obs, reward, terminated, truncated, info = worlds.step(worlds.action_space.sample())

What is returned are numpy arrays; on a device each step is one transfer of them. The physical state
stays where it is.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.envs.vector import VectorEnv
from jaxsim.extra import needed
from jaxsim.model.model import Model
from jaxsim.physics.arguments import check_count

gymnasium = needed("gymnasium", "rl")
_MODE = gymnasium.vector.AutoresetMode
MODES = {"next": _MODE.NEXT_STEP, "same": _MODE.SAME_STEP, None: _MODE.DISABLED}


class GymnasiumVectorEnv(gymnasium.vector.VectorEnv):  # type: ignore[name-defined]
    """Many worlds as a `gymnasium.vector.VectorEnv`.

    Args:
      env: the task.
      num_envs: how many worlds.
      length: actions of an episode, after which it is truncated.
      autoreset: "next", "same" or None, as for `VectorEnv`.
      model, axes: models that differ between worlds (`randomize`).

    Attributes:
      state: the State of the worlds; None before the first `reset`. A control that is not finite is
        taken as zero and counted: `jaxsim.check(worlds.state.data)` tells of it.
    """

    def __init__(
        self,
        env: Env,
        num_envs: int,
        *,
        length: int = 1000,
        autoreset: str | None = "next",
        model: Model | None = None,
        axes: Any = None,
    ):
        self.num_envs = check_count("num_envs", num_envs)
        self.metadata = {"autoreset_mode": MODES[autoreset], "render_modes": []}
        self.render_mode = None
        self.worlds = VectorEnv(env, length=length, autoreset=autoreset, model=model, axes=axes)
        self.single_observation_space, self.single_action_space = spaces(env)
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._programs = jax.jit(self.worlds.reset), jax.jit(self.worlds.step)
        self._chosen = jax.jit(self.worlds.reset_where)
        self._key: jax.Array | None = None
        self.state: State | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """New episodes: of all worlds, or of those of `options["reset_mask"]`, bool (num_envs,).

        Args:
          seed: of the random numbers; None goes on with those there are.
          options: see above.
        """
        if seed is not None or self._key is None:
            seed = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed
            self._key = jax.random.key(seed)
        self._key, own = jax.random.split(self._key)
        keys = jax.random.split(own, self.num_envs)
        mask = (options or {}).get("reset_mask")
        if mask is None or self.state is None:
            self.state = self._programs[0](keys)
        else:
            self.state = self._chosen(self.state, self._mask(mask), keys)
        return _host(self.state.obs), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action in each world, (num_envs, action_size)."""
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        dtype = self.state.reward.dtype
        self.state = self._programs[1](self.state, jnp.asarray(actions, dtype))
        info = self.state.info
        told: dict[str, Any] = _host(self.state.metrics) | {"diverged": _host(info["diverged"])}
        over = _host(self.state.done) > 0
        if "final_obs" in info and over.any():
            told |= {"final_obs": _host(info["final_obs"]), "_final_obs": over}
        flags = (_host(info[name]) for name in ("terminated", "truncated"))
        return _host(self.state.obs), _host(self.state.reward), *flags, told

    def _mask(self, mask: Any) -> jax.Array:
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != bool:
            raise ValueError(f"reset_mask: expected bool ({self.num_envs},), got {mask!r}")
        return jnp.asarray(mask)


class GymnasiumEnv(gymnasium.Env):  # type: ignore[name-defined]
    """One world as a `gymnasium.Env`.

    Args:
      env: the task.
      length: actions of an episode, after which it is truncated.
    """

    def __init__(self, env: Env, *, length: int = 1000):
        self.worlds = GymnasiumVectorEnv(env, 1, length=length, autoreset=None)
        self.observation_space, self.action_space = spaces(env)
        self.metadata: dict[str, Any] = {"render_modes": []}
        self.render_mode = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        super().reset(seed=seed)
        obs, info = self.worlds.reset(seed=seed)
        return _first(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One action, (action_size,)."""
        obs, reward, terminated, truncated, info = self.worlds.step(np.asarray(action)[None])
        flags = bool(terminated[0]), bool(truncated[0])
        return _first(obs), float(reward[0]), *flags, _first(info)


def spaces(env: Env) -> tuple[Any, Any]:
    """The observation and the action space of an environment."""
    seen = jax.eval_shape(env.observe, env.m, env.begin)
    box = gymnasium.spaces.Box
    boxes = jax.tree.map(lambda x: box(-np.inf, np.inf, x.shape, x.dtype), seen)
    observation = gymnasium.spaces.Dict(boxes) if isinstance(boxes, dict) else boxes
    low, high = (np.asarray(x, env.begin.qpos.dtype) for x in env.action_range())
    return observation, box(low, high, dtype=low.dtype)


def _host(x: Any) -> Any:
    return jax.tree.map(np.array, x)  # own copies: Gymnasium's users keep and change them


def _first(x: Any) -> Any:
    return jax.tree.map(lambda a: a[0], x)
