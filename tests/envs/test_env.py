"""Environments against loops of the bare engine; episodes, new ones, and worlds that blow up."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STAGES

import jaxsim
from jaxsim.enums import WarningType
from jaxsim.envs import Env, VectorEnv, randomize
from jaxsim.envs.state import with_state_of

pytestmark = pytest.mark.kernels

XML = """
<mujoco>
  <option timestep="0.01" gravity="0 0 -10"/>
  <worldbody>
    <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/>
      <body name="pole"><joint name="hinge" axis="0 1 0"/><geom size=".05" pos="0 0 .5" mass=".2"/>
      </body></body>
  </worldbody>
  <actuator><motor joint="slide" gear="5" ctrlrange="-2 4"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/><framepos name="tip" objtype="body" objname="pole"/>
  </sensor>
</mujoco>"""
M = jaxsim.load_model(XML)
HINGE = int(jaxsim.qpos_index(M, "hinge")[0])
WORLDS, LENGTH, REPEAT = 3, 7, 2


class Balance(Env):
    """Ends when the pole has tilted; sees a sensor, which a reset must find as well."""

    def start(self, m, d, key):
        return d.replace(qpos=0.1 * jax.random.normal(key, d.qpos.shape))

    def observe(self, m, d):
        return jnp.concatenate([d.qpos, d.qvel, jaxsim.sensor_data(m, d, "angle")])

    def reward(self, m, before, after, action):
        return after.qpos[0] - before.qpos[0] + 0.1 * action[0]

    def terminal(self, m, d):
        return jnp.abs(d.qpos[HINGE]) > 0.3

    def metrics(self, m, before, after, action):
        return {"angle": after.qpos[HINGE]}


# where an episode ends, the next one begins in the next step or in the same one
each_mode = pytest.mark.parametrize("mode", ["next", pytest.param("same", marks=pytest.mark.slow)])

ENV = Balance(M, repeat=REPEAT)
KEYS = jax.random.split(jax.random.key(3), WORLDS)
ACTIONS = np.random.default_rng(0).uniform(-1.5, 1.5, (25, WORLDS, 1))


@pytest.fixture(scope="module")
def bare():
    """Return programs of the engine alone: steps, and the forward dynamics of a start."""
    return jax.jit(jaxsim.step), jax.jit(jaxsim.forward)


def _run(worlds, keys=KEYS, actions=ACTIONS):
    state = jax.jit(worlds.reset)(keys)
    step, states = jax.jit(worlds.step), []
    for action in actions:
        state = step(state, jnp.asarray(action))
        states.append(jax.tree.map(lambda x: x, state))
    return states


def _of_world(tree, w):
    return jax.tree.map(lambda x: x[w], tree)


def _episode(bare, start, actions):
    """Observations, rewards and ends of one episode by a loop of the engine."""
    step, _ = bare
    d, told = start, []
    for k, action in enumerate(actions):
        ctrl = 1.0 + 3.0 * np.clip(action, -1, 1)  # the ends of ctrlrange
        before, d = d, d.replace(ctrl=jnp.asarray(ctrl))
        for _ in range(REPEAT):
            d = step(M, d)
        reward = d.qpos[0] - before.qpos[0] + 0.1 * action[0]
        over = abs(float(d.qpos[HINGE])) > 0.3
        obs = np.concatenate([d.qpos, d.qvel, d.sensordata[:1]])
        told.append((obs, float(reward), over, not over and k + 1 == LENGTH))
        if over or k + 1 == LENGTH:
            break
    return told


@each_mode
def test_episodes_equal_a_loop_of_the_engine(mode, bare):
    """World by world, with the starts that the states themselves have."""
    states = _run(VectorEnv(ENV, length=LENGTH, autoreset=mode))
    first = jax.jit(VectorEnv(ENV, length=LENGTH, autoreset=mode).reset)(KEYS)
    _, forward = bare
    episodes = 0
    for w in range(WORLDS):
        start, k = _of_world(first.data, w), 0
        while k < len(ACTIONS):
            told = _episode(bare, start, ACTIONS[k:, w])
            for obs, reward, over, cut in told:
                got = _of_world(states[k], w)
                ended = over or cut
                seen = got.info["final_obs"] if ended and mode == "same" else got.obs
                np.testing.assert_allclose(seen, obs, atol=1e-12)
                np.testing.assert_allclose(got.reward, reward, atol=1e-12)
                assert (bool(got.info["terminated"]), bool(got.info["truncated"])) == (over, cut)
                assert float(got.done) == ended
                np.testing.assert_allclose(got.metrics["angle"], obs[HINGE], atol=1e-12)
                k += 1
            if not ended or k >= len(ACTIONS):
                break
            episodes += 1
            begun = states[k - 1] if mode == "same" else states[k]
            got = _of_world(begun, w)
            if mode == "next":  # the action in between gives the first observation, and nothing
                assert (float(got.reward), float(got.done), int(got.info["steps"])) == (0, 0, 0)
                k += 1
            start = got.data
            found = forward(M, start)
            assert float(start.time) == 0
            np.testing.assert_allclose(got.obs[:4], np.r_[start.qpos, start.qvel], atol=0)
            np.testing.assert_allclose(got.obs[4:], found.sensordata[:1], atol=1e-12)
    assert episodes >= 3


@pytest.mark.slow
def test_new_episodes_differ_and_do_not_depend_on_when_others_end():
    """Each world draws from its own key: the others' ends do not matter."""
    worlds = VectorEnv(ENV, length=LENGTH)
    together = _run(worlds)
    alone = _run(worlds, KEYS[1:2], ACTIONS[:, 1:2])
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a.obs[1], b.obs[0], atol=1e-12)
    starts = {tuple(np.asarray(s.obs[w, :2])) for s in together for w in range(WORLDS)
              if s.info["steps"][w] == 0}  # fmt: skip
    assert len(starts) >= 3


