"""Compensated sums, and the fraction of a cycle of a product of a time and a rate.

The sum of two numbers and its rounding error are two numbers (TwoSum: D. Knuth, *The Art of
Computer Programming* 2, 4.2.2, theorem B), so that a running sum carried as two numbers has twice
the digits. A compiler that takes floating-point addition for associative would make the error zero;
XLA does not unless requested, and an optimization barrier around the sum prevents its other
simplifications.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# Stored bits of half a significand in single precision: products of halves are exact.
_HALF_SIGNIFICAND_BITS = 11


def two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the rounded sum of two numbers and its rounding error.

    The error has no derivative: the exact sum is differentiated.
    """
    total = lax.optimization_barrier(a + b)
    of_b = lax.optimization_barrier(total - a)
    error = (a - (total - of_b)) + (b - of_b)
    return total, lax.stop_gradient(error)


def add(high: jax.Array, low: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return `high + low + x` as two numbers, the second at most half an ulp of the first."""
    total, error = two_sum(high, x)
    return two_sum(total, low + error)


def cycle_fraction(high: jax.Array, low: jax.Array, rate: float) -> jax.Array:
    """Return the fraction of a cycle, in [0, 1), of `rate * (high + low)` in single precision.

    Factors are split into parts of 12 bits, whose products are exact (Dekker splitting); whole
    cycles of each product are dropped before the summation.

    Args:
      high, low: time as two numbers in single precision, () [s].
      rate: cycles per second [1/s].
    """
    # The time in two parts of at most 12 bits; the rate is divided into three such parts below.
    halves = (
        lax.reduce_precision(high, 8, _HALF_SIGNIFICAND_BITS),
        high - lax.reduce_precision(high, 8, _HALF_SIGNIFICAND_BITS),
    )
    total = low * np.float32(rate)
    rest = float(rate)
    for _ in range(3):
        part = _round_to_half(rest)
        rest -= part
        # Drop whole cycles of each exact product.
        for half in halves:
            x = half * np.float32(part)
            total = total + (x - jnp.floor(x))
    return total - jnp.floor(total)


def _round_to_half(x: float) -> float:
    """Return a number rounded to `_HALF_SIGNIFICAND_BITS` stored bits."""
    fraction, exponent = np.frexp(x)
    return float(
        np.ldexp(
            np.round(np.ldexp(fraction, _HALF_SIGNIFICAND_BITS + 1)),
            exponent - _HALF_SIGNIFICAND_BITS - 1,
        )
    )
