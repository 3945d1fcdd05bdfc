"""Symmetric positive definite systems A x = b in a GPU kernel, the matrix in registers.

XLA splits a factorization and its substitutions into some thirty kernels, each of which reads and
writes the trailing matrix in memory. Here one warp solves one world (transforms/pallas.py). The
matrix is held as one tile, or for larger systems as the upper triangle of `kernel_tile_side` x
`kernel_tile_side` tiles. Right-looking A = L D L' from the first row down; b is one more column, so
elimination includes forward substitution. By symmetry the column below a pivot equals the row to
its right, so lanes only exchange a row, through `SystemMemory`. 40 dofs, with b in column 40:

    a b c         column 40 is in c, e and f; columns 41 to 47 are zero
      d e         row 5 of a, b and c is pivot row 5: it is divided by the pivot, stored as row 5
        f         of L', and its outer product is subtracted from all tiles at once

The kernel is not differentiated: its caller defines the implicit derivative (cholesky.py).
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.transforms.pallas import (
    WARP_SIZE,
    Output,
    WorldsFirst,
    broadcast_lane,
    lane_indices,
    lanes_of,
    load,
    loop,
    move_worlds_first,
    run_per_world,
    store,
    sum_lanes,
    synchronize_lanes,
    vector,
)
from jaxsim.transforms.tuning import tuning

Tiles = list[list[Array]]  # rows of tiles of the upper triangle


def tile_side(n: int) -> int:
    """Return the side of the tiles for a system of n dofs."""
    return WARP_SIZE if n < WARP_SIZE else tuning().kernel_tile_side


def padded_width(n: int) -> int:
    """Return the columns of a system with its right-hand side, rounded up to whole tiles."""
    return n + 1 + -(n + 1) % tile_side(n)


def solve_in_kernel(A: Array, b: Array) -> Array:
    """Solve A x = b, one world per warp.

    Args:
      A: symmetric positive definite `[n, n, worlds]`, or `[n, n, 1]`.
      b: `[n, worlds]`, with n at most `max_kernel_dofs`.

    Returns:
      x, `[n, worlds]`.
    """
    n, worlds = b.shape
    lanes = lanes_of(n + 1)

    def kernel(given: tuple, made: tuple) -> None:
        (A, b), (x, memory) = given, made
        found = solve_padded(load_tiles(A, tile_side(n)), vector(b, lanes), n, memory)
        store(x, lane_indices(lanes), value=found, where=lane_indices(lanes) < n)

    made = Output((n,), b.dtype), system_memory(n, b.dtype)
    found: Array = run_per_world(kernel, (pad_systems(A), b), made, worlds)[0]
    return found


class SystemMemory(NamedTuple):
    """Scratch memory of `solve_padded` and `distribute_rows`.

    Attributes:
      rows: rows of L', followed by L^-1 b, `[n, width]`.
      vector: `[width]`.
    """

    rows: Any
    vector: Any


def system_memory(n: int, dtype: Any) -> SystemMemory:
    """Return the scratch memory that a system needs."""
    shapes = ((n, padded_width(n)), (padded_width(n),))
    return SystemMemory(*(Output(shape, dtype, public=False) for shape in shapes))


def pad_systems(A: Array) -> WorldsFirst:
    """Store matrices `[n, n, worlds]` world by world, padded with zeros to whole tiles."""
    spare = padded_width(len(A)) - len(A)
    return move_worlds_first(jnp.pad(A, ((0, spare), (0, spare), (0, 0))))


def load_tiles(A: Any, side: int) -> Tiles:
    """Load the upper triangle of a `pad_systems` matrix from memory."""
    inside, number = lane_indices(side), A.shape[0] // side
    return [
        [load(A, side * i + inside[:, None], side * j + inside[None, :]) for j in range(i, number)]
        for i in range(number)
    ]


def distribute_rows(a: Array, memory: SystemMemory, side: int) -> list[Array]:
    """Distribute a vector `[lanes]` over the rows of tiles."""
    place, end = lane_indices(len(a)), memory.vector.shape[0]
    if end == side:
        return [a]
    synchronize_lanes()  # all lanes have read the previous vector
    store(memory.vector, place, value=a, where=None if len(a) == end else place < end)
    synchronize_lanes()
    return [load_part(memory.vector, i, side) for i in range(end // side)]


def load_part(ref: Any, i: Array | int, side: int, *row: Array | int) -> Array:
    """Load part `i` of a vector in memory, `[side]`, or of a row of an array there."""
    return load(ref, *row, side * i + lane_indices(side))


def multiply_padded(A: Any, x: Array, memory: SystemMemory, side: int) -> Array:
    """Return A x of a `pad_systems` matrix in memory and a vector `[lanes]`."""
    place, end = lane_indices(len(x)), A.shape[0]
    there = None if len(x) == end else jnp.broadcast_to(place[None, :] < end, (side, len(x)))
    # A is symmetric: A x is the sum of tile' x_part over the rows of tiles.
    parts = distribute_rows(x, memory, side)

    def rows(i: Array | int, out: Array) -> Array:
        some = parts[0] if len(parts) == 1 else load_part(memory.vector, i, side)
        tile = load(A, side * i + lane_indices(side)[:, None], place[None, :], where=there)
        return out + jnp.sum(tile * some[:, None], axis=0)

    out: Array = loop(len(parts), rows, jnp.zeros_like(x))
    return out


def solve_padded(A: Tiles, b: Array, n: int, memory: SystemMemory) -> Array:
    """Solve A x = b within a kernel.

    Args:
      A: symmetric positive definite in its first `n` rows and columns; zero beyond them.
      b: `[lanes]`.
      n: smaller than the number of columns of the tiles.
      memory: scratch memory, as `system_memory` defines it.

    Returns:
      x, `[lanes]`, zero from `n` on.
    """
    # Put b into column n, then eliminate one row of tiles after another.
    side = len(A[0][0])
    place, behind = lane_indices(len(b)), lane_indices(side)[None, :] == n % side
    pairs = zip(A, distribute_rows(b, memory, side), strict=True)
    A = [[*row[:-1], jnp.where(behind, y[:, None], row[-1])] for row, y in pairs]
    for i in range(len(A)):
        A = _eliminate(A, side * i, min(side, n - side * i), memory.rows)
    synchronize_lanes()

    def back(iteration: Array, x: Array) -> Array:
        """Solve for unknown k: back substitution with row k of L'."""
        k = n - 1 - iteration
        row = load(memory.rows, k, place, where=(place > k) & (place <= n))
        return jnp.where(place == k, -sum_lanes(row * x), x)

    # x starts with -1 in entry n, so that a row of L' times x subtracts b with the right sign.
    start = jnp.where(place == n, -1, 0).astype(b.dtype)
    return jnp.where(place < n, loop(n, back, start), 0)


