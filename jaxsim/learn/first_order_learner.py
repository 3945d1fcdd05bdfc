"""SHAC and APG: policies that follow the derivative of their return through the physics.

An update takes the actions of a short horizon in all worlds, differentiates their return with
respect to the policy (first_order.py) and makes a step of Adam along it. SHAC (J. Xu et al., 2022,
algorithm 1) continues returns beyond the horizon by target critics, and fits the critics to
TD(lambda) targets of the same actions. APG has the rewards of the horizon alone.
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from jaxsim.envs.core.episodes import Episodes, EpisodeWorlds
from jaxsim.envs.state import Observation
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.io.config import SettingLocations
from jaxsim.learn.actor_critic import Actor, Critics, TrainedNetwork
from jaxsim.learn.config import APGForm, SHACForm, Training
from jaxsim.learn.first_order import mean_return, run_horizon
from jaxsim.learn.learner import (
    Learner,
    check_minibatches,
    observed_columns,
    repeat_iteration,
    strongly_typed,
)
from jaxsim.learn.networks import RunningStatistics


class FirstOrderState(struct.PyTreeNode):
    """State of a seed.

    Attributes:
      rng: random key.
      env_state: the worlds.
      actor_ts: the policy.
      critic_ts: `TrainedCritics`; None without critics.
      statistics: mean and variance of the observations before this update.
      dropped: number of derivatives of a world so far that were not finite, ().
    """

    rng: jax.Array
    env_state: Episodes
    actor_ts: TrainedNetwork
    critic_ts: Any
    statistics: RunningStatistics
    dropped: jax.Array


def make_first_order_learner(
    worlds: VectorEnv | Wrapper, training: Training, locations: SettingLocations
) -> Learner:
    """Return SHAC or APG; see `make_learner` (algorithms.py)."""
    form: APGForm = getattr(training, training.algorithm)
    actions = check_minibatches(vars(form), training, locations)
    env = EpisodeWorlds(worlds)
    columns = observed_columns(env, training, locations)
    updates = -(-training.steps // actions)
    actor = Actor(env, form, columns.get("actor", ()), updates)
    critics = None
    if isinstance(form, SHACForm):
        critics = Critics(env, form, columns.get("critic", ()), updates)
    loop = _Update(env, form, actor, critics)
    learn, calls = repeat_iteration(loop, actions)

    def begin(keys: jax.Array) -> FirstOrderState:
        states = jax.vmap(lambda key: loop.begin(key, training.worlds.count))(keys)
        typed: FirstOrderState = jax.tree.map(strongly_typed, states)
        return typed

    def act(state: FirstOrderState, obs: Observation) -> jax.Array:
        return actor.most_likely(
            state.actor_ts.params, loop.normalize(state.statistics, env.flat(obs))
        )

    return Learner(begin, learn, act, calls)


class _Update:
    """An update of a seed."""

    def __init__(self, env: EpisodeWorlds, form: APGForm, actor: Actor, critics: Critics | None):
        self._env, self._form = env, form
        self._actor, self._critics = actor, critics

    def begin(self, key: jax.Array, worlds: int) -> FirstOrderState:
        """Return the state before the first update."""
        env = self._env
        rng, worlds_key, actor_key, critics_key = jax.random.split(key, 4)
        shape = env.observation_shape
        return FirstOrderState(
            rng=rng,
            env_state=env.reset_all(jax.random.split(worlds_key, worlds))[1],
            actor_ts=self._actor.begin(actor_key),
            critic_ts=None if self._critics is None else self._critics.begin(critics_key),
            statistics=RunningStatistics.begin(shape, env.dtype),
            dropped=jnp.zeros((), jnp.int32),
        )

    def __call__(self, state: FirstOrderState) -> FirstOrderState:
        """Take the actions of a horizon; update policy, critics and statistics."""
        form, critics = self._form, self._critics
        rng, noise_key, fit_key = jax.random.split(state.rng, 3)
        size = form.num_steps, len(state.env_state.score)
        noise = jax.random.normal(noise_key, (*size, self._actor.action_size), self._env.dtype)
        # The loss is a mean over actions and worlds.
        bound = form.max_world_grad_norm / (size[0] * size[1])

        def normalize(obs: jax.Array) -> jax.Array:
            return self.normalize(state.statistics, obs)

        def loss(params: Any, probe: jax.Array) -> tuple[jax.Array, Any]:
            def policy(obs: jax.Array, noise: jax.Array) -> jax.Array:
                return self._actor.sample(params, normalize(obs), noise)

            final, horizon = run_horizon(self._env, policy, state.env_state, noise, probe, bound)
            values = jnp.zeros_like(horizon.reward)
            if critics is not None:
                values = critics.values(state.critic_ts, normalize(horizon.next_obs))
            return -mean_return(horizon, values, form.gamma), (final, horizon, values)

        # Differentiate the return of the horizon, and make a step of the policy along it.
        derivative = jax.grad(loss, argnums=(0, 1), has_aux=True)
        probe = jnp.zeros(size, self._env.dtype)
        (gradient, dropped), (final, horizon, values) = derivative(state.actor_ts.params, probe)
        actor_ts = self._actor.update(state.actor_ts, gradient)
        # Fit the critics to the returns of the same actions.
        critic_ts = state.critic_ts
        if critics is not None:
            obs = normalize(horizon.obs)
            critic_ts = critics.update(critic_ts, obs, horizon, values, fit_key)
        return FirstOrderState(
            rng=rng,
            env_state=final,
            actor_ts=actor_ts,
            critic_ts=critic_ts,
            statistics=state.statistics.update(*horizon.observations()),
            dropped=state.dropped + jnp.sum(dropped).astype(jnp.int32),
        )

    def normalize(self, statistics: RunningStatistics, obs: jax.Array) -> jax.Array:
        """Return observations as the networks see them."""
        return statistics.normalize(obs) if self._form.normalize_observations else obs
