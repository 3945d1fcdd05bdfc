"""A symmetric matrix of many worlds of which only the lower triangle is kept, by panels of columns.

The solver adds up a Hessian and solves with it once. The upper triangle is neither added nor read,
and the panels of the sum are those of the factorization, so that half of the work of both is saved.
Everything that a later panel reads is pinned: left to itself XLA would recompute the whole history
of an entry in each of its users.
"""

from dataclasses import replace
from functools import partial
from typing import Protocol, Self, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import gram
from jaxsim.physics.arrays.select import take
from jaxsim.physics.arrays.system.between import Between

PANEL = 4  # columns


class Symmetric(Protocol):
    """A symmetric matrix to which others are added before a system is solved with it."""

    @property
    def size(self) -> int:
        """The number n of rows."""

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added, which is symmetric; both `[rows, n, *W]`."""

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n, *W]` added."""

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """With numbers `[k, *W]` added at constant places, which are symmetric and in order."""

    def takes(self, between: Between) -> bool:
        """Whether `plus_between` is there for such rows; else `plus_products` is."""

    def plus_between(self, between: Between) -> Self:
        """With J' W J of rows that touch few blocks added."""

    def solve(self, b: Array) -> Array:
        """x with A x = b, of a positive definite matrix; `[n, *W]`."""


AnySymmetric = TypeVar("AnySymmetric", bound=Symmetric)


@node()
class Lower:
    """The panels: columns `start .. start + width` from row `start` down, `[n - start, width, W]`.

    Attributes:
      panels: from the left.
    """

    panels: list[jax.Array]

    @classmethod
    def of(cls, A: Array) -> "Lower":
        """That of a symmetric matrix `[n, n, W]`."""
        n = len(A)
        return cls([A[k:, k : k + PANEL] for k in range(0, n, PANEL)])

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.panels[0])

    def plus_products(self, J: Array, G: Array) -> Self:
        """With J' G added, which is symmetric; both `[rows, n, W]`."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            start = self.size - height
            for r in range(len(J)):
                panel = panel + J[r, start:, None] * G[r, None, start : start + width]
            new.append(panel)
        return replace(self, panels=new)

    def plus_diagonal(self, values: Array) -> Self:
        """With a diagonal `[n, W]` added."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            start = self.size - height
            eye = jnp.eye(height, width, dtype=panel.dtype)[..., None]
            new.append(panel + eye * values[start:, None])
        return replace(self, panels=new)

    def plus_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """With numbers `[k, W]` added at constant places, which are symmetric and in order."""
        new = []
        for panel in self.panels:
            height, width, _ = panel.shape
            i, j = row - (self.size - height), column - (self.size - height)
            own = np.flatnonzero((i >= 0) & (j >= 0) & (j < width))
            place = panel.at[i[own], j[own]]
            new.append(place.add(take(values, own), unique_indices=True, indices_are_sorted=True))
        return replace(self, panels=new)

    def takes(self, between: Between) -> bool:
        """Not: the panels are of all rows."""
        del between
        return False

    def plus_between(self, between: Between) -> Self:
        """Not there."""
        raise NotImplementedError("Lower.plus_between")

    def solve(self, b: Array) -> Array:
        """x with A x = b, of a positive definite matrix; `[n, W]`."""
        found: Array = _solved(self, b)
        return found

    def inverse(self) -> Array:
        """A^-1 = L'^-1 L^-1, `[n, n, W]`, of a positive definite matrix."""
        n, like = self.size, self.panels[0][:, 0]
        unit = jnp.broadcast_to(jnp.eye(n, dtype=like.dtype)[..., None], (n, *like.shape))
        columns = [column for panel in self._factor(unit) for column in panel]
        transposed = pin(jnp.stack([column[-n:] for column in columns]), like)
        return gram(transposed, transposed)

    def _factor(self, below: Array) -> list[list[Array]]:
        """The columns of L with A = L L', panel by panel, each from the diagonal down.

        Rows B below the matrix `[rows, n, W]` become B L'^-1, so that forward substitution, of one
        row, needs no code of its own.
        """
        done: list[list[Array]] = []
        for k, panel in enumerate(self.panels):
            width = panel.shape[1]
            panel = jnp.concatenate([panel, below[:, k * PANEL : k * PANEL + width]])
            for before, columns in enumerate(done):
                skip = (k - before) * PANEL
                for column in columns:
                    below_diagonal = lax.slice_in_dim(column, skip, None)
                    across = lax.slice_in_dim(column, skip, skip + width)
                    panel = lax.sub(panel, _outer(below_diagonal, across))
            panel = pin(panel, below[0])
            done.append(pin(_columns(panel), below[0]))
        return done


@partial(jax.jit, inline=True)  # traced once for all systems of a size
def _solved(A: Lower, b: Array) -> Array:
    return _back(A._factor(b[None]), b)


def _columns(panel: Array) -> list[Array]:
    """The columns of the factor from those of a panel; above the diagonal: noise."""
    columns: list[Array] = []
    for t in range(panel.shape[1]):
        c = _column(panel, t)
        for column in columns:
            pivot = jnp.broadcast_to(lax.slice_in_dim(column, t, t + 1), column.shape)
            c = lax.sub(c, lax.mul(column, pivot))
        columns.append(c * lax.rsqrt(c[t : t + 1]))
    return columns


def _back(factor: list[list[Array]], like: Array) -> Array:
    """x from L' x = y, panel by panel from the last; y is the last entry of each column."""
    x: Array = like[:0]  # no entry yet
    for columns in reversed(factor):
        width = len(columns)
        known = [_item(x, i) for i in range(len(x))]
        rest = []
        for column in columns:
            v = _item(column, len(column) - 1)
            for i, item in enumerate(known):
                v = lax.sub(v, lax.mul(_item(column, width + i), item))
            rest.append(v)
        sums = pin(jnp.concatenate(rest), like)
        out: list = [None] * width
        for t in reversed(range(width)):
            v = _item(sums, t)
            for u in range(t + 1, width):
                v = lax.sub(v, lax.mul(_item(columns[t], u), out[u]))
            out[t] = lax.div(v, _item(columns[t], t))
        x = pin(jnp.concatenate([*out, x]), like)
    return x


# Thousands of operations: those of `lax` are traced in a fifth of the time of an expression.
def _column(a: Array, k: int) -> Array:
    """`a[:, k]`."""
    return lax.index_in_dim(a, k, 1, keepdims=False)


def _item(a: Array, k: int) -> Array:
    """`a[k : k + 1]`: where the axis stays, XLA has no reshape to move from one sum to the next."""
    return lax.slice_in_dim(a, k, k + 1)


def _outer(a: Array, b: Array) -> Array:
    """`a[:, None] * b[None]`."""
    shape = (len(a), len(b), *a.shape[1:])
    worlds = range(2, len(shape))
    return lax.mul(
        lax.broadcast_in_dim(a, shape, (0, *worlds)), lax.broadcast_in_dim(b, shape, (1, *worlds))
    )
