"""Where things are in `d.history`, and which sample of a buffer is the older.

MuJoCo's documentation, Modeling: Delays. An actuator or sensor with `nsample` has a buffer of

    user, cursor, times[n], values[n, numbers]

with n samples in a ring: `cursor` is the slot of the newest sample, the oldest follows it. `user`
is the tick at which a sensor with an interval was sampled last.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINVAL
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, take


class Buffers(NamedTuple):
    """The buffers of the actuators or of the sensors of a model; constant tables.

    Attributes:
      owner: actuators or sensors, `[k]`.
      user: address of the number `user`; the cursor is behind it, `[k]`.
      size: samples, `[k]`.
      interp: `Interpolation` of the readings, `[k]`.
      buffer: the buffer of each number of a sample, `[c]`.
      number: that number in `ctrl` or `sensordata`, `[c]`.
      value: its address in the first slot, `[c]`.
      stride: numbers of a sample, `[c]`.
    """

    owner: np.ndarray
    user: np.ndarray
    size: np.ndarray
    interp: np.ndarray
    buffer: np.ndarray
    number: np.ndarray
    value: np.ndarray
    stride: np.ndarray

    @property
    def time(self) -> np.ndarray:
        """Address of the time in the first slot, `[k]`."""
        return self.user + 2

    def of(self, owner: int) -> "Buffers":
        """The buffer of one actuator or sensor, alone."""
        k = np.flatnonzero(self.owner == owner)
        mine = np.isin(self.buffer, k)
        return Buffers(
            owner=self.owner[k],
            user=self.user[k],
            size=self.size[k],
            interp=self.interp[k],
            buffer=np.zeros(mine.sum(), np.int32),
            number=self.number[mine],
            value=self.value[mine],
            stride=self.stride[mine],
        )


@derived
def ctrl_buffers(s: Structure) -> Buffers:
    """Buffers of controls."""
    return _buffers(s, "actuator", s.actuator_ctrlnum, s.actuator_ctrladr)


@derived
def sensor_buffers(s: Structure) -> Buffers:
    """Buffers of sensor readings."""
    return _buffers(s, "sensor", s.sensor_dim, s.sensor_adr)


def _buffers(s: Structure, kind: str, width: np.ndarray, first: np.ndarray) -> Buffers:
    address, history = getattr(s, f"{kind}_historyadr"), getattr(s, f"{kind}_history")
    owner = np.flatnonzero(address >= 0)
    user, (size, interp) = address[owner], history[owner].T
    buffer = np.repeat(np.arange(len(owner)), width[owner])
    place = np.arange(len(buffer)) - np.searchsorted(buffer, buffer)
    number, value = first[owner][buffer] + place, (user + 2 + size)[buffer] + place
    tables = (owner, user, size, interp, buffer, number, value, width[owner][buffer])
    return Buffers(*(table.astype(np.int32) for table in tables))


class Ring(NamedTuple):
    """The samples of some buffers in their order.

    Attributes:
      oldest: slot of the oldest sample, int `[k, *W]`.
      earlier: how many samples are before the time asked for, int `[k, *W]`.
      reach: times closer than this are one time, `[k, *W]` [s].
    """

    oldest: Array
    earlier: Array
    reach: Array


def ring(b: Buffers, history: Array, time: Array) -> Ring:
    """The order of the samples around a time.

    Args:
      b: the buffers.
      history: `[nhistory, *W]`.
      time: of each buffer, `[k, *W]` [s].
    """
    oldest = (cursor(b, history) + 1) % column(b.size, history)
    slots = np.arange(b.size.max(initial=0))
    address = b.time[:, None] + np.minimum(slots, b.size[:, None] - 1)
    times = take(history, address.ravel()).reshape(*address.shape, *history.shape[1:])
    is_sample = column(slots < b.size[:, None], history)
    before = is_sample & (times < time[:, None])
    return Ring(oldest, jnp.sum(before, axis=1, dtype=jnp.int32), _reach(b, time))


def cursor(b: Buffers, history: Array) -> Array:
    """The slot of the newest sample, int `[k, *W]`."""
    return jnp.round(take(history, b.user + 1)).astype(jnp.int32)


def _reach(b: Buffers, time: Array) -> Array:
    """How close two times are one: MuJoCo's MINVAL in double precision.

    In single precision the time of n steps ago is known to n roundings.
    """
    if time.dtype == jnp.float64:
        return jnp.full_like(time, MINVAL)
    return column(b.size, time) * jnp.finfo(time.dtype).eps * jnp.abs(time)
