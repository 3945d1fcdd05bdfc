"""Adapters to Gymnasium: one world or a batch of worlds, for CleanRL and similar libraries.

    worlds = GymnasiumVectorEnv(Hop(m), 256, length=1000)
    obs, info = worlds.reset(seed=0)
    obs, reward, terminated, truncated, info = worlds.step(worlds.action_space.sample())

    env = gymnasium.make("jaxsim/Hopper-v5", render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(env, "films")
    worlds = gymnasium.make_vec("jaxsim/Hopper-v5", num_envs=256)

Results are numpy arrays; on an accelerator each step transfers them once. The physical state stays
on the device.
"""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.core.current_results import refresh_world
from jaxsim.envs.core.programs import Programs
from jaxsim.envs.env import Env
from jaxsim.envs.state import State
from jaxsim.envs.tasks import make
from jaxsim.envs.vector import VectorEnv
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.physics.public.arguments import check_count
from jaxsim.view.picture.render import render

gymnasium = require("gymnasium", "rl")
require("jaxsim_gymnasium", "rl")  # registers the tasks
_MODE = gymnasium.vector.AutoresetMode
_AUTORESET_MODES = {"next": _MODE.NEXT_STEP, "same": _MODE.SAME_STEP, None: _MODE.DISABLED}


class RenderCamera(NamedTuple):
    """RenderCamera and size of the frames of worlds.

    Attributes:
      camera: name or id of a camera of the model, or a `jaxsim.view.Camera`; None: a free camera
        that sees the whole model.
      width, height: size of a frame [pixels].
    """

    camera: Any = None
    width: int = 320
    height: int = 240


