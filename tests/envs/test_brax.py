"""Brax's wrappers end, truncate and reset our episodes; its PPO learns on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import hold

# Brax and what it imports warn of their own affairs
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def env():
    return hold()


@pytest.fixture(autouse=True)
def promotion_as_brax_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def test_episodes_under_the_wrappers_of_brax(env):
    from brax.envs.wrappers import training

    from jaxsim.envs.brax import BraxEnv

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    wrapped = training.wrap(BraxEnv(env), episode_length=10, action_repeat=1)
    assert (wrapped.observation_size, wrapped.action_size) == (2, 1)
    state, step = jax.jit(wrapped.reset)(keys), jax.jit(wrapped.step)
    ours = jax.jit(jax.vmap(env.reset))(keys)
    mine = jax.jit(jax.vmap(env.step))
    np.testing.assert_array_equal(state.obs, ours.obs)
    actions = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (10, 3, 1)))
    first = state.obs
    for action in actions:
        state, ours = step(state, action), mine(ours, action)
        np.testing.assert_allclose(state.reward, ours.reward, atol=1e-12)
        if float(state.done.max()) == 0:
            np.testing.assert_allclose(state.obs, ours.obs, atol=1e-12)
    np.testing.assert_array_equal(state.info["truncation"], 1 - ours.done)
    np.testing.assert_array_equal(state.obs, first)  # Brax begins each world where it began


def _replicated(tree, devices):
    """What `jax.device_put_replicated` was: Brax 0.14 calls it, and JAX 0.10 has it no more."""
    return jax.tree.map(lambda x: jnp.stack([x] * len(devices)), tree)


@pytest.mark.slow
def test_ppo_learns(env, monkeypatch):
    """The mean reward of an action rises to most of what there is."""
    monkeypatch.setattr(jax, "device_put_replicated", _replicated, raising=False)
    from brax.training.agents.ppo import train as ppo

    from jaxsim.envs.brax import BraxEnv

    curve: list[float] = []
    ppo.train(
        environment=BraxEnv(env),
        num_timesteps=60_000,
        episode_length=50,
        num_envs=64,
        num_evals=3,
        num_eval_envs=64,
        unroll_length=10,
        batch_size=64,
        num_minibatches=4,
        num_updates_per_batch=4,
        learning_rate=1e-3,
        normalize_observations=True,
        seed=1,
        progress_fn=lambda steps, told: curve.append(float(told["eval/episode_reward"])),
    )
    assert curve[-1] > curve[0]
    assert curve[-1] > 0.8 * 50
