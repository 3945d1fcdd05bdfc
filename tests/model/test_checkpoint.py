"""Model and Data as dicts that other libraries save: complete, without empty arrays."""

import pickle

import jax
import numpy as np
import pytest

import jaxsim

XML = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 1"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module", params=["model", "world", "worlds"])
def record(m, request):
    d = jaxsim.make_data(m)
    d = d.replace(qpos=d.qpos + 0.25, contact=d.contact.replace(dist=d.contact.dist - 3))
    return {"model": m, "world": d, "worlds": jaxsim.replicate(d, 3)}[request.param]


def blank(record):
    return jax.tree.map(np.zeros_like, record)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y, strict=True), a, b)


def test_there_and_back(record):
    state = jaxsim.state_dict(record)
    assert all(x.size for x in jax.tree.leaves(state))
    again = pickle.loads(pickle.dumps(jax.device_get(state)))
    same(jaxsim.from_state_dict(blank(record), again), record)
    shapes = jax.eval_shape(lambda: record)
    assert jax.tree.structure(jaxsim.state_dict(shapes)) == jax.tree.structure(state)
    same(jaxsim.from_state_dict(shapes, again), record)


def test_a_state_that_does_not_fit(m):
    d = jaxsim.make_data(m)
    state = jaxsim.state_dict(d)
    with pytest.raises(ValueError, match="state: qpos is missing"):
        jaxsim.from_state_dict(d, {n: v for n, v in state.items() if n != "qpos"})
    with pytest.raises(ValueError, match=r"state: qpos: expected shape \(7,\), got \(3,\)"):
        jaxsim.from_state_dict(d, state | {"qpos": np.zeros(3)})
    with pytest.raises(ValueError, match=r"state: contact\.speed is no field of the given record"):
        jaxsim.from_state_dict(d, state | {"contact": state["contact"] | {"speed": np.zeros(3)}})


@pytest.mark.filterwarnings("ignore")
def test_flax(record):
    from flax import serialization as flax

    state = jaxsim.state_dict(record)
    assert flax.to_state_dict(state).keys() == state.keys()
    back = flax.from_bytes(jaxsim.state_dict(blank(record)), flax.to_bytes(state))
    same(jaxsim.from_state_dict(blank(record), back), record)


@pytest.mark.filterwarnings("ignore")
def test_orbax(record, tmp_path):
    from orbax import checkpoint as orbax

    with orbax.StandardCheckpointer() as saver:
        saver.save(tmp_path / "state", jaxsim.state_dict(record))
        saver.wait_until_finished()
        back = saver.restore(tmp_path / "state", jaxsim.state_dict(blank(record)))
    same(jaxsim.from_state_dict(blank(record), back), record)