@pytest.mark.slow
def test_without_a_reset_a_world_goes_on():
    states = _run(VectorEnv(ENV, length=LENGTH, autoreset=None))
    assert int(states[-1].info["steps"][0]) == len(ACTIONS)
    assert float(states[-1].done.min()) == 1


@pytest.mark.slow
def test_selected_worlds_are_reset():
    worlds = VectorEnv(ENV, length=LENGTH, autoreset=None)
    state = _run(worlds)[-1]
    where = jnp.array([False, True, False])
    new = jax.jit(worlds.reset_where)(state, where, KEYS)
    np.testing.assert_array_equal(new.info["steps"], [25, 0, 25])
    np.testing.assert_array_equal(new.obs[0], state.obs[0])
    assert float(new.data.time[1]) == 0


@pytest.mark.slow
def test_a_world_that_blows_up_is_done_and_earns_nothing():
    """The engine puts it back in silence; its neighbor goes on, with a derivative."""

    class Fast(Balance):
        def terminal(self, m, d):
            return jnp.zeros((), bool)

        def start(self, m, d, key):
            return d

    worlds = VectorEnv(Fast(M), length=100)
    state = jax.jit(worlds.reset)(KEYS)
    wild = state.data.qvel.at[1, 0].set(1e12)
    state = state.replace(data=state.data.replace(qvel=wild))

    def earned(action):
        after = worlds.step(state, action)
        return after.reward.sum(), after

    slope, after = jax.jit(jax.grad(earned, has_aux=True))(jnp.ones((WORLDS, 1)) * 0.5)
    np.testing.assert_array_equal(after.info["diverged"], [False, True, False])
    np.testing.assert_array_equal(after.done, [0, 1, 0])
    assert float(after.reward[1]) == 0
    assert np.isfinite(slope).all()
    assert float(slope[1, 0]) == 0
    assert float(slope[0, 0]) != 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["next", "same"])
