"""Stable-Baselines3's wrappers take our worlds, and its PPO and SAC learn on them."""

import jax
import numpy as np
import pytest
from envs.tasks import XML, Hold, hold

import jaxsim

# torch is large: these run where Stable-Baselines3 is installed
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LENGTH = 5


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("stable_baselines3")


@pytest.fixture
def worlds(theirs):
    from jaxsim.envs.stable_baselines import StableBaselinesEnv

    return StableBaselinesEnv(hold(), 3, length=LENGTH)


def test_episodes(worlds):
    """The numbers of the worlds; the last observation of an episode in the dict of its world."""
    from jaxsim.envs.gymnasium import GymnasiumVectorEnv

    clients = GymnasiumVectorEnv(worlds.worlds.worlds.env, 3, length=LENGTH, autoreset="same")
    worlds.seed(7)
    np.testing.assert_array_equal(worlds.reset(), clients.reset(seed=7)[0])
    for count, action in enumerate(np.random.default_rng(0).uniform(-1, 1, (8, 3, 1)), 1):
        obs, reward, over, infos = worlds.step(action)
        expected = clients.step(action)
        np.testing.assert_array_equal(obs, expected[0])
        np.testing.assert_array_equal(reward, expected[1])
        np.testing.assert_array_equal(over, count == LENGTH)
        for i, info in enumerate(infos):
            assert info["TimeLimit.truncated"] == (count == LENGTH)
            assert info["speed"] == expected[4]["speed"][i]
            assert ("terminal_observation" in info) == (count == LENGTH)
            if count == LENGTH:
                last = expected[4]["final_obs"][i]
                np.testing.assert_array_equal(info["terminal_observation"], last)
                assert (last != obs[i]).any()
    with pytest.raises(ValueError, match=r"action: expected shape \(3, 1\), got \(3, 2\)"):
        worlds.step(np.zeros((3, 2)))
    obs, *_ = worlds.step(np.full((3, 1), np.nan))
    assert np.isfinite(obs).all()
    with pytest.raises(RuntimeError, match="BADCTRL: 3 times in 3 of 3 worlds"):
        jaxsim.check_warnings(worlds.worlds.state.data)


def test_an_episode_that_the_task_ends(theirs):
    from jaxsim.envs.stable_baselines import StableBaselinesEnv

    class Short(Hold):
        def terminal(self, m, d):
            return d.time > 0.01

        def observe(self, m, d):
            return {"place": d.qpos, "speed": d.qvel}

    worlds = StableBaselinesEnv(Short(jaxsim.load_model(XML)), 2, length=1)
    worlds.reset()
    _, _, over, infos = worlds.step(np.zeros((2, 1)))
    assert over.all()
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]
    assert infos[1]["terminal_observation"]["place"].shape == (1,)


def test_what_a_vecenv_answers(theirs, worlds):
    from stable_baselines3.common.vec_env import VecFrameStack, VecMonitor, VecNormalize

    assert worlds.get_attr("render_mode") == [None] * 3
    assert worlds.get_attr("action_size", [0, 2]) == [1, 1]
    assert worlds.env_is_wrapped(theirs.common.monitor.Monitor, 0) == [False]
    assert worlds.env_method("observe", *_moment(worlds), indices=1)[0].shape == (2,)
    assert not worlds.has_attr("nosuch")
    assert worlds.reset_infos == [{}, {}, {}]
    assert worlds.seed(5)[0] == 5
    first = worlds.reset()
    assert (worlds.reset() != first).any()
    worlds.seed(5)
    np.testing.assert_array_equal(worlds.reset(), first)
    with pytest.raises(NotImplementedError, match="repeat: a compiled task does not change"):
        worlds.set_attr("repeat", 3)
    with pytest.raises(ValueError, match="options: a task takes none at a reset"):
        worlds.set_options({"start": 1})
    worlds.set_options([{}, {}, {}])
    wrapped = VecFrameStack(VecNormalize(VecMonitor(worlds)), 2)
    assert wrapped.reset().shape == (3, 4)
    for _ in range(LENGTH):
        _, _, over, infos = wrapped.step(np.zeros((3, 1)))
    assert over.all()
    assert infos[0]["episode"]["l"] == LENGTH


def _moment(worlds):
    task = worlds.worlds.worlds.env
    return task.m, task.begin


@pytest.mark.parametrize(
    ("name", "steps", "how"),
    [
        ("PPO", 24_000, {"n_steps": 50, "batch_size": 200, "learning_rate": 2e-3}),
        ("SAC", 6_400, {"learning_starts": 800, "gradient_steps": 8, "ent_coef": "auto_0.1"}),
    ],
)
def test_their_algorithms_learn(theirs, name, steps, how):
    """The return of an episode rises to most of what there is."""
    import torch
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor

    from jaxsim.envs.stable_baselines import StableBaselinesEnv

    how = {"gamma": 0.9, "learning_rate": 1e-3, "seed": 1, "device": "cpu"} | how
    how["policy_kwargs"] = {"net_arch": [64, 64]}
    torch.set_num_threads(1)  # threads that wait for each other are slower than one
    with jax.enable_x64(False):  # as users run it
        worlds = VecMonitor(StableBaselinesEnv(hold(), 16, length=50))
        learner = getattr(theirs, name)("MlpPolicy", worlds, **how)
        before, _ = evaluate_policy(learner, worlds, n_eval_episodes=32)
        learner.learn(steps)
        after, _ = evaluate_policy(learner, worlds, n_eval_episodes=32)
    assert after > before
    assert after > 0.8 * 50
