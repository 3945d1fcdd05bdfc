"""Tasks that bear a name of the Control Suite have its model; rewards by their formula."""

import importlib.util
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import single

from jaxsim.envs import VectorEnv
from jaxsim.envs.tasks import TASKS, make
from jaxsim.envs.tasks.cartpole import CARTPOLE_MODEL

SUITE = Path(importlib.util.find_spec("dm_control").submodule_search_locations[0]) / "suite"


def test_the_model_moves_as_that_of_the_control_suite():
    """In the oracle, under the same controls."""
    models = [
        mujoco.MjModel.from_xml_path(str(p)) for p in (CARTPOLE_MODEL, SUITE / "cartpole.xml")
    ]
    controls = np.random.default_rng(0).uniform(-1, 1, 300)
    ends = []
    for m in models:
        d = mujoco.MjData(m)
        d.qpos[:] = 0.5, 3.0
        for u in controls:
            d.ctrl[:] = u
            mujoco.mj_step(m, d)
        ends.append(np.r_[d.qpos, d.qvel])
    np.testing.assert_allclose(*ends, rtol=1e-12)


@pytest.fixture(scope="module")
def cartpole():
    """The task that swings up, and one action of four worlds."""
    env = make("cartpole_swingup")
    worlds = VectorEnv(env, length=1000)
    return env, jax.jit(worlds.reset), jax.jit(worlds.step)


@pytest.mark.slow
def test_a_pole_that_stands_still_is_paid_in_full(cartpole):
    env, reset, step = cartpole
    state = reset(jax.random.split(jax.random.key(0), 4))
    assert np.abs(np.asarray(state.data.qpos[:, 1]) - np.pi).max() < 0.06
    np.testing.assert_allclose(state.obs[:, 1], np.cos(state.data.qpos[:, 1]), atol=1e-12)
    # up and down, near and far, at rest and turning
    qpos = jnp.array([[0.0, 0.0], [0.0, np.pi], [1.5, 0.0], [0.0, 0.0]])
    qvel = jnp.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 5.0]])
    state = state.replace(data=state.data.replace(qpos=qpos, qvel=qvel))
    after = step(state, jnp.zeros((4, 1)))
    far = 0.5 * (1 + 10 ** -((1.5 / 2) ** 2))
    expected = [1.0, 0.0, far]
    np.testing.assert_allclose(after.reward[:3], expected, atol=1e-6)
    assert 0.5 < float(after.reward[3]) < 0.6
    pushed = step(state, jnp.array([[1.0], [0.0], [0.5], [0.0]]))
    assert float(pushed.reward[0]) == pytest.approx(0.8, abs=0.01)
    assert env.action_range()[1].tolist() == [1.0]


@pytest.mark.slow
def test_the_page_lists_all_tasks():
    page = Path(__file__).resolve().parents[2] / "docs" / "envs.md"
    rows = re.findall(
        r"^\| `(\w[\w-]*)` \| .* \| (\d+) \| (\d+) \| ([\d,]+) \|", page.read_text(), re.M
    )
    listed = {name: tuple(int(n.replace(",", "")) for n in rest) for name, *rest in rows}
    made = {name: make(name) for name in TASKS}
    assert listed == {
        name: (env.action_size, env.observation_size, TASKS[name].length)
        for name, env in made.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_single_precision_stays_single(name):
    """Many worlds, traced; what goes in comes out in the same form."""
    env = make(name)
    env.m, env.begin = single(env.m), single(env.begin)
    worlds = VectorEnv(env)
    before = jax.eval_shape(worlds.reset, jax.random.split(jax.random.key(0), 3))
    action = jnp.zeros((3, env.action_size), jnp.float32)
    after = jax.eval_shape(worlds.step, before, action)
    same = jax.tree.map(lambda a, b: (a.shape, a.dtype) == (b.shape, b.dtype), before, after)
    assert all(jax.tree.leaves(same))
    assert after.obs.dtype == after.reward.dtype == jnp.float32


def test_names():
    with pytest.raises(ValueError, match="did you mean 'cartpole_swingup'"):
        make("cartpole_swing")
    with pytest.raises(ValueError, match="there are: arm_lift, arm_push"):
        make("zzz")
    assert make("cartpole_balance", repeat=3).repeat == 3


@pytest.mark.parametrize(("name", "extra"), [("Hopper-v5", "rl"), ("hopper_hop", "suite")])
def test_a_package_that_is_missing_is_named(name, extra, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(ImportError, match=f"install the extra '{extra}': pip install '"):
        make(name)
