"""PPO and SAC of rejax over batched worlds, all seeds at once."""

import math
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.envs.rejax import RejaxEnv
from jaxsim.envs.state import Observation
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.io.config import SettingLocations
from jaxsim.learn.config import Training
from jaxsim.learn.learner import (
    Learner,
    check_minibatches,
    observed_columns,
    repeat_iteration,
    strongly_typed,
)
from jaxsim.optional import require

rejax = require("rejax", "rl")
networks = require("rejax.networks", "rl")


class _WholeBatch:
    """A mixin with which rejax steps all worlds as one batch, instead of batching one world."""

    @property
    def vmap_reset(self) -> Any:
        return lambda keys, params: self.env.reset_all(keys)  # type: ignore[attr-defined]

    @property
    def vmap_step(self) -> Any:
        return lambda keys, state, action, params: (
            *self.env.step_all(state, action),  # type: ignore[attr-defined]
            {},
        )


class _SeesPart(_WholeBatch):
    """A mixin with which actor and critic see parts of an observation, which differ."""

    @classmethod
    def create_agent(cls, config: Any, env: Any, env_params: Any) -> dict[str, Any]:
        parts = {name: config.pop(f"{name}_columns", ()) for name in ("actor", "critic")}
        agent = super().create_agent(config, env, env_params)  # type: ignore[misc]
        for name, columns in parts.items():
            if columns:
                old = agent[name]
                fields = {n: getattr(old, n) for n in old.__dataclass_fields__}
                fields = {n: x for n, x in fields.items() if n not in ("name", "parent")}
                agent[name] = _PARTIAL_NETWORKS[type(old)](**fields, columns=columns)
        return agent


class _Actor:
    columns: tuple[int, ...] = ()

    def _action_dist(self, obs: jax.Array) -> Any:
        return super()._action_dist(_network_observation(self, obs))  # type: ignore[misc]


class _GaussianPart(_Actor, networks.GaussianPolicy):  # type: ignore[name-defined]
    columns: tuple[int, ...] = ()


class _SquashedPart(_Actor, networks.SquashedGaussianPolicy):  # type: ignore[name-defined]
    columns: tuple[int, ...] = ()


class _ValuePart(networks.VNetwork):  # type: ignore[name-defined]
    columns: tuple[int, ...] = ()

    def __call__(self, obs: jax.Array) -> jax.Array:
        return super().__call__(_network_observation(self, obs))


class _QPart(networks.QNetwork):  # type: ignore[name-defined]
    columns: tuple[int, ...] = ()

    def __call__(self, obs: jax.Array, action: jax.Array) -> jax.Array:
        return super().__call__(_network_observation(self, obs), action)


_PARTIAL_NETWORKS = {
    networks.GaussianPolicy: _GaussianPart,
    networks.SquashedGaussianPolicy: _SquashedPart,
    networks.VNetwork: _ValuePart,
    networks.QNetwork: _QPart,
}


def _network_observation(network: Any, obs: jax.Array) -> jax.Array:
    """Return the part of an observation that a network sees; all of it if it has no columns."""
    columns = getattr(network, "columns", ())
    return obs[..., np.array(columns)] if columns else obs


class _PPO(_SeesPart, rejax.PPO):  # type: ignore[name-defined]
    pass


class _SAC(_SeesPart, rejax.SAC):  # type: ignore[name-defined]
    pass


_REJAX_ALGORITHMS = {"ppo": _PPO, "sac": _SAC}


def make_rejax_learner(
    worlds: VectorEnv | Wrapper, training: Training, locations: SettingLocations
) -> Learner:
    """Return PPO or SAC of rejax; see `make_learner` (algorithms.py)."""
    form = asdict(getattr(training, training.algorithm))
    actions = check_minibatches(form, training, locations)
    initial_std = form.pop("initial_std", None)
    if form.pop("anneal", False):
        form["learning_rate"] = _annealed_rate(form, actions, training.steps)
    layers, activation = form.pop("hidden"), form.pop("activation")
    sizes = {"agent_kwargs": {"activation": activation}}
    table = sizes["agent_kwargs"] if training.algorithm == "ppo" else sizes
    table["hidden_layer_sizes"] = layers
    with locations.blame("task"):
        env = RejaxEnv(worlds)
    kind: Any = _REJAX_ALGORITHMS[training.algorithm]
    columns = observed_columns(env, training, locations)
    parts = {f"{name}_columns": entries for name, entries in columns.items()}
    algorithm = kind.create(env=env, num_envs=training.worlds.count, **sizes, **parts, **form)
    learn, calls = repeat_iteration(algorithm.train_iteration, actions)

    def begin(keys: jax.Array) -> Any:
        state = jax.vmap(algorithm.init_state)(keys)
        # these are integers at first in rejax, and floats later
        statistics = jax.tree.map(lambda x: x.astype(jnp.float32), state.rew_rms_state)
        state = jax.tree.map(strongly_typed, state.replace(rew_rms_state=statistics))
        return state if initial_std is None else _set_small_initial_actions(state, initial_std)

    def act(state: Any, obs: Observation) -> jax.Array:
        obs = env.flat(obs)
        if algorithm.normalize_observations:
            obs = algorithm.normalize_obs(state.obs_rms_state, obs)
        return algorithm.actor.apply(state.actor_ts.params, obs, method=_most_likely_action)

    return Learner(begin, learn, act, calls)


def _set_small_initial_actions(state: Any, std: float) -> Any:
    """Return the state of a PPO whose first actions are near zero, with a standard deviation.

    Last layers a hundred times smaller than usual: M. Andrychowicz et al., What Matters for
    On-Policy Deep Actor-Critic Methods, 2021, 3.2.
    """
    policy = state.actor_ts.params["params"]
    last = {**policy["action_mean"], "kernel": 0.01 * policy["action_mean"]["kernel"]}
    log_std = jnp.full_like(policy["action_log_std"], math.log(std))
    params = {"params": {**policy, "action_mean": last, "action_log_std": log_std}}
    return state.replace(actor_ts=state.actor_ts.replace(params=params))


def _annealed_rate(form: dict[str, Any], actions: int, steps: int) -> Any:
    """Return a learning rate that decreases to 0 over the updates of a run."""
    updates = -(-steps // actions) * form["num_epochs"] * form["num_minibatches"]
    return require("optax", "rl").linear_schedule(form["learning_rate"], 0.0, updates)


def _most_likely_action(policy: Any, obs: jax.Array) -> jax.Array:
    """Return the most likely action of a policy."""
    mean = policy.action_mean(policy.features(_network_observation(policy, obs)))
    if hasattr(policy, "bij"):  # squashed into the action range
        return policy.action_loc + policy.action_scale * jnp.tanh(mean)
    return jnp.clip(mean, *policy.action_range)
