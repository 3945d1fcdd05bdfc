"""The interface of symmetric matrices: what the physics does with a mass matrix or a Hessian.

Each form (Dense, BlockDiagonal, TreeSparse, PackedLower, BlockedLower, Skyline) is a class in a
file of its own; choose.py decides which of them a system has. Additions return a new matrix. A
matrix is factorized once for each `solve`: the solver adds constraint rows to M, solves, and begins
again from M, so that no form keeps its factors.
"""

from typing import Self, TypeVar

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.linalg.contact_blocks import ContactBlocks


class Symmetric:
    """A symmetric matrix A to which others are added before a system is solved with it."""

    @property
    def size(self) -> int:
        """Return the number n of rows."""
        raise NotImplementedError

    def add_outer(self, J: Array, G: Array) -> Self:
        """Return A + J' G, where J' G is symmetric; J and G `[rows, n, *W]`."""
        raise NotImplementedError

    def add_diagonal(self, values: Array) -> Self:
        """Return A with a diagonal `[n, *W]` added."""
        raise NotImplementedError

    def add_entries(self, row: np.ndarray, column: np.ndarray, values: Array) -> Self:
        """Return A with numbers `[k, *W]` added at constant indices.

        The indices are distinct, sorted by row and then column, and symmetric: entries above the
        diagonal are given too.
        """
        raise NotImplementedError(f"{type(self).__name__}.add_entries")

    def supports(self, between: ContactBlocks) -> bool:
        """Return whether the form has `add_contact_blocks` for these contacts.

        Otherwise their rows are expanded to all dofs and added by `add_outer`.
        """
        del between
        return False

    def add_contact_blocks(self, between: ContactBlocks) -> Self:
        """Return A + J' W J, of contacts that touch few blocks of the matrix."""
        raise NotImplementedError(f"{type(self).__name__}.add_contact_blocks")

    def solve(self, b: Array) -> Array:
        """Solve A x = b for a positive definite A, b `[n, *W]`; NaN if it is not."""
        raise NotImplementedError


class MassMatrix(Symmetric):
    """A symmetric matrix that is multiplied and inspected too, in each step."""

    @property
    def diagonal(self) -> Array:
        """Return the diagonal, `[n, *W]`."""
        raise NotImplementedError

    def pivots(self) -> Array:
        """Return the diagonal of D in A = L' D L, `[n, *W]`."""
        raise NotImplementedError

    def times(self, x: Array) -> Array:
        """Return A x, `[n, *W]`."""
        raise NotImplementedError


AnySymmetric = TypeVar("AnySymmetric", bound=Symmetric)
