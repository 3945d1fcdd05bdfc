"""The random numbers of MuJoCo's texture marks: Mersenne Twister with 64 bits, seed 42.

M. Matsumoto and T. Nishimura; the constants are those of `std::mt19937_64` in the C++ standard.
"""

from __future__ import annotations

import numpy as np

_SEED = 42
_SIZE, _SHIFT = 312, 156  # words of state, and how far ahead each looks
_LOW = np.uint64(0x7FFFFFFF)  # bits that come from the next word
_TWIST = np.uint64(0xB5026F5AA96619E9)
_GROWTH = 6364136223846793005


def uniform(n: int) -> np.ndarray:
    """The first n numbers of the sequence, in [0, 1), (n,) float64."""
    state = _seeded()
    blocks = []
    for _ in range(0, n, _SIZE):
        _advance(state)
        blocks.append(_tempered(state))
    return np.concatenate([np.zeros(0, np.uint64), *blocks])[:n] / 2.0**64


def _seeded() -> np.ndarray:
    words = [_SEED]
    for i in range(1, _SIZE):
        last = words[-1]
        words.append((_GROWTH * (last ^ (last >> 62)) + i) % 2**64)
    return np.array(words, np.uint64)


def _advance(state: np.ndarray) -> None:
    """Replaces all words of the state; the later half looks at the new words of the earlier."""
    half = _SIZE - _SHIFT
    for part, ahead in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
        following = np.roll(state, -1)[part]
        mixed = (state[part] & ~_LOW) | (following & _LOW)
        twisted = np.where(mixed & np.uint64(1), _TWIST, np.uint64(0))
        state[part] = state[ahead] ^ (mixed >> np.uint64(1)) ^ twisted


def _tempered(state: np.ndarray) -> np.ndarray:
    y = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    y ^= (y << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    y ^= (y << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return y ^ (y >> np.uint64(43))
