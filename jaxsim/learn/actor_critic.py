"""Policy and critics of first-order learners, with their optimizers.

Actions are normally distributed, with a deviation that does not depend on the state, and squashed
into their range by tanh; an action without limits is not squashed. The noise is an argument, so
that actions are differentiable functions of the parameters. A value is the mean of some critics
that differ in their initial parameters.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.envs.core.episodes import EpisodeWorlds
from jaxsim.learn.config import APGForm, SHACForm
from jaxsim.learn.first_order import Horizon, value_targets
from jaxsim.learn.networks import PolicyNetwork, ValueNetwork
from jaxsim.optional import require

optax = require("optax", "rl")

_ADAM_BETAS = {"b1": 0.7, "b2": 0.95}  # those of SHAC's program: gradients change quickly


class TrainedNetwork(NamedTuple):
    """Parameters of a network, and the state of its optimizer."""

    params: Any
    opt_state: Any


class TrainedCritics(NamedTuple):
    """Parameters of critics along a leading axis, their optimizer, and the target critics."""

    params: Any
    opt_state: Any
    target: Any


class Actor:
    """A policy and its optimizer.

    Args:
      env: the worlds.
      form: the settings.
      columns: entries of an observation that the policy sees; () for all.
      updates: number of updates of the run.
    """

    def __init__(self, env: EpisodeWorlds, form: APGForm, columns: tuple[int, ...], updates: int):
        self._columns, self._inputs = columns, _input_size(env, columns)
        self.action_size = env.worlds.env.action_size
        self._low, self._high = map(np.asarray, env.worlds.env.action_range())
        self._network = PolicyNetwork(
            self.action_size, form.hidden, form.activation, form.initial_std, env.dtype
        )
        self._dtype = env.dtype
        self._optimizer = _optimizer(form, form.learning_rate, updates)

    def begin(self, key: jax.Array) -> TrainedNetwork:
        """Return a policy whose mean actions are near the middle of their range."""
        params = self._network.init(key, jnp.zeros((1, self._inputs), self._dtype))
        return TrainedNetwork(params, self._optimizer.init(params))

    def sample(self, params: Any, obs: jax.Array, noise: jax.Array) -> jax.Array:
        """Return actions, (worlds, action_size), from normal random numbers of this shape."""
        found: Any = self._network.apply(params, _select(obs, self._columns))
        mean, log_std = found
        return self._squash(mean + jnp.exp(log_std)[None] * noise)

    def most_likely(self, params: Any, obs: jax.Array) -> jax.Array:
        """Return the mean actions, (worlds, action_size)."""
        return self._squash(self._network.apply(params, _select(obs, self._columns))[0])

    def update(self, network: TrainedNetwork, gradient: Any) -> TrainedNetwork:
        """Return the policy after a step of its optimizer."""
        return _step(self._optimizer, network, gradient)

    def _squash(self, x: jax.Array) -> jax.Array:
        """Map numbers to the range of actions by tanh; actions without limits are unchanged."""
        limited = np.isfinite(self._low) & np.isfinite(self._high)
        low, high = (np.where(limited, end, 0)[None] for end in (self._low, self._high))
        inside = 0.5 * (low + high) + 0.5 * (high - low) * jnp.tanh(x)
        return jnp.where(limited[None], inside, x)


class Critics:
    """Critics and their optimizers.

    Args:
      env: the worlds.
      form: the settings.
      columns: entries of an observation that the critics see; () for all.
      updates: number of updates of the run.
    """

    def __init__(self, env: EpisodeWorlds, form: SHACForm, columns: tuple[int, ...], updates: int):
        self._columns, self._inputs = columns, _input_size(env, columns)
        self._form, self._dtype = form, env.dtype
        self._network = ValueNetwork(form.critic_hidden, form.activation, env.dtype)
        steps = updates * form.num_epochs * form.num_minibatches
        self._optimizer = _optimizer(form, form.critic_learning_rate, steps)

    def begin(self, key: jax.Array) -> TrainedCritics:
        """Return critics that differ in their parameters."""
        seen = jnp.zeros((1, self._inputs), self._dtype)
        keys = jax.random.split(key, self._form.critics)
        params = jax.vmap(lambda key: self._network.init(key, seen))(keys)
        return TrainedCritics(params, self._optimizer.init(params), params)

    def values(self, critics: TrainedCritics, obs: jax.Array) -> jax.Array:
        """Return the mean value of observations by the target critics, (steps, worlds)."""
        return jnp.mean(self._all_values(critics.target, _select(obs, self._columns, 2)), axis=0)

    def update(
        self,
        critics: TrainedCritics,
        obs: jax.Array,
        horizon: Horizon,
        values: jax.Array,
        key: jax.Array,
    ) -> TrainedCritics:
        """Return critics fitted to the returns of a horizon, and their targets moved to them.

        Args:
          critics: the critics.
          obs: normalized observations of the horizon, (steps, worlds, ...).
          horizon: the actions; those that were ignored do not count.
          values: values of the observations after the actions, (steps, worlds).
          key: random key of the minibatches.
        """
        form = self._form
        targets = value_targets(horizon, values, form.gamma, form.td_lambda)
        network = TrainedNetwork(critics.params, critics.opt_state)
        network = self._fit(network, obs, horizon, targets, key)
        target = optax.incremental_update(network.params, critics.target, 1 - form.polyak)
        return TrainedCritics(*network, target)

    def _fit(
        self,
        network: TrainedNetwork,
        obs: jax.Array,
        horizon: Horizon,
        targets: jax.Array,
        key: jax.Array,
    ) -> TrainedNetwork:
        """Return critics fitted to targets, (steps, worlds), by minibatches."""
        count, form = targets.size, self._form
        seen = _select(obs, self._columns, 2).reshape(count, -1)
        weight, wanted = horizon.observations()[1], targets.reshape(count)
        keys = jax.random.split(key, form.num_epochs)
        order = jax.vmap(lambda key: jax.random.permutation(key, count))(keys)

        def loss(params: Any, batch: jax.Array) -> jax.Array:
            error = self._all_values(params, seen[batch]) - wanted[batch][None]
            squares = jnp.sum(error**2, axis=0) * weight[batch]
            return jnp.sum(squares) / jnp.maximum(jnp.sum(weight[batch]), 1)

        def fit_batch(network: TrainedNetwork, batch: jax.Array) -> tuple[TrainedNetwork, None]:
            gradient = jax.grad(loss)(network.params, batch)
            return _step(self._optimizer, network, gradient), None

        batches = order.reshape(form.num_epochs * form.num_minibatches, -1)
        fitted: TrainedNetwork = lax.scan(fit_batch, network, batches)[0]
        return fitted

    def _all_values(self, params: Any, seen: jax.Array) -> jax.Array:
        """Return the values of each critic, (critics, ...)."""

        def of_one(params: Any) -> Any:
            return self._network.apply(params, seen)

        values: jax.Array = jax.vmap(of_one)(params)
        return values


def _select(obs: jax.Array, columns: tuple[int, ...], axes: int = 1) -> jax.Array:
    """Return the inputs of a network, (..., inputs), from observations with some leading axes."""
    obs = obs[..., np.array(columns)] if columns else obs
    return obs.reshape(*obs.shape[:axes], -1)


def _input_size(env: EpisodeWorlds, columns: tuple[int, ...]) -> int:
    """Return the number of inputs of a network."""
    *frames, size = env.observation_shape
    return int(np.prod(frames, dtype=int)) * (len(columns) or size)


def _optimizer(form: APGForm, rate: float, updates: int) -> Any:
    """Return Adam, after clipping of the gradient by its global norm."""
    schedule = optax.linear_schedule(rate, 0.0, updates) if form.anneal else rate
    clip = optax.clip_by_global_norm(form.max_grad_norm)
    return optax.chain(clip, optax.adam(schedule, **_ADAM_BETAS))


def _step(optimizer: Any, network: TrainedNetwork, gradient: Any) -> TrainedNetwork:
    """Return the network after a step of its optimizer."""
    changes, state = optimizer.update(gradient, network.opt_state, network.params)
    return TrainedNetwork(optax.apply_updates(network.params, changes), state)
