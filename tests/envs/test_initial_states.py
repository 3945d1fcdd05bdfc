"""An episode begins as `make_data` of the world's own model does, at first and after resets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.envs import Env, VectorEnv, randomize
from jaxsim.envs.state import KEPT_STATE_FIELDS

# all that `make_data` takes from a model: qpos0, poses of mocap bodies, histories (whose times are
# multiples of the time step), equalities that are on, states of plugins
EVERYTHING = """<mujoco><option timestep=".01"/><worldbody>
<body name="hand" mocap="true" pos="0 0 2"><geom size=".05" contype="0" conaffinity="0"/></body>
<body name="a"><joint name="hinge" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>
<body name="b" pos=".3 0 0"><joint name="elbow" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>
</body></worldbody>
<equality><joint joint1="hinge" joint2="elbow" active="false"/></equality>
<actuator><motor name="late" joint="hinge" delay=".02" nsample="4" ctrlrange="-1 1"/></actuator>
<sensor><jointpos name="angle" joint="hinge" delay=".02" nsample="4"/></sensor>
<keyframe><key name="up" qpos=".5 .2"/></keyframe></mujoco>"""
KEYS = jax.random.split(jax.random.key(1), 3)


def different(m, key):
    """Another number for whatever a start depends on."""
    draw = jax.random.uniform(key, dtype=m.qpos0.dtype)
    return {
        "qpos0": m.qpos0 + draw,
        "body_pos": m.body_pos + draw,
        "body_quat": m.body_quat.at[1].set(jnp.stack([jnp.cos(draw), jnp.sin(draw), 0, 0])),
        "key_qpos": m.key_qpos + draw,
        "opt": m.opt.replace(timestep=m.opt.timestep * (1 + draw)),
    }


def model_of_world(models, axes, w):
    return jax.tree.map(lambda x, axis: x if axis is None else x[w], models, axes,
                        is_leaf=lambda x: x is None)  # fmt: skip


def assert_same_state(got, expected):
    for name in KEPT_STATE_FIELDS:
        a, b = getattr(got, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_allclose(a, b, atol=1e-12, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [
        "next",
        pytest.param("same", marks=pytest.mark.slow),
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
def test_an_episode_begins_at_the_start_of_the_own_model(mode):
    """At the first reset, after an episode has ended, and where chosen worlds reset."""
    m = jaxsim.load_model(EVERYTHING)
    models, axes = randomize(m, KEYS, different)
    worlds = VectorEnv(Env(m), length=2, autoreset=mode, model=models, axes=axes)
    step = jax.jit(worlds.step)
    first = state = jax.jit(worlds.reset)(KEYS)
    for _ in range({"next": 3, "same": 2, None: 3}[mode]):
        state = step(state, jnp.ones((3, 1)))
    if mode is None:
        assert float(jnp.abs(state.data.qpos - first.data.qpos).min()) > 0
        state = jax.jit(worlds.reset_where)(state, jnp.ones(3, bool), KEYS)
    for w in range(3):
        own = jaxsim.make_data(model_of_world(models, axes, w))
        for begun in (first, state):
            assert int(begun.info["steps"][w]) == 0
            assert_same_state(jax.tree.map(lambda x, w=w: x[w], begun.data), own)
            np.testing.assert_allclose(begun.obs[w, :2], own.qpos, atol=1e-12)
    assert len(np.unique(np.asarray(first.data.qpos[:, 0]))) == 3
    assert len(np.unique(np.asarray(first.data.mocap_pos[:, 0, 2]))) == 3
    assert len(np.unique(np.asarray(first.data.history))) > 12


def test_a_keyframe_is_that_of_the_own_model():
    class Raised(Env):
        def start(self, m, d, key):
            return jaxsim.reset_data_keyframe(m, d, "up")

    m = jaxsim.load_model(EVERYTHING)
    models, axes = randomize(m, KEYS, different)
    state = jax.jit(VectorEnv(Raised(m), model=models, axes=axes).reset)(KEYS)
    np.testing.assert_allclose(state.data.qpos, models.key_qpos[:, 0], atol=1e-12)


@pytest.mark.slow
def test_a_single_world_begins_at_the_model_it_is_given():
    """And its derivative by the pose of the model is that of the start."""
    m = jaxsim.load_model(EVERYTHING)
    env = Env(m)
    other = m.replace(qpos0=m.qpos0 + 0.3, body_pos=m.body_pos + 0.1)
    assert_same_state(env.reset(KEYS[0], other).data, jaxsim.make_data(other))
    slope = jax.grad(lambda q: env.reset(KEYS[0], m.replace(qpos0=q)).data.qpos.sum())(m.qpos0)
    np.testing.assert_array_equal(slope, np.ones(2))


ASLEEP = """<mujoco><option timestep=".01"><flag sleep="enable"/></option><worldbody>
<geom type="plane" size="2 2 .1"/>
<body name="box" sleep="init" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</worldbody><sensor><framepos name="where" objtype="xbody" objname="box"/></sensor></mujoco>"""


@pytest.mark.slow
@pytest.mark.parametrize("differ", [False, True])
def test_a_tree_that_begins_asleep_does_so_in_every_episode(differ):
    """A world that is renewed steps on as one that has just been made, also where models differ."""

    class Pushed(Env):
        def control(self, m, d, action):
            return d.replace(qfrc_applied=d.qfrc_applied.at[0].set(20 * action[0]))

        @property
        def action_size(self):
            return 1

        def action_range(self):
            return -jnp.ones(1), jnp.ones(1)

        def observe(self, m, d):
            return jnp.concatenate([d.qpos, d.sensordata])

    def shifted(m, key):
        return {"qpos0": m.qpos0.at[0].add(jax.random.uniform(key, dtype=m.qpos0.dtype))}

    m = jaxsim.load_model(ASLEEP)
    models, axes = randomize(m, KEYS, shifted) if differ else (None, None)
    worlds = VectorEnv(Pushed(m), length=4, model=models, axes=axes)
    step, first = jax.jit(worlds.step), jax.jit(worlds.reset)(KEYS)
    state = first
    for push in (1.0, 1.0, 1.0, 1.0, 0.0):
        state = step(state, jnp.full((3, 1), push))
    np.testing.assert_array_equal(state.info["steps"], 0)
    assert (np.asarray(state.data.tree_asleep) >= 0).all()
    for _ in range(2):
        np.testing.assert_allclose(state.obs, first.obs, atol=1e-12)
        np.testing.assert_allclose(state.data.xpos, first.data.xpos, atol=1e-12)
        state, first = (step(s, jnp.zeros((3, 1))) for s in (state, first))
