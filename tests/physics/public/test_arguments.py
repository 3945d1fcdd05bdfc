"""Wrong arguments are named, with what was expected, before anything is computed."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from public import public

import jaxsim
from jaxsim.enums import DisableBit
from jaxsim.errors import UnsupportedError
from jaxsim.model.contact import Contact
from jaxsim.model.data import IPC_FIELDS, SINGLE_FIELDS, SLEEP_FIELDS, Data

NOT_HERE = SLEEP_FIELDS | IPC_FIELDS | SINGLE_FIELDS
FIELDS = [n for n, f in Data.fields.items() if f.nested is None and n not in NOT_HERE]
XML = """
<mujoco>
  <option noslip_iterations="1"/>
  <worldbody>
    <geom type="plane" size="1 1 1" adhesion="1" surfacevel="1 0 0 0 0 0"/>
    <body pos="0 0 1" mocap="true"/>
    <body name="b" pos="0 0 1"><joint name="h"/><geom size="0.1" pos="0.1 0 0"/></body>
  </worldbody>
  <equality><joint joint1="h"/></equality>
  <actuator><motor joint="h"/><position joint="h" timeconst="1"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def d(m):
    return jaxsim.make_data(m, "all")


def put(record, name, value):
    """A record with a value that `replace` would refuse."""
    return record.replace_unchecked({name: value}, native=False)


def says(message):
    return pytest.raises(ValueError, match=re.escape(message))


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_of_a_world(m, d, name):
    """One item more than declared: it would broadcast, or be read past its end."""
    value = getattr(d, name)
    shape = tuple(n + 1 for n in value.shape) or (3, 2)
    with says(f"step: d.{name}: expected shape {value.shape}, got {value.dtype}{list(shape)}"):
        jaxsim.step(m, put(d, name, jnp.zeros(shape, value.dtype)))


# those of flexes are there only where some may touch
SOFT = ("flex", "elem", "vert", "passive")


@pytest.mark.parametrize("name", [n for n in Contact.fields if n not in SOFT])
def test_every_field_of_the_contacts(m, d, name):
    value = getattr(d.contact, name)
    wrong = put(d.contact, name, jnp.zeros((7, *value.shape[1:]), value.dtype))
    with says(f"step: d.contact.{name}: expected shape {value.shape}"):
        jaxsim.step(m, put(d, "contact", wrong))


def test_under_jit(m, d):
    with says("step: d.ctrl: expected shape (2,), got float64[5]"):
        jax.jit(jaxsim.step)(m, put(d, "ctrl", jnp.zeros(5)))


def test_a_batch_without_vmap(m, d):
    with says("got float64[3]; for many worlds use jax.vmap: jax.vmap(jaxsim.step, (None, 0))"):
        jaxsim.step(m, jaxsim.replicate(d, 3))
    with says("m.body_mass: expected shape (3,), got float64[4, 3]; for many models use jax.vmap"):
        jaxsim.step(m.replace(body_mass=jnp.ones((4, 3))), d)


def test_what_is_no_model_and_no_data(m, d):
    with says("step: m: expected a Model, got Data"):
        jaxsim.step(d, m)
    with says("step: d: expected a Data, got Model"):
        jaxsim.step(m, m)
    with says("step: d.qvel: expected an array of shape (1,), got a list"):
        jaxsim.step(m, d.replace(qvel=[0.0]))


def test_other_arguments(m, d):
    with says("mul_m: vec: expected shape (1,), got float64[3]"):
        jaxsim.support.mul_m(m, d, jnp.zeros(3))
    with says("jac: point: expected shape (3,), got float64[2]"):
        jaxsim.support.jac(m, d, jnp.zeros(2), 1)
    with says("integrate_pos: qvel: expected shape (1,), got float64[2]"):
        jaxsim.support.integrate_pos(m, d.qpos, jnp.zeros(2), 0.1)


@pytest.mark.parametrize("name", ["kinematics", "forward", "inverse", "full_m"])
def test_functions_besides_step(m, d, name):
    with says(f"{name}: d.qpos: expected shape (1,), got float64[2]"):
        public(name)(m, put(d, "qpos", jnp.zeros(2)))


def test_two_precisions(m, d):
    with jax.enable_x64(False):
        single = jaxsim.load_model(XML)
        small = jaxsim.make_data(single)
        jax.eval_shape(jaxsim.step, single, small.replace(ctrl=np.zeros(2)))  # converted by JAX
    with says("d.time: is float64, the model is float32; convert one of them, or make both under"):
        jaxsim.step(single, d)
    with says("d.time: is float32, the model is float64"):
        jaxsim.step(m, small)
    with says("m.body_mass: is float32, the model is float64"):
        jaxsim.step(m.replace_unchecked({"body_mass": single.body_mass}, native=False), d)


def test_arguments_by_name(m, d):
    a, b = jax.eval_shape(lambda: jaxsim.stages.kinematics(m=m, d=d)), jax.eval_shape(lambda: d)
    assert jax.tree.structure(a) == jax.tree.structure(b)


UNLIKE = """
<mujoco>
  <option><flag contact="{}"/></option>
  <extension><plugin plugin="mujoco.sdf.torus"><instance name="i"/></plugin></extension>
  <asset><mesh name="m"><plugin instance="i"/></mesh></asset>
  <worldbody>
    <geom size=".1"/>
    <body><joint/><geom name="bare" type="sdf" mesh="m"/></body>
  </worldbody>
</mujoco>
"""


def with_flags(m, flags):
    return m.replace(opt=m.opt.replace(disableflags=int(flags)))


@pytest.mark.parametrize("off", [DisableBit.CONTACT, DisableBit.CONSTRAINT])
def test_contacts_that_a_flag_switches_off_are_not_refused(off):
    with pytest.warns(jaxsim.errors.UnsupportedWarning):
        m = jaxsim.load_model(UNLIKE.format("enable"))
    with pytest.raises(UnsupportedError, match="has no octree"):
        jaxsim.make_data(m)
    without = with_flags(m, off)
    assert jaxsim.forward(without, jaxsim.make_data(without)).ncon == 0


def test_contacts_that_a_flag_switches_on_again_are_not_ignored():
    m = jaxsim.load_model(UNLIKE.format("disable"))  # without a warning
    d = jaxsim.make_data(m)
    again = with_flags(m, 0)
    assert "cannot be simulated" in jaxsim.describe(again)
    for function in (lambda: jaxsim.make_data(again), lambda: jaxsim.step(again, d)):
        with pytest.raises(UnsupportedError, match="has no octree"):
            function()
