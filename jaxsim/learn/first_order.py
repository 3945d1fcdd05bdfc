"""Returns of a policy over a short horizon, with their derivative through the physics.

J. Xu et al., Accelerated Policy Learning with Parallel Differentiable Simulation, 2022 (SHAC). The
return of the actions of a horizon is differentiated with respect to the policy by reverse mode,
through policy, physics, observations and rewards. Where an episode ends inside of the horizon, its
return ends there, and that of the next episode begins:

    reset step     the worlds ignore the action (`autoreset="next"`): weight 0, no derivative
    terminated     the return ends
    truncated      the value of the last observation continues it, as at the end of the horizon
    diverged       the return ends, without derivative of that step

In contact the Jacobians of single steps are large, and their product explodes in some worlds, which
then determine the policy gradient (I. Georgiev et al., Adaptive Horizon Actor-Critic, 2024, end the
horizon of such a world). Here the derivative of a world's return by its state is bounded in norm
before each action: a longer one keeps its direction.

The horizon is one `scan`: the program contains the step once, and its derivative once. It stores
the states between the actions; the derivative of a physics step rematerializes its results.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.envs.core.episodes import Episodes, EpisodeWorlds
from jaxsim.envs.state import State

Policy = Callable[[jax.Array, jax.Array], jax.Array]


class Horizon(NamedTuple):
    """Actions of all worlds, in order; all arrays are (steps, worlds, ...).

    Attributes:
      obs: observations before the actions; zero where the action is ignored.
      next_obs: observations after them, before any reset; zero where the world diverged.
      reward: rewards.
      resets: whether the action was ignored and began an episode, bool.
      terminated, truncated, diverged: whether the episode ended after the action, and how, bool.
    """

    obs: jax.Array
    next_obs: jax.Array
    reward: jax.Array
    resets: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    diverged: jax.Array

    def observations(self) -> tuple[jax.Array, jax.Array]:
        """Return the observations, (steps * worlds, ...), and 1 for those that count, else 0."""
        weight = (~self.resets).astype(self.reward.dtype)
        return self.obs.reshape(-1, *self.obs.shape[2:]), weight.reshape(-1)


def run_horizon(
    env: EpisodeWorlds,
    policy: Policy,
    state: Episodes,
    noise: jax.Array,
    probe: jax.Array,
    bound: float = math.inf,
) -> tuple[Episodes, Horizon]:
    """Take the actions of a horizon, differentiably.

    Args:
      env: the worlds.
      policy: (observations, noise) -> actions, (worlds, action_size).
      state: the worlds at first.
      noise: random numbers of the policy, (steps, worlds, action_size).
      probe: zeros, (steps, worlds): their cotangents are 1 where the derivative of a world was not
        finite and was dropped, so that reverse mode returns their number.
      bound: largest norm of a cotangent of a world and its action, before each action; longer ones
        are scaled to it.

    Returns:
      The worlds after the horizon, and its actions.
    """

    def take_action(state: Episodes, inputs: Any) -> tuple[Episodes, Horizon]:
        noise, probe = inputs
        resets = state.world.done > 0
        obs = _zero_where(resets, env.flat(state.world.obs))
        action = policy(obs, noise)
        world, action = _cut_gradient(state.world, action, resets, probe, bound)
        next_obs, after, reward, terminated = env.step_all(state.replace(world=world), action)
        diverged = after.world.info["diverged"]
        after = after.replace(world=_stop_gradient_where(diverged, after.world))
        taken = Horizon(
            obs,
            _zero_where(diverged, next_obs),
            reward,
            resets,
            terminated,
            after.world.info["truncated"],
            diverged,
        )
        return after, taken

    final: tuple[Episodes, Horizon] = lax.scan(take_action, state, (noise, probe))
    return final


def mean_return(horizon: Horizon, values: jax.Array, gamma: float) -> jax.Array:
    """Return the discounted returns of all worlds in a horizon, per action.

    Each episode is discounted from its first action in the horizon.

    Args:
      horizon: the actions.
      values: values of `next_obs`, (steps, worlds), which continue returns that the task did not
        terminate; zeros for the rewards of the horizon alone.
      gamma: discount factor per action.
    """
    discount = _discounts(horizon, gamma)
    ends = _ends(horizon)
    terms = horizon.reward + gamma * jnp.where(ends & ~horizon.terminated, values, 0)
    return jnp.mean(discount * jnp.where(horizon.resets, 0, terms))


def value_targets(horizon: Horizon, values: jax.Array, gamma: float, td_lambda: float) -> jax.Array:
    """Return TD(lambda) targets of the values of `obs`, (steps, worlds).

    R. S. Sutton and A. G. Barto, Reinforcement Learning, 2018, 12.1. Targets where the action was
    ignored are not meaningful.

    Args:
      horizon: the actions.
      values: values of `next_obs`, (steps, worlds).
      gamma: discount factor per action.
      td_lambda: weight of longer returns.
    """

    def precede(target: jax.Array, inputs: Any) -> tuple[jax.Array, jax.Array]:
        reward, value, ends, terminated = inputs
        onward = jnp.where(ends, value, (1 - td_lambda) * value + td_lambda * target)
        target = reward + gamma * jnp.where(terminated, 0, onward)
        return target, target

    inputs = (horizon.reward, values, _ends(horizon), horizon.terminated)
    _, targets = lax.scan(precede, jnp.zeros_like(values[0]), inputs, reverse=True)
    return targets


def _ends(horizon: Horizon) -> jax.Array:
    """Return whether a return ends after an action: with the episode, or with the horizon."""
    return (horizon.terminated | horizon.truncated).at[-1].set(True)


def _discounts(horizon: Horizon, gamma: float) -> jax.Array:
    """Return the discount of each action, 1 for the first one of an episode, (steps, worlds)."""

    def follow(discount: jax.Array, resets: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.where(resets, jnp.ones_like(discount), gamma * discount), discount

    _, discounts = lax.scan(follow, jnp.ones_like(horizon.reward[0]), horizon.resets)
    return discounts


def _zero_where(where: jax.Array, x: jax.Array) -> jax.Array:
    """Return an array with zeros for some worlds, whose numbers may not be finite."""
    return jnp.where(_expand(where, x), jnp.zeros_like(x), x)


def _expand(where: jax.Array, x: jax.Array) -> jax.Array:
    """Return a mask of worlds with the dimensions of an array of worlds."""
    return where.reshape(where.shape + (1,) * (x.ndim - where.ndim))


def _is_inexact(x: jax.Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def _stop_gradient_where(where: jax.Array, world: State) -> State:
    """Return worlds without derivative where a condition holds."""

    def stop(x: jax.Array) -> jax.Array:
        return jnp.where(_expand(where, x), lax.stop_gradient(x), x) if _is_inexact(x) else x

    return jax.tree.map(stop, world)


def _cut_gradient(
    world: State, action: jax.Array, resets: jax.Array, probe: jax.Array, bound: float
) -> tuple[State, jax.Array]:
    """Return worlds and actions whose cotangents are bounded in norm, and zero where they are not
    finite, or at resets.

    Cotangents of random keys and of integers do not exist: these leaves are left as they are.
    """
    leaves, form = jax.tree.flatten((world, action))
    inexact = [i for i, x in enumerate(leaves) if _is_inexact(x)]
    kept = (~resets).astype(probe.dtype)
    bounded = bound_cotangents([leaves[i] for i in inexact], kept, probe, bound)
    for i, x in zip(inexact, bounded, strict=True):
        leaves[i] = x
    cut: tuple[State, jax.Array] = jax.tree.unflatten(form, leaves)
    return cut


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def bound_cotangents(
    leaves: list[jax.Array], kept: jax.Array, probe: jax.Array, bound: float
) -> list[jax.Array]:
    """Return arrays whose cotangents are bounded in reverse mode.

    Args:
      leaves: arrays (worlds, ...); cotangents that are not finite become zero, for all of a world.
      kept: 1, or 0 for worlds whose cotangents become zero, (worlds,).
      probe: zeros, (worlds,): its cotangent is 1 where that of a world was not finite.
      bound: largest norm of the cotangents of a world; longer ones are scaled to it.
    """
    del kept, probe, bound
    return leaves


def _bounded_forward(
    leaves: list[jax.Array], kept: jax.Array, probe: jax.Array, bound: float
) -> tuple[list[jax.Array], jax.Array]:
    del probe, bound
    return leaves, kept


def _bounded_backward(
    bound: float, kept: jax.Array, cotangents: list[jax.Array]
) -> tuple[list[jax.Array], jax.Array, jax.Array]:
    squares = [jnp.sum(jnp.reshape(x * x, (len(kept), -1)), axis=1) for x in cotangents]
    square = sum(squares[1:], squares[0])
    finite = jnp.isfinite(square)
    dropped = kept * (~finite).astype(kept.dtype)
    # Scale cotangents longer than the bound; a bound that is infinite scales none.
    long = finite & (square > bound**2)
    length = jnp.sqrt(jnp.where(long, square, jnp.ones_like(square)))
    scale = jnp.where(long, bound / length, jnp.ones_like(square))
    keeps = finite & (kept > 0)
    scaled = [_zero_where(~keeps, x) * _expand(scale, x) for x in cotangents]
    return scaled, jnp.zeros_like(kept), dropped


bound_cotangents.defvjp(_bounded_forward, _bounded_backward)
