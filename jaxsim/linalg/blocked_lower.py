"""Left-looking blocked Cholesky in loops, of the lower triangle of a matrix of many worlds.

`PackedLower` (packed_lower.py) stores panels of exactly their height, and its unrolled program
grows with the square of the rows. Here blocks of `BLOCK_WIDTH` columns are grouped into a few steps
(`blocked_lower_steps`); all blocks of a step have the same height, so that loops can iterate over
them and the program is as long for 60 rows as for 180. Six blocks of columns, each letter a block
of 6 x 6 numbers, `.` stored but not read:

    step 0   step 1   step 2
    a .
    a b
    a b      c .
    a b      c d
    a b      c d      e .
    a b      c d      e f

Left-looking (Golub and Van Loan, Matrix Computations, section 4.2): a panel, such as d, first
subtracts the contributions of all finished steps in one pass (a and b), then those of the panels
before it in its own step (c): one pass each, because memory traffic dominates the time. Then its
corner, the block on the diagonal, is factorized, and all its rows are multiplied by the inverse of
that factor. Slices in a loop are pinned: otherwise they would be recomputed for each term of a
product.

`step` is `[blocks, blocks of rows, BLOCK_WIDTH, BLOCK_WIDTH, W]`, a block of columns of it a
`panel`, the `BLOCK_WIDTH` rows of a panel on the diagonal its `corner`; `start` is the first row or
block of a step, `done` the finished steps with their first rows.

Where the trees of a model are the blocks of columns, a contact touches two blocks, which the state
chooses: its products are added to every pair of blocks that it has in some world, times 1 or 0.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import unrolled_sum
from jaxsim.arrays.dynamic import (
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import gram, one_item
from jaxsim.linalg.contact_blocks import ContactBlocks, contact_products
from jaxsim.linalg.operator import Symmetric
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.tuning import tuning

BLOCK_WIDTH = 6  # columns of a block: the dofs of a free body


@node("num_rows")
class BlockedLower(Symmetric):
    """The lower triangle of a symmetric matrix, in steps of blocks of columns.

    Rows are padded to whole blocks with those of a unit matrix.

    Attributes:
      steps: from the left, `[blocks, blocks of rows, BLOCK_WIDTH, BLOCK_WIDTH, W]` each,
        from the first row of the step down.
      num_rows: number of rows of the matrix, without padding.
    """

    steps: list[jax.Array]
    num_rows: int

    @classmethod
    def of(cls, A: Array) -> Self:
        """Return the steps of a symmetric matrix `[n, n, W]`."""
        n = len(A)
        blocks = -(-n // BLOCK_WIDTH)
        spare = blocks * BLOCK_WIDTH - n
        A = jnp.pad(A, ((0, spare), (0, spare), (0, 0)))
        unit = np.arange(n, n + spare)
        A = A.at[unit, unit].set(1) if spare else A
        # Divide the blocks of columns into steps, and stack the columns of each.
        number = tuning().blocked_lower_steps
        cuts = sorted({round(blocks * k / number) for k in range(number + 1)})
        steps = []
        for start, end in pairwise(cuts):
            columns = [
                A[start * BLOCK_WIDTH :, k * BLOCK_WIDTH : (k + 1) * BLOCK_WIDTH]
                for k in range(start, end)
            ]
            steps.append(jnp.stack([c.reshape(-1, BLOCK_WIDTH, *c.shape[1:]) for c in columns]))
        return cls(steps, n)

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return self.num_rows

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, where J' G is symmetric; J and G `[rows, n, W]`."""
        J, G = (self._filled(a).reshape(len(a), -1, BLOCK_WIDTH, a.shape[-1]) for a in (J, G))
        new = []
        for step, start in self._starts():
            # Rows of the lower triangle times columns of this step.
            left, right = J[:, start:, :, None], G[:, start : start + len(step), None, None]

            def product(r: int, left: Array = left, right: Array = right) -> Array:
                return left[r][None] * right[r]

            new.append(step + unrolled_sum(product, len(J)))
        return replace(self, steps=new)

    def supports(self, between: ContactBlocks) -> bool:
        """Return whether the groups are the blocks of columns, and contacts touch two of them."""
        if self.size % BLOCK_WIDTH or len(between.group) != 2:
            return False
        return np.array_equal(between.table, np.arange(self.size).reshape(-1, BLOCK_WIDTH))

    def add_contact_blocks(self, between: ContactBlocks) -> Self:
        """Return A + J' W J, of contacts that touch one or two blocks of columns each."""
        # Diagonal blocks are summed apart from the steps and added once at the end.
        items, number = between.items, self.size // BLOCK_WIDTH
        worlds = self.steps[0].shape[-1]
        blocks = jnp.zeros((number, BLOCK_WIDTH, BLOCK_WIDTH, worlds), self.steps[0].dtype)
        starts = [start for _, start in self._starts()]

        def add(c: Array, state: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
            parts = (one_item(tree, c, axis) for tree, axis in items)
            return _add_contact(*state, starts, *parts)

        count = between.own.shape[1] if between.used is None else between.used
        steps, blocks = lax.fori_loop(0, count, add, (self.steps, blocks))
        places = zip(steps, starts, strict=True)
        return replace(self, steps=[_add_on_diagonal(step, blocks, at) for step, at in places])

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, W]` added."""
        place = np.arange(self.size)
        return self.add_entries(place, place, values)

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, W]` added at constant indices (operator.py)."""
        new = []
        for step, start in self._starts():
            height = BLOCK_WIDTH * step.shape[1]
            i, j = row - start * BLOCK_WIDTH, column - start * BLOCK_WIDTH
            own = np.flatnonzero((i >= 0) & (j >= 0) & (j < BLOCK_WIDTH * len(step)))
            # Flat index: block of columns, row, column within the block.
            flat = (j[own] // BLOCK_WIDTH * height + i[own]) * BLOCK_WIDTH + j[own] % BLOCK_WIDTH
            order = np.argsort(flat)
            place = step.reshape(-1, step.shape[-1]).at[flat[order]]
            added = place.add(
                gather_static(values, own[order]), unique_indices=True, indices_are_sorted=True
            )
            new.append(added.reshape(step.shape))
        return replace(self, steps=new)

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, W]`."""
        x = self._filled(b[None])[0, :0]  # grows from the last entry
        # Back substitution, step by step from the last.
        for step in reversed(self._factor(b[None])):
            x = _back_substitute(step, x)
        return x[: self.size]

    def inverse(self) -> Array:
        """Return A^-1 = L'^-1 L^-1 of a positive definite matrix, `[n, n, W]`."""
        n, worlds = self.size, self.steps[0].shape[-1]
        unit = jnp.broadcast_to(np.eye(n, dtype=self.steps[0].dtype)[..., None], (n, n, worlds))
        # Rows of the unit matrix below A become L'^-1.
        below = [step[:, -n:] for step in self._factor(unit)]
        columns = jnp.concatenate([jnp.swapaxes(b, 1, 2).reshape(-1, n, worlds) for b in below])
        transposed = materialize(columns[:n], unit[0])
        return gram(transposed, transposed)

    def _factor(self, below: Array) -> list[Array]:
        """Return the steps of L with A = L L', each with its rows from the first one down.

        Rows B appended below the matrix, `[rows, n, W]`, become B L'^-1. With B = b' this is the
        forward substitution.
        """
        below = self._filled(below)
        done: list[tuple[Array, int]] = []
        for step, block in self._starts():
            start, width = block * BLOCK_WIDTH, BLOCK_WIDTH * len(step)
            own = below[:, start : start + width].reshape(len(below), len(step), BLOCK_WIDTH, -1)
            rows = step.reshape(len(step), -1, *step.shape[3:])
            whole = jnp.concatenate([rows, jnp.swapaxes(own, 0, 1)], axis=1)
            done.append((_factorize_step(whole, start, done), start))
        return [step for step, _ in done]

    def _starts(self) -> list[tuple[Array, int]]:
        """Return the steps with the index of their first block."""
        number = self.steps[0].shape[1]
        return [(step, number - step.shape[1]) for step in self.steps]

    def _filled(self, a: Array) -> Array:
        """Pad the columns of rows `[k, n, W]` to whole blocks."""
        more = BLOCK_WIDTH * self.steps[0].shape[1] - a.shape[1]
        return jnp.pad(a, ((0, 0), (0, more), (0, 0))) if more else a


