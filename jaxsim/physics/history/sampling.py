"""Sensors that are sampled at intervals, or late: what they report.

MuJoCo's documentation, Modeling: Sensors, Delays.

    delay   period    reported
    no      no        what is computed
    no      yes       what is computed when the period is over, else the last sample
    yes     either    the sample of a delay ago
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import join
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.history.buffers import Buffers, Past, past, ring, sensor_buffers
from jaxsim.physics.history.read import read


def reported(m: Model, d: Data, computed: Array, place: np.ndarray) -> Array:
    """What the sensors report of what is computed, `[nsensordata, *W]`.

    Args:
      m, d: model and data.
      computed: by the sensors, `[nsensordata, *W]`.
      place: the numbers that were computed just now; the others stay what they are.
    """
    b = sensor_buffers(m)
    delay = take(m.sensor_delay, b.owner)
    late = delay > 0
    history = past(d)
    before = read(b, history, history.now - jnp.where(late, delay, 0))
    waits = take(late | ~is_due(m, history), b.buffer) & column(np.isin(b.number, place), before)
    own = jnp.where(waits, before, take(computed, b.number))
    source = np.arange(m.nsensordata)
    source[b.number] = m.nsensordata + np.arange(len(b.number))
    return take(join([computed, own]), source)


def sampled(m: Model, d: Data, computed: Array, given: Array | None, place: np.ndarray) -> Array:
    """What is sampled if this step is one to sample at, of each number of a sample `[c, *W]`: of a
    sensor that is late what is computed, of another what it reports.

    Args:
      m, d, computed, place: as for `reported`.
      given: what the sensors report, `[nsensordata, *W]`; None: nothing yet.
    """
    b = sensor_buffers(m)
    late = take(take(m.sensor_delay, b.owner) > 0, b.buffer)
    own = take(computed, b.number)
    none = jnp.zeros_like(own)
    new = jnp.where(late, own, none if given is None else take(given, b.number))
    here = np.isin(b.number, place)
    if here.all():
        return new
    before = none if d.readings is None else d.readings
    return take(join([new, before]), np.arange(len(here)) + np.where(here, 0, len(here)))


def is_due(m: Model, past: Past) -> Array:
    """Which sensors with a buffer are sampled now, `[k, *W]` bool.

    A period begins where the one before ended, not at the step that noticed it.
    """
    b: Buffers = sensor_buffers(m)
    period = take(m.sensor_interval[:, 0], b.owner)
    tick = past.at(b.user, b.low)
    return (period <= 0) | (tick + period <= past.now + slack(b, past, period))


def slack(b: Buffers, past: Past, period: Array) -> Array | float:
    """How much before its end a period is over [s]: in single precision some roundings."""
    if past.time_low is not None:
        return ROUNDINGS * jnp.finfo(period.dtype).eps * period
    if past.time.dtype == jnp.float64:
        return 0.0
    return ring(b, past, jnp.broadcast_to(past.time, (len(b.owner), *past.time.shape[1:]))).reach


ROUNDINGS = 8  # of a period as a number and as a sum of steps, since the last that ended at a step
