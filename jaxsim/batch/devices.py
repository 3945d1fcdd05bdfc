"""Distribute a batch of worlds over all devices, in programs that users write themselves."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.arrays.array import PyTree
from jaxsim.trace_context import trace_with
from jaxsim.transforms.tuning import tuning

WORLD_AXIS = "worlds"


def over_devices(
    function: Callable[..., Any],
    in_axes: int | Sequence[int | None] = 0,
    devices: Sequence[jax.Device] | None = None,
    *,
    lanes: int | None = None,
) -> Callable[..., Any]:
    """Divide the worlds of a batched function among devices.

    A kernel of a step is too short to be shared by the cores of a CPU, and XLA runs the tiles of a
    batch one after another: a program on one device keeps one core busy. With one device per core
    (`jax.config.update("jax_num_cpu_devices", n)` before the first computation) each device
    computes a part of the worlds. Devices do not synchronize within a program, so a loop may be
    inside or outside of the function. The result works under `jit`, `grad` and `scan` as the
    function itself.

    A CPU device computes 16 worlds at a time, one vector register, or 8 or 4 if it has fewer
    worlds: results then differ by rounding from those on fewer devices. They are bitwise equal on
    any number of devices if `lanes` is given, or if each device has at least 16 worlds.

    Args:
      function: of arrays with a leading batch axis, as `jax.vmap` makes it; all its results have
        that axis, and worlds are independent of each other.
      in_axes: for each argument 0, with a leading batch axis, or None, shared by all worlds (a
        model); 0 alone: all arguments are batched.
      devices: None: all devices. A number of worlds that they do not divide is padded by copies of
        the last world, whose results are dropped; its arguments are copied for that.
      lanes: worlds that a CPU computes at a time, 4, 8 or 16; the batch is padded to a multiple,
        which costs time. None: chosen for the number of worlds per device.

    Returns:
      The function, which runs in parts on the devices and leaves its results there. Arguments on
      other devices are moved.

    Raises:
      ValueError: an axis that is not 0 or None; different numbers of worlds, or none; no devices;
        an unsupported number of lanes.

    Example:
      >>> many = jax.vmap(jaxsim.step, in_axes=(None, 0))
      >>> advance = over_devices(many, in_axes=(None, 0))
      >>> advance(m, jaxsim.replicate(d, 8)).qpos.shape
      (8, 1)
    """
    given = jax.devices() if devices is None else list(devices)
    if not given:
        raise ValueError("devices: expected at least one")
    tiles = tuning().world_tiles
    if lanes is not None and lanes not in tiles:
        raise ValueError(f"over_devices: lanes: expected one of {tiles} or None, got {lanes!r}")

    def plan(args: Sequence[Any]) -> tuple[Mesh, tuple[P, ...], int, int]:
        axes = tuple(in_axes) if isinstance(in_axes, Sequence) else (in_axes,) * len(args)
        worlds = _worlds(args, axes)
        count, each = split_worlds(worlds, len(given))
        mesh = Mesh(np.array(given[:count]), (WORLD_AXIS,))
        specs = tuple(P() if axis is None else P(WORLD_AXIS) for axis in axes)
        return mesh, specs, worlds, count * each

    @jax.jit
    def run_divided(*args: Any) -> Any:
        mesh, specs, worlds, padded = plan(args)
        if padded > worlds:
            pairs = zip(args, specs, strict=True)
            args = tuple(a if spec == P() else pad_worlds(a, padded) for a, spec in pairs)
        part, leaves, axes = _drop_empty_leaves(function, args, specs, mesh.size)
        with trace_with(tile=lanes):
            results = jax.shard_map(
                part, mesh=mesh, in_specs=axes, out_specs=P(WORLD_AXIS), check_vma=False
            )(*leaves)
        return results if padded == worlds else drop_padding(results, worlds)

    @wraps(function)
    def place_and_run(*args: Any) -> Any:
        mesh, specs, worlds, padded = plan(args)
        # Devices that do not divide the worlds get them whole, and pad them in the program.
        places = (NamedSharding(mesh, spec if padded == worlds else P()) for spec in specs)
        pairs = zip(places, args, strict=True)
        return run_divided(*(jax.tree.map(partial(_put_on, where), a) for where, a in pairs))

    return place_and_run


def _drop_empty_leaves(
    function: Callable[..., Any], args: Sequence[Any], specs: Sequence[P], parts: int
) -> tuple[Callable[..., Any], list[Any], tuple[P, ...]]:
    """Return a function of the nonempty leaves only, these leaves, and their partition specs.

    XLA's compiler crashes on a partitioned function that reads an empty argument (jaxlib 0.11 and
    0.12).
    """
    leaves, form = jax.tree.flatten(args)
    axes = [spec for spec, a in zip(specs, args, strict=True) for _ in jax.tree.leaves(a)]
    kept = [i for i, leaf in enumerate(leaves) if np.size(leaf)]

    def local_shape(i: int) -> tuple[int, ...]:
        first, *rest = np.shape(leaves[i])
        return (first // parts if axes[i] == P(WORLD_AXIS) else first, *rest)

    def part(*given: Any) -> Any:
        known = dict(zip(kept, given, strict=True))
        complete = [
            known[i] if i in known else jnp.zeros(local_shape(i), leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
        return function(*jax.tree.unflatten(form, complete))

    return part, [leaves[i] for i in kept], tuple(axes[i] for i in kept)


def split_worlds(worlds: int, limit: int) -> tuple[int, int]:
    """Return the number of devices, at most `limit`, and the number of worlds that each computes.

    All devices compute the same number, so that the last ones may compute copies. Fewer devices are
    used only where they compute no more worlds each.
    """
    each = -(-worlds // min(worlds, limit))
    return -(-worlds // each), each


def pad_worlds(x: PyTree, count: int) -> PyTree:
    """Return arrays of worlds, (worlds, ...), padded to `count` by copies of the last world."""

    def pad(a: Any) -> jax.Array:
        return jnp.asarray(a)[np.minimum(np.arange(count), len(a) - 1)]

    return jax.tree.map(pad, x)


def drop_padding(x: PyTree, worlds: int) -> PyTree:
    """Return the first worlds of arrays, (count, ...): the inverse of `pad_worlds`."""
    return jax.tree.map(lambda a: a[:worlds], x)


def _put_on(sharding: NamedSharding, leaf: Any) -> Any:
    """Return an array on the devices of a sharding; unchanged where `jit` moves it by itself."""
    known = isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer)
    if known and leaf.committed and leaf.sharding.device_set != sharding.device_set:
        return jax.device_put(leaf, sharding)
    return leaf


def _worlds(args: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Return the number of worlds of the arguments."""
    if len(axes) != len(args) or any(axis not in (0, None) for axis in axes):
        raise ValueError(
            f"over_devices: in_axes: expected 0 or None for each of {len(args)} arguments, "
            f"got {axes}"
        )
    by_world = [a for a, axis in zip(args, axes, strict=True) if axis == 0]
    shapes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(by_world)}
    if len(shapes) != 1 or shapes & {(), (0,)}:
        raise ValueError(
            "over_devices: expected one number of worlds in the leading axis of arguments, "
            f"got leading axes {sorted(shapes)}"
        )
    ((worlds,),) = shapes
    return worlds
