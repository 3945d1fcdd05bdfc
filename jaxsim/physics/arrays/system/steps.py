"""A symmetric matrix of many worlds as steps of a stair, for systems too large to be written out.

As `Lower` (lower.py) keeps panels of columns from their diagonal down, this keeps a few steps of
many columns each. All columns of a step are of one height, so that loops can go through them: the
program is as long for 60 rows as for 180, where that of `Lower` grows with their square. Blocks of
columns are subtracted from a later one in turn (left-looking Cholesky); what a loop cuts out of a
step is pinned, or the cut would be made again, slowly, for each number of the product.

Where the trees of a model are blocks of columns, a contact touches two of them, which the state
chooses: its products are added times 1 where it has a pair of blocks, and times 0 elsewhere.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import written_sum
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import chunks
from jaxsim.physics.arrays.select import take
from jaxsim.physics.arrays.system.between import Between, equal, products, spread

WIDTH = 6  # columns of a block
STEPS = 3


@node("size")
class Steps:
    """Columns from the first row of their step down, in blocks.

    Rows are filled up to whole blocks with those of a unit matrix.

    Attributes:
      steps: from the left, `[blocks, blocks of rows, WIDTH, WIDTH, W]` each.
      size: rows of the matrix.
    """

    steps: list[jax.Array]
    size: int

    @classmethod
    def of(cls, A: Array) -> Self:
        """That of a symmetric matrix `[n, n, W]`."""
        n = len(A)
        blocks = -(-n // WIDTH)
        spare = blocks * WIDTH - n
        A = jnp.pad(A, ((0, spare), (0, spare), (0, 0)))
        unit = np.arange(n, n + spare)
        A = A.at[unit, unit].set(1) if spare else A
        cuts = sorted({round(blocks * k / STEPS) for k in range(STEPS + 1)})
        steps = []
        for start, end in pairwise(cuts):
            columns = [A[start * WIDTH :, k * WIDTH : (k + 1) * WIDTH] for k in range(start, end)]
            steps.append(jnp.stack([c.reshape(-1, WIDTH, *c.shape[1:]) for c in columns]))
        return cls(steps, n)

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added, which is symmetric; both `[rows, n, W]`."""
        J, G = (self._filled(a).reshape(len(a), -1, WIDTH, a.shape[-1]) for a in (J, G))
        new = []
        for step, start in self._starts():
            left, right = J[:, start:, :, None], G[:, start : start + len(step), None, None]

            def product(r: int, left: Array = left, right: Array = right) -> Array:
                return left[r][None] * right[r]

            new.append(step + written_sum(product, len(J)))
        return replace(self, steps=new)

    def takes(self, between: Between) -> bool:
        """Whether the groups are the blocks of columns, and contacts touch two of them."""
        if self.size % WIDTH or len(between.group) != 2:
            return False
        return np.array_equal(between.table, np.arange(self.size).reshape(-1, WIDTH))

    def plus_between(self, between: Between) -> Self:
        """With J' W J added, of rows that touch one or two blocks of columns each."""
        out: Self = chunks(_plus_chunk, self, between.used, *between.items)
        return out

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n, W]` added."""
        place = np.arange(self.size)
        return self.plus_entries(place, place, values)

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """With numbers `[k, W]` added at constant places, which are symmetric and in order."""
        new = []
        for step, start in self._starts():
            height = WIDTH * step.shape[1]
            i, j = row - start * WIDTH, column - start * WIDTH
            own = np.flatnonzero((i >= 0) & (j >= 0) & (j < WIDTH * len(step)))
            flat = (j[own] // WIDTH * height + i[own]) * WIDTH + j[own] % WIDTH
            order = np.argsort(flat)
            place = step.reshape(-1, step.shape[-1]).at[flat[order]]
            added = place.add(
                take(values, own[order]), unique_indices=True, indices_are_sorted=True
            )
            new.append(added.reshape(step.shape))
        return replace(self, steps=new)

    def solve(self, b: Array) -> Array:
        """x with A x = b, of a positive definite matrix; `[n, W]`."""
        right = self._filled(b[None])[0]
        done: list[tuple[Array, int]] = []
        for step, block in self._starts():
            start, width = block * WIDTH, WIDTH * len(step)
            own = right[start : start + width].reshape(len(step), 1, WIDTH, -1)
            # the right-hand side is one more row, which makes forward substitution free
            whole = jnp.concatenate([step.reshape(len(step), -1, *step.shape[3:]), own], axis=1)
            done.append((_factored(whole, start, done), start))
        x = right[:0]  # no entry yet
        for step, _ in reversed(done):
            x = _back(step, x)
        return x[: self.size]

    def _starts(self) -> list[tuple[Array, int]]:
        """The steps with their first block."""
        number = self.steps[0].shape[1]
        return [(step, number - step.shape[1]) for step in self.steps]

    def _filled(self, a: Array) -> Array:
        """Rows `[k, n, W]` with the columns that are there beside those of the matrix."""
        more = WIDTH * self.steps[0].shape[1] - a.shape[1]
        return jnp.pad(a, ((0, 0), (0, more), (0, 0))) if more else a


def _plus_chunk(H: Steps, _: Array | int, own: Array, weight: list, group: tuple) -> Steps:
    """With the products of some contacts added, times 1 where each has its blocks, 0 elsewhere."""
    own, weight = pin((own, weight), own[0, 0])
    ncon, number, (high, low) = own.shape[1], H.size // WIDTH, group
    both = pin(products(own, weight), own[0, 0])
    ends = (both[:, :WIDTH, :WIDTH], high), (both[:, WIDTH:, WIDTH:], low)
    one, other = (spread(values, at, number) for values, at in ends)
    diagonal = pin(one + other, own[0, 0])
    between = pin(both[:, :WIDTH, WIDTH:], own[0, 0])
    pair = jnp.where(low < 0, -1, high * number + low)
    here = equal(pair, number * number, own.dtype).reshape(ncon, number, number, -1)
    new = []
    for step, start in H._starts():
        end = start + len(step)
        chosen = here[:, start:, start:end].swapaxes(1, 2)[:, :, :, None, None]

        def part(c: int, chosen: Array = chosen) -> Array:
            return chosen[c] * between[c][None, None]

        on_diagonal = np.eye(len(step), step.shape[1], dtype=step.dtype)[..., None, None, None]
        new.append(step + on_diagonal * diagonal[start:end, None] + written_sum(part, ncon))
    return replace(H, steps=new)


def _factored(step: Array, start: int, done: list[tuple[Array, int]]) -> Array:
    """The columns of L in a step that starts at a row, from those to its left."""

    def factor(k: Array, step: Array) -> Array:
        row = start + k * WIDTH
        panel = pin(_block(step, k, step.shape[1]), step[0])
        for before, first in done:
            panel = _subtracted(before, len(before), first, panel, row)
        panel = _subtracted(step, k, start, panel, row)
        corner = pin(lax.dynamic_slice_in_dim(panel, k * WIDTH, WIDTH), step[0])
        diagonal = pin(jnp.stack(_columns(corner), axis=1), step[0])
        columns: list[Array] = []
        for t in range(WIDTH):
            c = panel[:, t]
            for u, before in enumerate(columns):
                c = c - before * diagonal[t, u][None]
            columns.append(c / diagonal[t, t][None])
        new = jnp.stack(pin(columns, step[0]), axis=1)
        return lax.dynamic_update_slice_in_dim(step, new[None], k, axis=0)

    return lax.fori_loop(0, len(step), factor, step)


def _subtracted(step: Array, count: Array | int, start: int, panel: Array, row: Array) -> Array:
    """A panel, its diagonal at `row`, without what the first blocks of a step say in it."""

    def subtract(j: Array, panel: Array) -> Array:
        left = _block(step, j, len(panel))
        corner = lax.dynamic_slice_in_dim(_block(step, j, step.shape[1]), row - start, WIDTH)
        left, corner = pin((left, corner), panel[0])
        for t in range(WIDTH):
            panel = panel - left[:, t, None] * corner[None, :, t]
        return panel

    return lax.fori_loop(0, count, subtract, panel)


def _back(step: Array, x: Array) -> Array:
    """x from L' x = y with the rows of a step before those that are known."""
    blocks, height, width, worlds = step.shape
    room = jnp.zeros((blocks * width, worlds), x.dtype)

    def solve(i: Array, x: Array) -> Array:
        k = blocks - 1 - i
        columns = pin(_block(step, k, height), x)
        sums = columns[-1] - written_sum(lambda r: columns[r] * x[r][None], height - 1)
        corner, sums = pin((lax.dynamic_slice_in_dim(columns, k * width, width), sums), x)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = sums[t]
            for u in range(t + 1, width):
                v = v - corner[u, t] * out[u]
            out[t] = v / corner[t, t]
        return lax.dynamic_update_slice_in_dim(x, jnp.stack(out), k * width, axis=0)

    return lax.fori_loop(0, blocks, solve, jnp.concatenate([room, x]))


def _columns(corner: Array) -> list[Array]:
    """The columns of the factor of a small matrix; above the diagonal: noise."""
    columns: list[Array] = []
    for t in range(len(corner)):
        c = corner[:, t]
        for before in columns:
            c = c - before * before[t][None]
        columns.append(c * lax.rsqrt(c[t : t + 1]))
    return columns


def _block(step: Array, k: Array, height: int) -> Array:
    """The last rows of a block of columns, `[height, WIDTH, W]`."""
    _, whole, width, worlds = step.shape
    return lax.dynamic_slice(step, (k, whole - height, 0, 0), (1, height, width, worlds))[0]
