"""Scalar functions: a smooth step, a damped spring, a low-discrepancy sequence."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import safe_sqrt


def sigmoid(x: Array) -> Array:
    """Return a C^2 step from 0 at x <= 0 to 1 at x >= 1: 6 x^5 - 15 x^4 + 10 x^3."""
    x = jnp.clip(jnp.asarray(x), 0, 1)
    return x * x * x * (10 + x * (6 * x - 15))


def halton(index: Array, base: int) -> Array:
    """Return an element of Halton's sequence, in (0, 1) (Halton, Numerische Mathematik 2, 1960).

    The radical inverse: the digits of the index in a base, reversed behind the radix point.

    Args:
      index: of any shape, int, not negative.
      base: a prime, at least 2. Known when traced.

    Returns:
      As `index`, in JAX's default precision.
    """
    if base < 2:
        raise ValueError(f"halton: base: expected at least 2, got {base}")
    rest = jnp.asarray(index)
    digits = int(np.ceil(np.log(float(np.iinfo(rest.dtype).max)) / np.log(base)))
    out = jnp.zeros(rest.shape, jnp.result_type(float))
    for k in range(digits):
        out = out + (rest % base).astype(out.dtype) / float(base) ** (k + 1)
        rest = rest // base
    return out


def spring_damper(pos0: Array, vel0: Array, Kp: Array, Kv: Array, dt: Array) -> Array:
    """Return the position of a damped spring after a time: x'' = -Kp x - Kv x', solved exactly.

    Elementwise. The underdamped, overdamped and critical solutions are one formula with s(t) =
    sin(w t)/w, sinh(w t)/w or t.

    Args:
      pos0: position at the start, ().
      vel0: velocity at the start, ().
      Kp: stiffness, () [1/s^2].
      Kv: damping, () [1/s].
      dt: the time, () [s].
    """
    pos0, vel0, Kp, Kv, dt = map(jnp.asarray, (pos0, vel0, Kp, Kv, dt))
    square = Kp - Kv * Kv / 4
    swings, creeps = square > MINVAL, square < -MINVAL
    w = safe_sqrt(jnp.abs(square))
    even = jnp.where(swings, jnp.cos(w * dt), jnp.where(creeps, jnp.cosh(w * dt), 1))
    safe = jnp.where(swings | creeps, w, 1)
    odd = jnp.where(swings, jnp.sin(w * dt) / safe, jnp.where(creeps, jnp.sinh(w * dt) / safe, dt))
    return jnp.exp(-Kv * dt / 2) * (pos0 * even + (vel0 + pos0 * Kv / 2) * odd)
