"""Tasks of our own: rest, random actions, starts, rewards by their formula, and scripts that earn.

The formulas are evaluated on what MuJoCo finds for the same states.
"""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from envs.agreement import robot
from states import world
from tolerance import DYNAMICS, STAGES

from jaxsim.envs.tasks import TASKS, arm, hand, make, quadruped
from jaxsim.envs.tasks.trot import clock, trot

WORLDS = 16
QUICK = "hand_cube"  # the others take long to compile
DEAR = ["quadruped_velocity", "quadruped_rough", "quadruped_velocity_plain", "arm_push arm_lift"]
ROBOTS = [*DEAR, QUICK]
FILES = {"quadruped": quadruped.QUADRUPED_MODEL, "arm": arm.ARM_MODEL, "hand": hand.HAND_MODEL}
each_robot = pytest.mark.parametrize(
    "names", [QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in DEAR)]
)


@pytest.fixture(scope="module")
def robots():
    """Tasks by the names of a robot; first states of many worlds; one action of all tasks."""
    made = {}

    def of(names):
        if names not in made:
            tasks, _, act = robot(names.split())
            made[names] = tasks, act, jax.jit(jax.vmap(act))
        return made[names]

    return of


def told_to(d, *command):
    """The quadruped with a command."""
    return d.replace(userdata=jnp.tile(jnp.array(command), (WORLDS, 1)))


def begun(env, seed=0, many=WORLDS):
    keys = jax.random.split(jax.random.key(seed), many)
    return jax.jit(jax.vmap(lambda key: env.start(env.m, env.begin, key)))(keys)


@pytest.mark.slow
@pytest.mark.parametrize("names", ROBOTS)
def test_initial_poses_are_stable(names, robots):
    """Two seconds without an action; the command of the quadruped is zero."""
    tasks, _, act = robots(names)
    env = next(iter(tasks.values()))
    d = begun(env)
    start = d = told_to(d, 0.0, 0.0, 0.0) if "quadruped" in names else d
    for _ in range(round(2.0 / float(env.dt))):
        d, told = act(d, jnp.zeros((WORLDS, env.action_size)))
        for _, _, over in told.values():
            assert not over.any()
    assert not d.warning.any()
    assert float(jnp.abs(d.qvel).max()) < 0.05
    free = d.qpos[:, :3] if "quadruped" in names else d.qpos[:, -7:-4]
    before = start.qpos[:, :3] if "quadruped" in names else start.qpos[:, -7:-4]
    assert float(jnp.linalg.norm(free - before, axis=1).max()) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("names", ROBOTS)
def test_random_actions_do_no_harm(names, robots):
    """Numbers stay finite, and the contact capacity suffices."""
    tasks, _, act = robots(names)
    env = next(iter(tasks.values()))
    d, rng = begun(env), np.random.default_rng(0)
    for _ in range(200):
        d, told = act(d, jnp.asarray(rng.uniform(-1, 1, (WORLDS, env.action_size))))
        for obs, reward, _ in told.values():
            assert jnp.isfinite(obs).all()
            assert jnp.isfinite(reward).all()
    assert not d.warning.any()


@pytest.mark.slow
@each_robot
def test_many_worlds_are_as_one(names, robots):
    tasks, one, act = robots(names)
    env = next(iter(tasks.values()))
    d = begun(env)
    actions = np.random.default_rng(1).uniform(-1, 1, (4, WORLDS, env.action_size))
    alone = world(d, 3)
    for action in jnp.asarray(actions):
        (d, told), (alone, said) = act(d, action), one(alone, action[3])
        for name in tasks:
            for many, single in zip(told[name][:2], said[name][:2], strict=True):
                np.testing.assert_allclose(many[3], single, **DYNAMICS)


