"""The history of a world that begins: samples of zero, at the times at which there would be some.

MuJoCo's documentation, Modeling: Delays, Initialization. The samples of n steps (of n periods for a
sensor with an interval, at the first step that is not before it) end one step before time zero; the
phase says when a sensor was sampled last, and zero that the first step will do it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived


def start_history(m: Model) -> jax.Array:
    """Return `history` at the start: its times and cursors."""
    table = _numbers(m)
    h = m.opt.timestep if m.opt.timestep.ndim else m.opt.timestep[None]

    def of(numbers: np.ndarray) -> np.ndarray:
        return numbers.reshape(-1, *(1,) * (h.ndim - 1))

    out = jnp.where(of(table.is_time), -(of(table.back) * h), of(table.cursor))
    is_sensor = of(table.sensor >= 0)
    if is_sensor.any():
        period, phase = (m.sensor_interval[np.maximum(table.sensor, 0), k] for k in range(2))
        last = jnp.where(phase == 0, -period, phase)
        steps = _sampled(last, period, h, of(table.back - 1))
        sampled = is_sensor & of(table.is_time) & (period > 0)
        out = jnp.where(sampled, steps * h, out)
        user = is_sensor & of(table.is_user)
        out = jnp.where(user, jnp.where(period > 0, last, -h), out)
    return out.astype(h.dtype)


def _sampled(last: jax.Array, period: jax.Array, h: jax.Array, back: np.ndarray) -> jax.Array:
    """Return the steps at which a sensor with an interval was sampled, `back` samples before the
    last.

    The first that is not before its time; a period that is shorter than a step is one step. What is
    due at time zero was sampled before.
    """
    precise = 1e-12 if h.dtype == jnp.float64 else 8 * float(jnp.finfo(h.dtype).eps)

    def step(time: jax.Array) -> jax.Array:
        exact = time / h
        return jnp.ceil(exact - precise * jnp.abs(exact))

    newest = jnp.where(last + period <= 0, jnp.minimum(step(last), -1), step(last))
    return jnp.minimum(step(last - back * period), newest - back)


class _Numbers(NamedTuple):
    """What each number of the history is, `[nhistory]`.

    Attributes:
      is_time: the time of a sample.
      is_user: the last tick of a buffer.
      back: of a time: how many samples it is back from time zero.
      cursor: its value if it is a cursor, else 0.
      sensor: the sensor that it is of; -1: of an actuator.
    """

    is_time: np.ndarray
    is_user: np.ndarray
    back: np.ndarray
    cursor: np.ndarray
    sensor: np.ndarray


@derived
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
