"""The random numbers of MuJoCo's texture marks: 64-bit Mersenne Twister, seed 42.

M. Matsumoto and T. Nishimura; the constants are those of `std::mt19937_64` in the C++ standard. The
recurrence

    x[k + 312] = x[k + 156] ^ twisted(x[k], x[k + 1])

yields 156 words at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_SEED = 42
_SIZE, _SHIFT = 312, 156  # words of state, and the offset of the recurrence
_LOW = np.uint64(0x7FFFFFFF)  # bits taken from the next word
_HIGH = ~_LOW
_ONE = np.uint64(1)
_TWIST = np.uint64(0xB5026F5AA96619E9)
_GROWTH = 6364136223846793005
_BLOCK = 52 * _SHIFT  # words generated together, so that they stay in the cache


def uniform(n: int) -> Iterator[np.ndarray]:
    """Yield the first n numbers of the sequence, in [0, 1), float64, in blocks."""
    words = np.empty(_SIZE + _BLOCK, np.uint64)
    words[_BLOCK:] = _seed_state()
    for start in range(0, n, _BLOCK):
        words[:_SIZE] = words[_BLOCK:]
        for k in range(0, _BLOCK, _SHIFT):
            a, b, c = (words[i : i + _SHIFT] for i in (k, k + 1, k + _SHIFT))
            np.bitwise_xor(c, _twist_words(a, b), out=words[k + _SIZE : k + _SIZE + _SHIFT])
        yield _temper_words(words[_SIZE:])[: n - start] / 2.0**64


def _seed_state() -> np.ndarray:
    words = [_SEED]
    for i in range(1, _SIZE):
        last = words[-1]
        words.append((_GROWTH * (last ^ (last >> 62)) + i) % 2**64)
    return np.array(words, np.uint64)


def _twist_words(words: np.ndarray, following: np.ndarray) -> np.ndarray:
    mixed = (words & _HIGH) | (following & _LOW)
    return (mixed >> _ONE) ^ ((mixed & _ONE) * _TWIST)


def _temper_words(state: np.ndarray) -> np.ndarray:
    y = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    y ^= (y << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    y ^= (y << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return y ^ (y >> np.uint64(43))
