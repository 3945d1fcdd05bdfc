"""Sparse matrices `[rows, nv]` of constant pattern: tendon Jacobians and actuator moments.

Most entries of such a matrix are always zero: a motor moves one dof, a tendon a few. Stages compute
and multiply the other entries only; the full matrix is assembled only where it is requested.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum


@dataclass(frozen=True, eq=False)
class SparsityPattern:
    """Entries that can be nonzero, ordered by row and column.

    Attributes:
      row: row of each entry, `[nnz]`.
      col: column of each entry, `[nnz]`.
      shape: rows and columns of the matrix.
    """

    row: np.ndarray
    col: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def of(cls, mask: np.ndarray) -> "SparsityPattern":
        """Return the pattern of the true entries of a mask."""
        row, col = np.nonzero(mask)
        return cls(row, col, mask.shape)

    def dense(self, entries: Array) -> Array:
        """Return the full matrix `[rows, nv, *W]` of the entries `[nnz, *W]`."""
        worlds = entries.shape[1:]
        if not len(self.row):
            return jnp.zeros((*self.shape, *worlds), entries.dtype)
        # Gather from the entries and one zero, which fills the rest of the matrix.
        place = np.full(self.shape, len(self.row))
        place[self.row, self.col] = np.arange(len(self.row))
        padded = jnp.concatenate([entries, jnp.zeros_like(entries[:1])])
        return gather_static(padded, place.ravel()).reshape(*self.shape, *worlds)

    def entries(self, matrix: Array) -> Array:
        """Return the entries `[nnz, *W]` of a full matrix `[rows, nv, *W]`."""
        flat = matrix.reshape(self.shape[0] * self.shape[1], *matrix.shape[2:])
        return gather_static(flat, self.row * self.shape[1] + self.col)

    def apply(self, entries: Array, x: Array) -> Array:
        """Return the matrix times `x` `[nv, *W]`."""
        return weighted_sum(_member(self.row, self.shape[0]), entries * gather_static(x, self.col))

    def apply_transpose(self, entries: Array, f: Array) -> Array:
        """Return the transposed matrix times `f` `[rows, *W]`."""
        return weighted_sum(_member(self.col, self.shape[1]), entries * gather_static(f, self.row))


def _member(group: np.ndarray, count: int) -> np.ndarray:
    """Return the membership matrix `[count, n]`: 1 where item j belongs to group i."""
    return 1.0 * (np.arange(count)[:, None] == group)
