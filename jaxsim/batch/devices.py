"""Distribute a batch of worlds over all devices, in programs that users write themselves.

The devices form a mesh, and worlds are divided along all of its axes. In a program of several
processes (`jax.distributed`) it is the mesh of the devices of all of them, in the order of
`jax.devices()`; every process calls the same functions with the same values.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim.arrays.array import PyTree
from jaxsim.batch.processes import place
from jaxsim.trace_context import trace_with
from jaxsim.transforms.tuning import tuning

WORLD_AXIS = "worlds"

Devices = Sequence[jax.Device] | Mesh


class Division(NamedTuple):
    """Worlds divided among devices.

    Attributes:
      mesh: the devices in use.
      worlds: number of worlds.
      each: number of worlds that each device computes; the last ones may compute copies.
    """

    mesh: Mesh
    worlds: int
    each: int

    @property
    def padded(self) -> int:
        """Return the number of worlds that all devices compute, copies included."""
        return self.each * self.mesh.size

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes of the mesh, along which the worlds are divided."""
        return tuple(self.mesh.axis_names)

    @property
    def by_world(self) -> NamedSharding:
        """Return the sharding of arrays with a leading axis of worlds."""
        return NamedSharding(self.mesh, P(self.axes))

    @property
    def everywhere(self) -> NamedSharding:
        """Return the sharding of arrays that each device has a copy of."""
        return NamedSharding(self.mesh, P())


class DeviceIds(NamedTuple):
    """Devices or a mesh by their numbers, which, unlike these, can be copied and pickled.

    Attributes:
      platform: their platform.
      ids: their numbers, with the axes of the mesh.
      axis_names: names of these axes; None: a sequence of devices.
    """

    platform: str
    ids: np.ndarray
    axis_names: tuple[str, ...] | None

    @classmethod
    def of(cls, devices: Devices) -> "DeviceIds":
        """Return the numbers of some devices."""
        check_devices(devices)
        names = tuple(devices.axis_names) if isinstance(devices, Mesh) else None
        array = devices.devices if isinstance(devices, Mesh) else np.array(list(devices))
        ids = np.array([device.id for device in array.flat]).reshape(array.shape)
        return cls(array.flat[0].platform, ids, names)

    def find(self) -> Devices:
        """Return the devices of this process, or of all connected ones, with these numbers."""
        by_id = {device.id: device for device in jax.devices(self.platform)}
        array = np.array([by_id[i] for i in self.ids.flat]).reshape(self.ids.shape)
        return list(array) if self.axis_names is None else Mesh(array, self.axis_names)


def over_devices(
    function: Callable[..., Any],
    in_axes: int | Sequence[Any] = 0,
    devices: Devices | None = None,
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
        model), or a tree of them for its leaves, as `randomize` returns for models that differ; 0
        alone: all arguments are batched.
      devices: the devices, or a mesh, over all axes of which the worlds are divided. None: all
        devices, of all processes. A number of worlds that they do not divide is padded by copies of
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
    check_devices(devices)
    tiles = tuning().world_tiles
    if lanes is not None and lanes not in tiles:
        raise ValueError(f"over_devices: lanes: expected one of {tiles} or None, got {lanes!r}")

    def plan(args: Sequence[Any]) -> tuple[Division, list[P]]:
        axes = _leaf_axes(args, in_axes)
        division = divide_worlds(_worlds(jax.tree.leaves(args), axes), devices)
        by_world = P(division.axes)
        return division, [P() if axis is None else by_world for axis in axes]

    @jax.jit
    def run_divided(*args: Any) -> Any:
        with trace_with(tile=lanes):
            return _run_parts(function, args, *plan(args))

    @wraps(function)
    def place_and_run(*args: Any) -> Any:
        return run_divided(*_place(args, *plan(args)))

    return place_and_run


def _place(args: Sequence[Any], division: Division, specs: Sequence[P]) -> Sequence[Any]:
    """Move arguments to the devices of a division."""
    # Devices that do not divide the worlds get them whole, and pad them in the program.
    whole = division.padded != division.worlds
    leaves, form = jax.tree.flatten(args)
    placed = [
        _put_on(NamedSharding(division.mesh, P() if whole else spec), leaf)
        for spec, leaf in zip(specs, leaves, strict=True)
    ]
    found: Sequence[Any] = jax.tree.unflatten(form, placed)
    return found


