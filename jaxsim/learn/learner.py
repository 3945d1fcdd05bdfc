"""A learner: rejax's algorithm over batched worlds, all seeds at once.

    begin:   keys of the seeds -> state
    learn:   state -> state: some actions of all worlds, and updates
    act:     state of a seed, observations -> most likely actions

The state is a pytree: networks, optimizers, statistics, the worlds and the random keys. It is
complete: training continues from it as if uninterrupted.
"""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.envs.rejax import RejaxEnv
from jaxsim.envs.state import Observation
from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.io.config import SettingLocations
from jaxsim.learn.config import Training
from jaxsim.optional import require

rejax = require("rejax", "rl")
networks = require("rejax.networks", "rl")

_MIN_ACTIONS_PER_CALL = 2048  # minimum number of actions in all worlds per call of `learn`


class Learner(NamedTuple):
    """A training as three pure functions.

    Attributes:
      begin: keys (seeds,) -> state; every leaf has a leading axis of seeds.
      learn: state -> state.
      act: state of one seed, observations (n, ...) -> actions (n, action_size).
      actions: number of actions in all worlds of a seed per call of `learn`.
    """

    begin: Callable[[jax.Array], Any]
    learn: Callable[[Any], Any]
    act: Callable[[Any, Observation], jax.Array]
    actions: int


class _WholeBatch:
    """Makes rejax step all worlds as one batch, instead of batching a single world itself."""

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
    """Lets actor and critic see parts of an observation: the critic may see privileged entries."""

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


ALGORITHMS = {"ppo": _PPO, "sac": _SAC}
_PRIVILEGED_PREFIX = "privileged"  # prefix of names of observations that the policy does not see


def make_learner(
    worlds: VectorEnv | Wrapper, training: Training, locations: SettingLocations
) -> Learner:
    """Return the learner of a training.

    Args:
      worlds: the worlds of a seed.
      training: the settings.
      locations: source locations of the settings.

    Raises:
      ConfigError: the data of an update cannot be divided; an observation has no such name.
    """
    form = asdict(getattr(training, training.algorithm))
    count = training.worlds.count
    actions = count * form.get("num_steps", 1)
    if actions % form.get("num_minibatches", 1):
        raise locations.error(
            "ppo.num_minibatches",
            f"{count} worlds x {form['num_steps']} actions cannot be divided by "
            f"{form['num_minibatches']}",
        )
    updates = training.steps / actions * form.get("num_epochs", 1) * form.get("num_minibatches", 1)
    if updates >= 2**31:
        raise locations.error(
            "steps", f"makes {updates:.3g} updates of the networks, expected < 2**31"
        )
    initial_std = form.pop("initial_std", None)
    if form.pop("anneal", False):
        form["learning_rate"] = _annealed_rate(form, actions, training.steps)
    layers, activation = form.pop("hidden"), form.pop("activation")
    sizes = {"agent_kwargs": {"activation": activation}}
    table = sizes["agent_kwargs"] if training.algorithm == "ppo" else sizes
    table["hidden_layer_sizes"] = layers
    with locations.blame("task"):
        env = RejaxEnv(worlds)
    kind: Any = ALGORITHMS[training.algorithm]
    parts = _columns(env, training, locations)
    algorithm = kind.create(env=env, num_envs=count, **sizes, **parts, **form)
    iteration = jax.vmap(algorithm.train_iteration)
    iterations = -(-_MIN_ACTIONS_PER_CALL // actions)

    def learn(state: Any) -> Any:
        return lax.fori_loop(0, iterations, lambda _, s: iteration(s), state)

    def begin(keys: jax.Array) -> Any:
        state = jax.vmap(algorithm.init_state)(keys)
        # these are integers at first in rejax, and floats later
        statistics = jax.tree.map(lambda x: x.astype(jnp.float32), state.rew_rms_state)
        state = jax.tree.map(_strongly_typed, state.replace(rew_rms_state=statistics))
        return state if initial_std is None else _set_small_initial_actions(state, initial_std)

    def act(state: Any, obs: Observation) -> jax.Array:
        obs = env.flat(obs)
        if algorithm.normalize_observations:
            obs = algorithm.normalize_obs(state.obs_rms_state, obs)
        return algorithm.actor.apply(state.actor_ts.params, obs, method=_most_likely_action)

    return Learner(begin, learn, act, actions * iterations)


def _columns(
    env: RejaxEnv, training: Training, locations: SettingLocations
) -> dict[str, tuple[int, ...]]:
    """Return the entries of an observation that actor and critic see, if these are not all."""
    public = tuple(n for n in env.names if not n.startswith(_PRIVILEGED_PREFIX))
    if env.names and not (public or training.actor_obs):
        raise locations.error("task", f"all observations are {_PRIVILEGED_PREFIX}; name actor_obs")
    found = {}
    wanted = {"actor_obs": training.actor_obs or public, "critic_obs": training.critic_obs}
    for name, seen in wanted.items():
        with locations.blame(name):
            columns = tuple(env.columns(seen).tolist()) if seen else ()
        if seen and set(seen) != set(env.names):
            found[f"{name.removesuffix('_obs')}_columns"] = columns
    return found


def _strongly_typed(x: jax.Array) -> jax.Array:
    """Return a value with a strong type: weakly typed ones would recompile `learn`."""
    return (
        x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else lax.convert_element_type(x, x.dtype)
    )


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
