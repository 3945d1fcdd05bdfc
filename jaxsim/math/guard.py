"""Functions that are singular at a point, made differentiable there with derivative zero.

The argument is replaced before the function, not the result after it: `where` alone would multiply
an infinite derivative by zero and return NaN in reverse mode. NaN arguments stay NaN, to be
noticed.
"""

import jax.numpy as jnp


def safe_sqrt(x):
    """Compute sqrt(x) for x >= 0 elementwise, with derivative 0 at x = 0."""
    none = x <= 0
    return jnp.where(none, 0.0, jnp.sqrt(jnp.where(none, 1.0, x)))


def safe_divide(a, b):
    """Compute a / b elementwise, and 0 where b is 0."""
    zero = b == 0
    return jnp.where(zero, 0.0, a / jnp.where(zero, 1.0, b))


def safe_atan2(y, x):
    """Compute atan2(y, x) elementwise, with derivative 0 at the origin."""
    origin = (y == 0) & (x == 0)
    return jnp.where(origin, 0.0, jnp.arctan2(y, jnp.where(origin, 1.0, x)))


def safe_arccos(x):
    """Compute arccos(x) elementwise, with x clamped to [-1, 1], and derivative 0 at the ends."""
    outside = jnp.abs(x) >= 1
    end = jnp.where(x > 0, 0.0, jnp.pi)
    return jnp.where(outside, end, jnp.arccos(jnp.where(outside, 0.0, x)))
