"""Readings of sensors with an interval or a delay.

MuJoCo's documentation, Modeling: Sensors, Delays.

    delay   period    reported
    no      no        the computed value
    no      yes       the computed value at the end of a period, else the last sample
    yes     either    the sample of a delay ago
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.history.buffers import Buffers, Past, load_history, sample_order, sensor_buffers
from jaxsim.physics.history.read import interpolate_history


def report_sensors(m: Model, d: Data, computed: Array, indices: np.ndarray) -> Array:
    """Return the readings that the sensors report, `[nsensordata, *W]`.

    Args:
      m, d: model and data.
      computed: values computed by the sensors, `[nsensordata, *W]`.
      indices: indices computed in this stage; the others keep their values.
    """
    # Value in the buffer at the present minus the delay.
    b = sensor_buffers(m)
    delay = gather_static(m.sensor_delay, b.owner)
    late = delay > 0
    history = load_history(d)
    before = interpolate_history(b, history, history.now - jnp.where(late, delay, 0))
    # Delayed sensors, and those between two samples, report the buffer's value.
    waits = gather_static(late | ~is_due(m, history), b.buffer) & column(
        np.isin(b.number, indices), before
    )
    own = jnp.where(waits, before, gather_static(computed, b.number))
    # Replace the numbers that have a buffer.
    source = np.arange(m.nsensordata)
    source[b.number] = m.nsensordata + np.arange(len(b.number))
    return gather_static(concatenate_kinds([computed, own]), source)


def take_samples(
    m: Model, d: Data, computed: Array, given: Array | None, indices: np.ndarray
) -> Array:
    """Return the values to store if this step samples, per component `[c, *W]`.

    They are the computed value for a sensor with a delay, else the reported one.

    Args:
      m, d, computed, indices: see `report_sensors`.
      given: reported values, `[nsensordata, *W]`; None: not yet known.
    """
    # A delayed sensor stores the computed value, another one its reported value.
    b = sensor_buffers(m)
    late = gather_static(gather_static(m.sensor_delay, b.owner) > 0, b.buffer)
    own = gather_static(computed, b.number)
    none = jnp.zeros_like(own)
    new = jnp.where(late, own, none if given is None else gather_static(given, b.number))
    # Numbers not computed by this call keep their previous sample.
    here = np.isin(b.number, indices)
    if here.all():
        return new
    before = none if d.readings is None else d.readings
    return gather_static(
        concatenate_kinds([new, before]), np.arange(len(here)) + np.where(here, 0, len(here))
    )


def is_due(m: Model, past: Past) -> Array:
    """Return the sensors with a buffer that are sampled now, `[k, *W]` bool.

    A period begins where the previous one ended, not at the step that detected it.
    """
    b: Buffers = sensor_buffers(m)
    # The period has ended if the last tick plus the period is not after the present.
    period = gather_static(m.sensor_interval[:, 0], b.owner)
    tick = past.at(b.user, b.low)
    return (period <= 0) | (tick + period <= past.now + period_tolerance(b, past, period))


def period_tolerance(b: Buffers, past: Past, period: Array) -> Array | float:
    """Return how early a period counts as ended [s]: in single precision some rounding errors."""
    if past.time_low is not None:
        return _PERIOD_ROUNDING_ULPS * jnp.finfo(period.dtype).eps * period
    if past.time.dtype == jnp.float64:
        return 0.0
    return sample_order(
        b, past, jnp.broadcast_to(past.time, (len(b.owner), *past.time.shape[1:]))
    ).reach


_PERIOD_ROUNDING_ULPS = (
    8  # errors of the period and of the sum of steps since the last exact tick, in eps
)
