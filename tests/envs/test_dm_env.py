"""dm_env's own test of an environment, and the discounts, specs and counters of ours."""

import unittest

import dm_env
import jax
import numpy as np
import pytest
from dm_env import test_utils
from envs.tasks import XML, Hold, hold

import jaxsim
from jaxsim.envs.dm_env import DmEnv

LENGTH = 4


class Seen(Hold):
    """Sees a dict."""

    def observe(self, m, d):
        return {"place": d.qpos, "speed": d.qvel}


def seen():
    return Seen(jaxsim.load_model(XML))


class Contract(test_utils.EnvironmentTestMixin):
    """An action sequence over the end of an episode."""

    def make_action_sequence(self):
        for _ in range(2 * LENGTH + 3):
            yield self.make_action()


class TestOfDmEnv(Contract, unittest.TestCase):
    def make_object_under_test(self):
        return DmEnv(hold(), length=LENGTH, seed=0)


class TestOfDmEnvWithDicts(Contract, unittest.TestCase):
    def make_object_under_test(self):
        return DmEnv(seen(), length=LENGTH, seed=0)


@pytest.fixture(scope="module")
def env():
    return DmEnv(hold(), length=LENGTH, seed=3)


def test_an_episode_that_is_cut_off(env):
    """The values are those of the task; the last discount is 1, and the next step resets."""
    told = [env.reset()]
    key = jax.random.split(jax.random.key(3))[1]
    state, step = jax.jit(env.env.reset)(key), jax.jit(env.env.step)
    np.testing.assert_array_equal(told[0].observation, state.obs)
    for action in np.linspace(-1.0, 1.0, LENGTH)[:, None]:
        told.append(env.step(action))
        state = step(state, jax.numpy.asarray(action))
        np.testing.assert_allclose(told[-1].observation, state.obs, atol=1e-12)
        np.testing.assert_allclose(told[-1].reward, state.reward, atol=1e-12)
        assert told[-1].discount == 1.0
    first, mid, last = dm_env.StepType.FIRST, dm_env.StepType.MID, dm_env.StepType.LAST
    assert [t.step_type for t in told] == [first, *[mid] * (LENGTH - 1), last]
    told[-1].observation[:] = 7.0  # a copy of its own
    begun = env.step(np.ones(1))
    assert begun.first()
    assert (begun.observation != told[0].observation).any()


def test_an_episode_that_the_task_ends():
    class Short(Hold):
        def terminal(self, m, d):
            return d.time > 0.03

    env = DmEnv(Short(jaxsim.load_model(XML)), length=10, seed=0)
    env.reset()
    assert env.step(np.ones(1)).discount == 1.0
    last = env.step(np.ones(1))
    assert last.last()
    assert last.discount == 0.0


def test_the_same_seed_gives_the_same_episodes(env):
    again = DmEnv(env.env, length=LENGTH, seed=3)
    other = DmEnv(env.env, length=LENGTH, seed=4)
    first = DmEnv(env.env, length=LENGTH, seed=3).reset().observation
    np.testing.assert_array_equal(again.reset().observation, first)
    assert (other.reset().observation != first).any()


def test_specs(env):
    action = env.action_spec()
    assert (action.minimum, action.maximum) == (-1.0, 1.0)
    assert env.observation_spec().shape == (2,)
    assert env.reward_spec().dtype == env.observation_spec().dtype == np.float64
    dicts = DmEnv(seen()).observation_spec()
    assert {name: x.shape for name, x in dicts.items()} == {"place": (1,), "speed": (1,)}


def test_actions_that_are_not_right(env):
    env.reset()
    with pytest.raises(ValueError, match=r"action: expected shape \(1,\), got \(2,\)"):
        env.step(np.zeros(2))
    told = env.step(np.full(1, np.nan))
    assert np.isfinite(told.observation).all()
    with pytest.raises(RuntimeError, match="BADCTRL: once: control not finite, taken as zero"):
        jaxsim.check_warnings(env.state.data)
