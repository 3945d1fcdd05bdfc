"""Visiting order of the dual solver's sweeps: MuJoCo's, shuffled before each sweep.

MuJoCo shuffles the rows of each island by the Fisher-Yates algorithm with the generator PCG32
(O'Neill, *PCG: A family of simple fast space-efficient statistically good algorithms for random
number generation*, 2014) from a fixed seed. The result of a few sweeps depends on the order;
therefore it is reproduced exactly. The 64-bit state is two 32-bit halves, because JAX has no 64-bit
integers by default.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, running_sum
from jaxsim.transforms.platform import platform

_LCG_MULTIPLIER = 6364136223846793005  # multiplier of PCG32's linear congruential generator
_UINT32_MASK = 0xFFFFFFFF


class Order(NamedTuple):
    """Order of a sweep, and the states of the generators.

    Attributes:
      items: `[n, *W]`: ids of the rows, island after island; arbitrary past the last active one.
      begin, size: `[nisland, *W]`: address of each island's first item, and number of its items.
      high, low: uint32 `[nisland, *W]`: halves of the generator states.
    """

    items: jax.Array
    begin: jax.Array
    size: jax.Array
    high: jax.Array
    low: jax.Array

    @property
    def used(self) -> Array:
        """Return the number of active items, `[1, *W]`."""
        return jnp.sum(self.size, axis=0, keepdims=True, dtype=jnp.int32)


def active_items_in_order(active: Array, island: Array, count: int) -> Order:
    """Return the active items of each island in order, before the first shuffle.

    Args:
      active: `[n, *W]` bool.
      island: island of each item, int `[n, *W]`.
      count: maximum number of islands.
    """
    n = len(active)
    # A stable sort by island id puts inactive items last.
    place = jnp.broadcast_to(column(np.arange(n, dtype=np.int32), active), active.shape)
    key = jnp.where(active, island, np.int32(count))
    items = lax.sort((key, place), dimension=0, num_keys=1, is_stable=True)[1]
    number = column(np.arange(count, dtype=np.int32), active)[:, None]
    size = jnp.sum(key[None] == number, axis=1, dtype=jnp.int32)
    begin = running_sum(size) - size
    zero = jnp.zeros(size.shape, jnp.uint32)
    return Order(items, begin, size, *_advance_pcg32(zero, zero)[:2])


def shuffle_order(order: Order) -> Order:
    """Shuffle by Fisher-Yates: swap item i, from the last to the second, with a random j <= i."""
    n = len(order.items)

    def swap(turn: Array, order: Order) -> Order:
        items, begin, size, high, low = order
        i = n - 1 - turn
        # All islands swap at once; those with fewer items wait (`here`) and keep their generator.
        here = i < size
        # Random index in [0, i], from the generator of each island.
        new_high, new_low, number = _advance_pcg32(high, low)
        other = (number % (i + 1).astype(jnp.uint32)).astype(jnp.int32)
        at = jnp.where(here, begin + i, n), jnp.where(here, begin + other, n)
        one, two = (gather(items, jnp.minimum(k, n - 1)) for k in at)
        items = _scatter_values(_scatter_values(items, at[0], two), at[1], one)
        return Order(
            items, begin, size, jnp.where(here, new_high, high), jnp.where(here, new_low, low)
        )

    # Iterate i from the largest island size downward.
    if not platform().branches:
        return lax.fori_loop(0, n - 1, swap, order)
    most = jnp.max(order.size)
    return lax.fori_loop(n - most, n - 1, swap, order)


def _scatter_values(items: Array, at: Array, values: Array) -> Array:
    """Scatter values at indices `[k, *W]` of each world's own; those past the end are dropped."""
    if items.ndim == 1:
        return items.at[at].set(values, mode="drop")
    return items.at[at, jnp.arange(items.shape[1])].set(values, mode="drop")


def _advance_pcg32(high: Array, low: Array) -> tuple[Array, Array, Array]:
    """Advance the PCG32 state; return it and the random number of the previous state."""
    # state * _LCG_MULTIPLIER + 1 in 64-bit arithmetic on two halves.
    factor_high, factor_low = (
        np.uint32(_LCG_MULTIPLIER >> 32),
        np.uint32(_LCG_MULTIPLIER & _UINT32_MASK),
    )
    carry, new_low = _multiply_32_bit(low, factor_low)
    new_high = carry + high * factor_low + low * factor_high
    new_low = new_low + np.uint32(1)
    new_high = new_high + (new_low == 0).astype(jnp.uint32)
    # Output permutation XSH-RR: ((s >> 18) ^ s) >> 27, rotated right by the top five bits.
    mixed_high = high ^ (high >> 18)
    mixed_low = low ^ ((low >> 18) | (high << 14))
    number = (mixed_low >> 27) | (mixed_high << 5)
    turn = high >> 27
    back = (np.uint32(32) - turn) & np.uint32(31)
    return new_high, new_low, (number >> turn) | (number << back)


def _multiply_32_bit(a: Array, b: np.uint32) -> tuple[Array, Array]:
    """Multiply two 32-bit numbers; returns both halves of the product."""
    # Schoolbook multiplication on 16-bit digits.
    half = np.uint32(0xFFFF)
    a0, a1, b0, b1 = a & half, a >> 16, b & half, b >> np.uint32(16)
    middle = ((a0 * b0) >> 16) + ((a0 * b1) & half) + ((a1 * b0) & half)
    return a1 * b1 + ((a0 * b1) >> 16) + ((a1 * b0) >> 16) + (middle >> 16), a * b
