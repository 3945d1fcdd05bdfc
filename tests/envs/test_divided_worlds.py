"""Worlds of an environment divided among devices: the numbers of one device."""

import copy

import jax
import pytest
from envs.tasks import hold
from many_processes import finish, start

from jaxsim.envs import VectorEnv

CODE = """
import jax
import jax.numpy as jnp
import numpy as np
from envs import tasks
import jaxsim
from jaxsim.envs import VectorEnv, randomize
from jaxsim.transforms.platform import PLATFORMS

PLATFORMS["cpu"] = PLATFORMS["cpu"]._replace(fuses_calls=False)  # compiles in half of the time

env = tasks.Hold(jaxsim.load_model(tasks.XML), repeat=1)
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
keys = jax.random.split(jax.random.key(1), 6)
heavier = lambda m, key: {"body_mass": m.body_mass * (1 + 0.5 * jax.random.uniform(key))}
models, axes = randomize(env.m, keys, heavier)

def states(**given):
    worlds = VectorEnv(env, length=3, **given)
    def take(state, i):
        state = worlds.step(state, jnp.full((6, env.action_size), 0.1) * i)
        return state, state
    return jax.jit(lambda keys: jax.lax.scan(take, worlds.reset(keys), jnp.arange(5))[1])(keys)

for given in ({"model": models, "axes": axes}, {"randomize": heavier}):
    one, two = states(**given), states(**given, devices=mesh)
    assert len(two.obs.sharding.device_set) == 2
    assert float(one.done.sum()) == 6  # an episode ends, and the next one begins
    assert np.ptp(one.obs[-1]) > 1e-3
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
"""


@pytest.mark.slow
def test_two_devices_have_the_states_of_one():
    (result,) = finish([start(["-c", CODE], devices=2)])
    assert result.code == 0, result.err


def test_no_devices():
    with pytest.raises(ValueError, match="devices: expected at least one"):
        VectorEnv(hold(), devices=[])


def test_divided_worlds_can_be_copied():
    worlds = copy.deepcopy(VectorEnv(hold(), devices=jax.devices()))
    keys = jax.random.split(jax.random.key(0), 3)
    assert jax.eval_shape(worlds.reset, keys).obs.shape == (3, 2)
