"""`replace` keeps the types of fields, whatever numbers it is given."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.model.record.record import Record
from jaxsim.model.switch.switches import FIXED_FIELDS, FREEABLE_FIELDS

# a field of every type, with items and without
XML = """
<mujoco>
  <worldbody>
    <body mocap="true"/>
    <body><joint name="a" frictionloss=".1" damping=".1"/><geom size=".1"/>
      <body pos="1 0 0"><joint name="b"/><geom size=".1"/></body></body>
  </worldbody>
  <equality><joint joint1="a" joint2="b"/></equality>
  <actuator><motor joint="a"/></actuator>
</mujoco>
"""
TYPES = (jnp.int32, jnp.int64, bool, jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64)
GIVEN: dict[str, Callable] = {
    "int": lambda a: jnp.asarray(a, int),
    "bool": lambda a: jnp.asarray(a, bool),
    "weak": lambda a: jnp.broadcast_to(jnp.asarray(0.0), a.shape),
    "numpy int": lambda a: np.asarray(a, int),
    "numpy float": lambda a: np.asarray(a, float),
    "numpy bool": lambda a: np.asarray(a, bool),
}
NUMBERS = (1, True, 0.5, np.float64(2), np.int32(3), np.bool_(True), jnp.asarray(1))

SWITCHED = FREEABLE_FIELDS.union(
    *(switch.fields for switch in FIXED_FIELDS)
)  # a program may not contain them


@pytest.fixture(scope="module")
def m() -> jaxsim.Model:
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def d(m) -> jaxsim.Data:
    return jaxsim.make_data(m, keep="all")


def arrays(record: Record) -> dict:
    """Fields of a record that are arrays of JAX, one for each type, kind of number and shape."""
    found = {}
    for name, field in record.fields.items():
        value = None if field.static else getattr(record, name)
        if isinstance(value, jax.Array) and name not in SWITCHED:
            found.setdefault((field.dtype, value.dtype, value.shape), (name, value))
    return dict(found.values())


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_every_field_keeps_its_type(m, d, dtype, weak):
    for record in (d, d.contact, d.solver, m.opt, m.stat, m):
        for name, old in arrays(record).items():
            given = jax.ShapeDtypeStruct(old.shape, dtype, weak_type=weak)
            changed = jax.eval_shape(lambda a, r=record, n=name: r.replace(**{n: a}), given)
            new = getattr(changed, name)
            assert new.dtype == old.dtype, name
            assert not new.weak_type, name


@pytest.mark.parametrize("given", GIVEN)
def test_numbers_in_hand_take_the_type_of_the_field(d, given):
    for name in ("qvel", "mocap_pos", "eq_active", "efc_id", "warning"):
        old = getattr(d, name)
        new = getattr(d.replace(**{name: GIVEN[given](np.zeros(old.shape))}), name)
        assert new.dtype == old.dtype, name
        assert not getattr(new, "weak_type", False), name


@pytest.mark.parametrize("number", NUMBERS)
def test_single_numbers_take_the_type_of_the_field(d, number):
    for name in ("time", "ncon", "solver_niter"):
        new = getattr(d.replace(**{name: number}), name)
        assert new.dtype == getattr(d, name).dtype
        assert float(new) == float(np.asarray(number, new.dtype))


def test_numbers_of_numpy_stay_on_the_host(d):
    assert isinstance(d.replace(qvel=np.ones(2, int)).qvel, np.ndarray)


def test_a_field_that_is_not_kept_gets_the_type_it_would_have(m):
    d = jaxsim.make_data(m)
    assert d.cdof is d.efc_id is None
    assert d.replace(cdof=np.ones((2, 6), int)).cdof.dtype == d.qpos.dtype
    assert d.replace(efc_id=np.ones(7)).efc_id.dtype == jnp.int32


def test_a_right_type_adds_nothing_to_a_program(d):
    @jax.make_jaxpr
    def program(d, q):
        return d.replace(qvel=q, mocap_pos=d.mocap_pos, ncon=d.ncon)

    assert not program(d, d.qvel + 1).eqns
    assert len(program(d, jnp.ones(2, int)).eqns) == 1


def test_a_loop_keeps_its_carry_and_a_program_is_compiled_once(m, d):
    traces = []

    @jax.jit
    def turn(d):
        traces.append(d)
        return jax.lax.scan(
            lambda d, _: (d.replace(mocap_pos=jnp.ones((1, 3), int), ncon=1.0), None), d, (), 2
        )[0]

    assert turn(d).mocap_pos.dtype == d.mocap_pos.dtype
    turn(d.replace(qvel=jnp.ones(2, int), time=1, eq_active=jnp.ones(1)))
    turn(d.replace(qvel=np.ones(2, np.float32), ctrl=np.ones(1, bool)))
    assert len(traces) == 1


def test_batches_keep_the_type_too(d):
    many = jax.tree.map(lambda a: jnp.stack([a] * 3), d)
    assert many.replace(qvel=jnp.ones((3, 2), int)).qvel.dtype == d.qvel.dtype
    inner = jax.vmap(lambda d, v: d.replace(qvel=v).qvel)(many, jnp.ones((3, 2), int))
    assert inner.dtype == d.qvel.dtype


def test_what_stands_for_numbers_is_left_alone(d):
    finite = jax.tree.map(jnp.isfinite, d)
    assert finite.replace(qvel=jnp.ones(2, bool)).qvel.dtype == bool
    tangent = np.zeros((), jax.dtypes.float0)
    assert d.replace(ncon=tangent).ncon.dtype == jax.dtypes.float0
    keys = jax.random.split(jax.random.key(0), 2)
    assert d.replace(qvel=keys).qvel.dtype == keys.dtype
    axes = jax.tree.map(lambda _: None, d).replace(qvel=0, time=True)
    assert (axes.qvel, axes.time) == (0, True)
    struct = jax.ShapeDtypeStruct((2,), jnp.int32)
    assert d.replace(qvel=struct).qvel is struct


def test_without_double_precision_nothing_is_said_of_it(recwarn):
    with jax.enable_x64(False):
        m = jaxsim.load_model(XML)
        d = jaxsim.make_data(m).replace(qvel=np.ones(2), time=np.float64(1))
        host = jax.device_get(d).replace(qpos=np.ones(2), ctrl=jnp.ones(1, int))
        assert {a.dtype for a in (d.qvel, d.time, host.qpos, host.ctrl)} == {np.dtype("float32")}
    assert not recwarn.list
