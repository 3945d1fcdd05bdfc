"""Tasks that bear a name of the Control Suite, against the Suite's: starts, observations, rewards.

Both take the same actions from the same state, one after another; they differ by rounding, and by
the tolerance to which contacts are solved.
"""

import os
import warnings

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from envs.agreement import robot, same_distribution

from jaxsim.envs.tasks import TASKS, make
from jaxsim.envs.tasks.suite.cheetah import SuiteCheetah

os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is drawn

# as of Gymnasium's tasks: the tolerance of the solver
RUN = {"rtol": 1e-6, "atol": 1e-6}
ROBOTS = [
    "acrobot_swingup acrobot_swingup_sparse",
    "cartpole_swingup cartpole_swingup_sparse cartpole_balance cartpole_balance_sparse",
    "cheetah_run",
    "hopper_stand hopper_hop",
    "humanoid_stand humanoid_walk humanoid_run",
    "pendulum_swingup",
    "reacher_easy reacher_hard",
    "walker_stand walker_walk walker_run",
]
ROBOTS = [names.split() for names in ROBOTS]
DEAR = ("humanoid_stand", "walker_stand", "cheetah_run", "hopper_stand")  # to compile
SIMILAR = ("cartpole_swingup", "reacher_easy")
PARAMETERS = [
    pytest.param(names, marks=pytest.mark.slow if names[0] in DEAR + SIMILAR else (), id=names[0])
    for names in ROBOTS
]
# besides random starts, a state with a high reward: positions by index
POSES = {
    "acrobot_swingup": {0: 0.05, 1: 0.0},
    "cartpole_swingup": {0: 0.1, 1: 0.02},
    "cheetah_run": {},
    "hopper_stand": {2: 0.0, 3: 0.0, 4: -0.2, 5: 0.4, 6: 0.0},
    "humanoid_stand": {2: 1.4, 3: 1.0, 4: 0.0, 5: 0.0, 6: 0.0} | dict.fromkeys(range(7, 28), 0.0),
    "pendulum_swingup": {0: 0.05},
    "reacher_easy": {0: 0.0, 1: 1.0},
    "walker_stand": dict.fromkeys(range(1, 9), 0.0),
}
# and a velocity: dof, value
SPEED = {
    "cheetah_run": (0, 4.0),
    "hopper_stand": (0, 1.4),
    "humanoid_stand": (0, 0.7),
    "walker_stand": (1, 2.0),
}


@pytest.fixture(scope="module")
def suite():
    """The Suite, which asks for arrays that MuJoCo has no more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dm_control.mujoco.wrapper.mjbindings import sizes

        for kind, owner in (("mjmodel", mujoco.MjModel), ("mjdata", mujoco.MjData)):
            table = sizes.array_sizes[kind]
            for name in [n for n in table if not hasattr(owner, n)]:
                del table[name]
        from dm_control import suite
    return suite


def client(suite, name):
    """A task of the Suite, not at the end of an episode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = suite.load(*name.split("_", 1), {"random": 0})
    env.reset()
    return env


def put(them, d):
    """The Suite's world in a state of ours."""
    with them.physics.reset_context():
        if "reacher" in them.physics.model.name:
            them.physics.named.model.geom_pos["target", :2] = d.userdata
        them.physics.data.qpos[:] = d.qpos
        them.physics.data.qvel[:] = d.qvel
        them.physics.data.qacc_warmstart[:] = d.qacc_warmstart


def flat(observation):
    return np.concatenate([np.ravel(x) for x in observation.values()])


