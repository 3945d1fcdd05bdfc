"""The systems of Newton's method as one kernel of a GPU: (base + sum of J' W J) x = b.

XLA makes of the sum, the factorization and the substitutions some thirty kernels, which write and
read each trailing matrix. Here a lane of the GPU is a world, and one kernel goes through blocks of
three rows and columns in loops: each entry of the matrix is summed over the contacts that are
there, has the products of the factor taken off, and is written once, as the entry of the factor. A
factor of 27 dofs is 3 kB, which the cache of the processor holds for its worlds. Loops instead of
written-out panels keep the program as short for 72 dofs as for 6.

The derivative is not made of this: the solver has its own (solver/newton.py).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform

if TYPE_CHECKING:  # loaded where it is used: most programs have no kernel of ours
    from jax.experimental import pallas as pl

LANES = 32  # worlds of one program: the lanes of a warp
SIDE = 3  # rows and columns taken together; their products stay in registers


class Contacts(NamedTuple):
    """What contacts add to the matrix.

    Attributes:
      J: `[basis, ncon, n, worlds]`.
      weight: lower triangle of W over the basis, row by row: list of `[ncon, worlds]`.
      last: int32 `[1, worlds]`, contacts of a world up to the last that counts.
    """

    J: jax.Array
    weight: list[jax.Array]
    last: jax.Array


def serves(b: Array) -> bool:
    """Whether the kernel can take right-hand sides of this shape: its worlds fill the lanes."""
    return b.ndim == 2 and b.shape[-1] % LANES == 0 and b.shape[0] > 0


def solve_normal(base: Array, b: Array, contacts: Contacts | None) -> Array:
    """x with (base + J' W J) x = b.

    Args:
      base: symmetric `[n, n, worlds]`; the sum has to be positive definite.
      b: `[n, worlds]`.
      contacts: of J' W J; None: there are none.

    Returns:
      `[n, worlds]`.
    """
    from jax.experimental import pallas as pl

    n, worlds = b.shape
    interpret = platform().kernels != "compiled"
    base = jnp.broadcast_to(base, (n, n, worlds))
    padded = n + -n % SIDE
    given = [base, b, *jax.tree.leaves(contacts)]
    form = jax.tree.structure(contacts)

    def kernel(*refs: Any) -> None:
        base, b, *rest, x, L = refs
        _solve(_Matrix(base, n, jax.tree.unflatten(form, rest)), b, x, L)

    call = pl.pallas_call(
        kernel,
        grid=(worlds // LANES,),
        in_specs=[_lanes(a.shape) for a in given],
        out_specs=[_lanes((padded, worlds)), _lanes((padded, padded, worlds))],
        out_shape=[
            jax.ShapeDtypeStruct((padded, worlds), b.dtype),
            jax.ShapeDtypeStruct((padded, padded, worlds), b.dtype),
        ],
        interpret=interpret,
        **({} if interpret else _for_gpu()),
    )
    return call(*given)[0][:n]


def _for_gpu() -> dict[str, Any]:
    """One warp a program; Triton's form of Pallas has pointers, which loops over memory need."""
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=1, num_stages=1)}


def _lanes(shape: tuple[int, ...]) -> "pl.BlockSpec":
    """An array of all worlds, of which a program sees its own."""
    from jax.experimental import pallas as pl

    before = (0,) * (len(shape) - 1)
    return pl.BlockSpec((*shape[:-1], LANES), lambda k: (*before, k))