def test_an_action_that_is_not_finite_counts_as_zero(mode):
    """In the reward and in what is seen of it too; its neighbors are as they were."""

    class Seen(Balance):
        def observe(self, m, d):
            return jnp.concatenate([super().observe(m, d), d.ctrl])

    worlds = VectorEnv(Seen(M, repeat=REPEAT), autoreset=mode)
    step, state = jax.jit(worlds.step), jax.jit(worlds.reset)(KEYS)
    given = jnp.array([[0.5], [jnp.nan], [jnp.inf]])
    bad, good = step(state, given), step(state, jnp.array([[0.5], [0.0], [0.0]]))
    np.testing.assert_array_equal(bad.data.warning[:, WarningType.BADCTRL], [0, 1, 1])
    np.testing.assert_array_equal(bad.data.warning_lastinfo[:, WarningType.BADCTRL], [0, -1, -1])
    np.testing.assert_array_equal(bad.obs, good.obs)
    np.testing.assert_array_equal(bad.reward, good.reward)
    assert np.isfinite(bad.reward).all()
    slope = jax.grad(lambda action: step(state, action).reward.sum())(given)
    np.testing.assert_array_equal(slope[1:], 0)
    assert float(slope[0, 0]) != 0


@pytest.mark.slow
def test_a_reset_needs_no_dynamics_for_what_is_seen_of_the_state():
    """Its program is a small part of that of a step."""
    env = Env(M)
    state = jax.jit(env.reset)(KEYS[0])
    programs = jax.jit(env.reset).lower(KEYS[0]), jax.jit(env.step).lower(state, jnp.zeros(1))
    reset, step = (len(p.compile().as_text().splitlines()) for p in programs)
    assert reset < 0.3 * step


