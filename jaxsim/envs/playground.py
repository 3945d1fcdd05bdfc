"""Adapter to MuJoCo Playground: its wrappers and training scripts take these environments.

    env = wrapper.wrap_for_brax_training(PlaygroundEnv(Hop(m)), episode_length=1000)

    register_tasks()
    env = registry.load("jaxsim/quadruped_velocity", config_overrides={"ctrl_dt": 0.02})

Playground terminates, truncates and resets episodes by its own wrappers. A world that diverged is
done.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.cache import bounded_cache
from jaxsim.envs.core.external_episodes import begin_outside, step_outside
from jaxsim.envs.env import Env
from jaxsim.envs.tasks import TASKS, make
from jaxsim.model.model import Model
from jaxsim.optional import require

playground = require("mujoco_playground", "playground")
config_dict = require("ml_collections.config_dict", "playground")


class PlaygroundEnv(playground.MjxEnv):  # type: ignore[name-defined]
    """One world as a `mujoco_playground.MjxEnv`.

    Args:
      env: the task.
      config: configuration as `configuration` returns it; its `sim_dt` becomes the time step of the
        model.
      mj_model: the MjModel, for `render`, which uses MuJoCo's renderer.

    Raises:
      ValueError: `ctrl_dt` is not the duration of the physics steps that the task takes.
    """

    def __init__(self, env: Env, config: Any = None, *, mj_model: Any = None):
        config = configuration(env) if config is None else config
        if _action_repeat(config) != env.repeat:
            raise ValueError(
                f"ctrl_dt {config.ctrl_dt:g} s: the task takes {env.repeat} steps of "
                f"{config.sim_dt:g} s for each action"
            )
        super().__init__(config)
        self.env, self._mj_model = env, mj_model
        # Playground randomizes by assigning another model to this attribute
        timestep = jnp.full_like(env.m.opt.timestep, config.sim_dt)
        self._mjx_model = env.m.replace(opt=env.m.opt.replace(timestep=timestep))

    def reset(self, rng: jax.Array) -> Any:
        """Return the state of a new episode, from a random key."""
        result = begin_outside(self.env, self._mjx_model, rng)
        return playground.State(
            result.data, result.obs, result.reward, result.done, result.metrics, result.info
        )

    def step(self, state: Any, action: jax.Array) -> Any:
        """Return the state after an action, (action_size,)."""
        result = step_outside(self.env, self._mjx_model, state.data, state, action)
        return playground.State(
            result.data, result.obs, result.reward, result.done, result.metrics, state.info
        )

    @property
    def action_size(self) -> int:
        """Return the length of an action."""
        return self.env.action_size

    @property
    def mjx_model(self) -> Model:
        """Return the Model, which functions that randomize worlds take."""
        return self._mjx_model

    @property
    def mj_model(self) -> Any:
        """Return the MjModel, which MuJoCo's renderer needs."""
        if self._mj_model is None:
            raise ValueError(
                "mj_model: rendering needs an MjModel: PlaygroundEnv(env, mj_model=...)"
            )
        return self._mj_model

    @property
    def xml_path(self) -> str:
        """Return an empty path: a compiled model does not store its file."""
        return ""


def configuration(env: Env, length: int = 1000) -> Any:
    """Return Playground's configuration of a task, a ConfigDict.

    Args:
      env: the task.
      length: actions of an episode.

    Returns:
      `ctrl_dt` and `sim_dt`, the durations of an action and of a physics step [s];
      `episode_length`; `action_repeat` 1; `impl`, which Playground's scripts set and which has no
      effect.
    """
    return _configuration(env.repeat, _timestep(env), length)


def register(name: str, make: Callable[..., Env], length: int = 1000) -> None:
    """Register a task with `mujoco_playground.registry`.

    It is listed among the tasks of the Control Suite, since loading others downloads their models
    first. `config_overrides` may change `ctrl_dt`, the number of steps of an action, and `sim_dt`.

    Args:
      name: name in the registry.
      make: function that returns the task; takes `repeat`.
      length: actions of an episode.
    """

    @bounded_cache(1)
    def usual() -> tuple[int, float]:
        env = make()
        return env.repeat, _timestep(env)

    playground.dm_control_suite.register_environment(
        name, partial(_load, make), lambda: _configuration(*usual(), length)
    )


def register_tasks() -> None:
    """Register all of `jaxsim.envs.tasks.TASKS`, as "jaxsim/hopper_hop" and so on."""
    for name, task in TASKS.items():
        register(f"jaxsim/{name}", partial(make, name), task.length)


def _load(make: Callable[..., Env], config: Any, config_overrides: Any = None) -> PlaygroundEnv:
    config = config.copy_and_resolve_references().lock()
    config.update_from_flattened_dict(config_overrides or {})
    return PlaygroundEnv(make(repeat=_action_repeat(config)), config)


def _configuration(repeat: int, timestep: float, length: int) -> Any:
    return config_dict.create(
        ctrl_dt=round(repeat * timestep, 9),
        sim_dt=timestep,
        episode_length=length,
        action_repeat=1,
        impl="jaxsim",
    )


def _timestep(env: Env) -> float:
    return round(float(env.m.opt.timestep), 9)  # in single precision 0.01 is not 0.01


def _action_repeat(config: Any) -> int:
    times = round(config.ctrl_dt / config.sim_dt)
    if times < 1 or abs(times * config.sim_dt - config.ctrl_dt) > 1e-6 * config.ctrl_dt:
        raise ValueError(
            f"ctrl_dt {config.ctrl_dt:g} s: expected a multiple of sim_dt, {config.sim_dt:g} s"
        )
    return times