@pytest.mark.slow
def test_starts():
    d = begun(make("quadruped_velocity"), many=400)
    np.testing.assert_allclose(jnp.abs(d.userdata).max(0), quadruped.MAX_COMMANDS, rtol=0.02)
    assert float(jnp.abs(d.userdata.mean(0)).max()) < 0.1
    np.testing.assert_allclose(jnp.linalg.norm(d.qpos[:, 3:7], axis=1), 1.0, **STAGES)
    assert (d.qpos[:, 3] > 0).all()
    assert 3.0 < np.ptp(2 * np.arctan2(d.qpos[:, 6], d.qpos[:, 3])) < 2 * np.pi

    for name in ("arm_push", "arm_lift"):
        d = begun(make(name), many=400)
        box, way = d.qpos[:, 9:12], d.userdata - d.qpos[:, 9:12]
        np.testing.assert_allclose(box.min(0), [0.34, -0.1, 0.02], atol=2e-3)
        np.testing.assert_allclose(box.max(0), [0.46, 0.1, 0.02], atol=2e-3)
        low, high = {"arm_push": (0.1, 0.2), "arm_lift": (0.1, 0.25)}[name]
        far = jnp.linalg.norm(way, axis=1)
        np.testing.assert_allclose([far.min(), far.max()], [low, high], atol=2e-3)
        still = way[:, 2] if name == "arm_push" else way[:, :2]
        assert not still.any()
        np.testing.assert_array_equal(d.ctrl[:, :7], np.tile(arm.HOME_QPOS, (400, 1)))

    d = begun(make("hand_cube"), many=400)
    assert set(np.unique(d.userdata)) == {-1.0, 1.0}
    assert abs(float(d.userdata.mean())) < 0.15
    np.testing.assert_allclose(jnp.abs(d.qpos[:, 12:14]).max(0), 5e-3, rtol=0.02)


def velocities(mj, qpos, qvel):
    """MuJoCo's results for a state."""
    d = mujoco.MjData(mj)
    d.qpos[:], d.qvel[:] = qpos, qvel
    mujoco.mj_forward(mj, d)
    return d


def quadruped_reward(d, before, after, action):
    v, w, c = d.sensor("velocity").data, d.sensor("rotation").data, np.array(after.userdata)
    worth = np.exp(-((v[:2] - c[:2]) ** 2).sum() / 0.25)
    worth += 0.5 * np.exp(-((w[2] - c[2]) ** 2) / 0.25)
    worth -= 2 * v[2] ** 2 + 0.05 * (w[:2] ** 2).sum()
    worth -= 2e-4 * (np.array(after.actuator_force) ** 2).sum()
    worth -= 0.01 * ((np.array(after.ctrl - before.ctrl) / 0.4) ** 2).sum()
    return 0.02 * max(worth, 0)


def arm_reward(d, before, after, action):
    box, tip = d.body("box").xpos, d.site("tip").xpos
    reward = 1 - np.tanh(5 * np.linalg.norm(box - np.array(after.userdata)))
    return reward + 0.3 * (1 - np.tanh(5 * np.linalg.norm(box - tip))) - 0.005 * (action**2).sum()


def hand_reward(d, before, after, action):
    turn = float(after.userdata[0]) * d.body("cube").cvel[2]
    return np.clip(turn, -2, 2) - 0.01 * (action**2).sum()


REWARDS = {"quadruped": quadruped_reward, "arm": arm_reward, "hand": hand_reward}


@each_robot
def test_rewards_are_by_their_formula(names, robots):
    tasks, _, act = robots(names)
    env = next(iter(tasks.values()))
    kind = names.split("_")[0]
    mj = mujoco.MjModel.from_xml_path(str(FILES[kind]))
    d, rng = begun(env), np.random.default_rng(2)
    paid = set()
    for k in range(6):
        action = 0.3 * rng.uniform(-1, 1, (WORLDS, env.action_size))
        before, (d, told) = d, act(d, jnp.asarray(action))
        for w in range(k, WORLDS, 5):
            was, now = (jax.tree.map(lambda a, w=w: a[w], x) for x in (before, d))
            found = velocities(mj, now.qpos, now.qvel)
            expected = REWARDS[kind](found, was, now, action[w])
            for name in tasks:
                np.testing.assert_allclose(told[name][1][w], expected, **STAGES)
            paid.add(round(expected, 6))
    assert len(paid) > 10
    assert max(paid) > 0.003


@each_robot
def test_observations_contain_the_documented_fields(names, robots):
    """Each number of the observation, computed from MuJoCo's results for the state."""
    tasks, _, act = robots(names)
    env = next(iter(tasks.values()))
    kind = names.split("_")[0]
    mj = mujoco.MjModel.from_xml_path(str(FILES[kind]))
    action = np.random.default_rng(3).uniform(-1, 1, (WORLDS, env.action_size))
    start = begun(env)
    start = start.replace(time=jnp.linspace(0.0, 1.0, WORLDS))
    d, told = act(start, jnp.asarray(action))
    for w in range(3):
        now = jax.tree.map(lambda a, w=w: np.array(a[w]), d)
        found = velocities(mj, now.qpos, now.qvel)
        q, v = now.qpos, now.qvel
        if kind == "quadruped":
            down = found.body("trunk").xmat.reshape(3, 3).T @ [0, 0, -1]
            rotation = found.sensor("rotation").data
            seen = [rotation, down, now.userdata, q[7:], v[6:]]
            if names == "quadruped_velocity_plain":
                seen += [action[w]]
            else:
                base = trot(start.userdata[w], start.time[w])
                seen += [(base + 0.2 * action[w]) / 0.4, clock(now.time)]
        elif kind == "arm":
            turned = found.body("box").xmat.reshape(3, 3)[:, :2].ravel()
            tip, box = found.site("tip").xpos, found.body("box").xpos
            seen = [q[:9], v[:9], now.ctrl, tip, box, turned, v[9:], now.userdata - box]
        else:
            turned = found.body("cube").xmat.reshape(3, 3)[:, :2].ravel()
            seen = [q[:12], v[:12], q[12:15], turned, v[12:], now.userdata]
        for name in tasks:
            np.testing.assert_allclose(told[name][0][w], np.concatenate(seen), **STAGES)


