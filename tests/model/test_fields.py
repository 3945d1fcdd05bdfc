"""Records: what replaces a field has its shape, and what transformations put there passes."""

import copy
import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import jaxsim

XML = """
<mujoco>
  <worldbody>
    <body pos="0 0 1"><freejoint/><geom size="0.1"/></body>
    <body pos="1 0 1"><joint name="h"/><geom size="0.1" pos="0.1 0 0"/></body>
  </worldbody>
  <actuator><motor joint="h"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def d(m):
    return jaxsim.make_data(m)


WRONG = {
    "a number": ("m", "body_mass", 3.0, "body_mass: expected shape (3,), .* got 3.0"),
    "a whole number": ("m", "body_mass", 3, "body_mass: expected shape (3,), .* got 3"),
    "too short": ("m", "geom_size", np.zeros((2, 2)), "geom_size: expected shape (2, 3), "),
    "an option": ("m.opt", "gravity", np.zeros(2), "gravity: expected shape (3,), "),
    "a statistic": ("m.stat", "center", np.zeros(()), "center: expected shape (3,), "),
    "a state": ("d", "qpos", np.zeros(7), "qpos: expected shape (8,), .* got float64[7]"),
    "a quaternion": ("d", "mocap_quat", np.zeros((0, 3)), "mocap_quat: expected shape (0, 4), "),
    "a contact": ("d.contact", "frame", np.zeros((1, 9)), "frame: expected shape (1, 3, 3), "),
    "not kept": ("d", "M", np.zeros(7), "M: expected shape (nv, nv), "),
    "no record": ("m", "opt", np.zeros(3), "opt: expected a Option, got float64[3]"),
    "static": ("m.opt", "iterations", np.ones((), int), "iterations: is static, "),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_wrong_shape_is_refused(m, d, case):
    place, name, value, message = case
    record = {"m": m, "m.opt": m.opt, "m.stat": m.stat, "d": d, "d.contact": d.contact}[place]
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(ValueError, match=pattern):
        record.replace(**{name: value})


def test_what_fits_passes(m, d):
    mass = m.body_mass
    assert m.replace(body_mass=np.ones((5, 3))).body_mass.shape == (5, 3)
    assert m.opt.replace(timestep=0.01).timestep == 0.01
    assert d.replace(time=1.0).time == 1.0
    assert m.replace(body_mass=None).body_mass is None
    assert m.replace(body_mass=jax.ShapeDtypeStruct(mass.shape, mass.dtype)).body_mass.ndim == 1
    many = jax.vmap(lambda k: m.replace(body_mass=k * mass))(jnp.arange(1.0, 3))
    assert many.body_mass.shape == (2, 3)
    assert many.replace(body_mass=mass).body_mass.shape == (3,)


@pytest.mark.parametrize("thing", [0, None, True, object(), PartitionSpec("worlds")])
def test_what_transformations_put_there_passes(m, d, thing):
    for record, name in ((m, "body_mass"), (m, "opt"), (d, "qpos"), (d, "contact")):
        axes = jax.tree.map(lambda _: None, record)
        assert getattr(axes.replace(**{name: thing}), name) is thing
        everywhere = jax.tree.map(lambda _: thing, record)
        assert getattr(everywhere.replace(**{name: thing}), name) is thing


def test_a_vmap_with_axes_of_single_fields(m):
    axes = jax.tree.map(lambda _: None, m).replace(body_mass=0)
    many = m.replace(body_mass=jnp.stack([m.body_mass, 2 * m.body_mass]))
    total = jax.vmap(lambda m: m.body_mass.sum(), (axes,))(many)
    np.testing.assert_allclose(total, [m.body_mass.sum(), 2 * m.body_mass.sum()])


def test_a_traced_model_is_pickled_and_copied(m, d):
    jax.eval_shape(jaxsim.step, m, d)  # leaves layouts in the structure
    for a in (m, d):
        for b in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
            assert jax.tree.structure(a) == jax.tree.structure(b)
            assert hash(jax.tree.structure(a)) == hash(jax.tree.structure(b))
            jax.tree.map(np.testing.assert_array_equal, a, b)


def test_numbers_are_not_printed(m, d):
    assert repr(m) == "Model(Structure(nq=8, nv=7, nu=1, nbody=3, ngeom=2), float64)"
    text = repr(jax.device_get(d))
    assert "qpos=float64[8]" in text
    assert "contact=Contact(dist=float64[" in text
    assert "mocap_pos" not in text  # there is none
    assert "array(" not in text
    assert len(repr(d.replace(userdata=[0.0] * 1000))) < 3000
