"""rejax steps our worlds as one batch, and its own loop runs on them."""

import re
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learn.tiny import Hold, Seen

import jaxsim
from jaxsim.envs import VectorEnv
from jaxsim.io.config import read_config
from jaxsim.learn.config import Training

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import rejax

    from jaxsim.envs.rejax import RejaxEnv
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, scope="module")
def numbers_as_rejax_needs_them():
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(False), standard, allow:
        yield


def test_a_batch_of_steps_is_a_step_of_the_worlds():
    worlds = VectorEnv(Hold(), length=4)
    env = RejaxEnv(worlds)
    parameters = env.default_params
    keys = jax.random.split(jax.random.key(0), 3)
    obs, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, parameters)
    one = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    reset, step = jax.jit(worlds.reset), jax.jit(worlds.step)
    world = reset(keys)
    np.testing.assert_array_equal(obs, world.obs)
    total, scores = np.zeros(3), []
    actions = np.random.default_rng(0).uniform(-1, 1, (10, 3, 1)).astype(np.float32)
    for action in jnp.asarray(actions):
        obs, state, reward, done, _ = one(keys, state, action, parameters)
        world = step(world, action)
        np.testing.assert_allclose(obs, world.obs, atol=1e-6)
        np.testing.assert_allclose(reward, world.reward, atol=1e-6)
        np.testing.assert_array_equal(done, world.info["terminated"])
        total += np.asarray(world.reward)
        if np.asarray(world.done).all():
            scores.append(total)
            total = np.zeros(3)
    assert not done.any()  # cut off by the length: no end to the learner
    np.testing.assert_allclose(state.last_score, scores[-1], rtol=1e-5)
    np.testing.assert_array_equal(state.last_steps, 4)
    assert env.observation_space(parameters).shape == (2,)
    assert env.action_space(parameters).high.tolist() == [1.0]


@pytest.mark.slow
def test_worlds_that_differ_keep_their_models():
    from jaxsim.envs import randomize

    env = Hold()
    keys = jax.random.split(jax.random.key(1), 3)

    def damped(m, key):
        return {"dof_damping": m.dof_damping * jax.random.uniform(key, (), jnp.float32, 1, 9)}

    model, axes = randomize(env.m, keys, damped)
    worlds = VectorEnv(env, length=9, model=model, axes=axes)
    adapter = RejaxEnv(worlds)
    _, state = jax.jit(jax.vmap(adapter.reset, in_axes=(0, None)))(keys, None)
    push = jnp.ones((3, 1))
    obs = jax.jit(jax.vmap(adapter.step, in_axes=(0, 0, 0, None)))(keys, state, push, None)[0]
    expected = jax.jit(worlds.step)(jax.jit(worlds.reset)(keys), push).obs
    np.testing.assert_allclose(obs, expected, atol=1e-6)
    plain = VectorEnv(env, length=9)
    assert abs(obs - jax.jit(plain.step)(jax.jit(plain.reset)(keys), push).obs).max() > 1e-3


def test_a_dict_of_observations_is_one_vector():
    """In the order of names, of which `columns` gives the entries."""
    worlds, keys = VectorEnv(Seen()), jax.random.split(jax.random.key(0), 3)
    adapter = RejaxEnv(worlds)
    seen = jax.jit(worlds.reset)(keys).obs
    obs, _ = jax.jit(adapter.reset_all)(keys)
    np.testing.assert_array_equal(obs, jnp.concatenate([seen["place"], seen["speed"]], axis=1))
    assert adapter.observation_space(None).shape == (2,)
    assert adapter.columns(["speed"]).tolist() == [1]
    with pytest.raises(ValueError, match="no observation 'sped'; did you mean 'speed'"):
        adapter.columns(["sped"])


def test_what_rejax_cannot_take_is_refused():
    with pytest.raises(ValueError, match="learners need 'next', got 'same'"):
        RejaxEnv(VectorEnv(Hold(), autoreset="same"))


@pytest.mark.slow
def test_the_loop_of_rejax_itself():
    """TD3, which `jaxsim train` does not offer."""
    env = RejaxEnv(VectorEnv(Hold(), length=20))
    how = {"eval_freq": 400, "total_timesteps": 800, "fill_buffer": 100, "buffer_size": 1000}
    algorithm = rejax.TD3.create(env=env, num_envs=8, **how)
    state, (steps, scores) = jax.jit(algorithm.train)(jax.random.key(0))
    assert int(state.global_step) == 800
    assert steps.shape == (3, 128)
    assert np.isfinite(scores).all()


def test_the_file_in_the_page_on_learning(tmp_path):
    page = (Path(jaxsim.__file__).parents[1] / "docs/learn.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "a.toml").write_text(text)
    training, _ = read_config(tmp_path / "a.toml", Training)
    assert training.worlds.randomize["body:*/mass"] == (0.8, 1.2)