def test_ends():
    env = make("quadruped_velocity")
    d = env.begin.replace(xmat=jnp.broadcast_to(jnp.eye(3), env.begin.xmat.shape))
    tilted = d.replace(xmat=d.xmat.at[1, 2, 2].set(0.49))
    lying = d.replace(qpos=d.qpos.at[2].set(0.12))
    assert [bool(env.terminal(env.m, x)) for x in (d, tilted, lying)] == [False, True, True]
    env = make("arm_push")
    away = env.begin.replace(qpos=env.begin.qpos.at[10].set(0.8))
    assert [bool(env.terminal(env.m, x)) for x in (env.begin, away)] == [False, True]
    env = make("hand_cube")
    aside = env.begin.replace(qpos=env.begin.qpos.at[13].set(-0.051))
    above = env.begin.replace(qpos=env.begin.qpos.at[14].set(0.081))
    ends = [bool(env.terminal(env.m, x)) for x in (env.begin, aside, above)]
    assert ends == [False, True, True]


# --- scripts ---


def returns(act, name, d, script, length):
    """Return the rewards of a script in each world, zero after the episode ends."""
    total, alive = np.zeros(WORLDS), np.ones(WORLDS)
    for k in range(length):
        d, told = act(d, jnp.asarray(script(k, d)))
        _, reward, over = told[name]
        total += alive * np.array(reward)
        alive *= 1 - np.array(over)
    return total


def idle(env):
    return lambda k, d: np.zeros((WORLDS, env.action_size))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["quadruped_velocity", pytest.param("quadruped_rough", marks=pytest.mark.slow)],
)
def test_quadruped_follows_its_command(name, robots):
    """Two seconds of the trot, action zero: forward, back, sideways, about; no robot falls."""
    tasks, _, act = robots(name)
    d = begun(tasks[name])
    ways = [[1.0, 0, 0], [-0.8, 0, 0], [0, 0.5, 0], [0, -0.5, 0], [0, 0, 1.0], [0, 0, -1.0]]
    command = np.array((3 * ways)[:WORLDS])
    start = d = d.replace(userdata=jnp.array(command))
    for _ in range(100):
        d, told = act(d, jnp.zeros((WORLDS, 12)))
        assert not told[name][2].any()
    share = (moved(start, d) * command).sum(1) / (2.0 * (command**2).sum(1))
    assert (share > 0.6).all(), share
    assert (share < 1.2).all(), share


def moved(start, end):
    """Return displacement in the initial frame of the trunk [m] and yaw [rad], (worlds, 3)."""
    yaw, after = (2 * np.arctan2(d.qpos[:, 6], d.qpos[:, 3]) for d in (start, end))
    way = np.array(end.qpos[:, :2] - start.qpos[:, :2])
    along = way[:, 0] * np.cos(yaw) + way[:, 1] * np.sin(yaw)
    across = way[:, 1] * np.cos(yaw) - way[:, 0] * np.sin(yaw)
    turned = (after - yaw + np.pi) % (2 * np.pi) - np.pi
    return np.stack([along, across, turned], axis=1)


@pytest.mark.slow
def test_the_trot_earns_more_than_standing(robots):
    """Two seconds, told to go forward; what stands is paid for not turning, at most."""
    name = "quadruped_velocity"
    tasks, _, act = robots(name)
    d = told_to(begun(tasks[name]), 0.6, 0.0, 0.0)
    standing = 2.0 * (np.exp(-(0.6**2) / 0.25) + 0.5)
    assert returns(act, name, d, idle(tasks[name]), 100).mean() > 1.3 * standing


