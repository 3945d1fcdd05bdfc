"""Tasks that bear a name of Gymnasium, against Gymnasium's: starts, observations, rewards, ends.

Both take the same actions from the same state, one after another. What differs is the solution of
each step's contacts, which both find to the tolerance of the model: see RUN.
"""

import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from envs.agreement import robot, same_distribution

from jaxsim.envs import VectorEnv
from jaxsim.envs.tasks import TASKS, make

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import gymnasium

# MuJoCo's solver stops where its cost no longer falls by 1e-8 of its scale: then forces, which are
# seen directly by two tasks, have about half as many digits
RUN = {"rtol": 1e-6, "atol": 1e-6}
DEAR = "Ant-v5 Humanoid-v5 HumanoidStandup-v5 Pusher-v5 Swimmer-v5 Walker2d-v5".split()
SIMILAR = "HalfCheetah-v5 InvertedDoublePendulum-v5 Reacher-v5".split()
NAMES = [n for n in TASKS if n.endswith("-v5")]
NEWTON = 2


def with_slow(names, dear):
    return [pytest.param(n, marks=pytest.mark.slow) if n in dear else n for n in names]


def client(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = gymnasium.make(name, disable_env_checker=True)
    env.unwrapped.model.opt.solver = NEWTON  # the humanoids ask for PGS
    env.reset(seed=0)
    return env.unwrapped


# a change of the start that terminates: index in qpos, value, velocity; others never terminate
ENDS = {
    "Hopper-v5": (2, 0.19, 5.0),
    "Walker2d-v5": (2, 0.99, 8.0),
    "Ant-v5": (2, 0.98, 1.0),
    "Humanoid-v5": (2, 1.98, 3.0),
    "InvertedPendulum-v5": (1, 0.19, 0.5),
    "InvertedDoublePendulum-v5": (1, 0.9, 0.5),
}


@pytest.mark.short("InvertedPendulum-v5")
@pytest.mark.parametrize("name", with_slow(NAMES, DEAR + SIMILAR))
def test_episodes_are_those_of_gymnasium(name):
    env, reset, act = robot([name])
    env, them = env[name], client(name)
    low, high = env.action_range()
    np.testing.assert_array_equal(np.float32(low), them.action_space.low)
    np.testing.assert_array_equal(np.float32(high), them.action_space.high)
    assert TASKS[name].length == gymnasium.spec(name).max_episode_steps
    assert float(env.dt) == pytest.approx(them.dt)
    assert env.observation_size == them.observation_space.shape[0]

    state = reset(jax.random.key(1))
    for change in (None, *([ENDS[name]] if name in ENDS else [])):
        d = state.data
        if change is not None:
            place, value, speed = change
            d = d.replace(qpos=d.qpos.at[place].set(value), qvel=d.qvel.at[place].set(speed))
        mujoco.mj_resetData(them.model, them.data)
        them.set_state(np.array(d.qpos), np.array(d.qvel))
        if change is None:
            np.testing.assert_allclose(state.obs, them._get_obs(), **RUN)
        ended, touched = 0, 0
        rng = np.random.default_rng(2)
        for _ in range(25 if change is None else 6):
            action = rng.uniform(low, high)
            d, told = act(d, jnp.asarray(action))
            seen, reward, over, *_ = them.step(action)
            np.testing.assert_allclose(told[name][0], seen, **RUN)
            np.testing.assert_allclose(told[name][1], reward, **RUN)
            assert bool(told[name][2]) == over
            ended, touched = ended + over, touched + bool(them.data.ncon)
        if change is not None:
            assert ended
        elif name not in ("Reacher-v5", "Swimmer-v5") and "Pend" not in name:
            assert touched


@pytest.mark.parametrize("name", with_slow(NAMES, DEAR))
def test_starts_are_those_of_gymnasium(name):
    env, them = make(name), client(name)
    keys = jax.random.split(jax.random.key(0), 1000)
    begun = jax.jit(jax.vmap(lambda key: env.start(env.m, env.begin, key)))(keys)
    starts = []
    for _ in range(1000):
        them.reset_model()
        starts.append(np.r_[them.data.qpos, them.data.qvel])
    same_distribution(np.concatenate([begun.qpos, begun.qvel], axis=1), np.array(starts))
    if name == "Pusher-v5":
        assert float(jnp.linalg.norm(begun.qpos[:, -4:-2], axis=1).min()) > 0.17


@pytest.mark.slow
def test_task_state_is_cleared_by_reset():
    """The first reward of a second episode: the ant remembers where this one began."""
    env, them = make("Ant-v5"), client("Ant-v5")
    worlds = VectorEnv(env, length=2)
    state = jax.jit(worlds.reset)(jax.random.split(jax.random.key(5), 1))
    step, action = jax.jit(worlds.step), np.linspace(-1, 1, 8)
    for _ in range(3):
        state = step(state, jnp.asarray(action)[None])
    assert int(state.info["steps"][0]) == 0
    mujoco.mj_resetData(them.model, them.data)
    them.set_state(np.array(state.data.qpos[0]), np.array(state.data.qvel[0]))
    np.testing.assert_allclose(state.obs[0], them._get_obs(), **RUN)
    state = step(state, jnp.asarray(action)[None])
    seen, reward, *_ = them.step(action)
    np.testing.assert_allclose(state.obs[0], seen, **RUN)
    np.testing.assert_allclose(state.reward[0], reward, **RUN)


@pytest.mark.slow
def test_what_the_solver_pgs_leaves():
    """The humanoid's own solver stops after 50 iterations; its scores are those of its physics."""
    env, them = make("Humanoid-v5"), client("Humanoid-v5")
    apart = []
    for solver in (0, NEWTON):
        them.model.opt.solver = solver
        mujoco.mj_resetData(them.model, them.data)
        them.set_state(np.array(env.begin.qpos), np.array(env.begin.qvel))
        for _ in range(30):
            them.step(np.zeros(17))
        apart.append(np.array(them.data.qpos))
    assert 1e-9 < np.abs(apart[0] - apart[1]).max() < 1e-5
