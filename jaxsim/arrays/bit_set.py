"""Sets of numbers below 64 as two words of bits, for loops over few members of a fixed range.

A loop that pops one member after the other costs time by members; one that tests all numbers costs
time by the range. `x & (x - 1)` clears the lowest bit of a word, `clz` finds its number: H. Warren,
Hacker's Delight, 2nd edition, 2-1 and 5-4.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array


class BitSet(NamedTuple):
    """A set of numbers below 64, as two words of 32 bits."""

    low: Array
    high: Array


def bit_set(flags: Array) -> BitSet:
    """Return the set of the true rows of `[k, 1]`."""
    bit = (np.uint32(1) << np.arange(64, dtype=np.uint32) % 32)[: len(flags), None]
    words = jnp.where(flags, bit, np.uint32(0))
    low, high = words[:32], words[32:]
    return BitSet(jnp.sum(low, dtype=jnp.uint32), jnp.sum(high, dtype=jnp.uint32))


def is_empty(s: BitSet) -> Array:
    """Return whether a set has no members."""
    return (s.low | s.high) == 0


def pop_first(s: BitSet) -> tuple[Array, BitSet]:
    """Return the smallest member of a set, and the set without it."""
    in_low = s.low != 0
    word = jnp.where(in_low, s.low, s.high)
    rest = word & (word - 1)
    last_bit = word ^ rest
    place = (31 - lax.clz(last_bit)).astype(jnp.int32)
    left = BitSet(jnp.where(in_low, rest, s.low), jnp.where(in_low, s.high, rest))
    return jnp.where(in_low, place, 32 + place), left


def count_members(s: BitSet) -> Array:
    """Return the number of members of a set."""
    return lax.population_count(s.low) + lax.population_count(s.high)
