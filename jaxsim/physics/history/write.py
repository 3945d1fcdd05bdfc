"""A new sample in its place by time, at the end of a step.

MuJoCo's documentation, Modeling: Delays. Time goes on, and the newest sample takes the place of the
oldest. Where the time of a world was put back it is found in the order of time: a sample of the
same time is overwritten, one between others moves the older ones on by a place, and the oldest is
lost; one older than all takes the place of the oldest.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import join
from jaxsim.physics.arrays.select import column, pick, take
from jaxsim.physics.history.buffers import Buffers, ctrl_buffers, cursor, ring, sensor_buffers
from jaxsim.physics.history.sampling import is_due


def recorded(m: Model, d: Data) -> Array:
    """`d.history` with the controls and readings of a step, `[nhistory, *W]`."""
    history = d.history
    b = ctrl_buffers(m)
    if len(b.owner):
        always = jnp.ones((len(b.owner), *d.time.shape[1:]), bool)
        history = _inserted(b, _ctrl_entries(m), history, d.time, take(d.ctrl, b.number), always)
    b = sensor_buffers(m)
    if len(b.owner):
        due = is_due(m, d)
        period = take(m.sensor_interval[:, 0], b.owner)
        tick = take(history, b.user) + jnp.where(due & (period > 0), period, 0)
        history = _inserted(b, _sensor_entries(m), history, d.time, d.readings, due)
        source = np.arange(m.nhistory)
        source[b.user] = m.nhistory + np.arange(len(b.user))
        history = take(join([history, tick]), source)
    return history


class _Entries(NamedTuple):
    """The times and values of some buffers, one after another; constant tables `[e]`.

    Attributes:
      address: in the history.
      next: address of the same thing in the next slot of the ring.
      buffer: whose it is.
      slot: its sample.
      given: the new one: its time, by buffer, or one of the numbers, behind these.
    """

    address: np.ndarray
    next: np.ndarray
    buffer: np.ndarray
    slot: np.ndarray
    given: np.ndarray


@derived
def _ctrl_entries(s: Structure) -> _Entries:
    return _entries(ctrl_buffers(s))


@derived
def _sensor_entries(s: Structure) -> _Entries:
    return _entries(sensor_buffers(s))


def _entries(b: Buffers) -> _Entries:
    """Times of all buffers, then the values of all numbers."""
    first = np.concatenate([b.time, b.value])
    stride = np.concatenate([np.ones_like(b.time), b.stride])
    buffer = np.concatenate([np.arange(len(b.owner)), b.buffer])
    size = b.size[buffer]
    thing = np.repeat(np.arange(len(first)), size)
    slot = np.arange(len(thing)) - np.repeat(np.cumsum(size) - size, size)
    after = (slot + 1) % size[thing]
    address, following = (first[thing] + stride[thing] * place for place in (slot, after))
    tables = (address, following, buffer[thing], slot, thing)
    return _Entries(*(table.astype(np.int32) for table in tables))


def _inserted(
    b: Buffers, e: _Entries, history: Array, time: Array, values: Array, due: Array
) -> Array:
    """The history with a sample of some buffers.

    Args:
      b, e: the buffers, and where their numbers are.
      history: `[nhistory, *W]`.
      time: of the sample, `[1, *W]`.
      values: `[c, *W]`.
      due: the buffers that get one, `[k, *W]` bool.
    """
    times = jnp.broadcast_to(time, due.shape)
    order = ring(b, history, times)
    size = column(b.size, times)
    newest = order.earlier == size
    first = (order.oldest + jnp.minimum(order.earlier, size - 1)) % size
    nearest = pick(history, first + column(b.time, history))
    again = ~newest & (nearest - times <= order.reach)
    between = jnp.maximum(order.earlier - 1, 0)
    place = jnp.where(again, order.earlier, jnp.where(newest, 0, between))
    moved = jnp.where(again | newest, 0, between)  # as many of the oldest go on by a place

    age = (column(e.slot, history) - take(order.oldest, e.buffer)) % column(
        b.size[e.buffer], history
    )
    given = take(join([times, values]), e.given)
    old = take(history, e.address)
    new = jnp.where(age < take(moved, e.buffer), take(history, e.next), old)
    new = jnp.where(age == take(place, e.buffer), given, new)
    new = jnp.where(take(due, e.buffer), new, old)

    at = jnp.where(due & newest, order.oldest, cursor(b, history)).astype(history.dtype)
    source = np.arange(history.shape[0])
    source[e.address] = history.shape[0] + np.arange(len(e.address))
    source[b.user + 1] = history.shape[0] + len(e.address) + np.arange(len(b.owner))
    return take(join([history, new, at]), source)
