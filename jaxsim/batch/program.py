"""Simulate many steps of many worlds with progress reports.

The program returns to the host after every chunk of steps, so that progress can be shown, records
written to disk and the run interrupted. One compiled program serves chunks of every length.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from jaxsim.batch.devices import Devices, Division, divide_worlds, drop_padding, pad_worlds
from jaxsim.batch.processes import place
from jaxsim.batch.scan import Records, check_record
from jaxsim.batch.stored_program import prepare_program
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.public.api import step
from jaxsim.physics.public.arguments import check_count, check_data, check_model
from jaxsim.transforms.batching import merge_tiles, split_into_tiles
from jaxsim.transforms.layout import tile_size


class Control(Protocol):
    """A source of controls for many worlds; a pytree."""

    def at(self, i: jax.Array) -> jax.Array:
        """Return the controls of all worlds at step `i`, (worlds, nu)."""


@dataclass(frozen=True)
class Chunk:
    """Some consecutive steps of many worlds.

    Attributes:
      start: number of steps before this chunk.
      steps: number of steps in it.
      d: the worlds after it.
      records: the recorded fields after each of its steps, (steps, worlds, ...).
    """

    start: int
    steps: int
    d: Data
    records: Records


class BatchProgram:
    """The compiled program that advances a batch of worlds.

    The worlds are divided among the devices, and on a CPU each device processes its worlds in tiles
    of whole vector registers. Worlds do not communicate.

    Args:
      m: the model, shared by all worlds.
      d: the worlds, with a leading batch axis; only shapes are read.
      ctrl: controls of each step. None: `d.ctrl` at every step.
      size: steps of a chunk.
      record: names of the fields of Data to record.
      devices: the devices, or a mesh, over all axes of which the worlds are divided. None: all
        devices, of all processes.

    Attributes:
      devices: number of devices in use. Where they do not divide the number of worlds, the last
        ones also compute copies of the last world, which are dropped. With fewer than 16 worlds
        each, results differ by rounding from those of fewer devices (`over_devices` has a remedy).
      tile: worlds that a device advances together.
      trace_seconds, compile_seconds: time to trace and to compile the program [s]; 0 if it was
        loaded from disk (`load_or_compile`).
      load_seconds: time to load it [s]; 0 if it was compiled.
      temporary_bytes: memory that it needs on all devices, in addition to arguments and results.
    """

    def __init__(
        self,
        m: Model,
        d: Data,
        ctrl: Control | None = None,
        *,
        size: int = 20,
        record: Sequence[str] = (),
        devices: Devices | None = None,
    ):
        check_model("BatchProgram", m)
        leading = np.shape(d.time)[:1] if isinstance(d, Data) else ()
        if not leading:
            raise ValueError(
                "BatchProgram: d: expected many worlds, got one; make them with "
                "jaxsim.replicate(d, worlds)"
            )
        check_data("BatchProgram", m, d, leading)
        check_record(m, d, record)
        (worlds,) = leading
        if check_count("BatchProgram: size", size) < 1:
            raise ValueError("BatchProgram: size: a chunk has at least one step, got 0")
        self.size = size
        division = divide_worlds(worlds, devices)
        self.devices = division.mesh.size
        self.tile = tile_size(m, division.each)
        self._worlds, self._padded = worlds, division.padded
        self._by_world, self._everywhere = division.by_world, division.everywhere
        self._m, self._ctrl = place((m, ctrl), self._everywhere)

        chunk = functools.partial(
            _advance_devices,
            worlds=worlds,
            division=division,
            size=size,
            tile=self.tile,
            record=tuple(record),
        )
        prepared = prepare_program(chunk, self._arguments(self._pad(d), 0, 0), name="the rollout")
        self._program, self.load_seconds = prepared.program, prepared.load_seconds
        self.trace_seconds, self.compile_seconds = prepared.trace_seconds, prepared.compile_seconds
        memory = prepared.compiled.memory_analysis()
        self.temporary_bytes = self.devices * memory.temp_size_in_bytes if memory else 0

    def run(self, d: Data, steps: int) -> Iterator[Chunk]:
        """Yield a chunk at a time while the worlds are advanced by `steps` steps."""
        steps, d = check_count("run: steps", steps), self._pad(d)
        for start in range(0, steps, self.size):
            count = min(self.size, steps - start)
            d, records = self._program(*self._arguments(d, start, count))
            whole = (d, records) if self._padded == self._worlds else self._trim(d, records)
            yield Chunk(start, count, whole[0], {name: x[:count] for name, x in whole[1].items()})

    def _pad(self, d: Data) -> Data:
        """Return the worlds that the devices compute, with copies of the last one."""
        if self._padded == self._worlds:
            return d
        padded: Data = _pad_data(d, self._padded)
        return padded

    def _trim(self, d: Data, records: Records) -> tuple[Data, Records]:
        """Return state and records without the copies."""
        trimmed: tuple[Data, Records] = _trim_results(d, records, self._worlds)
        return trimmed

    def _arguments(self, d: Data, start: int, count: int) -> tuple:
        """Return the arguments of the program, on the devices it expects them on."""
        numbers = place((np.int32(start), np.int32(count)), self._everywhere)
        return self._m, place(d, self._by_world), self._ctrl, *numbers


def replicate(d: Data, worlds: int, *, devices: Devices | None = None) -> Data:
    """Return a batch of copies of one world, with a leading axis.

    Args:
      d: the world.
      worlds: number of copies.
      devices: the devices, or a mesh, over which the copies are divided, as `BatchProgram` does, if
        they can be divided equally. None: all copies are where `d` is.

    Example:
      >>> replicate(d, 8).qpos.shape
      (8, 1)
    """
    worlds = check_count("replicate: worlds", worlds)
    division = divide_worlds(worlds, devices) if worlds and devices is not None else None
    if division is None or division.padded != worlds:
        return _replicate_worlds(d, worlds)
    copy = jax.jit(_replicate_worlds, static_argnums=1, out_shardings=division.by_world)
    copies: Data = copy(place(d, division.everywhere), worlds)
    return copies


@functools.partial(jax.jit, static_argnums=1)  # one program instead of one for each shape
def _replicate_worlds(d: Data, worlds: int) -> Data:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (worlds, *x.shape)), d)


_pad_data = jax.jit(pad_worlds, static_argnums=1)  # one program instead of one for each shape


@functools.partial(jax.jit, static_argnums=2)
def _trim_results(d: Data, records: Records, worlds: int) -> tuple[Data, Records]:
    """Return state and records, (worlds, ...) and (steps, worlds, ...), of the first worlds."""
    return drop_padding(d, worlds), {name: x[:, :worlds] for name, x in records.items()}


def _advance_devices(
    m: Model,
    d: Data,
    ctrl: Control | None,
    start: jax.Array,
    count: jax.Array,
    *,
    worlds: int,
    division: Division,
    **how: Any,
) -> tuple[Data, Records]:
    """Return the worlds of all devices after `count` steps, and their records.

    Args:
      m, d, count: as for `_advance`.
      ctrl: source of the controls.
      start: number of the first step.
      worlds: number of worlds, without padding.
      division: the worlds divided among devices.
      how: settings of `_advance`.
    """
    step_numbers = start + jnp.arange(how["size"], dtype=jnp.int32)
    rows = None if ctrl is None else jax.vmap(ctrl.at)(step_numbers)
    if rows is not None and division.padded > worlds:
        rows = jax.vmap(pad_worlds, (0, None))(rows, division.padded)
    by_world, by_step = P(division.axes), P(None, division.axes)
    advance: Any = functools.partial(_advance, **how)
    sharded = jax.shard_map(
        advance,
        mesh=division.mesh,
        in_specs=(P(), by_world, by_step, P()),
        out_specs=(by_world, by_step),
        check_vma=False,
    )
    advanced: tuple[Data, Records] = sharded(m, d, rows, count)
    return advanced


def _advance(
    m: Model, d: Data, ctrl, count, *, size: int, tile: int, record
) -> tuple[Data, Records]:
    """Return the worlds of one device after `count` steps, and their records, `(size, worlds,
    ...)`.

    Args:
      m: the model.
      d: the worlds of this device.
      ctrl: their controls, (size, worlds, nu); None: those in `d`.
      count: number of steps, at most `size`.
      size: length of the records.
      tile: worlds that are advanced together.
      record: names of the recorded fields.
    """
    # Keep the batch axis last from the first step to the last, as in the physics
    # (transforms/layout.py); otherwise each step would transpose all its arrays twice.
    many = jax.vmap(step, in_axes=(None, -1), out_axes=-1)

    def advance_tile(arguments):
        d, ctrl = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), arguments)

        def advance(i, carry):
            d, records = carry
            d = many(m, d if ctrl is None else d.replace(ctrl=ctrl[i]))
            return d, {name: x.at[i].set(getattr(d, name)) for name, x in records.items()}

        slots = {n: jnp.zeros((size, *getattr(d, n).shape), getattr(d, n).dtype) for n in record}
        end = lax.fori_loop(jnp.zeros_like(count), count, advance, (d, slots))
        return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), end)

    worlds = d.time.shape[0]
    by_tile = None if ctrl is None else split_into_tiles(jnp.moveaxis(ctrl, 1, 0), tile)
    split = jax.tree.map(lambda x: split_into_tiles(x, tile), d)
    d, records = lax.map(advance_tile, (split, by_tile))
    d = jax.tree.map(lambda x: merge_tiles(x, worlds), d)
    return d, {n: jnp.moveaxis(merge_tiles(x, worlds), 1, 0) for n, x in records.items()}
