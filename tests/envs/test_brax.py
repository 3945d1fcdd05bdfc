"""Brax's wrappers end, truncate and reset our episodes; its PPO, SAC and APG learn on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import hold

import jaxsim
from jaxsim.envs import randomize

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


@pytest.mark.slow
def test_models_that_differ(env):
    """`randomize` is what Brax calls a randomization function."""
    from brax.envs.wrappers import training

    from jaxsim.envs.brax import BraxEnv

    def damped(m, key):
        return {"dof_damping": m.dof_damping * jax.random.uniform(key, (), minval=1.0, maxval=9.0)}

    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    wrapped = training.wrap(
        BraxEnv(env),
        episode_length=10,
        randomization_fn=lambda model: randomize(model, keys, damped),
    )
    same = jnp.broadcast_to(jax.random.PRNGKey(0), (3, 2))
    state = jax.jit(wrapped.step)(jax.jit(wrapped.reset)(same), jnp.ones((3, 1)))
    m = env.m.replace(**damped(env.m, keys[2]))
    told = jax.jit(env.step)(jax.jit(env.reset)(same[0], m), jnp.ones(1), m)
    np.testing.assert_allclose(told.obs, state.obs[2], atol=1e-12)
    assert len(np.unique(state.obs[:, 1])) == 3


def _replicated(tree, devices):
    """Replace `jax.device_put_replicated`, which Brax 0.14 calls and JAX 0.10 has removed."""
    return jax.tree.map(lambda x: jnp.stack([x] * len(devices)), tree)


@pytest.fixture
def replicated(monkeypatch):
    monkeypatch.setattr(jax, "device_put_replicated", _replicated, raising=False)


@pytest.mark.slow
def test_ppo_learns(env, replicated):
    """The mean reward of an action rises to most of what there is."""
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


@pytest.mark.slow
def test_sac_learns(env, replicated):
    """Off-policy, from a buffer of what was seen."""
    from brax.training.agents.sac import train as sac

    from jaxsim.envs.brax import BraxEnv

    curve: list[float] = []
    sac.train(
        environment=BraxEnv(env),
        num_timesteps=6_000,
        episode_length=50,
        num_envs=16,
        num_evals=2,
        num_eval_envs=64,
        batch_size=128,
        min_replay_size=512,
        max_replay_size=8192,
        grad_updates_per_step=4,
        discounting=0.9,
        reward_scaling=20.0,  # or entropy, whose weight begins at 1, is worth more
        learning_rate=2e-3,
        normalize_observations=True,
        deterministic_eval=True,
        seed=1,
        progress_fn=lambda steps, told: curve.append(float(told["eval/episode_reward"])),
    )
    assert curve[-1] > curve[0]
    assert curve[-1] > 0.8 * 50


@pytest.mark.slow
def test_apg_learns(env, replicated):
    """Along the derivatives of the physics itself, through 25 actions."""
    from brax.training.agents.apg import train as apg

    from jaxsim.envs.brax import BraxEnv

    curve: list[float] = []
    apg.train(
        environment=BraxEnv(env),
        policy_updates=100,
        horizon_length=25,
        episode_length=50,
        num_envs=16,
        num_evals=2,
        num_eval_envs=64,
        learning_rate=1e-2,
        max_gradient_norm=1.0,
        use_float64=True,
        normalize_observations=True,
        deterministic_eval=True,
        seed=1,
        progress_fn=lambda update, told: curve.append(float(told["eval/episode_reward"])),
    )
    assert curve[-1] > curve[0]
    assert curve[-1] > 0.8 * 50


@pytest.mark.slow
def test_actions_that_are_not_right(env):
    from jaxsim.envs.brax import BraxEnv

    brax = BraxEnv(env)
    state = jax.jit(brax.reset)(jax.random.PRNGKey(0))
    with pytest.raises(ValueError, match=r"action: expected shape \(1,\), got \(2,\)"):
        brax.step(state, jnp.zeros(2))
    state = jax.jit(brax.step)(state, jnp.full(1, jnp.nan))
    assert np.isfinite(state.obs).all()
    with pytest.raises(RuntimeError, match="BADCTRL: once: control not finite, taken as zero"):
        jaxsim.check_warnings(state.pipeline_state)
