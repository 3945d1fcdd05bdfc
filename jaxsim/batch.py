"""Many steps of many worlds, for a person who waits.

The program returns to the host after every chunk of steps, so that progress can be shown, records
written to disk and the run interrupted. One compiled program serves chunks of every length.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.data import Data
from jaxsim.model import Model
from jaxsim.physics import step
from jaxsim.rollout import Records, check_record


class Control(Protocol):
    """A source of controls for many worlds; a pytree."""

    def at(self, i: jax.Array) -> jax.Array:
        """Controls of all worlds at step `i`, (worlds, nu)."""


@dataclass(frozen=True)
class Chunk:
    """Some steps of many worlds.

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
    """The compiled program that advances many worlds.

    Args:
      m: the model, the same for all worlds.
      d: the worlds, with a leading axis; only shapes are read.
      ctrl: controls of each step. None: `d.ctrl` at every step.
      size: steps of a chunk.
      record: names of the fields of Data to record.

    Attributes:
      trace_seconds: time to trace the program.
      compile_seconds: time to compile it.
      temporary_bytes: memory that it needs besides its arguments and results.
    """

    def __init__(
        self,
        m: Model,
        d: Data,
        ctrl: Control | None = None,
        *,
        size: int = 20,
        record: Sequence[str] = (),
    ):
        check_record(d, record)
        self.size, self._m, self._ctrl = size, m, ctrl
        names = tuple(record)

        def advance(m, d, ctrl, start, count):
            return _advance(m, d, ctrl, start, count, size, names)

        start = time.perf_counter()
        lowered = jax.jit(advance).lower(m, d, ctrl, _int(0), _int(0))
        traced = time.perf_counter()
        self._program = lowered.compile()
        self.trace_seconds = traced - start
        self.compile_seconds = time.perf_counter() - traced
        memory = self._program.memory_analysis()
        self.temporary_bytes = memory.temp_size_in_bytes if memory is not None else 0

    def run(self, d: Data, steps: int) -> Iterator[Chunk]:
        """Advances the worlds by `steps` steps, and hands them over after every chunk."""
        for start in range(0, steps, self.size):
            count = min(self.size, steps - start)
            d, records = self._program(self._m, d, self._ctrl, _int(start), _int(count))
            yield Chunk(start, count, d, {name: x[:count] for name, x in records.items()})


def replicate(d: Data, worlds: int) -> Data:
    """The same world many times, with a leading axis."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (worlds, *x.shape)), d)


def _advance(m, d, ctrl, start, count, size: int, record: tuple[str, ...]) -> tuple[Data, Records]:
    """One chunk of at most `size` steps: the worlds after it, and `size` slots of records."""
    many = jax.vmap(step, in_axes=(None, 0))

    def advance(i, carry):
        d, records = carry
        if ctrl is not None:
            d = d.replace(ctrl=ctrl.at(start + i))
        d = many(m, d)
        return d, {name: x.at[i].set(getattr(d, name)) for name, x in records.items()}

    slots = {n: jnp.zeros((size, *getattr(d, n).shape), getattr(d, n).dtype) for n in record}
    return lax.fori_loop(_int(0), count, advance, (d, slots))


def _int(i: int) -> jax.Array:
    return jnp.asarray(i, jnp.int32)
