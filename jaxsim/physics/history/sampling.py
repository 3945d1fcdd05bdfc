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
from jaxsim.physics.arrays.select import take
from jaxsim.physics.history.buffers import Buffers, ring, sensor_buffers
from jaxsim.physics.history.read import read


def reported(m: Model, d: Data, computed: Array) -> Array:
    """What the sensors report of what is computed, `[nsensordata, *W]` each."""
    b = sensor_buffers(m)
    delay = take(m.sensor_delay, b.owner)
    late = delay > 0
    past = read(b, d.history, d.time - jnp.where(late, delay, 0))
    waits = late | ~is_due(m, d)
    own = jnp.where(take(waits, b.buffer), past, take(computed, b.number))
    source = np.arange(m.nsensordata)
    source[b.number] = m.nsensordata + np.arange(len(b.number))
    return take(join([computed, own]), source)


def is_due(m: Model, d: Data) -> Array:
    """Which sensors with a buffer are sampled now, `[k, *W]` bool.

    A period begins where the one before ended, not at the step that noticed it.
    """
    b: Buffers = sensor_buffers(m)
    period = take(m.sensor_interval[:, 0], b.owner)
    tick = take(d.history, b.user)
    time = jnp.broadcast_to(d.time, tick.shape)
    slack = 0 if time.dtype == jnp.float64 else ring(b, d.history, time).reach
    return (period <= 0) | (tick + period <= time + slack)