class _Matrix(NamedTuple):
    """The matrix, by blocks that are made when asked for; beyond its size it is the identity."""

    base: Any
    size: int
    contacts: Any

    def block(self, i: Array, j: Array) -> list[list[Array]]:
        """Entries of rows `SIDE i ...` and columns `SIDE j ...`, nested lists of `[LANES]`."""
        rows, columns = _places(i), _places(j)
        out = [[self._entry(r, c) for c in columns] for r in rows]
        if self.contacts is None:
            return out
        last = jnp.max(self.contacts.last[0, :])
        return lax.fori_loop(jnp.int32(0), last, lambda k, a: self._add(k, rows, columns, a), out)

    def _entry(self, r: Array, c: Array) -> Array:
        inside = (r < self.size) & (c < self.size)
        value = self.base[self._within(r), self._within(c), :]
        return jnp.where(inside, value, (r == c).astype(value.dtype))

    def _add(self, k: Array, rows: list, columns: list, out: list) -> list:
        """The block with what contact `k` adds."""
        J, weight, _ = self.contacts
        basis = range(J.shape[0])
        lower = {(p, q): weight[p * (p + 1) // 2 + q][k, :] for p in basis for q in range(p + 1)}
        right = [[self._jacobian(q, k, c) for q in basis] for c in columns]
        weighted = [
            [sum(lower[max(p, q), min(p, q)] * column[q] for q in basis) for p in basis]
            for column in right
        ]
        left = [[self._jacobian(p, k, r) for p in basis] for r in rows]
        return [
            [
                out[a][c] + sum(left[a][p] * weighted[c][p] for p in basis)
                for c in range(len(columns))
            ]
            for a in range(len(rows))
        ]

    def _jacobian(self, p: int, k: Array, dof: Array) -> Array:
        value = self.contacts.J[p, k, self._within(dof), :]
        return jnp.where(dof < self.size, value, jnp.zeros_like(value))

    def _within(self, r: Array) -> Array:
        return jnp.minimum(r, jnp.int32(self.size - 1))


def _solve(A: _Matrix, b: Any, x: Any, L: Any) -> None:
    """Left-looking Cholesky by blocks, forward substitution with it, and back substitution.

    The diagonal of `L` holds the inverses of the pivots. `x` holds L^-1 b on the way.
    """
    blocks = jnp.int32(x.shape[0] // SIDE)

    def column(j: Array, _: None) -> None:
        y = [jnp.where(r < A.size, b[A._within(r), :], jnp.zeros_like(x[0, :])) for r in _places(j)]
        diagonal, y = lax.fori_loop(
            jnp.int32(0), j, lambda k, s: _take_off(L, x, j, k, s), (A.block(j, j), y)
        )
        factor = _factor(diagonal)
        for p, row in enumerate(factor):
            for q in range(p + 1):
                L[SIDE * j + p, SIDE * j + q, :] = row[q]
        for p, value in enumerate(_forward(factor, y)):
            x[SIDE * j + p, :] = value

        def below(i: Array, _: None) -> None:
            rows = lax.fori_loop(
                jnp.int32(0), j, lambda k, a: _minus_product(L, i, j, k, a), A.block(i, j)
            )
            for p, row in enumerate(rows):
                for q, value in enumerate(_forward(factor, row)):
                    L[SIDE * i + p, SIDE * j + q, :] = value

        lax.fori_loop(j + 1, blocks, below, None)

    lax.fori_loop(jnp.int32(0), blocks, column, None)

    def back(turn: Array, _: None) -> None:
        j = blocks - 1 - turn
        y = [x[r, :] for r in _places(j)]
        y = lax.fori_loop(j + 1, blocks, lambda i, y: _minus_below(L, x, i, j, y), y)
        for p in reversed(range(SIDE)):
            rest = y[p]
            for q in range(p + 1, SIDE):
                rest = rest - L[SIDE * j + q, SIDE * j + p, :] * y[q]
            y[p] = rest * L[SIDE * j + p, SIDE * j + p, :]
            x[SIDE * j + p, :] = y[p]

    lax.fori_loop(jnp.int32(0), blocks, back, None)


def _places(block: Array) -> list[Array]:
    return [SIDE * block + k for k in range(SIDE)]


def _read(L: Any, i: Array, k: Array) -> list[list[Array]]:
    return [[L[r, c, :] for c in _places(k)] for r in _places(i)]


def _take_off(L: Any, x: Any, j: Array, k: Array, state: tuple) -> tuple:
    """A block on the diagonal, and of b, without what column block `k` has to do with them."""
    block, y = state
    row = _read(L, j, k)
    done = [x[r, :] for r in _places(k)]
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
    known = [x[r, :] for r in _places(i)]
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
