"""Gymnasium's own checker, and its conventions of resets, masks and copies."""

import importlib
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from envs.tasks import hold
from gymnasium.utils.env_checker import check_env

import jaxsim
import jaxsim_gymnasium
from jaxsim.envs import VectorEnv
from jaxsim.envs.gymnasium import GymnasiumEnv, GymnasiumVectorEnv
from jaxsim.envs.tasks import TASKS

LENGTH = 10
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def env():
    return hold()


@pytest.mark.filterwarnings("ignore:.*Box observation space.*infinity.*")
def test_the_checker_of_gymnasium_passes(env):
    """An observation without limits is all that it has to say."""
    check_env(GymnasiumEnv(env, length=LENGTH), skip_render_check=True)


@pytest.mark.parametrize("mode", ["next", pytest.param("same", marks=pytest.mark.slow)])
def test_steps_are_those_of_the_worlds(env, mode):
    """Values equal those of the functional form, in numpy, as copies that do not change."""
    clients = GymnasiumVectorEnv(env, 3, length=LENGTH, autoreset=mode)
    obs, _ = clients.reset(seed=4)
    key = jax.random.split(jax.random.split(jax.random.key(4))[1], 3)
    worlds = VectorEnv(env, length=LENGTH, autoreset=mode)
    state, step = jax.jit(worlds.reset)(key), jax.jit(worlds.step)
    np.testing.assert_array_equal(obs, state.obs)
    actions = np.random.default_rng(0).uniform(-1, 1, (25, 3, 1))
    kept, cut = [], 0
    for action in actions:
        obs, reward, terminated, truncated, info = clients.step(action)
        state = step(state, jnp.asarray(action))
        for mine, theirs in ((obs, state.obs), (reward, state.reward)):
            assert isinstance(mine, np.ndarray)
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(terminated, state.info["terminated"])
        np.testing.assert_array_equal(truncated, state.info["truncated"])
        np.testing.assert_array_equal(info["speed"], state.metrics["speed"])
        over = terminated | truncated
        assert ("final_obs" in info) == (mode == "same" and bool(over.any()))
        if "final_obs" in info:
            np.testing.assert_array_equal(info["_final_obs"], over)
            assert (info["final_obs"][over] != obs[over]).any()
        cut += truncated.sum()
        kept.append((obs, obs.copy()))
    assert cut >= 3
    for now, then in kept:
        np.testing.assert_array_equal(now, then)
    metadata = clients.metadata["autoreset_mode"]
    assert metadata == gymnasium.vector.AutoresetMode(f"{mode.capitalize()}Step")


def test_chosen_worlds_are_reset(env):
    clients = GymnasiumVectorEnv(env, 3, length=LENGTH, autoreset=None)
    before, _ = clients.reset(seed=0)
    before, *_ = clients.step(np.zeros((3, 1)))
    mask = np.array([True, False, False])
    after, _ = clients.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal((after != before).any(axis=1), mask)
    with pytest.raises(ValueError, match="reset_mask: expected bool"):
        clients.reset(options={"reset_mask": np.ones(2, bool)})


def test_a_step_before_a_reset_is_refused(env):
    clients = GymnasiumVectorEnv(env, 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        clients.step(np.zeros((2, 1)))
    clients.reset(seed=0)
    with pytest.raises(ValueError, match=r"action: expected shape \(2, 1\), got \(3, 1\)"):
        clients.step(np.zeros((3, 1)))


def test_a_control_that_is_not_finite_is_told(env):
    clients = GymnasiumVectorEnv(env, 2)
    clients.reset(seed=0)
    obs, reward, *_ = clients.step(np.array([[0.0], [np.nan]]))
    assert np.isfinite(obs).all()
    assert np.isfinite(reward).all()
    with pytest.raises(RuntimeError, match="BADCTRL: once in 1 of 2 worlds: control not finite"):
        jaxsim.check_warnings(clients.state.data)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("brax", "brax.envs.base", "brax"),
        ("dm_env", "dm_env", "dm-env"),
        ("gymnasium", "gymnasium", "rl"),
        ("playground", "mujoco_playground", "playground"),
        ("rejax", "gymnax.environments.spaces", "rl"),
        ("stable_baselines", "stable_baselines3.common.vec_env", "sb3"),
    ],
)
def test_a_missing_package_is_named(module, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"jaxsim.envs.{module}", raising=False)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"jaxsim.envs.{module}")
    assert f"this needs {package}; install the extra '{extra}': pip install '" in str(caught.value)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]


