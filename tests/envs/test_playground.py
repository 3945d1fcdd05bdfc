"""MuJoCo Playground takes our tasks: registry, wrappers, resets, models that differ."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import XML, Hold, hold

import jaxsim
from jaxsim.envs import randomize
from jaxsim.envs.tasks import TASKS

# Playground and what it imports warn of their own affairs
pytestmark = pytest.mark.filterwarnings("ignore")
LENGTH = 5


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("mujoco_playground")


@pytest.fixture(scope="module")
def ours(theirs):
    import jaxsim.envs.playground as ours

    return ours


@pytest.fixture(autouse=True)
def promotion_as_playground_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def own_key(key):
    """Return the key that the reset wrapper passes to an environment, made of two keys."""
    return jax.random.split(key)[..., 1]


@pytest.mark.parametrize("full_reset", [pytest.param(False, marks=pytest.mark.slow), True])
def test_episodes_under_the_wrappers_of_playground(theirs, ours, full_reset):
    """The numbers of the task itself; then its first state again, or another one."""
    task = hold()
    env = theirs.wrapper.wrap_for_brax_training(
        ours.PlaygroundEnv(task), episode_length=LENGTH, full_reset=full_reset
    )
    assert (env.observation_size, env.action_size) == (2, 1)
    assert env.dt == pytest.approx(0.04)
    state = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), 3))
    step, mine = jax.jit(env.step), jax.jit(jax.vmap(task.step))
    keys = jax.vmap(own_key)(jax.random.split(jax.random.PRNGKey(0), 3))
    expected, first = jax.jit(jax.vmap(task.reset))(keys), state.obs
    np.testing.assert_array_equal(first, expected.obs)
    for count, action in enumerate(np.random.default_rng(0).uniform(-1, 1, (LENGTH, 3, 1)), 1):
        state, expected = step(state, jnp.asarray(action)), mine(expected, jnp.asarray(action))
        np.testing.assert_allclose(state.reward, expected.reward, atol=1e-12)
        np.testing.assert_allclose(state.metrics["speed"], expected.metrics["speed"], atol=1e-12)
        np.testing.assert_array_equal(state.done, count == LENGTH)
        if count < LENGTH:
            np.testing.assert_allclose(state.obs, expected.obs, atol=1e-12)
    # a full reset resets `info` too
    np.testing.assert_array_equal(state.info["truncation"], 0 if full_reset else 1)
    np.testing.assert_array_equal(state.info["AutoResetWrapper_done_count"], 1)
    assert ((np.asarray(state.obs) == first).all(axis=1) != full_reset).all()
    with pytest.raises(ValueError, match=r"action: expected shape \(1,\), got \(2,\)"):
        env.step(state, jnp.zeros((3, 2)))
    state = step(state, jnp.full((3, 1), jnp.nan))
    assert np.isfinite(state.obs).all()
    with pytest.raises(RuntimeError, match="BADCTRL: 3 times in 3 of 3 worlds"):
        jaxsim.check_warnings(state.data)


@pytest.mark.slow
def test_models_that_differ(theirs, ours):
    """`randomize` is what Playground calls a randomization function."""

    def damped(m, key):
        return {"dof_damping": m.dof_damping * jax.random.uniform(key, (), minval=1.0, maxval=9.0)}

    task, keys = hold(), jax.random.split(jax.random.PRNGKey(1), 3)
    env = theirs.wrapper.wrap_for_brax_training(
        ours.PlaygroundEnv(task),
        episode_length=LENGTH,
        randomization_fn=lambda model: randomize(model, keys, damped),
    )
    same = jnp.broadcast_to(jax.random.PRNGKey(0), (3, 2))
    state = jax.jit(env.step)(jax.jit(env.reset)(same), jnp.ones((3, 1)))
    assert len(np.unique(state.obs[:, 1])) == 3
    m = task.m.replace(**damped(task.m, keys[2]))
    begun = jax.jit(task.reset)(own_key(same[0]), m)
    told = jax.jit(task.step)(begun, jnp.ones(1), m)
    np.testing.assert_allclose(told.obs, state.obs[2], atol=1e-12)


def test_the_registry_loads_our_tasks(theirs, ours):
    ours.register_tasks()
    name = "jaxsim/cartpole_swingup"
    assert {f"jaxsim/{task}" for task in TASKS} <= set(theirs.dm_control_suite.ALL_ENVS)
    config = theirs.registry.get_default_config(name)
    assert (config.ctrl_dt, config.sim_dt, config.episode_length) == (0.01, 0.01, 1000)
    env = theirs.registry.load(name, config_overrides={"ctrl_dt": 0.01, "sim_dt": 0.005})
    assert (env.n_substeps, env.env.repeat, env.observation_size) == (2, 2, 5)
    state = jax.jit(env.step)(jax.jit(env.reset)(jax.random.PRNGKey(0)), jnp.ones(1))
    assert float(state.data.time) == pytest.approx(0.01)
    with pytest.raises(KeyError, match="ctrl_td"):
        theirs.registry.load(name, config_overrides={"ctrl_td": 0.01})
    with pytest.raises(ValueError, match=r"ctrl_dt 0.015 s: expected a multiple of sim_dt, 0.01 s"):
        theirs.registry.load(name, config_overrides={"ctrl_dt": 0.015})


def test_a_task_of_ones_own(theirs, ours):
    ours.register("Hold", lambda **given: Hold(jaxsim.load_model(XML), **given), 50)
    env = theirs.registry.load("Hold", config_overrides={"ctrl_dt": 0.04, "impl": "jax"})
    assert isinstance(env, theirs.MjxEnv)
    assert (env.env.repeat, env.sim_dt, env.xml_path) == (2, 0.02, "")
    assert theirs.registry.get_default_config("Hold").episode_length == 50
    with pytest.raises(ValueError, match="rendering needs an MjModel"):
        _ = env.mj_model
    config = ours.configuration(hold())
    config.ctrl_dt = 0.02
    with pytest.raises(ValueError, match=r"ctrl_dt 0.02 s: the task takes 2 steps of 0.02 s"):
        ours.PlaygroundEnv(hold(), config)


@pytest.mark.slow
def test_ppo_learns_as_the_scripts_of_playground_train(theirs, ours, monkeypatch):
    """Brax's PPO by Playground's wrapper, in worlds that differ, each reset at a random time."""

    # Brax 0.14 calls it, and JAX 0.10 has it no more
    def replicated(tree, devices):
        return jax.tree.map(lambda x: jnp.stack([x] * len(devices)), tree)

    monkeypatch.setattr(jax, "device_put_replicated", replicated, raising=False)
    from brax.training.agents.ppo import train as ppo

    def change(m, key):
        return {"dof_damping": m.dof_damping * jax.random.uniform(key, (), minval=0.8, maxval=1.2)}

    curve: list[float] = []
    ppo.train(
        environment=ours.PlaygroundEnv(hold()),
        wrap_env_fn=partial(theirs.wrapper.wrap_for_brax_training, full_reset=True),
        randomization_fn=lambda model, rng: randomize(model, rng, change),
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
