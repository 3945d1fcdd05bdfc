"""Layout of the ring buffers in `d.history`, and the order of their samples.

MuJoCo's documentation, Modeling: Delays. An actuator or sensor with `nsample` has a buffer of

    user, cursor, times[n], values[n, numbers]

with n samples in a ring: `newest_slot` is the slot of the newest sample, the oldest follows it.
`user` is the tick at which a sensor with an interval was last sampled. In single precision the low
parts of `user` and of the times are in `d.history_low`, buffer by buffer; times are then evaluated
relative to now, which is precise however long the clock has run (clock.py).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import MINVAL
from jaxsim.model.data import Data
from jaxsim.model.indices import time_indices
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.history.clock import clock_low


class Buffers(NamedTuple):
    """Buffers of the actuators or of the sensors of a model; constant tables.

    Attributes:
      owner: actuators or sensors, `[k]`.
      user: address of `user`; the cursor follows it, `[k]`.
      low: address of the low part of `user`, in the concatenation of `history` and `history_low`;
        those of the times follow it, `[k]`.
      size: number of samples, `[k]`.
      interp: `Interpolation` of the readings, `[k]`.
      buffer: buffer of each component of a sample, `[c]`.
      number: index of that component in `ctrl` or `sensordata`, `[c]`.
      value: its address in the first slot, `[c]`.
      stride: components of a sample, `[c]`.
    """

    owner: np.ndarray
    user: np.ndarray
    low: np.ndarray
    size: np.ndarray
    interp: np.ndarray
    buffer: np.ndarray
    number: np.ndarray
    value: np.ndarray
    stride: np.ndarray

    @property
    def time(self) -> np.ndarray:
        """Return the address of the time in the first slot, `[k]`."""
        return self.user + 2

    def of(self, owner: int) -> "Buffers":
        """Return the buffer of one actuator or sensor, alone."""
        k = np.flatnonzero(self.owner == owner)
        mine = np.isin(self.buffer, k)
        return Buffers(
            owner=self.owner[k],
            user=self.user[k],
            low=self.low[k],
            size=self.size[k],
            interp=self.interp[k],
            buffer=np.zeros(mine.sum(), np.int32),
            number=self.number[mine],
            value=self.value[mine],
            stride=self.stride[mine],
        )


@cache_by_structure
def ctrl_buffers(s: Structure) -> Buffers:
    """Return the buffers of controls."""
    return _buffers(s, "actuator", s.actuator_ctrlnum, s.actuator_ctrladr)


@cache_by_structure
def sensor_buffers(s: Structure) -> Buffers:
    """Return the buffers of sensor readings."""
    return _buffers(s, "sensor", s.sensor_dim, s.sensor_adr)


def _buffers(s: Structure, kind: str, width: np.ndarray, first: np.ndarray) -> Buffers:
    address, history = getattr(s, f"{kind}_historyadr"), getattr(s, f"{kind}_history")
    # Buffers in the order of their owners; header of two numbers, then times, then values.
    owner = np.flatnonzero(address >= 0)
    user, (size, interp) = address[owner], history[owner].T
    # Expand to one entry per number of a sample.
    buffer = np.repeat(np.arange(len(owner)), width[owner])
    place = np.arange(len(buffer)) - np.searchsorted(buffer, buffer)
    number, value = first[owner][buffer] + place, (user + 2 + size)[buffer] + place
    tables = (
        owner,
        user,
        _low_addresses(s)[user],
        size,
        interp,
        buffer,
        number,
        value,
        width[owner][buffer],
    )
    return Buffers(*(table.astype(np.int32) for table in tables))


@cache_by_structure
def _low_addresses(s: Structure) -> np.ndarray:
    """Return the address of the low part of each time, `[nhistory]`."""
    out, of_times = np.zeros(s.nhistory, int), time_indices(s)
    out[of_times] = s.nhistory + np.arange(len(of_times))
    return out


class Past(NamedTuple):
    """History of worlds, and the clock by which its times are read.

    Times are absolute in double precision, as in MuJoCo; in single precision they are relative to
    now.

    Attributes:
      numbers: `d.history`, followed by `d.history_low` if it exists, `[n, *W]`.
      time: `d.time`, `[1, *W]`.
      time_low: low part of the time, `[1, *W]`; None in double precision.
    """

    numbers: Array
    time: Array
    time_low: Array | None

    @property
    def now(self) -> Array:
        """Return the present time, `[1, *W]` [s]."""
        return self.time if self.time_low is None else jnp.zeros_like(self.time)

    def at(self, address: np.ndarray, low: np.ndarray) -> Array:
        """Return times at constant addresses, `[k, *W]` [s]."""
        high = gather_static(self.numbers, address)
        return (
            high
            if self.time_low is None
            else self._from_now(high, gather_static(self.numbers, low))
        )

    def times_at(self, address: Array, low: Array) -> Array:
        """Return times at addresses of each world's own, `[k, *W]` [s]."""
        high = gather(self.numbers, address)
        return high if self.time_low is None else self._from_now(high, gather(self.numbers, low))

    def _from_now(self, high: Array, low: Array) -> Array:
        return (high - self.time) + (low - (0 if self.time_low is None else self.time_low))


def load_history(d: Data) -> Past:
    """Return the history of worlds."""
    # Double precision, or no low parts: absolute times.
    of_now = clock_low(d)
    if of_now is None or d.history_low is None:
        return Past(d.history, d.time, None)
    return Past(concatenate_kinds([d.history, d.history_low]), d.time, of_now)


class Ring(NamedTuple):
    """Order of the samples of some buffers.

    Attributes:
      oldest: slot of the oldest sample, int `[k, *W]`.
      earlier: number of samples before the requested time, int `[k, *W]`.
      reach: times closer than this count as equal, `[k, *W]` [s].
    """

    oldest: Array
    earlier: Array
    reach: Array


def sample_order(b: Buffers, past: Past, time: Array) -> Ring:
    """Return the order of the samples around a time.

    Args:
      b: the buffers.
      past: the history.
      time: requested time of each buffer, `[k, *W]` [s].
    """
    history = past.numbers
    # The slot after the newest sample holds the oldest.
    oldest = (newest_slot(b, history) + 1) % column(b.size, history)
    slots = np.arange(b.size.max(initial=0))
    # Times of all slots; slots beyond the buffer's size repeat the last.
    slot = np.minimum(slots, b.size[:, None] - 1)
    times = past.at(*((first[:, None] + slot).ravel() for first in (b.time, b.low + 1)))
    times = times.reshape(*slot.shape, *history.shape[1:])
    # Count the samples before the time.
    is_sample = column(slots < b.size[:, None], history)
    before = is_sample & (times < time[:, None])
    return Ring(oldest, jnp.sum(before, axis=1, dtype=jnp.int32), _time_tolerance(b, past, time))


def newest_slot(b: Buffers, history: Array) -> Array:
    """Return the slot of the newest sample, int `[k, *W]`."""
    return jnp.round(gather_static(history, b.user + 1)).astype(jnp.int32)


def _time_tolerance(b: Buffers, past: Past, time: Array) -> Array:
    """Return the tolerance for equal times: MuJoCo's MINVAL in double precision.

    In single precision it allows a rounding error for delay, step and each of the n samples.
    """
    if time.dtype == jnp.float64:
        return jnp.full_like(time, MINVAL)
    roundings = b.size if past.time_low is None else b.size + 2
    return column(roundings, time) * jnp.finfo(time.dtype).eps * jnp.abs(time)
