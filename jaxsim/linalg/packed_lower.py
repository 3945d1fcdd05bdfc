"""Left-looking blocked Cholesky, unrolled, of the lower triangle of a matrix of many worlds.

The solver assembles a symmetric matrix and solves with it once. The upper triangle is neither
assembled nor read, and the panels (`panel_columns` columns, from the diagonal down) are those of
the factorization, which halves the work of both. Left-looking: each panel first subtracts the
products with all finished columns to its left (Golub and Van Loan, Matrix Computations, section
4.2), then is factorized itself (`_columns`). Rows B appended below the matrix become B L'^-1, so a
right-hand side b' appended there is forward-substituted for free (`_factor`); `_solve_transposed`
solves L' x = y. Ten rows, whose panels are a, b and c, with the right-hand side below:

    a a a a
    a a a a
    a a a a
    a a a a
    a a a a b b b b
    a a a a b b b b
    a a a a b b b b      panel c = A[8:, 8:] minus the products of the rows of a and b from row 8
    a a a a b b b b      down with their rows 8 and 9; then Cholesky of its own columns
    a a a a b b b b c c
    a a a a b b b b c c
    y y y y y y y y y y

Everything that a later panel reads is pinned: otherwise XLA would recompute the whole history of an
entry in each of its users. `done` holds the finished columns by panel.
"""

from dataclasses import replace
from functools import partial
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.node import node
from jaxsim.arrays.products import gram
from jaxsim.linalg.operator import Symmetric
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.tuning import tuning


@node()
class PackedLower(Symmetric):
    """The lower triangle of a symmetric matrix, by panels of columns.

    Attributes:
      panels: from the left; panel k holds columns `start .. start + width` from row `start` down,
        `[n - start, width, W]`.
    """

    panels: list[jax.Array]

    @classmethod
    def of(cls, A: Array) -> "PackedLower":
        """Return the lower triangle of a symmetric matrix `[n, n, W]`."""
        n, width = len(A), tuning().panel_columns
        return cls([A[k:, k : k + width] for k in range(0, n, width)])

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.panels[0])

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, where J' G is symmetric; J and G `[rows, n, W]`."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            start = self.size - height
            for r in range(len(J)):
                panel = panel + J[r, start:, None] * G[r, None, start : start + width]
            new.append(panel)
        return replace(self, panels=new)

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, W]` added."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            start = self.size - height
            eye = jnp.eye(height, width, dtype=panel.dtype)[..., None]
            new.append(panel + eye * values[start:, None])
        return replace(self, panels=new)

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, W]` added at constant indices (operator.py)."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            i, j = row - (self.size - height), column - (self.size - height)
            own = np.flatnonzero((i >= 0) & (j >= 0) & (j < width))
            place = panel.at[i[own], j[own]]
            new.append(
                place.add(gather_static(values, own), unique_indices=True, indices_are_sorted=True)
            )
        return replace(self, panels=new)

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite matrix, b `[n, W]`."""
        found: Array = _factorize_and_solve(self, b)
        return found

    def inverse(self) -> Array:
        """Return A^-1 = L'^-1 L^-1 of a positive definite matrix, `[n, n, W]`."""
        n, like = self.size, self.panels[0][:, 0]
        unit = jnp.broadcast_to(jnp.eye(n, dtype=like.dtype)[..., None], (n, *like.shape))
        columns = [column for panel in self._factor(unit) for column in panel]
        # Rows of the unit matrix below A become L'^-1.
        transposed = materialize(jnp.stack([column[-n:] for column in columns]), like)
        return gram(transposed, transposed)

    def _factor(self, below: Array) -> list[list[Array]]:
        """Return the columns of L with A = L L', panel by panel, each from the diagonal down.

        Rows B appended below the matrix, `[rows, n, W]`, become B L'^-1. With B = b' this is the
        forward substitution.
        """
        done: list[list[Array]] = []
        columns_per_panel = self.panels[0].shape[1]
        for k, panel in enumerate(self.panels):
            start, width = k * columns_per_panel, panel.shape[1]
            panel = jnp.concatenate([panel, below[:, start : start + width]])
            # Subtract the products with all finished columns to the left.
            for before, columns in enumerate(done):
                skip = (k - before) * columns_per_panel
                for column in columns:
                    below_diagonal = lax.slice_in_dim(column, skip, None)
                    across = lax.slice_in_dim(column, skip, skip + width)
                    panel = lax.sub(panel, _outer_product(below_diagonal, across))
            # Factorize the panel itself.
            panel = materialize(panel, below[0])
            done.append(materialize(_columns(panel), below[0]))
        return done


@partial(jax.jit, inline=True)  # traced once for all systems of a size
def _factorize_and_solve(A: PackedLower, b: Array) -> Array:
    """Solve by factorization, forward substitution in the appended row, and back substitution."""
    return _solve_transposed(A._factor(b[None]), b)


def _columns(panel: Array) -> list[Array]:
    """Return the columns of L from those of an updated panel; not valid above the diagonal."""
    columns: list[Array] = []
    for t in range(panel.shape[1]):
        # Subtract the earlier columns of the panel, then divide by the root of the pivot.
        c = _column(panel, t)
        for column in columns:
            pivot = jnp.broadcast_to(lax.slice_in_dim(column, t, t + 1), column.shape)
            c = lax.sub(c, lax.mul(column, pivot))
        columns.append(c * lax.rsqrt(c[t : t + 1]))
    return columns


def _solve_transposed(factor: list[list[Array]], like: Array) -> Array:
    """Solve L' x = y, panel by panel from the last; y is the last entry of each column."""
    x: Array = like[:0]  # grows from the last entry
    for columns in reversed(factor):
        width = len(columns)
        known = [_item(x, i) for i in range(len(x))]
        rest = []
        # Subtract the entries of x that are known, below this panel.
        for column in columns:
            v = _item(column, len(column) - 1)
            for i, item in enumerate(known):
                v = lax.sub(v, lax.mul(_item(column, width + i), item))
            rest.append(v)
        # Solve the triangle of the panel.
        sums = materialize(jnp.concatenate(rest), like)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = _item(sums, t)
            for u in range(t + 1, width):
                v = lax.sub(v, lax.mul(_item(columns[t], u), out[u]))
            out[t] = lax.div(v, _item(columns[t], t))
        x = materialize(jnp.concatenate([*out, x]), like)
    return x


# These helpers occur thousands of times: `lax` operations trace five times faster than `jnp`
# expressions.
def _column(a: Array, k: int) -> Array:
    """Return `a[:, k]`."""
    return lax.index_in_dim(a, k, 1, keepdims=False)


def _item(a: Array, k: int) -> Array:
    """Return `a[k : k + 1]`; keeping the axis leaves XLA no reshape to move between sums."""
    return lax.slice_in_dim(a, k, k + 1)


def _outer_product(a: Array, b: Array) -> Array:
    """Return `a[:, None] * b[None]`."""
    shape = (len(a), len(b), *a.shape[1:])
    worlds = range(2, len(shape))
    return lax.mul(
        lax.broadcast_in_dim(a, shape, (0, *worlds)), lax.broadcast_in_dim(b, shape, (1, *worlds))
    )