class GymnasiumVectorEnv(Programs, gymnasium.vector.VectorEnv):  # type: ignore[name-defined]
    """Many worlds as a `gymnasium.vector.VectorEnv`.

    Args:
      env: the task.
      num_envs: number of worlds.
      length: actions of an episode, after which it is truncated.
      autoreset: "next", "same" or None, as for `VectorEnv`.
      model, axes: models that differ between worlds (`randomize`).
      randomize: parameters that each episode draws, as for `VectorEnv`.
      render_mode: "rgb_array", or None for no frames.
      camera, width, height: those of the frames, as for `jaxsim.render`.

    Raises:
      ValueError: an argument is invalid.

    Attributes:
      state: the State of the worlds; None before the first `reset`. A control that is not finite is
        replaced by zero and counted: `jaxsim.check_warnings(worlds.state.data)` reports it.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array"],
        "autoreset_mode": _MODE.NEXT_STEP,
    }

    def __init__(
        self,
        env: Env,
        num_envs: int,
        *,
        length: int = 1000,
        autoreset: str | None = "next",
        model: Model | None = None,
        axes: Any = None,
        randomize: Any = None,
        render_mode: str | None = None,
        camera: Any = None,
        width: int = 320,
        height: int = 240,
    ):
        self.num_envs = check_count("num_envs", num_envs)
        self.worlds = VectorEnv(
            env, length=length, autoreset=autoreset, model=model, axes=axes, randomize=randomize
        )
        self.metadata = rendering(env) | {"autoreset_mode": _AUTORESET_MODES[autoreset]}  # type: ignore[misc]
        self.render_mode = check_mode(render_mode)
        self._camera = RenderCamera(camera, width, height)
        self.single_observation_space, self.single_action_space = make_spaces(env)
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._key: jax.Array | None = None
        self.state: State | None = None
        self._compile()

    def _compile(self) -> None:
        """Compile the programs that pickles leave out."""
        self._reset, self._step = jax.jit(self.worlds.reset), jax.jit(self.worlds.step)
        self._chosen = jax.jit(self.worlds.reset_where)
        self._frames = jax.jit(self._render_frames)

    def _render_frames(self, state: State) -> jax.Array:
        """Return the frames of all worlds, uint8 (num_envs, height, width, 3)."""
        camera, width, height = self._camera

        def frame(m: Model, d: Data) -> jax.Array:
            seen = render(m, refresh_world(m, d), camera, width, height, what=("rgb",)).rgb
            return jnp.round(255 * jnp.clip(seen, 0, 1)).astype(jnp.uint8)

        m, axes = self.worlds.models(state)
        return jax.vmap(frame, in_axes=(axes, 0))(m, state.data)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture of each world, uint8 (height, width, 3); None without `render_mode`.

        Raises:
          gymnasium.error.ResetNeeded: there is no state yet.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render: pictures need render_mode='rgb_array' when it is made")
            return None
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset before render")
        return tuple(_to_host(self._frames(self.state)))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes of all worlds, or of the bool (num_envs,) `options["reset_mask"]`.

        Args:
          seed: seed of the random numbers; None continues with the present ones.
          options: None, or a dict with `reset_mask`.
        """
        if seed is not None or self._key is None:
            seed = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed
            self._key = jax.random.key(seed)
        self._key, own = jax.random.split(self._key)
        keys = jax.random.split(own, self.num_envs)
        mask = (options or {}).get("reset_mask")
        if mask is None or self.state is None:
            self.state = self._reset(keys)
        else:
            self.state = self._chosen(self.state, self._mask(mask), keys)
        return _to_host(self.state.obs), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take an action in each world, (num_envs, action_size)."""
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        dtype = self.state.reward.dtype
        self.state = self._step(self.state, jnp.asarray(actions, dtype))
        info = self.state.info
        infos: dict[str, Any] = _to_host(self.state.metrics) | {
            "diverged": _to_host(info["diverged"])
        }
        over = _to_host(self.state.done) > 0
        if "final_obs" in info and over.any():
            infos |= {"final_obs": _to_host(info["final_obs"]), "_final_obs": over}
        flags = (_to_host(info[name]) for name in ("terminated", "truncated"))
        return _to_host(self.state.obs), _to_host(self.state.reward), *flags, infos

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
      randomize: parameters that each episode draws, as for `VectorEnv`.
      render_mode: "rgb_array", or None for no frames.
      camera, width, height: those of the frames, as for `jaxsim.render`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}

    def __init__(
        self,
        env: Env,
        *,
        length: int = 1000,
        randomize: Any = None,
        render_mode: str | None = None,
        camera: Any = None,
        width: int = 320,
        height: int = 240,
    ):
        self.worlds = GymnasiumVectorEnv(
            env,
            1,
            length=length,
            autoreset=None,
            randomize=randomize,
            render_mode=render_mode,
            camera=camera,
            width=width,
            height=height,
        )
        self.observation_space, self.action_space = make_spaces(env)
        self.metadata = rendering(env)  # type: ignore[misc]
        self.render_mode = render_mode

    def render(self) -> np.ndarray | None:
        """Return a picture of the world, uint8 (height, width, 3); None without `render_mode`."""
        frames = self.worlds.render()
        return None if frames is None else frames[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode."""
        super().reset(seed=seed)
        obs, info = self.worlds.reset(seed=seed)
        return _first_world(obs), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action, (action_size,)."""
        obs, reward, terminated, truncated, info = self.worlds.step(np.asarray(action)[None])
        flags = bool(terminated[0]), bool(truncated[0])
        return _first_world(obs), float(reward[0]), *flags, _first_world(info)


def make_env(task: str, **given: Any) -> GymnasiumEnv:
    """Return a named task for `gymnasium.make`, which truncates episodes itself.

    Args:
      task: one of `jaxsim.envs.tasks.TASKS`.
      given: arguments of `GymnasiumEnv`, and of the task.
    """
    own, rest = _split_options(given)
    return GymnasiumEnv(make(task, **rest), **({"length": _ENDLESS_EPISODE} | own))


# read by `gymnasium.make` before it calls; it adds wrappers for other modes
make_env.metadata = GymnasiumEnv.metadata  # type: ignore[attr-defined]


def make_vector_env(
    task: str, num_envs: int = 1, max_episode_steps: int | None = None, **given: Any
) -> GymnasiumVectorEnv:
    """Return many worlds of a named task, for `gymnasium.make_vec`.

    Args:
      task: one of `jaxsim.envs.tasks.TASKS`.
      num_envs: number of worlds.
      max_episode_steps: actions of an episode; None, or -1: no limit.
      given: arguments of `GymnasiumVectorEnv`, and of the task.
    """
    own, rest = _split_options(given)
    length = _ENDLESS_EPISODE if max_episode_steps in (None, -1) else max_episode_steps
    return GymnasiumVectorEnv(make(task, **rest), num_envs, **({"length": length} | own))


_ADAPTER_OPTIONS = ("length", "autoreset", "randomize", "render_mode", "camera", "width", "height")
_ENDLESS_EPISODE = 2**31 - 1  # length of an episode that another wrapper truncates


def _split_options(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those of the adapter and those of the task."""
    own = {name: x for name, x in given.items() if name in _ADAPTER_OPTIONS}
    return own, {name: x for name, x in given.items() if name not in _ADAPTER_OPTIONS}


def rendering(env: Env) -> dict[str, Any]:
    """Return the metadata of rendering: one frame for each action, in the time of the world."""
    return {"render_modes": ["rgb_array"], "render_fps": max(round(1 / float(env.dt)), 1)}


def check_mode(mode: str | None) -> str | None:
    """Return a render mode; raise ValueError for an unknown one."""
    if mode not in (None, "rgb_array"):
        raise ValueError(
            f"render_mode: expected 'rgb_array' or None, got {mode!r}; for a window see jaxsim.view"
        )
    return mode


def make_spaces(env: Env) -> tuple[Any, Any]:
    """Return the observation and action make_spaces of an environment."""
    seen = jax.eval_shape(env.observe, env.m, env.begin)
    box = gymnasium.spaces.Box
    boxes = jax.tree.map(lambda x: box(-np.inf, np.inf, x.shape, x.dtype), seen)
    observation = gymnasium.spaces.Dict(boxes) if isinstance(boxes, dict) else boxes
    low, high = (np.asarray(x, env.begin.qpos.dtype) for x in env.action_range())
    return observation, box(low, high, dtype=low.dtype)


def _to_host(x: Any) -> Any:
    return jax.tree.map(np.array, x)  # own copies, as users keep and change them


def _first_world(x: Any) -> Any:
    return jax.tree.map(lambda a: a[0], x)
