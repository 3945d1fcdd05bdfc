"""Returns of a short horizon, their derivative through the physics, and what is left out of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import Hold, hold

from jaxsim.envs import VectorEnv
from jaxsim.envs.core.episodes import EpisodeWorlds
from jaxsim.learn.first_order import (
    Horizon,
    bound_cotangents,
    mean_return,
    run_horizon,
    value_targets,
)

WORLDS, STEPS = 3, 5


def horizon_of(reward, resets, terminated, truncated):
    shape = reward.shape
    seen = jnp.zeros((*shape, 1))
    return Horizon(seen, seen, reward, resets, terminated, truncated, jnp.zeros(shape, bool))


def recorded():
    """A terminated episode, a truncated one, one that goes on, and their rewards and values.

    A reset step follows the end of an episode; its reward is a number that must not count.
    """
    rng = np.random.default_rng(0)
    reward, values = rng.normal(size=(2, STEPS, WORLDS))
    terminated, truncated = np.zeros((2, STEPS, WORLDS), bool)
    terminated[1, 0] = truncated[2, 1] = True
    resets = np.zeros((STEPS, WORLDS), bool)
    resets[2, 0] = resets[3, 1] = True
    return reward, values, resets, terminated, truncated


def returns_by_loop(gamma, world, start):
    """Returns from an action to the end of its episode or of the horizon, by their number of
    actions; the last one is complete."""
    reward, values, resets, terminated, truncated = recorded()
    found, total = [], 0.0
    for n, t in enumerate(range(start, STEPS)):
        assert not resets[t, world]
        total += gamma**n * reward[t, world]
        onward = 0.0 if terminated[t, world] else gamma ** (n + 1) * values[t, world]
        found.append(total + onward)
        if terminated[t, world] or truncated[t, world]:
            break
    return found


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_the_return_is_that_of_a_loop_over_the_actions(gamma):
    reward, values, *flags = recorded()
    starts = [(0, 0), (0, 3), (1, 0), (1, 4), (2, 0)]
    expected = sum(returns_by_loop(gamma, world, t)[-1] for world, t in starts)
    found = mean_return(horizon_of(jnp.asarray(reward), *map(jnp.asarray, flags)), values, gamma)
    np.testing.assert_allclose(found, expected / (STEPS * WORLDS), rtol=1e-12)


@pytest.mark.parametrize("td_lambda", [0.0, 0.6, 1.0])
def test_targets_are_weighted_returns_of_a_loop(td_lambda):
    reward, values, *flags = recorded()
    horizon = horizon_of(jnp.asarray(reward), *map(jnp.asarray, flags))
    targets = value_targets(horizon, jnp.asarray(values), 0.9, td_lambda)
    for world in range(WORLDS):
        for t in range(STEPS):
            if flags[0][t, world]:
                continue
            *short, whole = returns_by_loop(0.9, world, t)
            weights = [(1 - td_lambda) * td_lambda**n for n in range(len(short))]
            expected = np.dot(weights, short) + td_lambda ** len(short) * whole
            np.testing.assert_allclose(targets[t, world], expected, rtol=1e-12)


def test_cotangents_of_a_world_are_bounded_in_norm_together():
    """A long one is scaled, a short one is not, one that is not finite is zero and counted, and a
    reset step has none."""
    leaves = [jnp.zeros((4, 2)), jnp.zeros(4)]
    given = [jnp.array([[30.0, 0], [3, 0], [1, jnp.inf], [3, 4]]), jnp.array([40.0, 4, 1, 0])]
    kept, probe = jnp.array([1.0, 1, 1, 0]), jnp.zeros(4)
    bounded = jax.vjp(lambda x, probe: bound_cotangents(x, kept, probe, 10.0), leaves, probe)[1]
    (matrix, vector), dropped = bounded(given)
    np.testing.assert_allclose(matrix, [[6, 0], [3, 0], [0, 0], [0, 0]], rtol=1e-12)
    np.testing.assert_allclose(vector, [8, 4, 0, 0], rtol=1e-12)
    np.testing.assert_array_equal(dropped, [0, 0, 1, 0])


def rollout(env, length, steps, worlds, bound=np.inf):
    """Return worlds, and the function of a linear policy that is differentiated."""
    worlds_of = EpisodeWorlds(VectorEnv(env, length=length))
    keys = jax.random.split(jax.random.key(0), worlds)
    state = jax.jit(worlds_of.reset_all)(keys)[1]
    noise = 0.3 * jax.random.normal(jax.random.key(1), (steps, worlds, 1))

    def objective(gain, probe):
        def policy(obs, noise):
            return jnp.tanh(obs @ gain + noise)

        _, horizon = run_horizon(worlds_of, policy, state, noise, probe, bound)
        values = jnp.sum(horizon.next_obs**2, axis=-1)
        return mean_return(horizon, values, 0.95), horizon

    return objective, jnp.zeros((steps, worlds))


@pytest.mark.slow
def test_the_policy_gradient_is_that_of_finite_differences():
    """Episodes of 3 actions end inside the horizon, where the next one begins."""
    objective, probe = rollout(hold(), length=3, steps=6, worlds=2)
    gain = jnp.array([[0.4], [-0.3]])
    derivative = jax.jit(jax.grad(objective, argnums=(0, 1), has_aux=True))
    (gradient, dropped), horizon = derivative(gain, probe)
    np.testing.assert_array_equal(horizon.resets[:, 0], [False, False, False, True, False, False])
    np.testing.assert_array_equal(np.flatnonzero(horizon.truncated[:, 0]), [2])
    assert not dropped.any()
    value = jax.jit(lambda gain: objective(gain, probe)[0])
    for i in range(2):
        step = jnp.zeros_like(gain).at[i].set(1e-5)
        difference = (value(gain + step) - value(gain - step)) / 2e-5
        np.testing.assert_allclose(gradient[i, 0], difference, rtol=1e-6)


@pytest.mark.slow
def test_a_bound_limits_the_gradient_of_a_horizon():
    """Each action adds at most the bound times the norm of its observation."""
    gain, steps, worlds, bound = jnp.array([[0.4], [-0.3]]), 4, 2, 1e-6
    found = []
    for limit in (np.inf, bound):
        objective, probe = rollout(hold(), 50, steps, worlds, limit)
        gradient, horizon = jax.jit(jax.grad(objective, has_aux=True))(gain, probe)
        found.append(np.linalg.norm(gradient))
    most = bound * np.linalg.norm(horizon.obs, axis=-1).sum()
    assert found[0] > 10 * most
    assert 0 < found[1] <= most


class Infinite(Hold):
    """A reward whose derivative is infinite in worlds that begin on one side."""

    def reward(self, m, before, after, action):
        root = jnp.sqrt(jnp.where(before.qpos[0] > 0, 0.0, 1.0) * after.qpos[0] ** 2)
        return root + super().reward(m, before, after, action)


class Diverging(Hold):
    """Worlds that begin on one side diverge at the first action."""

    def control(self, m, d, action):
        bad = jnp.where(d.qpos[0] > 0, jnp.inf, 0.0)
        return super().control(m, d, action).replace(qfrc_applied=bad + 0 * d.qvel)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Infinite, Diverging])
def test_derivatives_that_are_not_finite_are_dropped(kind):
    """The gradient is that of the other worlds; those that are not finite are counted."""
    env = kind(hold().m, repeat=2)
    objective, probe = rollout(env, length=50, steps=2, worlds=6)
    gain = jnp.array([[0.4], [-0.3]])
    (gradient, dropped), horizon = jax.jit(jax.grad(objective, argnums=(0, 1), has_aux=True))(
        gain, probe
    )
    bad = np.asarray(horizon.obs[0, :, 0] > 0)
    assert 0 < bad.sum() < 6
    assert np.isfinite(gradient).all()
    assert np.abs(gradient).max() > 0
    if kind is Diverging:
        np.testing.assert_array_equal(horizon.diverged[0], bad)
        np.testing.assert_array_equal(horizon.terminated[0], bad)
        assert np.isfinite(horizon.next_obs).all()
    else:
        np.testing.assert_array_equal(dropped[0] > 0, bad)