@pytest.mark.slow
def test_a_trot_earns_more_than_standing_without_the_clock(robots):
    """Two seconds, told to go forward, by a script."""
    name = "quadruped_velocity_plain"
    tasks, _, act = robots(name)
    env = tasks[name]
    d = told_to(begun(env), 0.6, 0.0, 0.0)

    def script(k, d):
        phase = 2 * np.pi * 2.655 * 0.02 * k + np.array([0, np.pi, np.pi, 0])
        hip = 0.370 * np.sin(phase)
        knee = 0.380 - 0.531 * np.maximum(0, np.sin(phase - 1.843))
        legs = np.stack([np.zeros(4), hip, knee], axis=1)
        return np.tile(legs.ravel(), (WORLDS, 1))

    standing, trotting = (returns(act, name, d, s, 100) for s in (idle(env), script))
    assert trotting.mean() > 1.15 * standing.mean()


def reached(x, y, z, roll):
    """Return joint angles that bring the tip to a position, the hand down, its fingers at an angle.

    Two links of 0.3 m from a shoulder at 0.35 m, the tip 0.15 m below the wrist.
    """
    r, h = np.hypot(x, y), z + 0.15 - 0.35
    half = np.arccos(np.hypot(r, h) / 0.6)
    first = np.arctan2(r, h) - half
    yaw = np.arctan2(y, x)
    zero = np.zeros_like(yaw)
    turn = yaw - roll
    turn = (turn + np.pi / 2) % np.pi - np.pi / 2
    return np.stack([yaw, first, zero, 2 * half, zero, np.pi - first - 2 * half, turn], axis=1)


def toward(d, angles, grip):
    """The action that moves the targets of the joints to angles."""
    moved = np.clip((angles - np.array(d.ctrl[:, :7])) / arm.MAX_TARGET_STEP, -1, 1)
    return np.concatenate([moved, np.full((WORLDS, 1), grip)], axis=1)


@pytest.mark.slow
def test_a_push_earns_more_than_rest(robots):
    tasks, _, act = robots("arm_push arm_lift")
    d = begun(tasks["arm_push"])
    box, goal = np.array(d.qpos[:, 9:11]), np.array(d.userdata[:, :2])
    way = goal - box
    far = np.linalg.norm(way, axis=1, keepdims=True)
    along, roll = way / far, np.arctan2(way[:, 1], way[:, 0])

    def push(k, d):
        ahead = np.clip((k - 25) / 30, 0, 1)  # lowers the hand behind the box, then goes on
        place = box - 0.07 * along + ahead * (far + 0.04) * along
        return toward(d, reached(*place.T, 0.12 if k < 15 else 0.015, roll), 1.0)

    resting, pushing = (returns(act, "arm_push", d, s, 80) for s in (idle(tasks["arm_push"]), push))
    assert pushing.mean() > 1.2 * resting.mean()


@pytest.mark.slow
def test_a_lift_earns_more_than_rest(robots):
    tasks, _, act = robots("arm_push arm_lift")
    d = begun(tasks["arm_lift"])
    box, goal = np.array(d.qpos[:, 9:11]), np.array(d.userdata)
    turned = 2 * np.arctan2(np.array(d.qpos[:, 15]), np.array(d.qpos[:, 12]))

    def lift(k, d):
        height = np.full(WORLDS, 0.12 if k < 12 else 0.02)
        height = goal[:, 2] if k >= 30 else height
        # the row of fingers is square to `roll`, and along a side of the box
        return toward(d, reached(*box.T, height, turned), 1.0 if k >= 22 else -1.0)

    resting, lifting = (returns(act, "arm_lift", d, s, 80) for s in (idle(tasks["arm_lift"]), lift))
    assert lifting.mean() > 1.3 * resting.mean()
    assert (lifting > resting).mean() > 0.8


@pytest.mark.slow
def test_a_gait_of_fingers_turns_the_cube(robots):
    tasks, _, act = robots("hand_cube")
    env = tasks["hand_cube"]
    d = begun(env)
    way = np.array(d.userdata[:, 0])

    def gait(k, d):
        phase = 2 * np.pi * 1.27 * 0.05 * k
        swing = -way * 0.528 * np.sin(phase)
        curl = 1.227 + 0.549 * np.sin(phase + 4.848)
        finger = np.stack([swing / 0.698, np.full(WORLDS, 0.4), np.full(WORLDS, curl / 0.873 - 1)])
        return np.tile(np.clip(finger.T, -1, 1), (1, 4))

    resting, turning = (returns(act, "hand_cube", d, s, 100) for s in (idle(env), gait))
    assert abs(resting.mean()) < 1.0
    assert turning.mean() > 40.0
    assert TASKS["hand_cube"].length == 200
