"""Symmetric positive definite systems `[n, n, *W]`: the one place that factors matrices.

Many worlds are factored together: where kernels hold loops (by_rows.py) row by row, else by panels
of columns, written out; on a CPU one world by a loop over rows. Matrices for which that program
would be long, or the loop slow, go to the platform's library one matrix at a time: XLA:CPU hands
the matrices of one call to all its threads and waits for them in one of these, so that as many
calls at once as there are threads wait forever (jaxlib 0.10). A large matrix it divides among
threads of its own, which wait for each other busily: beside other work on the machine 300 dofs took
0.6 to 160 ms. So it only factors what it takes alone, and products do the rest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.call.differentiated import differentiated, loops_pay
from jaxsim.physics.arrays.linear import HIGHEST
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import few
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.products import chunks, gram
from jaxsim.physics.arrays.select import take
from jaxsim.physics.arrays.system.apart import Apart, by_size
from jaxsim.physics.arrays.system.between import Between, products
from jaxsim.physics.arrays.system.by_rows import solve_by_rows
from jaxsim.physics.arrays.system.lower import Lower, Symmetric
from jaxsim.physics.arrays.system.profile import Profile
from jaxsim.physics.arrays.system.spd_kernel import serves, solve_in_kernel
from jaxsim.physics.arrays.system.steps import Steps

ALONE = 192  # largest matrix that the library factors on the thread that calls it
BLOCK = 128  # size of the blocks of larger ones
SMALL = 8  # largest that is short written out
WRITE_OUT = 48  # largest matrix that is factored by written-out panels; of one world, in whole
IN_STEPS = 96  # largest matrix of the solver that is factored by loops over many worlds


def solve_spd(A: Array, b: Array) -> Array:
    """x with A x = b.

    Args:
      A: symmetric positive definite `[n, n, *W]`.
      b: right-hand side `[n, *W]`.

    Returns:
      `[n, *W]`.
    """
    n = A.shape[0]
    if n == 0:
        return b
    if A.ndim == 2:
        return _solve(A, b)
    if platform().kernels and serves(b):
        return _linear_solve(A, b) if differentiated() else solve_in_kernel(A, b)
    if n <= WRITE_OUT and not few(b):
        return _linear_solve(A, b) if differentiated() else _solve_many(A, b)
    size = max(A.shape[-1], b.shape[-1])
    A = jnp.broadcast_to(A, (n, n, size))
    b = jnp.broadcast_to(b, (n, size))
    return jax.vmap(_solve, in_axes=-1, out_axes=-1)(A, b)


def solve_parts(A: Array, b: Array, parts: Sequence[Sequence[int]]) -> Array:
    """As `solve_spd`, of a matrix that is zero between parts.

    Parts of one size are solved together, like more worlds.

    Args:
      A: symmetric positive definite `[n, n, *W]`.
      b: right-hand side `[n, *W]`.
      parts: the rows of each, constant; together all.
    """
    return _by_parts(solve_spd, A, b, parts)


def times_parts(A: Array, x: Array, parts: Sequence[Sequence[int]]) -> Array:
    """A x, of a matrix that is zero between parts; as `solve_parts`."""
    return _by_parts(apply, A, x, () if differentiated() else parts)


def _by_parts(
    function: Callable[[Array, Array], Array], A: Array, b: Array, parts: Sequence[Sequence[int]]
) -> Array:
    """A function of a matrix and a vector, for each part of them."""
    n, worlds = len(b), b.shape[1:]
    if len(parts) <= 1:
        return function(A, b)
    entries = jnp.broadcast_to(A, (n, n, *worlds)).reshape(n * n, *worlds)
    found, order = [], []
    for rows in by_size(parts):
        size = len(rows)
        block = take(entries, (rows[:, None] * n + rows[None]).ravel())
        x = function(block.reshape(size, size, -1), take(b, rows.ravel()).reshape(size, -1))
        found.append(x.reshape(rows.size, *worlds))
        order.append(rows.ravel())
    return take(jnp.concatenate(found), np.argsort(np.concatenate(order)))


@node("parts")
class Whole:
    """A matrix to add to and to solve with, as `Lower`, where this is not worth its program.

    Attributes:
      matrix: `[n, n, *W]`.
      parts: as in `solve_parts`.
    """

    matrix: jax.Array
    parts: Sequence[Sequence[int]] = ()

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.matrix)

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added; both `[rows, n, *W]`."""
        return replace(self, matrix=self.matrix + gram(J, G))

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n, *W]` added."""
        n, ndim = self.matrix.shape[0], self.matrix.ndim
        eye = np.eye(n, dtype=self.matrix.dtype).reshape(n, n, *(1,) * (ndim - 2))
        return replace(self, matrix=self.matrix + eye * values[:, None])

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """With numbers `[k, *W]` added at constant places, which are symmetric and in order."""
        place = self.matrix.at[row, column]
        matrix = place.add(values, unique_indices=True, indices_are_sorted=True)
        return replace(self, matrix=matrix)

    def takes(self, between: Between) -> bool:
        """Whether each group is a range of rows, of one world."""
        is_one = self.matrix.ndim == 2 and between.used is not None
        return is_one and between.are_ranges

    def plus_between(self, between: Between) -> Self:
        """With J' W J added, of rows that touch one or two ranges of the matrix each."""
        start, k = between.table[:, 0].astype(np.int32), between.table.shape[1]
        starts = [jnp.asarray(start)[jnp.maximum(g, 0)] for g in between.group]

        def add(H: Array, _: Array | int, own: Array, weight: list, starts: list) -> Array:
            both = products(own, weight)
            for c, i, j in np.ndindex(len(both), len(starts), len(starts)):
                value = both[c, i * k : (i + 1) * k, j * k : (j + 1) * k]
                at = starts[i][c], starts[j][c]
                H = lax.dynamic_update_slice(H, lax.dynamic_slice(H, at, (k, k)) + value, at)
            return H

        n, (own, weight, _) = self.size, between.items
        room = jnp.pad(self.matrix, (0, k))  # for groups that are smaller than the largest
        H = chunks(add, room, between.used, own, weight, (starts, 0))
        return replace(self, matrix=H[:n, :n])

    def solve(self, b: Array) -> Array:
        """x with A x = b."""
        return solve_parts(self.matrix, b, self.parts)


def grows_by_parts(
    n: int, own: Sequence, parts: Sequence[Sequence[int]], tied: Sequence[Sequence[int]]
) -> bool:
    """Whether `growing` takes a matrix of one world as well by its parts `own`."""
    if not loops_pay():
        return False
    return (len(tied) > 1 and n > WRITE_OUT) or (len(parts) > 1 and tuple(own) == tuple(parts))


def growing(
    A: Array | Apart,
    parts: Sequence[Sequence[int]],
    like: Array,
    tied: Sequence[Sequence[int]] = (),
) -> Symmetric:
    """A symmetric matrix to which others are added before a system is solved with it.

    Args:
      A: `[n, n, *W]`; or by its parts, where `grows_by_parts` says so.
      parts: as in `solve_parts`.
      like: the right-hand side to come, `[n, *W]`.
      tied: where what is added between other rows comes by `plus_between`, as in `solve_parts`;
        empty: it does not.
    """
    if isinstance(A, Apart):
        return Profile.of_parts(A, tied) if len(tied) > 1 else A
    if differentiated():
        return Whole(A, parts)
    if len(tied) > 1 and A.ndim == 2 and len(A) > WRITE_OUT and loops_pay():
        return Profile.of(A, tied)
    if len(parts) > 1:
        return Apart.of(A, tuple(map(tuple, parts)), solve_spd)
    halves = 0 < len(A) <= IN_STEPS and not few(like)
    if not halves or not platform().recomputes:
        return Whole(A)
    return _lower(A, like) if len(A) <= WRITE_OUT else Steps.of(_of_worlds(A, like))


def _lower(A: Array, like: Array) -> Lower:
    return Lower.of(_of_worlds(A, like))


def _of_worlds(A: Array, like: Array) -> Array:
    return jnp.broadcast_to(A, (*A.shape[:2], *like.shape[1:]))


def inverse_spd(A: Array) -> Array:
    """The inverse of a symmetric positive definite matrix, `[n, n, *W]`: for many products."""
    n = A.shape[0]
    if n == 0:
        return A
    unit = jnp.eye(n, dtype=A.dtype)
    if A.ndim == 2:
        return _solve(A, unit)
    if n <= WRITE_OUT and not few(A[0]):
        return Lower.of(A).inverse()
    return jax.vmap(_solve, in_axes=(-1, None), out_axes=-1)(A, unit)


class InverseParts(NamedTuple):
    """The inverse of a matrix that is zero between parts.

    Attributes:
      rows: of each size of parts, constant `[size, parts]`.
      blocks: likewise `[size, size, parts of all worlds]`.
    """

    rows: list[np.ndarray]
    blocks: list

    def times(self, b: Array) -> Array:
        """A^-1 b: `[n, *W]` -> `[n, *W]`."""
        return self.responses(b[None])[0]

    def responses(self, J: Array) -> Array:
        """J A^-1: `[k, n, *W]` -> `[k, n, *W]`."""
        found, order, (k, _, *worlds) = [], [], J.shape
        for rows, (own, block) in zip(self.rows, self._parts(J), strict=True):
            found.append(gram(own, block).reshape(k, rows.size, *worlds))
            order.append(rows.ravel())
        all_parts = jnp.swapaxes(jnp.concatenate(found, axis=1), 0, 1)
        return jnp.swapaxes(take(all_parts, np.argsort(np.concatenate(order))), 0, 1)

    def products(self, J: Array) -> Array:
        """J A^-1 J': `[k, n, *W]` -> `[k, k, *W]`."""
        k, worlds = len(J), J.shape[2:]
        out: Array = jnp.zeros((k, k, *worlds), J.dtype)
        for own, block in self._parts(J):
            each = gram(jnp.swapaxes(gram(own, block), 0, 1), own)
            out = out + jnp.sum(each.reshape(k, k, -1, *worlds), axis=2)
        return out

    def squares(self, J: Array) -> Array:
        """J A^-1 J' of each row of J on its own: `[k, n, *W]` -> `[k, *W]`."""
        k, worlds = len(J), J.shape[2:]
        out: Array = jnp.zeros((k, *worlds), J.dtype)
        for own, block in self._parts(J):
            each = jnp.sum(own * jnp.swapaxes(gram(own, block), 0, 1), axis=0)
            out = out + jnp.sum(each.reshape(k, -1, *worlds), axis=1)
        return out

    def _parts(self, J: Array) -> Iterator[tuple[Array, Array]]:
        """Columns of J by size of parts, `[size, k, parts of all worlds]`, and their blocks."""
        k, worlds = len(J), J.shape[2:]
        if not k:
            return
        for rows, block in zip(self.rows, self.blocks, strict=True):
            own = take(jnp.swapaxes(J, 0, 1), rows.ravel()).reshape(*rows.shape, k, *worlds)
            yield jnp.swapaxes(own, 1, 2).reshape(len(rows), k, -1), block


def inverse_parts(A: Array, parts: Sequence[Sequence[int]]) -> InverseParts:
    """The inverse of a symmetric positive definite matrix that is zero between parts.

    Args:
      A: `[n, n, *W]`.
      parts: the rows of each, constant; together all.
    """
    n, worlds = len(A), A.shape[2:]
    entries, groups = A.reshape(n * n, *worlds), by_size(parts)
    blocks = []
    for rows in groups:
        block = take(entries, (rows[:, None] * n + rows[None]).ravel())
        blocks.append(inverse_spd(block.reshape(len(rows), len(rows), -1)))
    return InverseParts(groups, blocks)


def _solve(A: Array, b: Array) -> Array:
    """Of one world, `[n, n]` and `[n]` or `[n, k]`; its derivative is that of the solution."""
    return lax.custom_linear_solve(
        lambda x: _times(A, x),
        b,
        lambda _, y: _by_library(A, y),
        symmetric=True,
    )


def _linear_solve(A: Array, b: Array) -> Array:
    """Of many worlds; its derivative is that of the solution."""

    def solve(_: Callable, y: Array) -> Array:
        in_kernel = platform().kernels and serves(y)
        return solve_in_kernel(A, y) if in_kernel else _solve_many(A, y)

    return lax.custom_linear_solve(lambda x: apply(A, x), b, solve, symmetric=True)


@jax.jit  # `custom_linear_solve` asks twice: traced once, and lowered to one function
def _solve_many(A: Array, b: Array) -> Array:
    if len(A) <= SMALL or not platform().in_kernels:
        return _lower(A, b).solve(b)
    A = _of_worlds(A, b)
    return solve_by_rows(A, b)


def _cholesky_solve(A: Array, b: Array) -> Array:
    columns = b.reshape(len(b), -1)
    if len(A) <= IN_STEPS and loops_pay():
        return _step_solve(A, columns).reshape(b.shape)
    solve = _block_solve if len(A) > ALONE and platform().blocks else _whole_solve
    return solve(A, columns).reshape(b.shape)


def _step_solve(A: Array, b: Array) -> Array:
    """Elimination row by row, which the kernel of one world can hold (cpu_kernels.py).

    After step k row k is that of D L', in A = L D L', and b has L^-1 applied up to it.
    """
    n = len(A)
    place = np.arange(n, dtype=np.int32)

    def pivot(row: Array, k: Array) -> Array:  # NaN as the library's, if A is not positive definite
        return jnp.where(row[k] > 0, row[k], jnp.nan)

    def eliminate(k: Array, state: tuple) -> tuple:
        A, b = state
        row = A[k]
        factor = jnp.where(place > k, row / pivot(row, k), 0)[:, None]
        return A - factor * row[None], b - factor * b[k][None]

    def substitute(turn: Array, b: Array) -> Array:
        k = n - 1 - turn
        row = A[k]
        later = jnp.where(place > k, row, 0)
        x = (b[k] - jnp.matmul(later, b, precision=HIGHEST)) / pivot(row, k)
        return lax.dynamic_update_slice_in_dim(b, x[None], k, 0)

    A, b = lax.fori_loop(0, n - 1, eliminate, (A, b))
    return lax.fori_loop(0, n, substitute, b)


def _whole_solve(A: Array, b: Array) -> Array:
    L = lax.linalg.cholesky(A, symmetrize_input=False)
    y = lax.linalg.triangular_solve(L, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(L, y, left_side=True, lower=True, transpose_a=True)


def _block_solve(A: Array, b: Array) -> Array:
    """Right-looking Cholesky by square blocks, with the inverses of the blocks on the diagonal."""
    blocks = []
    while len(A):
        width = min(BLOCK, len(A))
        inverse = _inverse_lower(lax.linalg.cholesky(A[:width, :width], symmetrize_input=False))
        below = _times(A[width:, :width], inverse.T)
        y = _times(inverse, b[:width])
        blocks.append((inverse, below, y))
        A = A[width:, width:] - _times(below, below.T)
        b = b[width:] - _times(below, y)
    x = b  # empty
    for inverse, below, y in reversed(blocks):
        x = jnp.concatenate([_times(inverse.T, y - _times(below.T, x)), x])
    return x


def _inverse_lower(L: Array) -> Array:
    """The inverse of a lower triangular matrix, from its diagonal in blocks of 1, 2, 4, ...

    [A 0]^-1   [     A^-1         0 ]
    [B C]    = [-C^-1 B A^-1   C^-1 ]
    """
    n, size = len(L), 1
    full = 1 << (n - 1).bit_length()
    L = jnp.eye(full, dtype=L.dtype).at[:n, :n].set(L)
    inverse = (1 / jnp.diagonal(L))[:, None, None]
    while size < full:
        pairs = np.arange(full // (2 * size))
        B = L.reshape(len(pairs), 2, size, len(pairs), 2, size)[pairs, 1, :, pairs, 0]
        A, C = inverse[::2], inverse[1::2]
        upper = jnp.concatenate([A, jnp.zeros_like(A)], axis=2)
        lower = jnp.concatenate([-_times(_times(C, B), A), C], axis=2)
        inverse = jnp.concatenate([upper, lower], axis=1)
        size *= 2
    return inverse[0, :n, :n]


def _times(A: Array, B: Array) -> Array:
    return jnp.matmul(A, B, precision=HIGHEST)


_by_library = custom_vmap(_cholesky_solve)


@_by_library.def_vmap
def _one_after_another(size: int, batched: list[bool], A: Array, b: Array) -> tuple[Array, bool]:
    A, b = (
        x if own else jnp.broadcast_to(x, (size, *x.shape))
        for x, own in zip((A, b), batched, strict=True)
    )
    if not platform().blocks:
        return jax.vmap(_cholesky_solve)(A, b), True
    if size == 1:
        return _by_library(A[0], b[0])[None], True
    return lax.map(lambda system: _by_library(*system), (A, b)), True