def _add_contact(
    steps: list[Array],
    diagonal: Array,
    starts: list[int],
    own: Array,
    weight: list,
    group: tuple[Array, Array],
) -> tuple[list[Array], Array]:
    """Add the products of one contact: two diagonal blocks and the block of the pair.

    Worlds order their contacts alike, so a contact has few different pairs of blocks over all
    worlds, and only these are visited.
    """
    own, weight = materialize((own, weight), own[0, 0])
    both = materialize(contact_products(own, weight)[0], own[0, 0])
    high, low = (g[0] for g in group)
    number = len(diagonal)

    # Diagonal blocks of both groups.
    for index, first in ((high, 0), (low, BLOCK_WIDTH)):
        values = both[first : first + BLOCK_WIDTH, first : first + BLOCK_WIDTH]

        def within(k: Array, out: Array, index: Array = index, values: Array = values) -> Array:
            return _add_block(out, (k,), index == k, values)

        diagonal = _for_each_index(within, diagonal, index, 0, number)

    # The off-diagonal block of the pair, in the step that holds its columns.
    pair = jnp.where(low < 0, -1, low * number + high)
    values = both[:BLOCK_WIDTH, BLOCK_WIDTH:]
    new = []
    for step, start in zip(steps, starts, strict=True):

        def add_off_diagonal(k: Array, out: Array, start: int = start) -> Array:
            return _add_block(out, (k // number - start, k % number - start), pair == k, values)

        new.append(
            _for_each_index(
                add_off_diagonal, step, pair, start * number, (start + len(step)) * number
            )
        )
    return new, diagonal


def _for_each_index(add: Callable, out: Array, index: Array, start: int, end: int) -> Array:
    """Fold `out = add(k, out)` over each k of a range that occurs in an index `[W]`."""

    def next_larger(k: Array) -> Array:
        """Return the next larger index that occurs."""
        return jnp.min(jnp.where(index > k, index, end))

    def add_next(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, out = state
        return next_larger(k), add(k, out)

    # Visit only values that occur in some world, in ascending order.
    first = next_larger(jnp.asarray(start - 1, index.dtype))
    return lax.while_loop(lambda state: state[0] < end, add_next, (first, out))[1]


def _add_block(out: Array, place: tuple, here: Array, values: Array) -> Array:
    """Add values `[..., W]` at an index, in the worlds where `here` is true."""
    at = *place, *[jnp.zeros_like(place[0])] * (out.ndim - len(place))
    shape = *[1] * len(place), *values.shape
    # Read, add and write the block.
    old = dynamic_slice(out, at, shape)
    # Multiply by 1 or 0: XLA:CPU does not vectorize loops with `select`.
    times = here.astype(out.dtype).reshape(*[1] * (out.ndim - 1), -1)
    new = old + times * values.reshape(shape)
    return dynamic_update_slice(out, new, at)


def _add_on_diagonal(step: Array, blocks: Array, start: int) -> Array:
    """Add blocks `[blocks, BLOCK_WIDTH, BLOCK_WIDTH, W]` on the diagonal of a step."""

    def add(k: Array, step: Array) -> Array:
        block = dynamic_slice_in_dim(blocks, start + k, 1)
        old = dynamic_slice(step, (k, k, 0, 0, 0), (1, 1, *block.shape[1:]))
        return dynamic_update_slice(step, old + block[None], (k, k, 0, 0, 0))

    return lax.fori_loop(0, len(step), add, step)


def _factorize_step(step: Array, start: int, done: list[tuple[Array, int]]) -> Array:
    """Factorize the columns of a step that starts at row `start`, given the finished steps."""

    def factor(k: Array, step: Array) -> Array:
        """Factorize one panel of the step."""
        row = start + k * BLOCK_WIDTH
        # Subtract the contributions of the finished steps, then of the panels before it in this
        # step.
        panel = _block(step, k, step.shape[1])
        panel = materialize(
            panel - _panel_contributions(done, row, step.shape[1]) if done else panel, step[0]
        )
        branches = [partial(_subtract_preceding_panels, number) for number in range(len(step))]
        panel = lax.switch(k, branches, step, panel)
        # Multiply the rows by the inverse of the corner's Cholesky factor.
        corner = materialize(dynamic_slice_in_dim(panel, k * BLOCK_WIDTH, BLOCK_WIDTH), step[0])
        solved = _inverse_of_factor(corner)
        new = unrolled_sum(lambda t: panel[:, t, None] * solved[None, t], BLOCK_WIDTH)
        return dynamic_update_slice_in_dim(step, new[None], k, axis=0)

    return lax.fori_loop(0, len(step), factor, step)


def _panel_contributions(done: list[tuple[Array, int]], row: Array, height: int) -> Array:
    """Return the contributions of finished steps to a panel whose diagonal is at `row`."""
    # Collect the products of all columns of all finished steps, and sum them in one pass.
    terms: list[tuple[Array, Array, int]] = []
    for step, start in done:
        blocks, rows, width, worlds = step.shape
        at = (0, row - start, 0, 0)
        corner = materialize(dynamic_slice(step, at, (blocks, BLOCK_WIDTH, width, worlds)), step[0])
        left = step[:, rows - height :]
        for j, t in np.ndindex(blocks, width):
            terms.append((left[j], corner[j], t))
    return unrolled_sum(lambda k: _outer_term(*terms[k]), len(terms))


def _subtract_preceding_panels(number: int, step: Array, panel: Array) -> Array:
    """Subtract the contributions of the panels before panel `number` of a step."""
    if not number:
        return panel
    corner = materialize(step[:number, number * BLOCK_WIDTH : (number + 1) * BLOCK_WIDTH], step[0])

    def product(k: int) -> Array:
        j, t = divmod(k, BLOCK_WIDTH)
        return _outer_term(step[j], corner[j], t)

    return panel - unrolled_sum(product, number * BLOCK_WIDTH)


def _outer_term(left: Array, corner: Array, t: int) -> Array:
    """Return one term of a block product: column t of the rows times column t of the corner."""
    return left[:, t, None] * corner[None, :, t]


def _back_substitute(step: Array, x: Array) -> Array:
    """Solve L' x = y for the rows of a step, given the entries of x behind them."""
    blocks, height, width, worlds = step.shape
    padding = jnp.zeros((blocks * width, worlds), x.dtype)

    def solve(i: Array, x: Array) -> Array:
        """Solve for the rows of one block of columns."""
        k = blocks - 1 - i
        # Subtract the contributions of the known entries of x.
        columns = materialize(_block(step, k, height), x)
        sums = columns[-1] - unrolled_sum(lambda r: columns[r] * x[r][None], height - 1)
        # Solve the triangle of the corner.
        corner, sums = materialize((dynamic_slice_in_dim(columns, k * width, width), sums), x)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = sums[t]
            for u in range(t + 1, width):
                v = v - corner[u, t] * out[u]
            out[t] = v / corner[t, t]
        return dynamic_update_slice_in_dim(x, jnp.stack(out), k * width, axis=0)

    return lax.fori_loop(0, blocks, solve, jnp.concatenate([padding, x]))


def _inverse_of_factor(corner: Array) -> Array:
    """Return L'^-1 of a small matrix L L', which maps rows of A to rows of L."""
    n, _, worlds = corner.shape
    unit = jnp.broadcast_to(np.eye(n, dtype=corner.dtype)[..., None], (n, n, worlds))
    # Cholesky by columns of the corner with a unit matrix below, which becomes L'^-1.
    rows = jnp.concatenate([corner, unit])
    columns: list[Array] = []
    for t in range(n):
        c = rows[:, t] - sum(before * before[t][None] for before in columns)
        columns.append(materialize(c * lax.rsqrt(c[t : t + 1]), c))
    return materialize(jnp.stack([c[n:] for c in columns], axis=1), columns[0])


def _block(step: Array, k: Array, height: int) -> Array:
    """Return the last rows of a block of columns, `[height, BLOCK_WIDTH, W]`."""
    _, whole, width, worlds = step.shape
    return dynamic_slice(step, (k, whole - height, 0, 0), (1, height, width, worlds))[0]