@pytest.mark.slow
def test_models_that_differ():
    """Each world is that of a model with its numbers; what follows from them does follow."""

    def heavier(m, key):
        return {"body_mass": m.body_mass * (1 + jax.random.uniform(key, dtype=m.body_mass.dtype))}

    models, axes = randomize(M, KEYS, heavier)
    assert models.body_mass.shape == (WORLDS, 3)
    moved = {n for n in type(M).fields if isinstance(getattr(axes, n), int) and n != "structure"}
    moved &= {n for n, f in type(M).fields.items() if not f.static}
    assert {"body_mass", "body_subtreemass", "dof_invweight0", "body_invweight0"} <= moved
    assert not {"geom_friction", "body_pos", "geom_rbound", "qpos0"} & moved

    states = _run(VectorEnv(ENV, length=LENGTH, autoreset=None, model=models, axes=axes))
    set_const = jax.jit(jaxsim.set_const)
    for w in range(WORLDS):
        own = set_const(M.replace(body_mass=models.body_mass[w]))
        np.testing.assert_allclose(models.dof_invweight0[w], own.dof_invweight0, rtol=1e-12)
        single = _run(
            VectorEnv(Balance(own, repeat=REPEAT), length=LENGTH, autoreset=None),
            KEYS[w : w + 1],
            ACTIONS[:, w : w + 1],
        )
        np.testing.assert_allclose(states[-1].obs[w], single[-1].obs[0], atol=1e-9)
    assert len(np.unique(np.asarray(states[-1].obs[:, 0]).round(6))) == WORLDS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: VectorEnv(ENV, autoreset="later"), "autoreset: expected one of"),
        (lambda: Balance(M, repeat=-1), "repeat: expected a whole number"),
        (
            lambda: VectorEnv(ENV).step(VectorEnv(ENV).reset(KEYS), jnp.zeros((WORLDS, 2))),
            r"action: expected shape \(3, 1\), got \(3, 2\)",
        ),
        (lambda: ENV.step(ENV.reset(KEYS[0]), jnp.zeros(3)), r"action: expected shape \(1,\)"),
        (lambda: jaxsim.sensor_data(M, jaxsim.make_data(M), "angel"), "did you mean 'angle'"),
        (lambda: randomize(M, KEYS, lambda m, k: {"body_mas": 1}), "body_mas"),
        (
            lambda: randomize(M, KEYS, lambda m, k: {"actuator_delay": m.actuator_delay + 1}),
            "a history",
        ),
    ],
)
def test_invalid_arguments_are_reported(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.slow
def test_results_may_be_those_after_the_action():
    """Results equal those of the forward dynamics, as after `mj_step1`; forces are older."""
    text = XML.replace("</sensor>", '<jointactuatorfrc name="force" joint="hinge"/></sensor>')
    m, mj = jaxsim.load_model(text), mujoco.MjModel.from_xml_string(text)

    class Told(Env):
        def observe(self, m, d):
            return jnp.concatenate([d.sensordata, d.xpos.ravel(), d.cvel.ravel(), d.qacc])

    env = Told(m, repeat=REPEAT, current=True)
    start = env.begin.replace(qpos=jnp.array([0.1, 0.4]), qvel=jnp.array([0.3, -1.0]))
    state = env.reset(KEYS[0]).replace(data=start)
    after = jax.jit(env.step)(state, jnp.array([0.5]))
    d = mujoco.MjData(mj)
    d.qpos[:], d.qvel[:], d.ctrl[:] = start.qpos, start.qvel, 2.5
    mujoco.mj_step(mj, d, REPEAT)
    old = np.array(d.xpos)
    mujoco.mj_step1(mj, d)
    seen = np.r_[d.sensordata, d.xpos.ravel(), d.cvel.ravel(), d.qacc]
    np.testing.assert_allclose(after.obs, seen, **STAGES)
    found = jax.jit(jaxsim.forward)(m, after.data)
    fresh = np.r_[found.xpos.ravel(), found.cvel.ravel()]
    np.testing.assert_allclose(after.obs[5:-2], fresh, **STAGES)
    np.testing.assert_allclose(after.data.xpos, old, **STAGES)
    assert np.abs(old - d.xpos).max() > 1e-3
    assert np.abs(found.qacc - d.qacc).max() > 1e-3


@pytest.mark.slow
def test_current_results_cost_what_is_read_of_them():
    """Nothing for the state alone; for a pose a small part of a step."""

    class Pose(Env):
        def observe(self, m, d):
            return d.xpos[-1]

    def size(env):
        state = jax.eval_shape(env.reset, KEYS[0])
        text = jax.jit(env.step).lower(state, jnp.zeros(1)).compile().as_text()
        return sum(" = " in line for line in text.splitlines())  # operations

    assert size(Env(M, current=True)) == size(Env(M))
    assert size(Pose(M)) < size(Pose(M, current=True)) < 1.2 * size(Pose(M))


@pytest.mark.slow
@each_mode
def test_a_long_start_gives_the_same_episodes(mode):
    class Long(Balance):
        long_start = True

    states = [
        _run(VectorEnv(kind(M, repeat=REPEAT), length=LENGTH, autoreset=mode))
        for kind in (Balance, Long)
    ]
    for short, long in zip(*states, strict=True):
        np.testing.assert_array_equal(short.obs, long.obs)
        np.testing.assert_array_equal(short.done, long.done)
    assert sum(s.done.sum() for s in states[0]) >= 3


def test_a_task_prints_what_it_is():
    assert repr(ENV) == "<Balance: 1 action every 20 ms, seen 5>"


DELAYED = """<mujoco><worldbody><body><joint name="hinge"/><geom size=".1" pos=".1 0 0"/></body>
</worldbody><actuator><motor joint="hinge" delay=".01" nsample="5"/></actuator></mujoco>"""


def test_a_renewed_world_has_the_whole_state_of_the_fresh_one():
    """Histories too: what was asked for in the last episode does not act in the next."""
    m = jaxsim.load_model(DELAYED)
    fresh = jaxsim.make_data(m)
    old = fresh.replace(history=fresh.history + 1.0, qpos=fresh.qpos + 1.0)
    assert m.nhistory > 0
    for where, expected in ((True, fresh), (False, old)):
        new = with_state_of(old, fresh, jnp.array(where))
        np.testing.assert_array_equal(new.history, expected.history)
        np.testing.assert_array_equal(new.qpos, expected.qpos)
