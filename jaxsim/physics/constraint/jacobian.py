"""Jacobians of constraint rows, stored by their structure.

All of them provide the solver's operations: J x (`times`), J' f (`transpose_times`) and H + J' W J
(`add_gram`). Those of dry friction also provide J (`dense`) and J M^-1 (`responses`).
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.arrays.dynamic import dynamic_update_slice_in_dim
from jaxsim.arrays.gather import column, gather_static, sum_groups
from jaxsim.arrays.linear import group_table
from jaxsim.arrays.node import node
from jaxsim.arrays.products import (
    PerContact,
    apply_basis,
    apply_basis_transpose,
    gram_basis,
    row_responses,
)
from jaxsim.linalg.operator import AnySymmetric
from jaxsim.transforms.materialize import materialize


@node("dof")
class DofJacobian:
    """Rows with one nonzero each: dry friction and joint limits.

    Attributes:
      dof: the dof of each row.
      sign: the row's entry there, 1 or -1, `[n, *W]`.
    """

    dof: tuple[int, ...]
    sign: jax.Array

    def times(self, x: Array) -> Array:
        """Compute J x, `[nv, *W]` -> `[n, *W]`."""
        return self.sign * gather_static(x, self.dof)

    def transpose_times(self, f: Array, nv: int) -> Array:
        """Compute J' f, `[n, *W]` -> `[nv, *W]`."""
        return self._to_dofs(self.sign * f, nv)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """Return H + J' W J, a diagonal update since the entries are +-1."""
        return H.add_diagonal(self._to_dofs(weight, H.size))

    def dense(self, nv: int) -> Array:
        """Return the matrix `[n, nv, *W]`."""
        one_hot = jnp.asarray(column(np.eye(nv)[list(self.dof)], self.sign))
        return one_hot * self.sign[:, None]

    def responses(self, inverse: Array) -> Array:
        """Return J A^-1 for an inverse `[nv, nv, *W]`: the signed rows of it, `[n, nv, *W]`."""
        return self.sign[:, None] * gather_static(inverse, self.dof)

    def _to_dofs(self, a: Array, nv: int) -> Array:
        """Sum one value per row onto its dof (a dof may have several rows)."""
        return sum_groups(a, group_table(np.array(self.dof), nv))


@node("dofs")
class SparseJacobian:
    """Rows with a few nonzeros each: edges of flexes. Memory is proportional to the nonzeros.

    Attributes:
      dofs: the dofs of each row, padded by repetition to equal length.
      entries: the row's entries there, `[n, k, *W]`; 0 for repeated dofs.
    """

    dofs: tuple[tuple[int, ...], ...]
    entries: jax.Array

    @property
    def _table(self) -> np.ndarray:
        return np.array(self.dofs, int)

    def times(self, x: Array) -> Array:
        """Compute J x, `[nv, *W]` -> `[n, *W]`."""
        table = self._table
        of_row = gather_static(x, table.ravel()).reshape(*table.shape, *x.shape[1:])
        return jnp.sum(self.entries * of_row, axis=1)

    def transpose_times(self, f: Array, nv: int) -> Array:
        """Compute J' f, `[n, *W]` -> `[nv, *W]`."""
        push = self.entries * f[:, None]
        flat = push.reshape(-1, *push.shape[2:])
        return sum_groups(flat, group_table(self._table.ravel(), nv))

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """Return H + J' W J, a k x k block for each row."""
        # k x k products per row; `at` is the address row * nv + column of each in H.
        table = self._table
        nv, (n, k) = H.size, table.shape
        at = (table[:, :, None] * nv + table[:, None]).ravel()
        block = self.entries[:, :, None] * (weight[:, None] * self.entries)[:, None]
        flat = block.reshape(n * k * k, *block.shape[3:])
        # Sum the entries of blocks at equal positions.
        address, group = np.unique(at, return_inverse=True)
        sums = sum_groups(flat, group_table(group.ravel(), len(address)))
        return H.add_entries(address // nv, address % nv, sums)

    def dense(self, nv: int) -> Array:
        """Return the matrix `[n, nv, *W]`."""
        table = self._table
        out = jnp.zeros((len(table), nv, *self.entries.shape[2:]), self.entries.dtype)
        return out.at[np.arange(len(table))[:, None], table].add(self.entries)

    def responses(self, inverse: Array) -> Array:
        """Return J A^-1 for a symmetric inverse `[nv, nv, *W]`: `[n, nv, *W]`."""
        return row_responses(self.dense(len(inverse)), inverse)


@node()
class DenseJacobian:
    """Rows with a dense matrix `[n, nv, *W]`: equalities, tendons, ball limits."""

    matrix: jax.Array

    def times(self, x: Array) -> Array:
        """Compute J x, `[nv, *W]` -> `[n, *W]`."""
        return apply(self.matrix, x)

    def transpose_times(self, f: Array, nv: int) -> Array:
        """Compute J' f, `[n, *W]` -> `[nv, *W]`."""
        del nv
        return apply_transpose(self.matrix, f)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """Return H + J' W J."""
        weighted = weight[:, None] * self.matrix
        return H.add_outer(self.matrix, materialize(weighted, weighted[0]))

    def dense(self, nv: int) -> Array:
        """Return the matrix `[n, nv, *W]`."""
        del nv
        return self.matrix

    def responses(self, inverse: Array) -> Array:
        """Return J A^-1 for a symmetric inverse `[nv, nv, *W]`: `[n, nv, *W]`."""
        return row_responses(self.matrix, inverse)


@node()
class BasisJacobian:
    """Contacts in their basis: normal, two tangents, spin, two rolls.

    The edges of a friction pyramid are combinations of the basis, so that 4, 6 or 10 rows take the
    products of 3, 4 or 6. Vectors over rows are lists over the basis of `[ncon, *W]`.

    Attributes:
      basis: `[size, ncon, nv, *W]`.
      used: contacts up to the last active one in any world, int scalar; None: not known.
    """

    basis: jax.Array
    used: jax.Array | None

    def times(self, x: Array) -> list:
        """Compute J x, `[nv, *W]` -> list of `[ncon, *W]`."""
        return list(apply_basis(self.basis, x, self.used))

    def transpose_times(self, f: list | PerContact, nv: int) -> Array:
        """Compute J' f, list of `[ncon, *W]` -> `[nv, *W]`."""
        del nv
        return apply_basis_transpose(self.basis, f, self.used)

    def add_gram(self, H: AnySymmetric, weight: list | PerContact) -> AnySymmetric:
        """Return H + J' W J; W of each contact as nested lists over the basis of `[ncon, *W]`."""
        return gram_basis(H, self.basis, weight, self.used)

    def with_contacts(self, new: Any, first: Array) -> "BasisJacobian":
        """Replace the rows of the contacts from index `first` on."""
        basis = dynamic_update_slice_in_dim(self.basis, new.basis, first, axis=1)
        return replace(self, basis=basis)
