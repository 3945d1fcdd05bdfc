"""Values and files of programs that run in several processes, on `jax.distributed`.

Every process runs the same program on its own devices, and an array may have parts on the devices
of all of them. Process 0 is the only one that writes files and messages. A program of one process
uses the same functions, which then do nothing but copy.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.arrays.array import PyTree


def is_writer() -> bool:
    """Return whether this process writes files and messages: process 0, or the only one."""
    return jax.process_index() == 0


def place(x: PyTree, sharding: jax.sharding.Sharding) -> PyTree:
    """Return arrays on the devices of a sharding, to which each process copies its own part.

    Args:
      x: arrays; those of this process must have the same values in all processes.
      sharding: their sharding.
    """
    if sharding.is_fully_addressable:
        return jax.device_put(x, sharding)
    return jax.tree.map(lambda a: _place_own_part(a, sharding), x)


def to_host(x: PyTree) -> PyTree:
    """Return arrays as NumPy arrays, whole in every process; all processes must call it."""
    leaves, form = jax.tree.flatten(x)
    leaves = [np.zeros(a.shape, a.dtype) if not np.size(a) else a for a in leaves]
    remote = [i for i, leaf in enumerate(leaves) if _has_remote_parts(leaf)]
    if remote:
        # One program for all arrays; every process gets the parts of the others.
        everywhere = NamedSharding(leaves[remote[0]].sharding.mesh, P())
        whole = jax.jit(_identity, out_shardings=everywhere)([leaves[i] for i in remote])
        for i, leaf in zip(remote, whole, strict=True):
            leaves[i] = leaf
    return jax.tree.unflatten(form, jax.device_get(leaves))


def gather_numbers(numbers: Sequence[int]) -> np.ndarray:
    """Return some numbers of each process, int32 (processes, n); all processes must call it."""
    own = np.asarray(numbers, np.int32)
    return np.asarray(multihost_utils.process_allgather(own)).reshape(jax.process_count(), -1)


def _identity(x: PyTree) -> PyTree:
    return x


def _has_remote_parts(leaf: Any) -> bool:
    """Return whether parts of an array are on devices of other processes only."""
    known = isinstance(leaf, jax.Array)
    return known and not (leaf.is_fully_addressable or leaf.is_fully_replicated)


def _place_own_part(leaf: Any, sharding: jax.sharding.Sharding) -> jax.Array:
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        numbers = _place_own_part(jax.random.key_data(leaf), sharding)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])
