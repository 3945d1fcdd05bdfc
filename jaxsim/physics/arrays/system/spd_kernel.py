"""Symmetric positive definite systems as one kernel of a GPU: A x = b.

XLA makes of a factorization and the substitutions some thirty kernels, which write and read each
trailing matrix. Here a lane of the GPU is a world (arrays/kernel.py), and one kernel goes through
blocks of three rows and columns in loops: each entry of the matrix is asked for once, has the
products of the factor taken off, and is written once, as the entry of the factor. A factor of 27
dofs is 3 kB, which the cache of the processor holds for its worlds. Loops instead of written-out
panels keep the program as short for 72 dofs as for 6.

The derivative is not made of this: who solves a system says what it is (factor.py).
"""

from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import LANES, loop, over_lanes, read, room

SIDE = 3  # rows and columns taken together; their products stay in registers


class Blocks(Protocol):
    """A symmetric matrix whose blocks are made when they are asked for.

    Attributes:
      size: the number of its rows; beyond them it is the identity.
    """

    @property
    def size(self) -> int:
        """As above."""

    def block(self, i: Array, j: Array) -> list[list[Array]]:
        """Entries of rows `SIDE i ...` and columns `SIDE j ...`, nested lists of `[LANES]`."""


def solve_in_kernel(A: Array, b: Array) -> Array:
    """x with A x = b.

    Args:
      A: symmetric positive definite `[n, n, worlds]`, or `[n, n, 1]`.
      b: `[n, worlds]`, of a size that arrays/kernel.py can take.

    Returns:
      `[n, worlds]`.
    """
    n, worlds = b.shape
    made = room((padded(n),), b), room((padded(n), padded(n)), b)

    def kernel(given: tuple, made: tuple) -> None:
        solve(Given(given[0], n), given[1], *made)

    x, _ = over_lanes(kernel, (A, b), made, worlds)
    return x[:n]


def padded(n: int) -> int:
    """The number of rows with which blocks are full."""
    return n + -n % SIDE


def places(block: Array) -> list[Array]:
    """The rows of a block."""
    return [SIDE * block + k for k in range(SIDE)]


class Given(NamedTuple):
    """A matrix in memory `[size, size, worlds]`."""

    matrix: Any
    size: int

    def block(self, i: Array, j: Array) -> list[list[Array]]:
        """As `Blocks.block`."""
        return [[self.entry(r, c) for c in places(j)] for r in places(i)]

    def entry(self, r: Array, c: Array) -> Array:
        """One number of the matrix, of the identity beyond it."""
        inside = (r < self.size) & (c < self.size)
        value = read(self.matrix, within(r, self.size), within(c, self.size))
        value = jnp.broadcast_to(value, (LANES,))
        return jnp.where(inside, value, (r == c).astype(value.dtype))


def within(r: Array, size: int) -> Array:
    """A row that there is."""
    return jnp.minimum(r, jnp.int32(size - 1))


def solve(A: Blocks, b: Any, x: Any, L: Any) -> None:
    """Left-looking Cholesky by blocks, forward substitution with it, and back substitution.

    Args:
      A: the matrix.
      b: right-hand side in memory, `[size, worlds]`.
      x: memory for the solution, `[padded(size), worlds]`; it holds L^-1 b on the way.
      L: memory for the factor, `[padded(size), padded(size), worlds]`, with the inverses of the
        pivots on its diagonal.
    """
    blocks = jnp.int32(padded(A.size) // SIDE)

    def column(j: Array, _: None) -> None:
        y = [
            jnp.where(r < A.size, read(b, within(r, A.size)), jnp.zeros_like(x[0, :]))
            for r in places(j)
        ]
        diagonal, y = loop(j, lambda k, s: _take_off(L, x, j, k, s), (A.block(j, j), y))
        factor = _factor(diagonal)
        for p, row in enumerate(factor):
            for q in range(p + 1):
                L[SIDE * j + p, SIDE * j + q, :] = row[q]
        for p, value in enumerate(_forward(factor, y)):
            x[SIDE * j + p, :] = value

        def below(i: Array, _: None) -> None:
            rows = loop(j, lambda k, a: _minus_product(L, i, j, k, a), A.block(i, j))
            for p, row in enumerate(rows):
                for q, value in enumerate(_forward(factor, row)):
                    L[SIDE * i + p, SIDE * j + q, :] = value

        lax.fori_loop(j + 1, blocks, below, None)

    loop(blocks, column)

    def back(turn: Array, _: None) -> None:
        j = blocks - 1 - turn
        y = [x[r, :] for r in places(j)]
        y = lax.fori_loop(j + 1, blocks, lambda i, y: _minus_below(L, x, i, j, y), y)
        for p in reversed(range(SIDE)):
            rest = y[p]
            for q in range(p + 1, SIDE):
                rest = rest - L[SIDE * j + q, SIDE * j + p, :] * y[q]
            y[p] = rest * L[SIDE * j + p, SIDE * j + p, :]
            x[SIDE * j + p, :] = y[p]

    loop(blocks, back)


def _read(L: Any, i: Array, k: Array) -> list[list[Array]]:
    return [[L[r, c, :] for c in places(k)] for r in places(i)]


def _take_off(L: Any, x: Any, j: Array, k: Array, state: tuple) -> tuple:
    """A block on the diagonal, and of b, without what column block `k` has to do with them."""
    block, y = state
    row = _read(L, j, k)
    done = [x[r, :] for r in places(k)]
    block = [
        [a - _dot(row[p], row[q]) for q, a in enumerate(values)] for p, values in enumerate(block)
    ]
    return block, [a - _dot(row[p], done) for p, a in enumerate(y)]


def _minus_product(L: Any, i: Array, j: Array, k: Array, block: list) -> list:
    """A block less the product of those to its left and to the left of the diagonal."""
    left, above = _read(L, i, k), _read(L, j, k)
    return [
        [a - _dot(left[p], above[q]) for q, a in enumerate(values)]
        for p, values in enumerate(block)
    ]


def _minus_below(L: Any, x: Any, i: Array, j: Array, y: list) -> list:
    """L^-1 b of a block less what the known x of block `i` amounts to."""
    known = [x[r, :] for r in places(i)]
    below = _read(L, i, j)
    return [a - _dot([row[p] for row in below], known) for p, a in enumerate(y)]


def _factor(block: list) -> list[list[Array]]:
    """Cholesky factor of a small block; on the diagonal the inverses."""
    L: list = [[None] * SIDE for _ in range(SIDE)]
    for q in range(SIDE):
        L[q][q] = lax.rsqrt(block[q][q] - _dot(L[q][:q], L[q][:q]))
        for p in range(q + 1, SIDE):
            L[p][q] = (block[p][q] - _dot(L[p][:q], L[q][:q])) * L[q][q]
    return L


def _forward(factor: list, y: list) -> list:
    """y L'^-1 for a row: forward substitution."""
    out: list = []
    for p, value in enumerate(y):
        out.append((value - _dot(factor[p][:p], out)) * factor[p][p])
    return out


def _dot(a: list, b: list) -> Any:
    return sum(u * v for u, v in zip(a, b, strict=True))
