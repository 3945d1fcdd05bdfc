"""Frames, delays and noise against loops in numpy, over ends of episodes."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import hold

from jaxsim.envs import Delayed, FrameStack, Noisy, VectorEnv

LENGTH, WORLDS = 6, 3
KEYS = jax.random.split(jax.random.key(2), WORLDS)
ACTIONS = np.random.default_rng(0).uniform(-1, 1, (17, WORLDS, 1))


@pytest.fixture(scope="module")
def env():
    return hold()


@cache
def plain(mode="next"):
    """The worlds without a wrapper, compiled once."""
    worlds = VectorEnv(hold(), length=LENGTH, autoreset=mode)
    return worlds, jax.jit(worlds.reset), jax.jit(worlds.step)


def _plain_states(mode="next", actions=ACTIONS):
    _, reset, step = plain(mode)
    return _after(reset, step, actions)


def _states(worlds, actions=ACTIONS):
    return _after(jax.jit(worlds.reset), jax.jit(worlds.step), actions)


def _after(reset, step, actions):
    states = [state := reset(KEYS)]
    for action in actions:
        state = step(state, jnp.asarray(action))
        states.append(state)
    return states


@pytest.mark.short("same")
@pytest.mark.parametrize("mode", [pytest.param("next", marks=pytest.mark.slow), "same"])
def test_frames(mode):
    own = _plain_states(mode)
    stacked = _states(FrameStack(plain(mode)[0], 3))
    ends = 0
    for w in range(WORLDS):
        for k, (one, many) in enumerate(zip(own, stacked, strict=True)):
            steps = int(one.info["steps"][w])
            here = [own[max(k - j, k - steps)].obs[w] for j in (2, 1, 0)]
            np.testing.assert_array_equal(many.obs[w], here)
            np.testing.assert_array_equal(many.reward[w], one.reward[w])
            if mode == "same" and float(one.done[w]):
                ends += 1
                last = [own[k - 2].obs[w], own[k - 1].obs[w], one.info["final_obs"][w]]
                np.testing.assert_array_equal(many.info["final_obs"][w], last)
    assert (ends > 3) == (mode == "same")


def test_delays():
    """Delayed worlds equal worlds that receive the actions later, and zero actions at first."""
    late = _states(Delayed(plain()[0], 2))
    for w in range(WORLDS):
        given = np.zeros_like(ACTIONS)
        for k in range(len(ACTIONS)):
            steps = int(late[k].info["steps"][w])
            if steps >= 2 and not float(late[k].done[w]):
                given[k, w] = ACTIONS[k - 2, w]
        own = _plain_states(actions=given)
        for a, b in zip(late, own, strict=True):
            np.testing.assert_allclose(a.obs[w], b.obs[w], atol=1e-12)


def test_noise_has_its_size(env):
    worlds = VectorEnv(env, length=1000)
    own = _states(worlds)
    noisy = _states(Noisy(worlds, obs=np.array([0.1, 0.5])))
    noise = np.array([b.obs - a.obs for a, b in zip(own, noisy, strict=True)])
    np.testing.assert_allclose(noise.std(axis=(0, 1)), [0.1, 0.5], rtol=0.25)
    assert len(np.unique(noise[..., 0])) == noise[..., 0].size


@pytest.mark.slow
def test_noise_is_the_worlds_own_and_moves_actions(env):
    worlds = VectorEnv(env, length=1000)
    noisy, again = (_states(Noisy(worlds, obs=np.array([0.1, 0.5]))) for _ in range(2))
    np.testing.assert_array_equal(again[-1].obs, noisy[-1].obs)
    own = _states(worlds)
    moved = _states(Noisy(worlds, action=0.3))
    assert np.abs(np.asarray(moved[-1].obs - own[-1].obs)).max() > 1e-3
    np.testing.assert_array_equal(moved[0].obs, own[0].obs)


def test_they_stack_and_chosen_worlds_begin_anew(env):
    worlds = FrameStack(Delayed(VectorEnv(env, length=50), 1), 2)
    state = _states(worlds)[-1]
    assert state.obs.shape == (WORLDS, 2, 2)
    new = jax.jit(worlds.reset_where)(state, jnp.array([True, False, False]), KEYS)
    np.testing.assert_array_equal(new.obs[0, 0], new.obs[0, 1])
    np.testing.assert_array_equal(new.info["waiting"][0], 0)
    np.testing.assert_array_equal(new.info["waiting"][1:], state.info["waiting"][1:])
