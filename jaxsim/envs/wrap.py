"""Wrappers between an agent and the worlds: frame stacks, delays, noise, pushes.

Each wraps a `VectorEnv`, or another wrapper, and has its interface. Values that a wrapper remembers
are in `state.info` of each world, and are reset with the episode.

    worlds = FrameStack(Delayed(VectorEnv(env), actions=2), 4)
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.env import Env
from jaxsim.envs.state import Observation, State, select_tree
from jaxsim.envs.vector import VectorEnv
from jaxsim.identify.targets.select import matching_ids
from jaxsim.physics.public.arguments import check_count

DELAY, PUSH = 2, 4  # folded into the key of an episode for its delay and its pushes


class Wrapper:
    """Base class of wrappers; subclasses override hooks of one world.

    Args:
      worlds: a VectorEnv, or a wrapper.
    """

    def __init__(self, worlds: "VectorEnv | Wrapper"):
        self.worlds = worlds
        self.env: Env = worlds.env
        self.length: int = worlds.length
        self.count: int | None = worlds.count
        self.autoreset: str | None = worlds.autoreset

    def reset(self, keys: jax.Array) -> State:
        """Return the states of new episodes of all worlds; keys (worlds,)."""
        return jax.vmap(self.begun)(self.worlds.reset(keys))

    def step(self, state: State, action: jax.Array) -> State:
        """Take an action in each world, (worlds, action_size)."""
        state, action = jax.vmap(self.apply_action)(state, action)
        return jax.vmap(self._finish_step)(state, self.worlds.step(state, action))

    def reset_where(self, state: State, where: jax.Array, keys: jax.Array) -> State:
        """Begin new episodes of chosen worlds: bool (worlds,), keys (worlds,)."""
        return jax.vmap(select_tree)(where, self.reset(keys), state)

    # --- hooks of subclasses ---

    def begun(self, state: State) -> State:
        """Return a world at the start of an episode."""
        return state

    def apply_action(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """Return a world that remembers an action, and the action that the task takes."""
        return state, action

    def transform_observation(
        self, state: State, obs: Observation
    ) -> tuple[Observation, dict[str, Any]]:
        """Return the observation of the agent, and the values to remember."""
        return obs, {}

    # --- one world ---

    def _finish_step(self, before: State, state: State) -> State:
        """Return the world after a step, with remembered values, or at the start of an episode."""
        last = state.info.get("final_obs", state.obs)
        over = state.done > 0 if "final_obs" in state.info else jnp.zeros((), bool)
        # if an episode ended and reset in one step, the last observation comes first
        obs, memory = self.transform_observation(before, select_tree(over, last, state.obs))
        info = state.info | memory
        if "final_obs" in info:
            info |= {"final_obs": obs}
        onward = state.replace(obs=obs, info=info)
        fresh = self.begun(state)
        kept = {"final_obs": obs} if "final_obs" in info else {}
        fresh = fresh.replace(info=info | fresh.info | kept)
        return select_tree(state.info["steps"] == 0, fresh, onward)


class FrameStack(Wrapper):
    """Stack of the last observations, the newest last; an episode begins with copies of its first.

    Args:
      worlds: the worlds.
      frames: number of frames; observations are (..., frames, size).
    """

    def __init__(self, worlds: VectorEnv | Wrapper, frames: int):
        super().__init__(worlds)
        self.frames = check_count("frames", frames)

    def begun(self, state: State) -> State:
        """Fill all frames with the first observation."""
        stacked = jax.tree.map(lambda x: jnp.stack([x] * self.frames), state.obs)
        info = state.info | {"frames": stacked}
        if "final_obs" in info:
            info |= {"final_obs": stacked}
        return state.replace(obs=stacked, info=info)

    def transform_observation(
        self, state: State, obs: Observation
    ) -> tuple[Observation, dict[str, Any]]:
        """Drop the oldest frame and append the new one."""
        stacked = jax.tree.map(
            lambda old, x: jnp.concatenate([old[1:], x[None]]), state.info["frames"], obs
        )
        return stacked, {"frames": stacked}


class Delayed(Wrapper):
    """Delay of actions; actions are zero at first.

    Args:
      worlds: the worlds.
      actions: the delay as a number of actions; or (least, most), from which each episode draws a
        real number. Between two actions their weighted mean acts, as of a control that is held
        (identify/delay.py).

    Raises:
      ValueError: the delay is no whole number, or no range from 0.
    """

    def __init__(self, worlds: VectorEnv | Wrapper, actions: int | tuple[float, float]):
        super().__init__(worlds)
        self.range: tuple[float, float] | None = None
        if isinstance(actions, tuple | list):
            if len(actions) != 2 or not 0 <= actions[0] <= actions[1] < math.inf:
                raise ValueError(f"actions: expected (least, most), from 0, got {actions!r}")
            self.range = float(actions[0]), float(actions[1])
            actions = math.ceil(actions[1])
        self.actions = check_count("actions", actions) if actions else 0

    def begun(self, state: State) -> State:
        """Fill the buffer of actions with zeros."""
        waiting = jnp.zeros((self.actions, self.env.action_size), state.reward.dtype)
        info = state.info | {"waiting": waiting}
        if self.range is not None:
            key = jax.random.fold_in(state.info["key"], DELAY)
            info["delay"] = jax.random.uniform(key, (), state.reward.dtype, *self.range)
        return state.replace(info=info)

    def apply_action(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """Store the action, and return the delayed one."""
        line = jnp.concatenate([state.info["waiting"], action[None].astype(state.reward.dtype)])
        taken = line[0]
        if self.range is not None:
            # weights of the two actions around the delay; the last row is the newest action
            age = jnp.arange(self.actions, -1, -1, dtype=line.dtype)
            weight = jnp.clip(1 - jnp.abs(age - state.info["delay"]), 0, 1)
            taken = jnp.sum(weight[:, None] * line, axis=0)
        return state.replace(info=state.info | {"waiting": line[1:]}), taken


class Pushed(Wrapper):
    """Random horizontal pushes of bodies at their centers of mass.

    A push is a force that lasts for one action; the actions with a push are random.

    Args:
      worlds: the worlds.
      impulse: (least, most) [N s] by the name of a body, which may have wildcards.
      every: mean time between two pushes of a body [s].

    Raises:
      ValueError: no body has a name, or a number is out of its range.
    """

    def __init__(
        self,
        worlds: VectorEnv | Wrapper,
        impulse: Mapping[str, tuple[float, ...]],
        every: float = 5.0,
    ):
        super().__init__(worlds)
        m = self.env.m
        ids, ranges = [], []
        for name, bounds in impulse.items():
            if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] < math.inf:
                raise ValueError(f"{name}: expected [least, most] impulse, got {list(bounds)}")
            found = matching_ids(m, "body", name.removeprefix("body:"))
            ids += found.tolist()
            ranges += [bounds] * len(found)
        if not every > 0:
            raise ValueError(f"every: expected more than 0, got {every}")
        self.bodies, self.impulse = np.array(ids, int), np.array(ranges, float).reshape(-1, 2)
        self.time = float(self.env.dt)  # duration of an action, during which a push lasts
        self.chance = min(self.time / every, 1.0)

    def begun(self, state: State) -> State:
        """Begin without a push, with a random key of the episode."""
        key = state.info.get("push", jax.random.fold_in(state.info["key"], PUSH))
        zero = jnp.zeros((len(self.bodies), 3), state.reward.dtype)
        return state.replace(info=state.info | {"push": key, "pushed": zero})

    def apply_action(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """Remove the last push, and apply a new one if it is due."""
        key, *own = jax.random.split(state.info["push"], 4)
        n, dtype = len(self.bodies), state.reward.dtype
        angle = jax.random.uniform(own[0], (n,), dtype, 0, 2 * math.pi)
        low, high = jnp.asarray(self.impulse.T, dtype)
        size = (low + (high - low) * jax.random.uniform(own[1], (n,), dtype)) / self.time
        size = jnp.where(jax.random.uniform(own[2], (n,), dtype) < self.chance, size, 0)
        force = size[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle), 0 * angle], axis=1)
        wrench = state.data.xfrc_applied.at[self.bodies, :3].add(force - state.info["pushed"])
        info = state.info | {"push": key, "pushed": force}
        return state.replace(data=state.data.replace(xfrc_applied=wrench), info=info), action


class Noisy(Wrapper):
    """Normal noise on observations and actions; its random numbers belong to the world.

    Args:
      worlds: the worlds.
      obs: standard deviation of the noise of observations, a number or (size,).
      action: standard deviation of the noise of actions, a number or (action_size,).
    """

    def __init__(self, worlds: VectorEnv | Wrapper, obs: Any = 0.0, action: Any = 0.0):
        super().__init__(worlds)
        self.noise = obs, action

    def begun(self, state: State) -> State:
        """Add noise to the first observation."""
        key = state.info.get("noise", jax.random.fold_in(state.info["key"], 1))
        obs, memory = self.transform_observation(
            state.replace(info=state.info | {"noise": key}), state.obs
        )
        info = state.info | memory
        if "final_obs" in info:
            info |= {"final_obs": obs}
        return state.replace(obs=obs, info=info)

    def apply_action(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """Add noise to the action."""
        key, own = jax.random.split(state.info["noise"])
        return state.replace(info=state.info | {"noise": key}), _add_noise(own, action, 1, self)

    def transform_observation(
        self, state: State, obs: Observation
    ) -> tuple[Observation, dict[str, Any]]:
        """Add noise to the observation."""
        key, own = jax.random.split(state.info["noise"])
        return _add_noise(own, obs, 0, self), {"noise": key}


def _add_noise(key: jax.Array, x: Any, which: int, worlds: Noisy) -> Any:
    leaves, form = jax.tree.flatten(x)
    keys = jax.random.split(key, len(leaves))
    sigma = worlds.noise[which]
    disturbed = [
        a + jnp.asarray(sigma, a.dtype) * jax.random.normal(k, a.shape, a.dtype)
        for k, a in zip(keys, leaves, strict=True)
    ]
    return jax.tree.unflatten(form, disturbed)
