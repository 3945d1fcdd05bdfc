"""Many worlds of an environment: episodes of a bounded length, and new ones where they ended.

How a world begins anew is Gymnasium's choice of two:

    "next"   the action after the last one of an episode is not taken; it gives the first
             observation of a new episode, reward 0. No program but that of a step is needed.
    "same"   the last action of an episode gives the first observation of the next one, and the
             last one in `info["final_obs"]`. Free where observations read the state alone; else
             the forward dynamics runs once more for every action.
    None     a world that is done goes on; the caller resets.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.envs.env import Env
from jaxsim.envs.state import State, select, with_warnings_of
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arguments import check_count

AUTORESET = ("next", "same", None)


class VectorEnv:
    """Worlds side by side; `reset` and `step` are pure, to be used under `jit`, `scan` and `grad`.

    Args:
      env: the task.
      length: actions of an episode, after which it is truncated.
      autoreset: when a world begins anew: "next", "same" or None, as above.
      model: a model whose leaves differ between worlds (`randomize`), with `axes`.
      axes: of each leaf of `model` the axis of worlds, or None.

    Attributes:
      count: how many worlds the models are for; None: any number.

    Example:
      >>> from jaxsim.envs.env import Env
      >>> worlds = VectorEnv(Env(m), length=100)
      >>> state = jax.jit(worlds.reset)(jax.random.split(jax.random.key(0), 3))
      >>> jax.jit(worlds.step)(state, jnp.zeros((3, 0))).obs.shape
      (3, 2)
    """

    def __init__(
        self,
        env: Env,
        *,
        length: int = 1000,
        autoreset: str | None = "next",
        model: Model | None = None,
        axes: Any = None,
    ):
        if autoreset not in AUTORESET:
            raise ValueError(f"autoreset: expected one of {AUTORESET}, got {autoreset!r}")
        self.env, self.autoreset = env, autoreset
        self.length = check_count("length", length)
        self._model = env.m if model is None else model
        self._axes = axes
        self.count = _worlds_of(self._model, axes)
        self._step = jax.jit(self._all)  # traced once, wherever it is called from
        self._reset = jax.vmap(self._begin, in_axes=(axes, 0))
        # one model for all worlds has one state at rest; models that differ have their own
        self._rest = env.at_rest(self._model) if axes is None else None
        self._start = jax.vmap(self._started, in_axes=(axes, 0))
        self._act = jax.vmap(self._plain, in_axes=(axes, 0, 0))
        self._renew = jax.vmap(self._next, in_axes=(axes, 0, 0, 0, 0))

    def reset(self, keys: jax.Array) -> State:
        """New episodes of all worlds.

        Args:
          keys: `jax.random.key`s, one for each world, (worlds,).
        """
        return self._reset(self._model, keys)

    def step(self, state: State, action: jax.Array) -> State:
        """One action in each world.

        Args:
          state: the worlds.
          action: (worlds, action_size).

        Raises:
          ValueError: the actions have another shape.
        """
        expected = (state.done.shape[0], self.env.action_size)
        if jnp.shape(action) != expected:
            raise ValueError(f"action: expected shape {expected}, got {jnp.shape(action)}")
        return self._step(self._model, state, action)

    def reset_where(self, state: State, where: jax.Array, keys: jax.Array) -> State:
        """New episodes of chosen worlds.

        Args:
          state: the worlds.
          where: which of them begin anew, bool (worlds,).
          keys: random numbers, (worlds,); those of other worlds are not used.
        """
        return jax.vmap(select)(where, self.reset(keys), state)

    def _all(self, m: Model, state: State, action: jax.Array) -> State:
        if self.autoreset == "next":
            keys = jax.vmap(jax.random.split)(state.info["key"])
            begun = self._where_any(state.done > 0, self._start, m, keys[:, 0], state.data)
            return self._renew(m, state, action, begun, keys[:, 1])
        told = self._act(m, state, action)
        if self.autoreset is None:
            return told
        begun = self._where_any(told.done > 0, self._reset, m, told.info["key"], told)
        return jax.vmap(self._same)(told, begun)

    def _where_any(
        self, over: jax.Array, begin: Callable, m: Model, keys: jax.Array, else_: Any
    ) -> Any:
        """New episodes; of a task whose start takes long only if some world needs one."""
        if not self.env.long_start:
            return begin(m, keys)
        return lax.cond(jnp.any(over), lambda: begin(m, keys), lambda: else_)

    # --- one world ---

    def _started(self, m: Model, key: jax.Array) -> Data:
        rest = self.env.at_rest(m) if self._rest is None else self._rest
        return self.env.start(m, rest, key)

    def _begin(self, m: Model, key: jax.Array) -> State:
        own, key = jax.random.split(key)
        state = self.env.begun(m, self._started(m, own))
        info = state.info | {"key": key}
        if self.autoreset == "same":
            info |= {"final_obs": state.obs}
        return state.replace(info=info)

    def _plain(self, m: Model, state: State, action: jax.Array) -> State:
        return self._bounded(self.env.step(state, action, m))

    def _same(self, told: State, fresh: State) -> State:
        last = {n: told.info[n] for n in ("terminated", "truncated", "diverged")}
        last["final_obs"] = told.obs
        begun = fresh.replace(
            data=with_warnings_of(fresh.data, told.data),
            reward=told.reward,
            done=told.done,
            metrics=told.metrics,
            info=told.info | fresh.info | last,
        )
        return select(told.done > 0, begun, told.replace(info=told.info | last))

    def _next(
        self, m: Model, state: State, action: jax.Array, fresh: Data, key: jax.Array
    ) -> State:
        env, over = self.env, state.done > 0
        action, driven = env.take(m, state.data, action)
        after = env.renew(m, driven, fresh, over)
        before = select(over, with_warnings_of(fresh, after), state.data)
        told = self._bounded(env.told(m, state, before, after, action))
        zero, no = jnp.zeros_like(told.reward), jnp.zeros((), bool)
        first = {"steps": jnp.zeros((), jnp.int32), "key": key}
        first |= dict.fromkeys(("terminated", "truncated", "diverged"), no)
        return told.replace(
            reward=jnp.where(over, zero, told.reward),
            done=jnp.where(over, zero, told.done),
            info=told.info | {n: select(over, x, told.info[n]) for n, x in first.items()},
        )

    def _bounded(self, state: State) -> State:
        """Ends an episode that is long enough."""
        ended = state.info["terminated"]
        truncated = ~ended & (state.info["steps"] >= self.length)
        return state.replace(
            done=(ended | truncated).astype(state.done.dtype),
            info=state.info | {"truncated": truncated},
        )


def _worlds_of(m: Model, axes: Any) -> int | None:
    """The length of the axis of worlds, if there is one."""
    sizes: set[int] = set()

    def note(axis: int | None, part: Any) -> None:
        if axis is not None:
            sizes.update(x.shape[axis] for x in jax.tree.leaves(part))

    jax.tree.map(note, axes, m, is_leaf=lambda axis: axis is None)
    return next(iter(sizes), None)
