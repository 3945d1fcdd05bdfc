"""Exchange of models and states with MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxsim.bridge import get_data, get_data_into, put_data, put_model

XML = """
<mujoco>
  <option timestep="0.003" gravity="0 0 -5" cone="elliptic"><flag energy="enable"/></option>
  <worldbody>
    <light name="sun" pos="0 0 3"/>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.05"><freejoint/><geom size="0.1" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def oracle():
    return mujoco.MjModel.from_xml_string(XML)


def test_every_field_arrives(oracle):
    m = put_model(oracle)
    for record, theirs in ((m, oracle), (m.opt, oracle.opt), (m.stat, oracle.stat)):
        for name, field in record.fields.items():
            if name == "structure" or field.nested:
                continue
            np.testing.assert_array_equal(
                np.asarray(getattr(record, name)).reshape(-1),
                np.asarray(getattr(theirs, name)).reshape(-1),
                err_msg=name,
            )
    assert m.names["body"] == ["world", "ball"]
    assert m.names["light"] == ["sun"]
    assert m.nv == 6
    assert type(m.nv) is int


def test_equal_models_are_one_program(oracle):
    a, b = put_model(oracle), put_model(oracle)
    assert a.structure == b.structure
    assert hash(a.structure) == hash(b.structure)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert all(x.dtype == jnp.float64 for x in jax.tree.leaves(a))


def test_state_goes_there_and_back(oracle):
    state = mujoco.MjData(oracle)
    mujoco.mj_step(oracle, state, 5)
    mujoco.mj_forward(oracle, state)
    d = put_data(oracle, state, contacts=4)
    assert state.ncon == 1
    np.testing.assert_array_equal(d.contact.geom[:2], [[0, 1], [-1, -1]])
    np.testing.assert_array_equal(d.contact.frame[0].ravel(), state.contact.frame[0])
    np.testing.assert_array_equal(d.xpos, state.xpos)
    np.testing.assert_array_equal(d.xmat.reshape(-1, 9), state.xmat)
    assert d.ncon == 1
    assert d.time == state.time

    back = get_data(oracle, d)
    np.testing.assert_array_equal(back.qpos, state.qpos)
    np.testing.assert_array_equal(back.cvel, state.cvel)
    assert back.time == state.time


def test_what_happens_there_later_does_not_reach_here():
    oracle = mujoco.MjModel.from_xml_string(XML)
    state = mujoco.MjData(oracle)
    m, d = put_model(oracle), put_data(oracle, state)
    before, mass = np.array(state.qpos), np.array(oracle.body_mass)
    mujoco.mj_step(oracle, state, 10)
    oracle.body_mass[:] = 7
    np.testing.assert_array_equal(d.qpos, before)
    np.testing.assert_array_equal(m.body_mass, mass)


def test_many_worlds_become_many_states(oracle):
    d = put_data(oracle, mujoco.MjData(oracle))
    many = jax.vmap(lambda x: d.replace(qpos=d.qpos.at[2].set(x)))(jnp.array([0.5, 0.6]))
    assert [s.qpos[2] for s in get_data(oracle, many)] == [0.5, 0.6]


def test_writes_into_a_state(oracle):
    into = mujoco.MjData(oracle)
    d = put_data(oracle, into).replace(time=jnp.asarray(3.0))
    get_data_into(into, oracle, d)
    assert into.time == 3
