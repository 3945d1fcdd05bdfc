"""Initial history of delayed controls and sensors: samples of zero at the preceding sample times.

MuJoCo's documentation, Modeling: Delays, Initialization. The samples are n steps apart (for a
sensor with an interval, n periods, at the first step not before each period) and end one step
before time zero. The phase of a sensor gives the time of its last sample; phase zero means that the
first step takes a sample.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure


def start_history(m: Model) -> jax.Array:
    """Return the initial `history`: sample times and cursors."""
    table = _numbers(m)
    h = m.opt.timestep if m.opt.timestep.ndim else m.opt.timestep[None]

    def of(numbers: np.ndarray) -> np.ndarray:
        return numbers.reshape(-1, *(1,) * (h.ndim - 1))

    out = jnp.where(of(table.is_time), -(of(table.back) * h), of(table.cursor))
    is_sensor = of(table.sensor >= 0)
    if is_sensor.any():
        period, phase = (m.sensor_interval[np.maximum(table.sensor, 0), k] for k in range(2))
        last = jnp.where(phase == 0, -period, phase)
        steps = _sampled_steps(last, period, h, of(table.back - 1))
        sampled = is_sensor & of(table.is_time) & (period > 0)
        out = jnp.where(sampled, steps * h, out)
        user = is_sensor & of(table.is_user)
        out = jnp.where(user, jnp.where(period > 0, last, -h), out)
    return out.astype(h.dtype)


def _sampled_steps(last: jax.Array, period: jax.Array, h: jax.Array, back: np.ndarray) -> jax.Array:
    """Return the steps at which a sensor with an interval was sampled, `back` samples before the
    last.

    Each is the first step not before the sample time; a period shorter than a step counts as one
    step. A sample due at time zero counts as taken.
    """
    precise = 1e-12 if h.dtype == jnp.float64 else 8 * float(jnp.finfo(h.dtype).eps)

    def step(time: jax.Array) -> jax.Array:
        exact = time / h
        return jnp.ceil(exact - precise * jnp.abs(exact))

    newest = jnp.where(last + period <= 0, jnp.minimum(step(last), -1), step(last))
    return jnp.minimum(step(last - back * period), newest - back)


class _Numbers(NamedTuple):
    """Meaning of each entry of the history, `[nhistory]`.

    Attributes:
      is_time: the entry is the time of a sample.
      is_user: the entry is the last tick of a buffer.
      back: number of samples before time zero, for a time.
      cursor: initial value of a cursor, otherwise 0.
      sensor: id of its sensor; -1 for an actuator.
    """

    is_time: np.ndarray
    is_user: np.ndarray
    back: np.ndarray
    cursor: np.ndarray
    sensor: np.ndarray


@cache_by_structure
def _numbers(s: Structure) -> _Numbers:
    none = np.zeros(s.nhistory)
    out = _Numbers(none > 0, none > 0, none.copy(), none.copy(), np.full(s.nhistory, -1))
    for kind in ("actuator", "sensor"):
        addresses, history = getattr(s, f"{kind}_historyadr"), getattr(s, f"{kind}_history")
        for owner in np.flatnonzero(addresses >= 0):
            first, size = addresses[owner], history[owner, 0]
            times = first + 2 + np.arange(size)
            out.is_user[first] = True
            out.cursor[first + 1] = size - 1
            out.is_time[times] = True
            out.back[times] = size - np.arange(size)
            if kind == "sensor":
                out.sensor[first : times[-1] + 1] = owner
    return out
