"""Clock of a world: `time`, and in single precision its low part.

A running sum of time steps in single precision is a quarter of a step off after a quarter of an
hour. There the clock is two numbers, `time + time_low`, the second below half a unit of the first:
a compensated sum (math/exact.py), exact to 48 bits. In double precision `time_low` is None and
`time` is MuJoCo's running sum. Times of samples in `history` have their low parts in `history_low`.

Setting `time` sets the clock: `d.replace(time=t)` makes `time_low` zero (model/data.py).
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.math import exact
from jaxsim.model.data import Data
from jaxsim.model.shaped import Float

_Array = jax.Array


def clock_low(d: Data) -> _Array | None:
    """Return the low part of `d.time` [s]; None in double precision.

    A stored low part above half a unit of `time` belongs to an overwritten time, and is ignored.
    """
    if d.time_low is None:
        return None
    # A low part above half a unit does not belong to this time.
    most = jnp.finfo(d.time.dtype).eps * jnp.abs(d.time)
    return jnp.where(jnp.abs(d.time_low) <= most, d.time_low, 0)


def advance_clock(d: Data, dt: _Array) -> dict[str, Any]:
    """Return the fields of the clock after `dt` [s], for `d.replace`."""
    of_now = clock_low(d)
    if of_now is None:
        return {"time": d.time + dt}
    # Compensated sum.
    dt = jnp.broadcast_to(jnp.asarray(dt, d.time.dtype), d.time.shape)
    time, rest = exact.add(d.time, of_now, dt)
    return {"time": time, "time_low": rest}


def elapsed_time(d: Data, time: _Array, time_low: _Array | None) -> _Array:
    """Return the time elapsed since a clock had `time` and `time_low` [s]."""
    of_now, passed = clock_low(d), d.time - time
    return passed if of_now is None or time_low is None else passed + (of_now - time_low)


def phase(d: Data, rate: float) -> Float[jax.Array, "*batch"]:
    """Return the fraction of a cycle of a periodic signal of some rate, in [0, 1).

    Precise after any time, in single precision too, where `rate * d.time` is not: after an hour it
    would be off by a part in a thousand of a cycle.

    Args:
      d: one world, or many.
      rate: cycles in a second [Hz].

    Example:
      >>> round(float(phase(d.replace(time=jnp.asarray(20000.3)), 2.5)), 3)
      0.75
    """
    of_now = clock_low(d)
    return (rate * d.time) % 1.0 if of_now is None else exact.cycle_fraction(d.time, of_now, rate)
