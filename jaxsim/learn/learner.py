"""The interface of learners, and the parts of an observation that actor and critic see.

    begin:   keys of the seeds -> state
    learn:   state -> state: some actions of all worlds, and updates
    act:     state of a seed, observations -> most likely actions

The state is a pytree: networks, optimizers, statistics, the worlds and the random keys. It is
complete: training continues from it as if uninterrupted.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax

from jaxsim.envs.core.episodes import EpisodeWorlds
from jaxsim.envs.state import Observation
from jaxsim.io.config import SettingLocations
from jaxsim.learn.config import Training

_MIN_ACTIONS_PER_CALL = 2048  # minimum number of actions in all worlds per call of `learn`
_PRIVILEGED_PREFIX = "privileged"  # prefix of names of observations that the policy does not see


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


def repeat_iteration(
    iteration: Callable[[Any], Any], actions: int
) -> tuple[Callable[[Any], Any], int]:
    """Return the function `learn`, and its number of actions.

    Args:
      iteration: state of a seed -> state.
      actions: its number of actions in all worlds.
    """
    iterations = -(-_MIN_ACTIONS_PER_CALL // actions)
    of_all_seeds = jax.vmap(iteration)

    def learn(state: Any) -> Any:
        return lax.fori_loop(0, iterations, lambda _, s: of_all_seeds(s), state)

    return learn, actions * iterations


def observed_columns(
    env: EpisodeWorlds, training: Training, locations: SettingLocations
) -> dict[str, tuple[int, ...]]:
    """Return the entries of an observation that "actor" and "critic" see, if these are not all.

    Raises:
      ConfigError: an observation has no such name, or the policy would see none.
    """
    public = tuple(n for n in env.names if not n.startswith(_PRIVILEGED_PREFIX))
    if env.names and not (public or training.actor_obs):
        raise locations.error("task", f"all observations are {_PRIVILEGED_PREFIX}; name actor_obs")
    found = {}
    wanted = {"actor_obs": training.actor_obs or public, "critic_obs": training.critic_obs}
    for name, seen in wanted.items():
        with locations.blame(name):
            columns = tuple(env.columns(seen).tolist()) if seen else ()
        if seen and set(seen) != set(env.names):
            found[name.removesuffix("_obs")] = columns
    return found


def check_minibatches(form: dict[str, Any], training: Training, locations: SettingLocations) -> int:
    """Return the actions of an iteration, which are divided into minibatches.

    Raises:
      ConfigError: they cannot be divided, or the updates of the networks cannot be counted.
    """
    count = training.worlds.count
    actions: int = count * form.get("num_steps", 1)
    if actions % form.get("num_minibatches", 1):
        raise locations.error(
            f"{training.algorithm}.num_minibatches",
            f"{count} worlds x {form['num_steps']} actions cannot be divided by "
            f"{form['num_minibatches']}",
        )
    updates = training.steps / actions * form.get("num_epochs", 1) * form.get("num_minibatches", 1)
    if updates >= 2**31:
        raise locations.error(
            "steps", f"makes {updates:.3g} updates of the networks, expected < 2**31"
        )
    return actions


def strongly_typed(x: jax.Array) -> jax.Array:
    """Return a value with a strong type: weakly typed ones would recompile `learn`."""
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    return lax.convert_element_type(x, x.dtype)
