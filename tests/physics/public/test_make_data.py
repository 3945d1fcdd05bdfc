"""Allocation and reset of worlds."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.model.data import IPC_FIELDS, SINGLE_FIELDS, SLEEP_FIELDS, Data
from jaxsim.physics.public.api import forward
from jaxsim.physics.public.make_data import (
    make_data,
    reset_ctrl,
    reset_data,
    reset_data_keyframe,
    set_keyframe,
)

XML = """
<mujoco>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom size="0.1"/></body>
    <body name="b" mocap="true" pos="1 2 3" quat="0 2 0 0"><geom size="0.1"/></body>
    <body name="c" pos="1 0 1"><joint name="h"/><geom size="0.1" pos="0.1 0 0"/></body>
    <body name="e" mocap="true" pos="4 5 6"/>
  </worldbody>
  <equality>
    <connect name="on" body1="a" anchor="0 0 0"/>
    <weld name="off" body1="a" body2="c" active="false"/>
  </equality>
  <actuator><motor joint="h"/></actuator>
  <keyframe>
    <key name="first" time="2" qpos="0 0 5 1 0 0 0 0.5" qvel="1 2 3 4 5 6 7" ctrl="0.25"
         mpos="1 1 1 2 2 2" mquat="1 0 0 0 0 1 0 0"/>
    <key name="second" qpos="0 0 6 1 0 0 0 0.6"/>
  </keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def oracle():
    return mujoco.MjModel.from_xml_string(XML)


@pytest.fixture(scope="module")
def m(oracle):
    return put_model(oracle, contacts=3)


def assert_same_state(d, state):
    for name in ("time", "qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat", "eq_active"):
        np.testing.assert_array_equal(getattr(d, name), getattr(state, name), err_msg=name)


def test_start_is_that_of_mujoco(oracle, m):
    assert_same_state(make_data(m), mujoco.MjData(oracle))


def test_key_frames_are_those_of_mujoco(oracle, m):
    state = mujoco.MjData(oracle)
    for key, name in enumerate(("first", "second")):
        mujoco.mj_resetDataKeyframe(oracle, state, key)
        assert_same_state(reset_data_keyframe(m, make_data(m), name), state)
        assert_same_state(jax.jit(reset_data_keyframe)(m, make_data(m), jnp.int32(key)), state)


def test_a_state_becomes_a_key_frame_as_in_mujoco(m):
    """One world, and each of two in models of their own; then a reset to the keyframe."""
    mj = mujoco.MjModel.from_xml_string(XML)
    state, rng = mujoco.MjData(mj), np.random.default_rng(0)
    for name in ("qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat"):
        getattr(state, name)[:] = rng.normal(size=getattr(state, name).shape)
    state.time = 3.5
    mujoco.mj_setKeyframe(mj, state, 1)
    names = ("time", "qpos", "qvel", "ctrl", "mocap_pos", "mocap_quat")
    d = make_data(m).replace(**{n: jnp.array(getattr(state, n)) for n in names})
    changed = set_keyframe(m, d, "second")
    for name in ("time", "qpos", "qvel", "act", "mpos", "mquat", "ctrl"):
        expected = getattr(mj, f"key_{name}")
        ours = getattr(changed, f"key_{name}")
        np.testing.assert_array_equal(ours.reshape(expected.shape), expected, err_msg=name)
    assert_same_state(reset_data_keyframe(changed, make_data(changed), 1), state)
    two = jax.tree.map(lambda a: jnp.stack([a, a + a]), d)
    many = jax.jit(jax.vmap(set_keyframe, (None, 0, 0)))(m, two, jnp.array([0, 1]))
    np.testing.assert_array_equal(many.key_qpos[0, 0], d.qpos)
    np.testing.assert_array_equal(many.key_qpos[1, 1], 2 * d.qpos)
    np.testing.assert_array_equal(many.key_qpos[1, 0], m.key_qpos[0])
    with pytest.raises(ValueError, match="has 2 keyframes; there is no keyframe 3"):
        set_keyframe(m, d, 3)
    with pytest.raises(ValueError, match="d has many worlds"):
        set_keyframe(m, two, 0)


NEUTRAL = """<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1"/><site name="s"/>
  <body pos="1 0 0"><joint name="h"/><geom size=".1"/></body></body></worldbody>
<actuator><motor joint="h"/><orientation joint="b" kp="1" input="quat"/>
  <orientation joint="b" kp="1"/></actuator></mujoco>"""


