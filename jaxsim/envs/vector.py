"""Many worlds of an environment: episodes of bounded length with automatic resets.

The reset modes are those of Gymnasium:

    "next"   the action after the last one of an episode is ignored; it returns the first
             observation of a new episode, reward 0. No program but that of a step is needed.
    "same"   the last action of an episode returns the first observation of the next one, and the
             last one in `info["final_obs"]`. Free where observations read the state alone; else
             the forward dynamics is evaluated one more time for every action.
    None     a world that is done continues; the caller resets.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.batch.devices import DeviceIds, Devices, over_devices
from jaxsim.envs.core.checks import check_keys, check_models, check_state
from jaxsim.envs.core.programs import Programs
from jaxsim.envs.env import Env
from jaxsim.envs.randomization import random_model
from jaxsim.envs.state import State, select_tree, with_warnings_of
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.arguments import check_count

_AUTORESET_CHOICES = ("next", "same", None)
_MODEL_KEY_SALT = 3  # folded into a key for the model of an episode


class VectorEnv(Programs):
    """A batch of worlds; `reset` and `step` are pure, for use under `jit`, `scan` and `grad`.

    Args:
      env: the task.
      length: actions of an episode, after which it is truncated.
      autoreset: reset mode: "next", "same" or None, as above.
      model: a model whose leaves differ between worlds (`randomize`), with `axes`.
      axes: the axis of worlds of each leaf of `model`, or None.
      randomize: parameters that each episode draws, instead of `model`: ranges by name, or a
        function, as for `randomize`. The drawn values are in `info["drawn"]`.
      devices: the devices, or a mesh, over which `reset` and `step` divide the worlds, as
        `over_devices` does. None: the worlds stay where their arrays are.

    Raises:
      ValueError: an argument is invalid, or models do not fit their axes.

    Attributes:
      count: number of worlds that the models are for; None: any number.

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
        randomize: Any = None,
        devices: Devices | None = None,
    ):
        given: Any = env
        if not isinstance(given, Env):
            cure = "; a model is VectorEnv(Env(m))" if isinstance(given, Model) else ""
            raise ValueError(f"VectorEnv: env: expected an Env, got {type(given).__name__}{cure}")
        if autoreset not in _AUTORESET_CHOICES:
            raise ValueError(f"autoreset: expected one of {_AUTORESET_CHOICES}, got {autoreset!r}")
        check_models(env.m, model, axes)
        if randomize is not None and model is not None:
            raise ValueError("randomize: worlds draw models at each episode, or have model=...")
        self.env, self.autoreset = env, autoreset
        self._devices = None if devices is None else DeviceIds.of(devices)
        self.length = check_count("length", length)
        self._drawing = None if randomize is None else random_model(env.m, randomize)
        self._model = env.m if model is None else model
        self._axes = axes if self._drawing is None else self._drawing.axes
        self.count = _worlds_of(self._model, axes)
        # one model for all worlds has one state at rest; models that differ have their own
        self._rest = env.at_rest(self._model) if self._axes is None else None
        self._compile()

    def _compile(self) -> None:
        """Compile the programs that pickles leave out."""
        axes = self._axes
        self._step: Callable = jax.jit(self._all)  # traced once for all callers
        self._new_worlds: Callable = self._new
        if self._devices is not None:
            own = axes if self._drawing is None else None  # axes of `_model`
            devices = self._devices.find()
            self._step = over_devices(self._all, (own, 0, 0), devices)
            self._new_worlds = over_devices(self._new, (own, 0), devices)
        self._reset = jax.vmap(self._begin, in_axes=(axes, 0))
        self._start = jax.vmap(self._start_world, in_axes=(axes, 0))
        self._act = jax.vmap(self._plain, in_axes=(axes, 0, 0))
        self._renew = jax.vmap(self._next, in_axes=(axes, 0, 0, 0, 0))

    def reset(self, keys: jax.Array) -> State:
        """Return the states of new episodes of all worlds.

        Args:
          keys: `jax.random.key`s, one for each world, (worlds,).

        Raises:
          ValueError: there is a single key, or not one for each model.
        """
        check_keys("keys", keys, self.count)
        return self._new_worlds(self._model, keys)

    def step(self, state: State, action: jax.Array) -> State:
        """Take an action in each world.

        Args:
          state: the worlds.
          action: (worlds, action_size).

        Raises:
          ValueError: the actions have another shape, or the state is that of one world.
        """
        check_state(state, action, self.env.action_size, worlds=True)
        return self._step(self._model, state, action)

    def reset_where(self, state: State, where: jax.Array, keys: jax.Array) -> State:
        """Begin new episodes of chosen worlds.

        Args:
          state: the worlds.
          where: mask of the worlds to reset, bool (worlds,).
          keys: random keys, (worlds,); those of other worlds are not used.
        """
        return jax.vmap(select_tree)(where, self.reset(keys), state)

    def _all(self, m: Model, state: State, action: jax.Array) -> State:
        if self.autoreset == "next":
            keys = jax.vmap(jax.random.split)(state.info["key"])
            over = state.done > 0
            state, m = self._redraw_models(m, state, over, keys[:, 0])
            begun = self._where_any(over, self._start, m, keys[:, 0], state.data)
            return self._renew(m, state, action, begun, keys[:, 1])
        result = self._act(self._models(m, state), state, action)
        if self.autoreset is None:
            return result
        long = self._drawing is not None
        begun = self._where_any(result.done > 0, self._new, m, result.info["key"], result, long)
        return jax.vmap(self._same)(result, begun)

    # --- models that are drawn for each episode ---

    def _new(self, m: Model, keys: jax.Array) -> State:
        """Return new episodes, with new models if each episode draws one."""
        if self._drawing is None:
            return self._reset(m, keys)
        drawn = self._draw(keys)
        state = self._reset(self._drawing.model(drawn, m), keys)
        return state.replace(info=state.info | {"drawn": drawn})

    def _draw(self, keys: jax.Array) -> tuple[jax.Array, ...]:
        assert self._drawing is not None
        own = jax.vmap(lambda key: jax.random.fold_in(key, _MODEL_KEY_SALT))(keys)
        return tuple(jax.vmap(self._drawing.leaves)(own))

    def models(self, state: State) -> tuple[Model, Any]:
        """Return the models of worlds, and the axis of worlds of each leaf, or None."""
        return self._models(self._model, state), self._axes

    def _models(self, m: Model, state: State) -> Model:
        """Return the models of worlds; `m` has the leaves that they share."""
        return m if self._drawing is None else self._drawing.model(state.info["drawn"], m)

    def _redraw_models(
        self, m: Model, state: State, over: jax.Array, keys: jax.Array
    ) -> tuple[State, Model]:
        """Return the worlds with new models where episodes are over.

        Drawing takes long, so it is done only in steps in which some episode is over.
        """
        if self._drawing is None:
            return state, m
        old = state.info["drawn"]
        new = lax.cond(jnp.any(over), lambda: self._draw(keys), lambda: old)
        drawn = jax.vmap(select_tree)(over, new, old)
        state = state.replace(info=state.info | {"drawn": drawn})
        return state, self._models(m, state)

    def _where_any(
        self,
        over: jax.Array,
        begin: Callable,
        m: Model,
        keys: jax.Array,
        else_: Any,
        long: bool = False,
    ) -> Any:
        """Return new episodes; a start that takes long is computed only if some world resets."""
        if not (long or self.env.long_start):
            return begin(m, keys)
        return lax.cond(jnp.any(over), lambda: begin(m, keys), lambda: else_)

    # --- one world ---

    def _start_world(self, m: Model, key: jax.Array) -> Data:
        rest = self.env.at_rest(m) if self._rest is None else self._rest
        return self.env.start(m, rest, key)

    def _begin(self, m: Model, key: jax.Array) -> State:
        own, key = jax.random.split(key)
        state = self.env.begun(m, self._start_world(m, own))
        info = state.info | {"key": key}
        if self.autoreset == "same":
            info |= {"final_obs": state.obs}
        return state.replace(info=info)

    def _plain(self, m: Model, state: State, action: jax.Array) -> State:
        return self._truncate(self.env.step(state, action, m))

    def _same(self, result: State, fresh: State) -> State:
        last = {n: result.info[n] for n in ("terminated", "truncated", "diverged")}
        last["final_obs"] = result.obs
        begun = fresh.replace(
            data=with_warnings_of(fresh.data, result.data),
            reward=result.reward,
            done=result.done,
            metrics=result.metrics,
            info=result.info | fresh.info | last,
        )
        return select_tree(result.done > 0, begun, result.replace(info=result.info | last))

    def _next(
        self, m: Model, state: State, action: jax.Array, fresh: Data, key: jax.Array
    ) -> State:
        env, over = self.env, state.done > 0
        action, driven = env.take(m, state.data, action)
        after = env.renew(m, driven, fresh, over)
        before = select_tree(over, with_warnings_of(fresh, after), state.data)
        result = self._truncate(env.evaluate_step(m, state, before, after, action))
        zero, no = jnp.zeros_like(result.reward), jnp.zeros((), bool)
        first = {"steps": jnp.zeros((), jnp.int32), "key": key}
        first |= dict.fromkeys(("terminated", "truncated", "diverged"), no)
        return result.replace(
            reward=jnp.where(over, zero, result.reward),
            done=jnp.where(over, zero, result.done),
            info=result.info | {n: select_tree(over, x, result.info[n]) for n, x in first.items()},
        )

    def _truncate(self, state: State) -> State:
        """Truncate an episode that has reached its length."""
        ended = state.info["terminated"]
        truncated = ~ended & (state.info["steps"] >= self.length)
        return state.replace(
            done=(ended | truncated).astype(state.done.dtype),
            info=state.info | {"truncated": truncated},
        )


def _worlds_of(m: Model, axes: Any) -> int | None:
    """Return the length of the axis of worlds, or None."""
    sizes: set[int] = set()

    def note(axis: int | None, part: Any) -> None:
        if axis is not None:
            sizes.update(x.shape[axis] for x in jax.tree.leaves(part))

    jax.tree.map(note, axes, m, is_leaf=lambda axis: axis is None)
    return next(iter(sizes), None)
