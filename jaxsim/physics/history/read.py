"""Interpolation of history buffers at a past time.

MuJoCo's documentation, Modeling: Delays. Between the samples v0, v1 at times t0 <= t < t1

    hold      v = v0
    linear    v = v0 + s (v1 - v0),    s = (t - t0) / (t1 - t0)
    cubic     Hermite polynomial with Catmull-Rom slopes: that of a sample is the difference of its
              neighbors over that of their times, and zero at both ends

Before the oldest sample the value is the oldest, after the newest the newest. At the time of a
sample it is that sample's value.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import Interpolation
from jaxsim.math import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.history.buffers import (
    Buffers,
    Past,
    Ring,
    ctrl_buffers,
    load_history,
    sample_order,
)


def interpolate_history(b: Buffers, past: Past, time: Array) -> Array:
    """Interpolate values at a time, by the interpolation of each buffer.

    Args:
      b: the buffers.
      past: the history.
      time: requested time of each buffer, on the clock of `load_history`, `[k, *W]` [s].

    Returns:
      Each component of a sample, `[c, *W]`.
    """
    # Samples directly before and after the time.
    around = _Samples(b, past, time)
    t, t0, t1 = around.of_numbers(time), around.time(-1), around.time(0)
    v0, v1 = around.value(-1), around.value(0)
    interp = column(b.interp[b.buffer], v0)
    # Relative position between the two samples.
    s = jnp.clip(safe_divide(t - t0, t1 - t0), 0, 1)
    out = v0
    # Evaluate only the interpolations that occur.
    if (b.interp == Interpolation.LINEAR).any():
        out = jnp.where(interp == Interpolation.LINEAR, v0 + s * (v1 - v0), out)
    if (b.interp >= Interpolation.CUBIC).any():
        out = jnp.where(interp >= Interpolation.CUBIC, _hermite(around, s, t1 - t0), out)
    # A time equal to that of the next sample, within roundoff, reads its value.
    reached = t >= t1 - around.of_numbers(around.ring.reach)
    return jnp.where(reached, v1, out)


def delayed_ctrl(m: Model, d: Data) -> Array:
    """Return the controls that act now, `[nu, *W]`: past ones for actuators with a delay."""
    b = ctrl_buffers(m)
    if not len(b.owner):
        return d.ctrl
    # Read every delayed control at the present minus its delay.
    delay = gather_static(m.actuator_delay, b.owner)
    before = load_history(d)
    late = interpolate_history(b, before, before.now - delay)
    own = gather_static(d.ctrl, b.number)
    # Controls without a delay act at once.
    acts = jnp.where(gather_static(delay, b.buffer) != 0, late, own)
    # Replace the controls that have a buffer.
    source = np.arange(m.nu)
    source[b.number] = m.nu + np.arange(len(b.number))
    return gather_static(concatenate_kinds([d.ctrl, acts]), source)


class _Samples:
    """Samples around a time, indexed from the first that is not before it."""

    def __init__(self, b: Buffers, past: Past, time: Array) -> None:
        self.buffers, self.past, self.history = b, past, past.numbers
        self.ring: Ring = sample_order(
            b, past, jnp.broadcast_to(time, (len(b.owner), *time.shape[1:]))
        )

    def of_numbers(self, x: Array) -> Array:
        """Expand values of buffers `[k, *W]` to the components of their samples `[c, *W]`."""
        return gather_static(jnp.broadcast_to(x, self.ring.earlier.shape), self.buffers.buffer)

    def exists(self, k: int) -> Array:
        """Return where sample `k` exists, `[c, *W]` bool."""
        place = self.of_numbers(self.ring.earlier) + k
        return (place >= 0) & (place < self._of_size(place))

    def time(self, k: int) -> Array:
        """Return the time of sample `k`, `[c, *W]`; beyond the ends that of the end sample."""
        b, slot = self.buffers, self._slot(k)
        address, low = (column(a[b.buffer], self.history) for a in (b.time, b.low + 1))
        return self.past.times_at(slot + address, slot + low)

    def value(self, k: int) -> Array:
        """Return the value of sample `k`, `[c, *W]`; beyond the ends that of the end sample."""
        b = self.buffers
        address = column(b.value, self.history) + column(b.stride, self.history) * self._slot(k)
        return gather(self.history, address)

    def _slot(self, k: int) -> Array:
        place = self.of_numbers(self.ring.earlier) + k
        size = self._of_size(place)
        return (self.of_numbers(self.ring.oldest) + jnp.clip(place, 0, size - 1)) % size

    def _of_size(self, like: Array) -> np.ndarray:
        return column(self.buffers.size[self.buffers.buffer], like)


def _hermite(around: _Samples, s: Array, step: Array) -> Array:
    """Evaluate the cubic between two samples at a fraction s of their distance in time."""

    def slope(k: int) -> Array:
        # Central difference; zero at both ends of the buffer.
        rise = around.value(k + 1) - around.value(k - 1)
        slope = safe_divide(rise, around.time(k + 1) - around.time(k - 1))
        return jnp.where(around.exists(k - 1) & around.exists(k + 1), slope, 0)

    v0, v1 = around.value(-1), around.value(0)
    m0, m1 = step * slope(-1), step * slope(0)
    rest = 1 - s
    return rest * rest * ((1 + 2 * s) * v0 + s * m0) + s * s * ((3 - 2 * s) * v1 - rest * m1)