@pytest.mark.slow
def test_a_world_is_drawn_as_the_renderer_draws_it(env):
    """Frames show the pose after the last action; many worlds give one each."""
    one = GymnasiumEnv(env, length=LENGTH, render_mode="rgb_array", width=24, height=16)
    assert one.metadata == {"render_modes": ["rgb_array"], "render_fps": 25}
    frames = gymnasium.wrappers.RenderCollection(one)
    frames.reset(seed=1)
    for _ in range(4):
        frames.step(np.ones(1))
    shown = frames.render()
    assert len(shown) == 5
    d = jax.tree.map(lambda x: x[0], one.worlds.state.data)
    d = jax.jit(jaxsim.forward)(env.m, d)
    seen = jaxsim.render(env.m, d, None, 24, 16, what=("rgb",)).rgb
    assert shown[-1].dtype == np.uint8
    np.testing.assert_allclose(shown[-1], 255 * np.clip(seen, 0, 1), atol=0.51)
    assert (shown[0] != shown[-1]).any()

    many = GymnasiumVectorEnv(env, 2, render_mode="rgb_array", width=24, height=16)
    with pytest.raises(gymnasium.error.ResetNeeded):
        many.render()
    many.reset(seed=0)
    pair = many.render()
    assert isinstance(pair, tuple)
    assert [x.shape for x in pair] == [(16, 24, 3)] * 2
    assert (pair[0] != pair[1]).any()
    with pytest.raises(ValueError, match="expected 'rgb_array' or None, got 'human'"):
        GymnasiumEnv(env, render_mode="human")


def test_a_film_is_recorded(env, tmp_path):
    pytest.importorskip("moviepy")
    one = GymnasiumEnv(env, length=LENGTH, render_mode="rgb_array", width=32, height=32)
    film = gymnasium.wrappers.RecordVideo(one, str(tmp_path / "films"))
    film.reset(seed=0)
    for _ in range(LENGTH):
        film.step(np.zeros(1))
    film.close()
    assert list(tmp_path.glob("films/*.mp4"))


@pytest.mark.slow
def test_tasks_are_known_to_gymnasium_by_name():
    """Episodes end at the limit of Gymnasium, and arguments reach the task."""
    one = gymnasium.make("jaxsim/cartpole_balance", max_episode_steps=3, repeat=2)
    assert one.unwrapped.worlds.worlds.env.repeat == 2
    one.reset(seed=0)
    assert [one.step(np.zeros(1))[3] for _ in range(3)] == [False, False, True]
    assert gymnasium.spec("jaxsim/Hopper-v5").max_episode_steps == 1000
    assert {f"jaxsim/{name}" for name in TASKS} <= gymnasium.registry.keys()

    many = gymnasium.make_vec("jaxsim/cartpole_balance", num_envs=3, max_episode_steps=2)
    assert isinstance(many, GymnasiumVectorEnv)
    assert many.num_envs == 3
    many.reset(seed=0)
    cut = [many.step(np.zeros((3, 1)))[3].tolist() for _ in range(2)]
    assert cut == [[False] * 3, [True] * 3]
    copy = pickle.loads(pickle.dumps(many))
    for a, b in zip(copy.step(np.ones((3, 1)))[:4], many.step(np.ones((3, 1)))[:4], strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_entry_point_registers_the_tasks():
    """Gymnasium calls it within the namespace of its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["gymnasium.envs"]["jaxsim"].split(":")
    known = {n: gymnasium.registry.pop(n) for n in list(gymnasium.registry) if "jaxsim/" in n}
    getattr(importlib.import_module(module), name)()
    assert {n for n in gymnasium.registry if "jaxsim/" in n} == known.keys()


def test_names_and_lengths_registered_are_those_of_the_tasks():
    assert {n: task.length for n, task in TASKS.items()} == jaxsim_gymnasium.LENGTHS


LIGHT = """
import sys, gymnasium
{registers}
assert gymnasium.spec("jaxsim/Hopper-v5").max_episode_steps == 1000
heavy = {{name.partition(".")[0] for name in sys.modules}} & {{"jax", "jaxlib", "jaxsim", "flax"}}
assert not heavy, heavy
one = gymnasium.make("jaxsim_gymnasium:jaxsim/cartpole_balance")
assert "jaxsim" in sys.modules
"""


@pytest.mark.short("import jaxsim_gymnasium")
@pytest.mark.parametrize(
    "registers",
    [
        "import jaxsim_gymnasium",
        "from jaxsim_gymnasium import register_tasks; register_tasks()",
    ],
)
def test_registering_tasks_does_not_import_jax(registers):
    """`gymnasium.make` imports the adapter, not the registration."""
    program = LIGHT.format(registers=registers)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
