"""Model and Data as dicts that other libraries save: complete, without empty arrays."""

import pickle

import jax
import numpy as np
import optax
import pytest
from flax import serialization as flax
from flax.training.train_state import TrainState
from orbax import checkpoint as orbax

import jaxsim
from jaxsim.model.record.record import Record

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


@pytest.fixture(scope="module")
def training(m):
    """Return the state of a training: parameters, an optimizer, a model, worlds that differ."""
    worlds = jaxsim.replicate(jaxsim.make_data(m), 3)
    worlds = worlds.replace(
        qpos=worlds.qpos + np.arange(21.0).reshape(3, 7),
        time=np.arange(3.0),
        contact=worlds.contact.replace(dist=worlds.contact.dist - np.arange(1.0, 4.0)[:, None]),
    )
    params = {"dense": {"kernel": jax.numpy.ones((7, 6)), "bias": jax.numpy.zeros(6)}}
    state = TrainState.create(apply_fn=len, params=params, tx=optax.adam(1e-3))
    with jax.numpy_dtype_promotion("standard"):  # which optax relies on
        state = state.apply_gradients(grads=params)
    models = m.replace(body_mass=np.outer([1.0, 2.0], m.body_mass))
    return {"state": state, "models": models, "worlds": worlds, "extra": [{"model": m}, 3.0]}


TARGETS = {"arrays": blank, "shapes": lambda tree: jax.eval_shape(lambda: tree)}


@pytest.mark.parametrize("target", TARGETS)
def test_flax(training, target):
    like = TARGETS[target](training)
    same(flax.from_bytes(like, flax.to_bytes(training)), training)
    state = flax.to_state_dict(training)
    assert all(np.size(x) for x in jax.tree.leaves(state))
    same(flax.from_state_dict(like, pickle.loads(pickle.dumps(jax.device_get(state)))), training)


def test_every_record_is_known_to_flax():
    records = {cls for cls in Record.__subclasses__() if cls.__module__.startswith("jaxsim.")}
    assert records
    assert all(flax.is_serializable(cls) for cls in records)


def test_what_flax_cannot_restore(training):
    state = flax.to_state_dict(training)

    def restore(name, **changes):
        flax.from_state_dict(training, state | {name: state[name] | changes})

    with pytest.raises(
        ValueError, match=r"state: worlds\.qpos: expected shape \(3, 7\), got \(7,\)"
    ):
        restore("worlds", qpos=np.zeros(7))
    with pytest.raises(ValueError, match=r"state: worlds\.contact must be a dict of fields, got"):
        restore("worlds", contact=np.zeros(3))
    with pytest.raises(ValueError, match=r"state: models\.speed is no field of the given record"):
        restore("models", speed=np.zeros(3))
    with pytest.raises(ValueError, match=r"state: extra\.0\.model\.opt\.timestep is missing"):
        restore("extra", **{"0": {"model": {}}})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", TARGETS)
def test_orbax(training, target, tmp_path):
    like = TARGETS[target](training)
    with orbax.StandardCheckpointer() as saver:
        saver.save(tmp_path / "state", flax.to_state_dict(training))
        saver.wait_until_finished()
        back = saver.restore(tmp_path / "state", flax.to_state_dict(like))
    same(flax.from_state_dict(like, back), training)