def _eliminate(A: Tiles, first: int, count: int, rows: Any) -> Tiles:
    """Eliminate the first row of tiles and return the remaining rows.

    Args:
      A: rows of tiles, from that one on.
      first: index of its first pivot.
      count: number of its pivots.
      rows: as in `SystemMemory`.
    """
    side = len(A[0][0])
    inside = lane_indices(side)

    def pivot(k: Array, A: Tiles) -> Tiles:
        """Eliminate pivot k: store its row of L' and subtract its outer product from all tiles."""
        # Row k of the pivot tiles.
        row = [jnp.sum(jnp.where(inside[:, None] == k, tile, 0), axis=0) for tile in A[0]]
        # Divide by the pivot and store row k of L'.
        inverse = 1 / broadcast_lane(row[0], k)
        scaled = [a * inverse for a in row]
        for j, a in enumerate(scaled):
            store(rows, first + k, first + side * j + inside, value=a)
        # Rank-1 update of the remaining rows; column entries equal row entries by symmetry.
        below = [jnp.where(inside > k, row[0], 0), *row[1:]]
        return [
            [tile - below[p][:, None] * scaled[q][None, :] for q, tile in enumerate(tiles, p)]
            for p, tiles in enumerate(A)
        ]

    return loop(count, pivot, A)[1:] if count > 0 else A[1:]
