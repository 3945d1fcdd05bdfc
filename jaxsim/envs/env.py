"""Environment of one world: a model with actions, observations and rewards.

    reset:  start -> observe
    step:   control -> the physics, `repeat` times -> observe, reward, terminal

A task is a subclass that overrides some of `start`, `control`, `observe`, `reward`, `terminal` and
`metrics`. All are pure functions of one world; `vmap` batches them (vector.py). As after `mj_step`,
results that are computed from the state (poses, sensors, forces) belong to the state before the
last physics step, while `qpos` and `qvel` are those after it; `refresh_world` changes that. A task
that remembers something (a goal, an earlier position) does so in `userdata`, which is part of the
state.
"""

import copy
from abc import ABCMeta
from typing import Any, Self

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import WarningType
from jaxsim.envs.core.checks import check_hooks, check_is_model, check_one_key, check_state
from jaxsim.envs.core.current_results import refresh_world
from jaxsim.envs.state import (
    Observation,
    State,
    reset_where,
    select_tree,
    strip_results,
    with_state_of,
)
from jaxsim.io.smooth_contacts import smooth_contacts
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.warning import diverged
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.api import step as physics_step
from jaxsim.physics.public.arguments import check_count
from jaxsim.physics.public.make_data import make_data


class _Checked(ABCMeta):
    """Metaclass that checks the hooks of a task after `__init__` of the subclass."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        env = super().__call__(*args, **given)
        check_hooks(env)
        return env


class Env(metaclass=_Checked):
    """A task in one world.

    Args:
      m: the model.
      repeat: physics steps for each action.
      keep: fields that Data carries, as for `make_data`.
      current: whether `observe`, `reward`, `terminal` and `metrics` get poses, velocities and their
        sensors of the state after the action, as after `mj_step1`; forces and accelerations are
        those of the last physics step. Under `jit` only what they read is computed, once for each
        action. `State.data` stays as the step returned it.

    Raises:
      ValueError: a hook of the task returns another shape or type than documented below.

    Example:
      >>> class Upright(Env):
      ...     def reward(self, m, before, after, action):
      ...         return -jnp.cos(after.qpos[0])
      >>> env = Upright(m, repeat=5)
      >>> state = jax.jit(env.reset)(jax.random.key(0))
      >>> state.obs.shape, round(float(env.dt), 3)
      ((2,), 0.01)
    """

    # whether `start` takes long (it settles, or searches): a batch of worlds then computes it only
    # at actions where one of them resets
    long_start = False

    def __init__(self, m: Model, *, repeat: int = 1, keep: Any = "default", current: bool = False):
        check_is_model(m)
        self.m = m
        self.current = current
        self.repeat = check_count("repeat", repeat)
        self.keep = keep
        self.begin = make_data(m, keep)  # the world of this model at qpos0, at rest

    def with_smooth_contacts(self, smooth: float, *, straight_through: bool = True) -> Self:
        """Return the task with contacts that act from a distance, in derivatives alone by default.

        Args:
          smooth: smoothing length of contacts [m], as for `load_model`.
          straight_through: whether the motion stays that of hard contacts.
        """
        new = copy.copy(self)
        new.m = smooth_contacts(self.m, smooth, straight_through=straight_through)
        new.begin = make_data(new.m, self.keep)
        return new

    # --- hooks that a task overrides ---

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return the state of a new episode.

        Args:
          m: the model of this world.
          d: the world at `qpos0`, at rest.
          key: random key of this episode.
        """
        return d

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Apply an action, (action_size,).

        By default -1 and 1 are the ends of `actuator_ctrlrange`; without limits the action is the
        control.
        """
        low, high = m.actuator_ctrlrange[:, 0], m.actuator_ctrlrange[:, 1]
        inside = 0.5 * (low + high) + 0.5 * (high - low) * jnp.clip(action, -1.0, 1.0)
        return d.replace(ctrl=jnp.where(m.actuator_ctrllimited, inside, action))

    def observe(self, m: Model, d: Data) -> Observation:
        """Return the observation; by default `qpos` and `qvel`."""
        return jnp.concatenate([d.qpos, d.qvel])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of an action, ().

        Args:
          m: the model.
          before: the state before the action; results are None.
          after: the world after it.
          action: the action, (action_size,).
        """
        return jnp.zeros((), after.qpos.dtype)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the task terminates the episode in this state, bool ()."""
        return jnp.zeros((), bool)

    def metrics(self, m: Model, before: Data, after: Data, action: jax.Array) -> dict[str, Any]:
        """Return numbers to log, by name, each ()."""
        return {}

    def action_range(self) -> tuple[jax.Array, jax.Array]:
        """Return the least and the largest actions that `control` takes, (action_size,) each."""
        limited = jnp.asarray(self.m.actuator_ctrllimited)
        most = jnp.where(limited, jnp.ones((), self.begin.qpos.dtype), jnp.inf)
        return -most, most

    # --- interface of callers ---

    def __repr__(self) -> str:
        """Return the task in a line: its actions, their duration, its observations."""
        actions = f"{self.action_size} action" + "s" * (self.action_size != 1)
        ms = round(1000 * float(self.dt), 3)
        return f"<{type(self).__name__}: {actions} every {ms:g} ms, seen {self.observation_size}>"

    @property
    def dt(self) -> jax.Array:
        """Return the duration of an action [s]."""
        return self.m.opt.timestep * self.repeat

    @property
    def action_size(self) -> int:
        """Return the length of an action."""
        return self.m.nu

    @property
    def observation_size(self) -> Any:
        """Return the length of an observation; the shapes of a dict of them."""
        shape = jax.eval_shape(self.observe, self.m, self.begin)
        if isinstance(shape, dict):
            return {name: x.shape for name, x in shape.items()}
        return shape.shape[0]

    def at_rest(self, m: Model) -> Data:
        """Return the world of a model at its `qpos0`, at rest, as `make_data` does."""
        return self.begin if m is self.m else make_data(m, self.keep)

    def reset(self, key: jax.Array, m: Model | None = None) -> State:
        """Return the state of a new episode.

        Under `jit` only the part of the forward dynamics that the observation reads is computed:
        none if it reads the state alone.

        Args:
          key: random key of the episode.
          m: the model of this world; None: that of the environment.
        """
        check_one_key(key)
        m = self.m if m is None else m
        return self.begun(m, self.start(m, self.at_rest(m), key))

    def begun(self, m: Model, d: Data) -> State:
        """Return the State of an episode that begins at a world."""
        zero = jnp.zeros((), d.qpos.dtype)
        action = jnp.zeros(self.action_size, d.qpos.dtype)
        names = jax.eval_shape(self.metrics, m, strip_results(d), d, action)
        return State(
            data=d,
            obs=self.observe(m, forward(m, d)),
            reward=zero,
            done=zero,
            metrics=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), names),
            info={
                "steps": jnp.zeros((), jnp.int32),
                "terminated": jnp.zeros((), bool),
                "truncated": jnp.zeros((), bool),
                "diverged": jnp.zeros((), bool),
            },
        )

    def step(self, state: State, action: jax.Array, m: Model | None = None) -> State:
        """Take an action. A world that diverged is done, has reward 0 and no derivative.

        Args:
          state: the state; one that is done continues from where it is.
          action: the action, (action_size,).
          m: the model of this world; None: that of the environment.

        Raises:
          ValueError: the action has another shape, or the state is of many worlds.
        """
        m = self.m if m is None else m
        check_state(state, action, self.action_size, worlds=False)
        action, driven = self.take(m, state.data, action)
        return self.evaluate_step(m, state, state.data, self.advance(m, driven), action)

    def take(self, m: Model, d: Data, action: jax.Array) -> tuple[jax.Array, Data]:
        """Return the action that counts, and the world with it applied.

        An action that is not finite counts as zero, in the reward too. It is counted as BADCTRL in
        `Data.warning`, with `warning_lastinfo` -1, as the actuator is not known.
        """
        bad = ~jnp.isfinite(action).all()
        action = jnp.where(bad, jnp.zeros_like(action), action)
        driven, kind = self.control(m, d, action), WarningType.BADCTRL
        count = driven.warning.at[kind].add(bad.astype(driven.warning.dtype))
        info = driven.warning_lastinfo
        info = info.at[kind].set(jnp.where(bad, -1, info[kind]))
        return action, driven.replace(warning=count, warning_lastinfo=info)

    def advance(self, m: Model, d: Data) -> Data:
        """Run the physics of one action."""
        if self.repeat == 1:
            return physics_step(m, d)
        return lax.fori_loop(0, self.repeat, lambda _, d: physics_step(m, d), d)

    def renew(self, m: Model, d: Data, fresh: Data, where: jax.Array) -> Data:
        """Run the physics of one action; the world is `fresh` instead if `where` is true.

        The physics also runs for a fresh world, for its results, and then its state is restored. A
        new episode therefore needs no program other than a step.
        """

        def substep(_: Any, d: Data) -> Data:
            return with_state_of(physics_step(m, d), fresh, where)

        return lax.fori_loop(0, self.repeat, substep, reset_where(d, fresh, where))

    def evaluate_step(
        self, m: Model, state: State, before: Data, after: Data, action: jax.Array, **info: Any
    ) -> State:
        """Return the State that an agent receives after an action."""
        bad = diverged(before, after)
        before, data = strip_results(before), after
        after = refresh_world(m, after) if self.current else after
        zero = jnp.zeros((), after.qpos.dtype)
        reward = jnp.asarray(self.reward(m, before, after, action), after.qpos.dtype)
        terminated = jnp.asarray(self.terminal(m, after), bool) | bad
        return state.replace(
            data=data,
            obs=self.observe(m, after),
            reward=jnp.where(bad, zero, reward),
            done=terminated.astype(after.qpos.dtype),
            metrics=select_tree(bad, state.metrics, self.metrics(m, before, after, action)),
            info=state.info
            | {
                "steps": state.info["steps"] + 1,
                "terminated": terminated,
                "truncated": jnp.zeros((), bool),
                "diverged": bad,
            }
            | info,
        )
