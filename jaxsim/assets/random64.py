"""The random numbers of MuJoCo's texture marks: Mersenne Twister with 64 bits, seed 42.

M. Matsumoto and T. Nishimura; the constants are those of `std::mt19937_64` in the C++ standard.
"""

from __future__ import annotations

import numpy as np

_SEED = 42
_SIZE, _SHIFT = 312, 156  # words of state, and how far ahead each looks
_LOW = np.uint64(0x7FFFFFFF)  # bits that come from the next word
_HIGH = ~_LOW
_ONE = np.uint64(1)
_TWIST = np.uint64(0xB5026F5AA96619E9)
_GROWTH = 6364136223846793005


def uniform(n: int) -> np.ndarray:
    """The first n numbers of the sequence, in [0, 1), (n,) float64."""
    states = np.empty((-(-n // _SIZE), _SIZE), np.uint64)
    last = _seeded()
    for state in states:
        _advance(last, state)
        last = state
    return _tempered(states.ravel()[:n]) / 2.0**64


def _seeded() -> np.ndarray:
    words = [_SEED]
    for i in range(1, _SIZE):
        last = words[-1]
        words.append((_GROWTH * (last ^ (last >> 62)) + i) % 2**64)
    return np.array(words, np.uint64)


def _advance(old: np.ndarray, new: np.ndarray) -> None:
    """Makes the next state; its later half looks at the earlier one, its last word at its first."""
    twisted = _twisted(old[:-1], old[1:])
    np.bitwise_xor(old[_SHIFT:], twisted[:_SHIFT], out=new[:_SHIFT])
    np.bitwise_xor(new[: _SHIFT - 1], twisted[_SHIFT:], out=new[_SHIFT:-1])
    new[-1:] = new[_SHIFT - 1] ^ _twisted(old[-1:], new[:1])


def _twisted(words: np.ndarray, following: np.ndarray) -> np.ndarray:
    mixed = (words & _HIGH) | (following & _LOW)
    return (mixed >> _ONE) ^ ((mixed & _ONE) * _TWIST)


def _tempered(state: np.ndarray) -> np.ndarray:
    y = state ^ ((state >> np.uint64(29)) & np.uint64(0x5555555555555555))
    y ^= (y << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
    y ^= (y << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
    return y ^ (y >> np.uint64(43))
