"""Symmetric positive definite systems in a kernel of a GPU: A x = b, the matrix in registers.

XLA makes of a factorization and the substitutions some thirty kernels, which write and read each
trailing matrix. Here a warp has a world (arrays/kernel.py): its matrix as one tile, or of a
larger one the upper triangle by small tiles. A is eliminated as L D L' from above; b stands
behind the last column and goes with it. What is below a pivot is by symmetry what is to its right,
so that a row is all that lanes have to tell each other.

The derivative is not made of this: who solves a system says what it is (factor.py).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import (
    WARP,
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

SIDE = 16  # of a tile, where one as wide as a warp does not hold the system
LARGEST = 95  # dofs whose tiles, with b, fit the registers of a warp

Tiles = list[list[Array]]  # row by row, each from the diagonal on


def serves(b: Array) -> bool:
    """Whether the kernel has a form for systems with a right-hand side `[n, *W]`."""
    return b.ndim == 2 and 0 < len(b) <= LARGEST


def side(n: int) -> int:
    """The side of the tiles of a system."""
    return WARP if n < WARP else SIDE


def width(n: int) -> int:
    """The columns that a system takes with its right-hand side: whole tiles."""
    return n + 1 + -(n + 1) % side(n)


def solve_in_kernel(A: Array, b: Array) -> Array:
    """x with A x = b.

    Args:
      A: symmetric positive definite `[n, n, worlds]`, or `[n, n, 1]`.
      b: `[n, worlds]`, of a size that `serves`.

    Returns:
      `[n, worlds]`.
    """
    n, worlds = b.shape
    lanes = lanes_of(n + 1)

    def kernel(given: tuple, made: tuple) -> None:
        (A, b), (x, memory) = given, made
        found = solve(tiles(A, side(n)), vector(b, lanes), n, memory)
        store(x, numbers(lanes), value=found, where=numbers(lanes) < n)

    made = Room((n,), b.dtype), memory(n, b.dtype)
    found: Array = over_worlds(kernel, (padded(A), b), made, worlds)[0]
    return found


class Memory(NamedTuple):
    """What `solve` and `split` write on the way.

    Attributes:
      rows: those of L', with L^-1 b behind them, `[n, width]`.
      vector: `[width]`.
    """

    rows: Any
    vector: Any


def memory(n: int, dtype: Any) -> Memory:
    """The memory that a system needs."""
    rooms = ((n, width(n)), (width(n),))
    return Memory(*(Room(shape, dtype, public=False) for shape in rooms))


def padded(A: Array) -> Beside:
    """Matrices `[n, n, worlds]` world by world, with zeros up to the last tile."""
    spare = width(len(A)) - len(A)
    return beside(jnp.pad(A, ((0, spare), (0, spare), (0, 0))))


def tiles(A: Any, side: int) -> Tiles:
    """The upper triangle of a matrix in memory, as `padded` makes it."""
    inside, number = numbers(side), A.shape[0] // side
    return [
        [load(A, side * i + inside[:, None], side * j + inside[None, :]) for j in range(i, number)]
        for i in range(number)
    ]


def split(a: Array, memory: Memory, side: int) -> list[Array]:
    """A vector `[lanes]` by the rows of tiles."""
    place, end = numbers(len(a)), memory.vector.shape[0]
    if end == side:
        return [a]
    settle()  # nobody reads the one before
    store(memory.vector, place, value=a, where=None if len(a) == end else place < end)
    settle()
    return [part(memory.vector, i, side) for i in range(end // side)]


def part(ref: Any, i: Array | int, side: int, *row: Array | int) -> Array:
    """Part `i` of a vector in memory, `[side]`, or of a row of an array there."""
    return load(ref, *row, side * i + numbers(side))


def times(A: Any, x: Array, memory: Memory, side: int) -> Array:
    """A x of a matrix in memory, as `padded` makes it, and a vector `[lanes]`."""
    place, end = numbers(len(x)), A.shape[0]
    there = None if len(x) == end else jnp.broadcast_to(place[None, :] < end, (side, len(x)))
    parts = split(x, memory, side)

    def rows(i: Array | int, out: Array) -> Array:
        some = parts[0] if len(parts) == 1 else part(memory.vector, i, side)
        tile = load(A, side * i + numbers(side)[:, None], place[None, :], where=there)
        return out + jnp.sum(tile * some[:, None], axis=0)

    out: Array = loop(len(parts), rows, jnp.zeros_like(x))
    return out


def solve(A: Tiles, b: Array, n: int, memory: Memory) -> Array:
    """x with A x = b.

    Args:
      A: symmetric positive definite in its first `n` rows and columns; zero beyond them.
      b: `[lanes]`.
      n: fewer than the tiles have columns.
      memory: as `memory` asks for.

    Returns:
      `[lanes]`, zero from `n` on.
    """
    side = len(A[0][0])
    place, behind = numbers(len(b)), numbers(side)[None, :] == n % side
    pairs = zip(A, split(b, memory, side), strict=True)
    A = [[*row[:-1], jnp.where(behind, y[:, None], row[-1])] for row, y in pairs]
    for i in range(len(A)):
        A = _eliminate(A, side * i, min(side, n - side * i), memory.rows)
    settle()

    def back(turn: Array, x: Array) -> Array:
        k = n - 1 - turn
        row = load(memory.rows, k, place, where=(place > k) & (place <= n))
        return jnp.where(place == k, -total(row * x), x)

    # a row of L' times this is what x is less of: b counts the other way round
    start = jnp.where(place == n, -1, 0).astype(b.dtype)
    return jnp.where(place < n, loop(n, back, start), 0)


def _eliminate(A: Tiles, first: int, count: int, rows: Any) -> Tiles:
    """The tiles that are left when the first row of tiles has been eliminated.

    Args:
      A: rows of tiles from that one on.
      first: the number of its first pivot.
      count: its pivots.
      rows: as in `Memory`.
    """
    side = len(A[0][0])
    inside = numbers(side)

    def pivot(k: Array, A: Tiles) -> Tiles:
        row = [jnp.sum(jnp.where(inside[:, None] == k, tile, 0), axis=0) for tile in A[0]]
        inverse = 1 / pick(row[0], k)
        scaled = [a * inverse for a in row]
        for j, a in enumerate(scaled):
            store(rows, first + k, first + side * j + inside, value=a)
        below = [jnp.where(inside > k, row[0], 0), *row[1:]]
        return [
            [tile - below[p][:, None] * scaled[q][None, :] for q, tile in enumerate(tiles, p)]
            for p, tiles in enumerate(A)
        ]

    return loop(count, pivot, A)[1:] if count > 0 else A[1:]
