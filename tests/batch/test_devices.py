"""Worlds divided among devices: the numbers of one device, forwards and backwards."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from jaxsim.batch.devices import over_devices, split_worlds

pytestmark = pytest.mark.kernels

START = """
import jax
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
import jax.numpy as jnp
import numpy as np
import jaxsim
from jaxsim.transforms.platform import PLATFORMS

PLATFORMS["cpu"] = PLATFORMS["cpu"]._replace(fuses_calls=False)  # compiles in half of the time

m = jaxsim.load_model('''
<mujoco>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0" range="-1 0.01"/>
      <geom fromto="0 0 0 0.4 0 0" type="capsule" size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
</mujoco>''')
d = jaxsim.replicate(jaxsim.make_data(m), 6)
ctrl = jnp.linspace(-1.0, 1.0, 6)[:, None]
many = jax.vmap(jaxsim.step, in_axes=(None, 0))
divided = jaxsim.over_devices(many, in_axes=(None, 0))

def end(advance, m, ctrl):
    return jax.lax.fori_loop(0, 4, lambda i, d: advance(m, d), d.replace(ctrl=ctrl))

one, two = (jax.jit(lambda m, ctrl, a=a: end(a, m, ctrl))(m, ctrl) for a in (many, divided))
assert len(two.qpos.sharding.device_set) == 2
for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
assert np.ptp(two.qpos) > 1e-6  # the worlds differ

def fifth(tree):
    return jax.tree.map(lambda x: x[:5], tree)
"""
TWO = (
    START
    + """
# arguments without a number, of all worlds and of each
def shapes(every, each):
    assert (every.shape, each.shape) == ((4, 0), (3, 0))
    return jnp.zeros(3) + each.sum() + every.sum()

empty = jaxsim.over_devices(shapes, in_axes=(None, 0))(jnp.ones((4, 0)), jnp.ones((6, 0)))
assert empty.shape == (6,)

# a number of worlds that two devices do not divide: forwards, backwards, and in chunks
odd = jax.jit(lambda m, d: divided(m, d))(m, fifth(one))
for a, b in zip(jax.tree.leaves(many(m, fifth(one))), jax.tree.leaves(odd), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

def spread(advance, mass):
    d = advance(m.replace(body_mass=mass), fifth(one))
    return (d.qvel * jnp.arange(1.0, 6.0)[:, None]).sum()

slope = [jax.jit(jax.grad(lambda x, a=a: spread(a, x)))(m.body_mass) for a in (many, divided)]
assert np.abs(slope[0]).max() > 1e-6
np.testing.assert_allclose(*slope, rtol=1e-9, atol=1e-12)

class Rows:
    def at(self, i):
        return ctrl[:5] + i

jax.tree_util.register_static(Rows)
program = jaxsim.BatchProgram(m, fifth(d), Rows(), size=2, record=("qpos", "ctrl"))
assert program.devices == 2
want = fifth(d)
for chunk in program.run(fifth(d), 3):
    for k in range(chunk.steps):
        want = many(m, want.replace(ctrl=Rows().at(chunk.start + k)))
        np.testing.assert_allclose(chunk.records["qpos"][k], want.qpos, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(chunk.records["ctrl"][k], want.ctrl)
    assert len(chunk.d.time) == 5
    np.testing.assert_allclose(chunk.d.qvel, want.qvel, rtol=1e-12, atol=1e-12)

"""
)
MORE = (
    START
    + """
def height(advance, m, ctrl):
    return (end(advance, m, ctrl).qpos * jnp.arange(1.0, 7.0)[:, None]).sum()

slope = [jax.jit(jax.grad(lambda mass, ctrl, a=a: height(a, m.replace(body_mass=mass), ctrl),
                          argnums=(0, 1)))(m.body_mass, ctrl) for a in (many, divided)]
for a, b in zip(*slope, strict=True):
    assert np.abs(a).max() > 1e-6
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)

# what lies on two devices, in a call for one of them, and the other way
both, alone = divided(m, d), jax.tree.map(lambda x: x[:1], two)
some = divided(m, alone)
assert len(some.qpos.sharding.device_set) == 1
np.testing.assert_allclose(some.qpos, many(m, alone).qpos, rtol=1e-12, atol=1e-12)
other = jax.device_put((m, d), jax.devices()[1])
np.testing.assert_allclose(divided(*other).qpos, both.qpos, rtol=1e-12, atol=1e-12)
odd = divided(m, fifth(both))
np.testing.assert_allclose(odd.qpos, many(m, fifth(both)).qpos, rtol=1e-12, atol=1e-12)
"""
)


@pytest.mark.parametrize(
    "program", [TWO, pytest.param(MORE, marks=pytest.mark.slow)], ids=["two", "more"]
)
def test_two_devices_have_the_numbers_of_one(program):
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_all_devices_compute_the_same_number_of_worlds():
    split = [split_worlds(n, 4) for n in (1, 2, 5, 6, 7, 8, 65)]
    assert split == [(1, 1), (2, 1), (3, 2), (3, 2), (4, 2), (4, 2), (4, 17)]


@pytest.mark.parametrize(
    ("in_axes", "message"),
    [
        ((None, 1), "in_axes: expected 0 or None for each of 2 arguments"),
        ((None,), "in_axes: expected 0 or None for each of 2 arguments"),
        ((None, None), r"got leading axes \[\]"),
        (0, r"got leading axes \[\(2,\), \(3,\)\]"),
    ],
)
def test_arguments_that_do_not_fit(in_axes, message):
    divided = over_devices(jax.vmap(lambda x, y: x + y), in_axes)
    with pytest.raises(ValueError, match=message):
        divided(jnp.ones(2), jnp.ones(3))


def test_no_devices():
    with pytest.raises(ValueError, match="devices: expected at least one"):
        over_devices(jnp.sin, devices=[])


def test_an_argument_without_worlds():
    with pytest.raises(ValueError, match=r"got leading axes \[\(\)\]"):
        over_devices(jnp.sin)(1.0)
