"""Adapter to Stable-Baselines3, whose VecEnv differs from Gymnasium's vector environments.

    worlds = StableBaselinesEnv(Hop(m), 16, length=1000)
    model = stable_baselines3.PPO("MlpPolicy", VecMonitor(worlds)).learn(1_000_000)

Worlds reset in the step that ends an episode, as Stable-Baselines3 expects. Results are numpy
arrays, and a dict for each world.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.envs.gymnasium import GymnasiumVectorEnv
from jaxsim.model.model import Model
from jaxsim.optional import require

vec_env = require("stable_baselines3.common.vec_env", "sb3")


class StableBaselinesEnv(vec_env.VecEnv):  # type: ignore[name-defined]
    """Many worlds as a `stable_baselines3.common.vec_env.VecEnv`.

    The dict of a world has its metrics, `diverged`, `TimeLimit.truncated` and, at the end of an
    episode, `terminal_observation`.

    Args:
      env: the task.
      num_envs: number of worlds.
      length: actions of an episode, after which it is truncated.
      model, axes: models that differ between worlds (`randomize`).
      randomize: parameters that each episode draws, as for `VectorEnv`.
      render_mode: "rgb_array", or None for no frames.

    Attributes:
      worlds: the worlds as a `GymnasiumVectorEnv`; a control that is not finite is replaced by zero
        and counted: `jaxsim.check_warnings(env.worlds.state.data)` reports it.
    """

    def __init__(
        self,
        env: Env,
        num_envs: int,
        *,
        length: int = 1000,
        model: Model | None = None,
        axes: Any = None,
        randomize: Any = None,
        render_mode: str | None = None,
    ):
        self.render_mode = render_mode
        self.worlds = GymnasiumVectorEnv(
            env,
            num_envs,
            length=length,
            autoreset="same",
            model=model,
            axes=axes,
            randomize=randomize,
            render_mode=render_mode,
        )
        self._actions: Any = None
        seen, action = self.worlds.single_observation_space, self.worlds.single_action_space
        super().__init__(num_envs, seen, action)

    def reset(self) -> Any:
        """Begin new episodes of all worlds; return observations, (num_envs, ...).

        After `seed(n)` the episodes are determined by `n`; each world derives its own keys from it.
        """
        obs, _ = self.worlds.reset(seed=self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        return obs

    def step_async(self, actions: Any) -> None:
        """Store the actions, (num_envs, action_size)."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take the stored actions; return observations, rewards, ended episodes, and dicts."""
        obs, reward, terminated, truncated, step_infos = self.worlds.step(self._actions)
        last, _ = step_infos.pop("final_obs", None), step_infos.pop("_final_obs", None)
        over = terminated | truncated
        infos: list[dict[str, Any]] = []
        for world in range(self.num_envs):
            info = {name: x[world] for name, x in step_infos.items()}
            info["TimeLimit.truncated"] = bool(truncated[world])
            if over[world]:
                info["terminal_observation"] = jax.tree.map(lambda x, i=world: x[i], last)
            infos.append(info)
        return obs, reward, over, infos

    def close(self) -> None:
        """Do nothing: no resources are open."""

    def set_options(self, options: Any = None) -> None:
        """Raise ValueError for options, as a task takes none.

        Raises:
          ValueError: `options` is not empty.
        """
        if options and (isinstance(options, dict) or any(options)):
            raise ValueError(f"options: a task takes none at a reset, got {options!r}")

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the worlds or of their task, once for each index."""
        return [self._attribute(attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Raise an error: attributes of a task are compiled into its program.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            f"{attr_name}: a compiled task does not change; make another one, or worlds that "
            "differ (`randomize`)"
        )

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the worlds or of their task, once for each index."""
        method = self._attribute(method_name)
        return [method(*method_args, **method_kwargs) for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each world: there are no wrappers of single environments."""
        return [False for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a picture of each world, uint8 (height, width, 3); None without `render_mode`."""
        frames = self.worlds.render()
        return [None] * self.num_envs if frames is None else list(frames)

    def _attribute(self, name: str) -> Any:
        task = self.worlds.worlds.env
        return getattr(self.worlds if hasattr(self.worlds, name) else task, name)