@pytest.mark.short("pendulum_swingup")
@pytest.mark.parametrize("names", PARAMETERS)
def test_episodes_are_those_of_the_suite(names, suite):
    tasks, reset, act = robot(names)
    env, them = tasks[names[0]], {n: client(suite, n) for n in names}
    spec = them[names[0]].action_spec()
    for ours, theirs in zip(env.action_range(), (spec.minimum, spec.maximum), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert float(env.dt) == pytest.approx(them[names[0]].control_timestep())
    for n in names:
        assert TASKS[n].length == round(them[n]._step_limit)

    state = reset(jax.random.key(1))
    paid, touched = dict.fromkeys(names, 0.0), 0
    for pose in (None, POSES[names[0]]):
        d = state.data
        if pose is not None:
            for place, value in pose.items():
                d = d.replace(qpos=d.qpos.at[place].set(value))
            dof, value = SPEED.get(names[0], (0, 0.0))
            d = d.replace(qvel=d.qvel.at[dof].set(value))
        if pose is not None and "reacher" in names[0]:
            elbow, out = np.array([0.12, 0.0]), 0.12 * np.array([np.cos(1.0), np.sin(1.0)])
            d = d.replace(userdata=jnp.asarray(elbow + out + 0.01))
        for n in names:
            put(them[n], d)
            if pose is None:
                seen = flat(them[n].task.get_observation(them[n].physics))
                np.testing.assert_allclose(state.obs, seen, **RUN)
        rng = np.random.default_rng(3)
        for _ in range(12):
            action = rng.uniform(-1, 1, env.action_size)
            d, told = act(d, jnp.asarray(action))
            for n in names:
                step = them[n].step(action)
                np.testing.assert_allclose(told[n][0], flat(step.observation), **RUN)
                np.testing.assert_allclose(told[n][1], step.reward, **RUN)
                assert not told[n][2]
                paid[n] = max(paid[n], step.reward)
            touched += them[names[0]].physics.data.ncon
    assert min(paid.values()) > 0.01
    robots = ("hopper", "walker", "cheetah", "humanoid")
    assert bool(touched) == names[0].startswith(robots)


@pytest.mark.parametrize(
    "names", [names for names in PARAMETERS if "cheetah_run" not in names.values[0]]
)
def test_starts_are_those_of_the_suite(names, suite):
    for name in names if "cartpole" in names[0] else names[:1]:
        env, them = make(name), client(suite, name)
        many = 300 if "humanoid" in name else 1000
        keys = jax.random.split(jax.random.key(0), many)
        begun = jax.jit(jax.vmap(lambda key, e=env: e.start(e.m, e.begin, key)))(keys)
        starts = []
        for _ in range(many):
            them.reset()
            p = them.physics
            target = p.named.model.geom_pos["target", :2] if env.m.nuserdata else []
            starts.append(np.r_[p.data.qpos, p.data.qvel, target])
        ours = np.concatenate([begun.qpos, begun.qvel, begun.userdata], axis=1)
        same_distribution(ours, np.array(starts))


@pytest.mark.slow
def test_cheetah_starts_at_rest(suite):
    """Its start is a drawn one after two seconds of the Suite's physics."""

    class Dropped(SuiteCheetah):
        SETTLE = 0

    keys = jax.random.split(jax.random.key(0), 1000)
    dropped, settled = Dropped(), SuiteCheetah()
    drawn = jax.jit(jax.vmap(lambda key: dropped.start(dropped.m, dropped.begin, key)))(keys)
    low, high = np.array(settled.m.jnt_range[3:]).T
    rng = np.random.default_rng(0)
    even = np.concatenate([np.zeros((1000, 3)), rng.uniform(low, high, (1000, 6))], axis=1)
    same_distribution(np.array(drawn.qpos), even)

    begun = jax.jit(lambda key: settled.start(settled.m, settled.begin, key))(keys[0])
    p = client(suite, "cheetah_run").physics
    with p.reset_context():
        p.data.qpos[:] = drawn.qpos[0]
    p.step(nstep=settled.SETTLE)
    np.testing.assert_allclose(begun.qpos, p.data.qpos, **RUN)
    np.testing.assert_allclose(begun.qvel, p.data.qvel, **RUN)
    assert float(begun.time) == 0
