"""Arrays and worlds divided among processes: the numbers of one process, on CPU collectives."""

import numpy as np
from many_processes import run_code

from jaxsim.batch.processes import gather_numbers, is_writer, place, to_host

CONNECT = """
import jax
jax.distributed.initialize(address, processes, process)
import jax.numpy as jnp
import numpy as np
from jaxsim.batch.devices import divide_worlds, over_devices
from jaxsim.batch.processes import gather_numbers, is_writer, place, to_host
"""

ARRAYS = (
    CONNECT
    + """
x = np.arange(8.0).reshape(4, 2)
assert jax.device_count() == processes
assert is_writer() == (process == 0)
assert gather_numbers([process, 5]).tolist() == [[i, 5] for i in range(processes)]

# Arrays and random keys, from each process its own part and back.
keys = jax.random.split(jax.random.key(0), 4)
divided = place({"x": x, "keys": keys}, divide_worlds(4).by_world)
assert divided["x"].addressable_shards[0].data.shape == (4 // processes, 2)
whole = to_host({"x": divided["x"], "keys": jax.random.key_data(divided["keys"]), "own": x})
np.testing.assert_array_equal(whole["x"], x)
np.testing.assert_array_equal(whole["own"], x)
np.testing.assert_array_equal(whole["keys"], jax.random.key_data(keys))

# A function of worlds, whose axes are a tree: numbers that the processes divide, and others.
def scale(worlds, numbers):
    noise = jax.vmap(lambda key: jax.random.normal(key, (2,)))(worlds["keys"])
    return numbers["p"][:, None] * worlds["x"] + numbers["q"] + noise

def arguments(n):
    numbers = {"p": jnp.arange(4.0)[:n], "q": jnp.float32(1)}
    return {"x": x[:n], "keys": keys[:n]}, numbers

spread = over_devices(scale, (0, {"p": 0, "q": None}))
for n in (4, 3, 1):
    found = spread(*arguments(n))
    assert len(found.sharding.device_set) == processes
    np.testing.assert_array_equal(to_host(found), jax.jit(scale)(*arguments(n)))
found = spread(divided, arguments(4)[1])
np.testing.assert_array_equal(to_host(found), jax.jit(scale)(*arguments(4)))
jax.distributed.shutdown()
"""
)


def test_arrays_and_worlds_of_two_processes():
    for result in run_code(ARRAYS, 2):
        assert result.code == 0, result.err


def test_one_process_writes_and_keeps_its_arrays():
    x = {"x": np.arange(3.0)}
    assert is_writer()
    assert gather_numbers([7]).tolist() == [[7]]
    import jax

    there = place(x, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    np.testing.assert_array_equal(to_host(there)["x"], x["x"])
