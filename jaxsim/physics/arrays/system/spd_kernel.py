"""Symmetric positive definite systems in a kernel of a GPU: A x = b, the matrix in registers.

XLA makes of a factorization and the substitutions some thirty kernels, which write and read each
trailing matrix. Here a warp has a world (arrays/kernel.py), and a lane a column of its matrix. A is
eliminated as L D L' from above; b stands behind the last column and goes with it. What is below a
pivot is by symmetry what is to its right, so that a row is all that lanes have to tell each other.

The derivative is not made of this: who solves a system says what it is (factor.py).
"""

from typing import Any

import jax.numpy as jnp

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import (
    Beside,
    Room,
    beside,
    lanes_of,
    load,
    loop,
    numbers,
    over_worlds,
    pick,
    settle,
    store,
    total,
    vector,
)

LARGEST = 127  # dofs whose matrix, with b, fits the registers of a program


def serves(b: Array) -> bool:
    """Whether the kernel has a form for systems with a right-hand side `[n, *W]`."""
    return b.ndim == 2 and 0 < len(b) <= LARGEST


def side(n: int) -> int:
    """The side of the tile of a system."""
    return lanes_of(n + 1)


def solve_in_kernel(A: Array, b: Array) -> Array:
    """x with A x = b.

    Args:
      A: symmetric positive definite `[n, n, worlds]`, or `[n, n, 1]`.
      b: `[n, worlds]`, of a size that `serves`.

    Returns:
      `[n, worlds]`.
    """
    n, worlds = b.shape
    lanes = side(n)

    def kernel(given: tuple, made: tuple) -> None:
        (A, b), (x, rows) = given, made
        found = solve(A[...], vector(b, lanes), n, rows)
        store(x, numbers(lanes), value=found, where=numbers(lanes) < n)

    made = Room((n,), b.dtype), memory(n, b.dtype)
    found: Array = over_worlds(kernel, (tile(A), b), made, worlds, lanes)[0]
    return found


def memory(n: int, dtype: Any) -> Room:
    """What `solve` writes on the way."""
    lanes = side(n)
    return Room((lanes, lanes), dtype, public=False)


def tile(A: Array) -> Beside:
    """Matrices `[n, n, worlds]` world by world, with zeros up to the side of a tile."""
    spare = side(len(A)) - len(A)
    return beside(jnp.pad(A, ((0, spare), (0, spare), (0, 0))))


def solve(A: Array, b: Array, n: int, rows: Any) -> Array:
    """x with A x = b.

    Args:
      A: a tile `[lanes, lanes]`, symmetric positive definite in its first `n` rows and columns;
        zero beyond them.
      b: `[lanes]`.
      n: fewer than there are lanes.
      rows: memory for the rows of L', as `memory` asks for.

    Returns:
      `[lanes]`, zero from `n` on.
    """
    lanes = len(b)
    place = numbers(lanes)
    A = jnp.where(place[None, :] == n, b[:, None], A)
    # row of a pivot times this is what x is less of: b counts the other way round
    start = jnp.where(place == n, -1, 0).astype(b.dtype)

    def eliminate(k: Array, A: Array) -> Array:
        row = jnp.sum(jnp.where(place[:, None] == k, A, 0), axis=0)
        scaled = row / pick(row, k)
        store(rows, k, place, value=scaled)
        below = jnp.where(place > k, row, 0)
        return A - below[:, None] * scaled[None, :]

    settle()  # nobody reads the rows of a system before
    loop(n, eliminate, A)
    settle()

    def back(turn: Array, x: Array) -> Array:
        k = n - 1 - turn
        return jnp.where(place == k, -total(load(rows, k, place) * x), x)

    return jnp.where(place < n, loop(n, back, start), 0)