def _run_parts(
    function: Callable[..., Any], args: Sequence[Any], division: Division, specs: Sequence[P]
) -> Any:
    """Run a function for the worlds of each device, in a program of all devices."""
    worlds, padded = division.worlds, division.padded
    if padded > worlds:
        leaves, form = jax.tree.flatten(args)
        pairs = zip(leaves, specs, strict=True)
        leaves = [a if spec == P() else pad_worlds(a, padded) for a, spec in pairs]
        args = jax.tree.unflatten(form, leaves)
    part, leaves, axes = _drop_empty_leaves(function, args, specs, division.mesh.size)
    results = jax.shard_map(
        part, mesh=division.mesh, in_specs=axes, out_specs=P(division.axes), check_vma=False
    )(*leaves)
    return results if padded == worlds else drop_padding(results, worlds)


def _drop_empty_leaves(
    function: Callable[..., Any], args: Sequence[Any], axes: Sequence[P], parts: int
) -> tuple[Callable[..., Any], list[Any], tuple[P, ...]]:
    """Return a function of the nonempty leaves only, these leaves, and their partition specs.

    XLA's compiler crashes on a partitioned function that reads an empty argument (jaxlib 0.11 and
    0.12).
    """
    leaves, form = jax.tree.flatten(args)
    kept = [i for i, leaf in enumerate(leaves) if np.size(leaf)]

    def local_shape(i: int) -> tuple[int, ...]:
        first, *rest = np.shape(leaves[i])
        return (first // parts if axes[i] != P() else first, *rest)

    def part(*given: Any) -> Any:
        known = dict(zip(kept, given, strict=True))
        complete = [
            known[i] if i in known else jnp.zeros(local_shape(i), leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
        return function(*jax.tree.unflatten(form, complete))

    return part, [leaves[i] for i in kept], tuple(axes[i] for i in kept)


def check_devices(devices: Devices | None) -> None:
    """Raise ValueError if there are no devices."""
    if devices is not None and not isinstance(devices, Mesh) and not list(devices):
        raise ValueError("devices: expected at least one")


def divide_worlds(worlds: int, devices: Devices | None = None) -> Division:
    """Divide worlds among devices.

    Of a sequence of devices only as many are used as shorten the computation, except that those of
    several processes are all used: every process takes part in a program. All devices of a mesh are
    used.

    Args:
      worlds: number of worlds.
      devices: the devices or a mesh; None: all devices of all processes.
    """
    check_devices(devices)
    if isinstance(devices, Mesh):
        mesh = Mesh(devices.devices, devices.axis_names)
    else:
        given = jax.devices() if devices is None else list(devices)
        of_one_process = len({device.process_index for device in given}) == 1
        count = split_worlds(worlds, len(given))[0] if of_one_process else len(given)
        mesh = Mesh(np.array(given[:count]), (WORLD_AXIS,))
    return Division(mesh, worlds, -(-worlds // mesh.size))


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
        return place(leaf, sharding)
    return leaf


def _leaf_axes(args: Sequence[Any], in_axes: Any) -> list[int | None]:
    """Return the batch axis of each leaf of the arguments, 0 or None."""
    axes = tuple(in_axes) if isinstance(in_axes, Sequence) else (in_axes,) * len(args)
    found: list[int | None] = []

    def note(axis: Any, part: Any) -> None:
        found.extend([axis] * len(jax.tree.leaves(part)))

    for axis, a in zip(axes, args, strict=False):
        try:  # a tree of axes may be a prefix of the argument, where None is an axis
            jax.tree.map(note, axis, a, is_leaf=lambda x: x is None)
        except ValueError as error:
            raise ValueError(f"over_devices: in_axes: {error}") from None
    if len(axes) != len(args) or any(axis not in (0, None) for axis in found):
        raise ValueError(
            f"over_devices: in_axes: expected 0 or None for each of {len(args)} arguments, "
            f"got {axes}"
        )
    return found


def _worlds(leaves: Sequence[Any], axes: Sequence[int | None]) -> int:
    """Return the number of worlds of the arguments."""
    by_world = (leaf for leaf, axis in zip(leaves, axes, strict=True) if axis == 0)
    shapes = {np.shape(leaf)[:1] for leaf in by_world}
    if len(shapes) != 1 or shapes & {(), (0,)}:
        raise ValueError(
            "over_devices: expected one number of worlds in the leading axis of arguments, "
            f"got leading axes {sorted(shapes)}"
        )
    ((worlds,),) = shapes
    return worlds