def test_neutral_controls_are_those_of_mujoco():
    mj = mujoco.MjModel.from_xml_string(NEUTRAL)
    m, state = put_model(mj), mujoco.MjData(mj)
    state.ctrl[:] = 3
    mujoco.mj_resetCtrl(mj, state)
    d = make_data(m)
    many = jax.tree.map(lambda a: jnp.stack([a, a]), d.replace(ctrl=d.ctrl + 3))
    for ctrl in (reset_ctrl(m, d.replace(ctrl=d.ctrl + 3)).ctrl, *reset_ctrl(m, many).ctrl):
        assert ctrl.dtype == d.ctrl.dtype
        np.testing.assert_array_equal(ctrl, state.ctrl)
    assert state.ctrl.sum() == 1


def test_key_frame_that_is_not_there(m):
    with pytest.raises(ValueError, match="no key is named 'frist'; did you mean 'first'"):
        reset_data_keyframe(m, make_data(m), "frist")
    with pytest.raises(ValueError, match="has 2 keyframes; there is no keyframe 2"):
        reset_data_keyframe(m, make_data(m), 2)


def test_shapes_are_the_declared_ones(m):
    d = make_data(m, keep="all")
    for record in (d, d.contact):
        for name, field in record.fields.items():
            plain = not field.static and field.nested is None and not field.only
            if plain and name not in SLEEP_FIELDS:
                assert getattr(record, name).shape == field.dims(m.structure.sizes), name


def test_contacts_start_empty(m):
    contact = make_data(m).contact
    assert contact.geom.shape == (3, 2)
    assert (contact.geom == -1).all()


def test_no_leaf_is_weakly_typed(m):
    for leaf in jax.tree.leaves(make_data(m, keep="all")):
        assert not leaf.weak_type
        assert leaf.dtype in (jnp.float64, jnp.int32, bool)


def test_keep_says_what_is_carried(m):
    default, lean, chosen = make_data(m), make_data(m, keep=()), make_data(m, keep=["M", "xpos"])
    assert default.M is None
    assert default.xpos is not None
    assert lean.xpos is None
    assert lean.contact is None
    assert lean.qpos is not None
    assert chosen.M.shape == (m.nv, m.nv)
    everything = make_data(m, keep="all")
    absent = SLEEP_FIELDS | IPC_FIELDS | SINGLE_FIELDS
    assert all(getattr(everything, n) is not None for n in Data.fields.keys() - absent)


def test_keep_with_a_wrong_name(m):
    with pytest.raises(ValueError, match="keep: Data has no field 'qacceleration'"):
        make_data(m, keep=["qacceleration"])
    with pytest.raises(
        ValueError, match="expected 'default', 'all' or names of fields, got 'most'"
    ):
        make_data(m, keep="most")


def test_reset_keeps_what_was_kept(m):
    d = make_data(m, keep=["M"])
    back = reset_data(m, d.replace(qpos=d.qpos + 1, time=d.time + 1))
    assert jax.tree.structure(back) == jax.tree.structure(d)
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), back, d))


def test_a_batch_of_models_gives_a_batch_of_worlds(m):
    many = jax.vmap(lambda z: make_data(m.replace(qpos0=m.qpos0.at[2].set(z))))(jnp.arange(3.0))
    np.testing.assert_array_equal(many.qpos[:, 2], [0, 1, 2])


def starts(m):
    """Worlds as their makers give them, inside and outside of a program."""
    d = make_data(m, "all")
    yield d
    yield reset_data(m, d)
    yield reset_data_keyframe(m, d, 1)
    yield jax.jit(make_data, static_argnums=1)(m, "all")
    yield jax.jit(reset_data)(m, d)
    yield forward(m, d)


def test_a_world_can_be_donated(m):
    """No buffer is that of the model, and none is in two fields: both crash a donating call."""
    of_model = {x.unsafe_buffer_pointer() for x in jax.tree.leaves(m) if x.size}
    for d in starts(m):
        own = [x.unsafe_buffer_pointer() for x in jax.tree.leaves(d) if x.size]
        assert len(set(own)) == len(own)
        assert not of_model.intersection(own)


@pytest.mark.slow
def test_a_step_that_takes_its_world(m):
    step = jax.jit(jaxsim.step, donate_argnums=1)
    d = make_data(m)
    for _ in range(3):
        d = step(m, d)
    assert d.time > 0
    assert m.qpos0.sum() == make_data(m).qpos.sum()  # the model is still there


@pytest.mark.slow
def test_a_step_without_constraints_can_be_donated():
    m = jaxsim.load_model(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    d = forward(m, make_data(m))
    assert d.qacc.unsafe_buffer_pointer() != d.qacc_smooth.unsafe_buffer_pointer()
