"""Insertion of a sample into history buffers by time, at the end of a step.

MuJoCo's documentation, Modeling: Delays; corresponds to `mju_historyInsert`. As time advances the
newest sample overwrites the oldest. If the time of a world was set back, the sample is inserted in
order of time: it overwrites a sample of equal time; between others it shifts the older ones by one
slot and the oldest is dropped; if it is older than all it overwrites the oldest.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.math import exact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.history.buffers import (
    Buffers,
    Past,
    ctrl_buffers,
    load_history,
    newest_slot,
    sample_order,
    sensor_buffers,
)
from jaxsim.physics.history.sampling import is_due, period_tolerance


def record_history(m: Model, d: Data) -> dict[str, Array]:
    """Record controls and readings of a step; return `d.history` and `d.history_low`."""
    before = load_history(d)
    new = before
    # Controls are recorded at every step.
    b = ctrl_buffers(m)
    if len(b.owner):
        always = jnp.ones((len(b.owner), *d.time.shape[1:]), bool)
        new = _insert_samples(
            b, _kind_entries("ctrl", m, new), new, gather_static(d.ctrl, b.number), always
        )
    # Sensor readings are recorded when due, together with the new tick.
    b = sensor_buffers(m)
    if len(b.owner):
        due = is_due(m, before)
        tick = _next_tick(m, b, before, due)
        new = _insert_samples(b, _kind_entries("sensor", m, new), new, d.readings, due)
        address = np.concatenate([b.user, b.low])[: sum(len(t) for t in tick)]
        source = np.arange(len(new.numbers))
        source[address] = len(source) + np.arange(len(address))
        new = new._replace(numbers=gather_static(concatenate_kinds([new.numbers, *tick]), source))
    # Split the low parts off again.
    if before.time_low is None:
        return {"history": new.numbers}
    return {"history": new.numbers[: m.nhistory], "history_low": new.numbers[m.nhistory :]}


def _next_tick(m: Model, b: Buffers, past: Past, due: Array) -> list[Array]:
    """Return the ticks of sensors, `[k, *W]`, and in single precision their low parts.

    There a period that ends at this step up to rounding errors ends at its time: otherwise the
    errors of period and time step would accumulate to a step.
    """
    # The next tick is one period later; without an interval it does not change.
    period = gather_static(m.sensor_interval[:, 0], b.owner)
    passes = due & (period > 0)
    tick = gather_static(past.numbers, b.user)
    if past.time_low is None:
        return [tick + jnp.where(passes, period, 0)]
    low = gather_static(past.numbers, b.low)
    # Align with the clock where the period ends at this step up to roundoff.
    late = past.now - (past.at(b.user, b.low) + period)
    ends_now = passes & (jnp.abs(late) <= period_tolerance(b, past, period))
    period = jnp.broadcast_to(jnp.where(passes, period, 0), tick.shape)
    new = exact.add(tick, low, period)
    return [jnp.where(ends_now, a, n) for a, n in zip((past.time, past.time_low), new, strict=True)]


class _Entries(NamedTuple):
    """Times and values of some buffers, concatenated; constant tables `[e]`.

    Attributes:
      address: address in the history.
      next: address of the same entry in the next slot of the ring.
      buffer: buffer of the entry.
      slot: its sample.
      given: index of its new value in the concatenation of times, by buffer, values, and low parts.
    """

    address: np.ndarray
    next: np.ndarray
    buffer: np.ndarray
    slot: np.ndarray
    given: np.ndarray


def _kind_entries(kind: str, m: Model, past: Past) -> _Entries:
    return _ENTRIES[kind](m, past.time_low is not None)


@cache_by_structure
def _ctrl_entries(s: Structure, with_low: bool) -> _Entries:
    return _pack_history(ctrl_buffers(s), with_low)


@cache_by_structure
def _sensor_entries(s: Structure, with_low: bool) -> _Entries:
    return _pack_history(sensor_buffers(s), with_low)


_ENTRIES = {"ctrl": _ctrl_entries, "sensor": _sensor_entries}


def _pack_history(b: Buffers, with_low: bool) -> _Entries:
    """Return the times of all buffers, then the values, then the low parts of the times."""
    # Expand to all slots of all buffers.
    one, low = np.ones_like(b.time), slice(None if with_low else 0)
    first = np.concatenate([b.time, b.value, (b.low + 1)[low]])
    stride = np.concatenate([one, b.stride, one[low]])
    each = np.arange(len(b.owner))
    buffer = np.concatenate([each, b.buffer, each[low]])
    size = b.size[buffer]
    thing = np.repeat(np.arange(len(first)), size)
    slot = np.arange(len(thing)) - np.repeat(np.cumsum(size) - size, size)
    # Address of the same entry in the next slot.
    after = (slot + 1) % size[thing]
    address, following = (first[thing] + stride[thing] * place for place in (slot, after))
    tables = (address, following, buffer[thing], slot, thing)
    return _Entries(*(table.astype(np.int32) for table in tables))


def _insert_samples(b: Buffers, e: _Entries, past: Past, values: Array, due: Array) -> Past:
    """Insert a sample into some buffers.

    Args:
      b, e: the buffers, and the addresses of their entries.
      past: the history before.
      values: `[c, *W]`.
      due: buffers that receive a sample, `[k, *W]` bool.
    """
    # Where the new time belongs among the stored times.
    history, times = past.numbers, jnp.broadcast_to(past.now, due.shape)
    order = sample_order(b, past, times)
    size = column(b.size, times)
    # Rank of the new sample: newest, equal to an existing one, or between others.
    newest = order.earlier == size
    first = (order.oldest + jnp.minimum(order.earlier, size - 1)) % size
    nearest = past.times_at(*(first + column(a, history) for a in (b.time, b.low + 1)))
    # Equal times overwrite; otherwise the new sample follows the last earlier one.
    again = ~newest & (nearest - times <= order.reach)
    between = jnp.maximum(order.earlier - 1, 0)
    place = jnp.where(again, order.earlier, jnp.where(newest, 0, between))
    moved = jnp.where(again | newest, 0, between)  # number of oldest samples that shift by one slot

    # Shift older samples, insert the new one, keep buffers that are not due.
    age = (column(e.slot, history) - gather_static(order.oldest, e.buffer)) % column(
        b.size[e.buffer], history
    )
    # The new entries: times, values, and low parts of the times.
    pair = [past.time] if past.time_low is None else [past.time, past.time_low]
    time, *low = (jnp.broadcast_to(a, due.shape) for a in pair)
    given = gather_static(concatenate_kinds([time, values, *low]), e.given)
    old = gather_static(history, e.address)
    new = jnp.where(age < gather_static(moved, e.buffer), gather_static(history, e.next), old)
    new = jnp.where(age == gather_static(place, e.buffer), given, new)
    new = jnp.where(gather_static(due, e.buffer), new, old)

    # Advance the cursor of buffers with a newest sample.
    at = jnp.where(due & newest, order.oldest, newest_slot(b, history)).astype(history.dtype)
    source = np.arange(history.shape[0])
    source[e.address] = history.shape[0] + np.arange(len(e.address))
    source[b.user + 1] = history.shape[0] + len(e.address) + np.arange(len(b.owner))
    return past._replace(numbers=gather_static(concatenate_kinds([history, new, at]), source))
