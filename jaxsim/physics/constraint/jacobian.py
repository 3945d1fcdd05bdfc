"""Jacobians of constraint rows, each in the form that its structure allows.

All of them answer the questions of the solver: J x, J' f and H + J' W J.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply, apply_transpose
from jaxsim.physics.arrays.linear import groups
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import apply_basis, apply_basis_transpose, gram_basis
from jaxsim.physics.arrays.select import column, sum_groups, take, weighted_sum
from jaxsim.physics.arrays.system.lower import AnySymmetric


@node("dof")
class DofJacobian:
    """Rows that touch one dof each: dry friction and joint limits.

    Attributes:
      dof: the dof of each row.
      sign: `[n, *W]` the row's entry there, 1 or -1.
    """

    dof: tuple[int, ...]
    sign: jax.Array

    def times(self, x: Array) -> Array:
        """J x, `[nv, *W]` -> `[n, *W]`."""
        return self.sign * take(x, self.dof)

    def transposed(self, f: Array, nv: int) -> Array:
        """J' f, `[n, *W]` -> `[nv, *W]`."""
        return self._to_dofs(self.sign * f, nv)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """H + J' W J, a diagonal: the signs are squared away."""
        return H.plus_diagonal(self._to_dofs(weight, H.size))

    def dense(self, nv: int) -> Array:
        """The matrix `[n, nv, *W]`."""
        place = jnp.asarray(column(np.eye(nv)[list(self.dof)], self.sign))
        return place * self.sign[:, None]

    def _to_dofs(self, a: Array, nv: int) -> Array:
        """Sums one number a row onto its dof (a dof may have several rows)."""
        if self.dof == tuple(range(nv)):
            return a
        place = np.zeros((nv, len(self.dof)))
        place[self.dof, np.arange(len(self.dof))] = 1
        return weighted_sum(place, a)


@node("dofs")
class SparseJacobian:
    """Rows that touch a few dofs each: edges of flexes. Memory follows their entries.

    Attributes:
      dofs: the dofs of each row, all rows of one length; a row of fewer has some again.
      entries: `[n, k, *W]` the row's entries there; 0 where a dof is there again.
    """

    dofs: tuple[tuple[int, ...], ...]
    entries: jax.Array

    @property
    def _table(self) -> np.ndarray:
        return np.array(self.dofs, int)

    def times(self, x: Array) -> Array:
        """J x, `[nv, *W]` -> `[n, *W]`."""
        table = self._table
        of_row = take(x, table.ravel()).reshape(*table.shape, *x.shape[1:])
        return jnp.sum(self.entries * of_row, axis=1)

    def transposed(self, f: Array, nv: int) -> Array:
        """J' f, `[n, *W]` -> `[nv, *W]`."""
        push = self.entries * f[:, None]
        flat = push.reshape(-1, *push.shape[2:])
        return sum_groups(flat, groups(self._table.ravel(), nv))

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """H + J' W J: a block of k times k numbers for each row."""
        table = self._table
        nv, (n, k) = H.size, table.shape
        at = (table[:, :, None] * nv + table[:, None]).ravel()
        block = self.entries[:, :, None] * (weight[:, None] * self.entries)[:, None]
        flat = block.reshape(n * k * k, *block.shape[3:])
        place, owner = np.unique(at, return_inverse=True)
        sums = sum_groups(flat, groups(owner.ravel(), len(place)))
        return H.plus_entries(place // nv, place % nv, sums)

    def dense(self, nv: int) -> Array:
        """The matrix `[n, nv, *W]`."""
        table = self._table
        out = jnp.zeros((len(table), nv, *self.entries.shape[2:]), self.entries.dtype)
        return out.at[np.arange(len(table))[:, None], table].add(self.entries)


@node()
class DenseJacobian:
    """Rows with a matrix `[n, nv, *W]`, of all worlds: equalities, tendons, limits of balls."""

    matrix: jax.Array

    def times(self, x: Array) -> Array:
        """J x, `[nv, *W]` -> `[n, *W]`."""
        return apply(self.matrix, x)

    def transposed(self, f: Array, nv: int) -> Array:
        """J' f, `[n, *W]` -> `[nv, *W]`."""
        del nv
        return apply_transpose(self.matrix, f)

    def add_gram(self, H: AnySymmetric, weight: Array) -> AnySymmetric:
        """H + J' W J."""
        weighted = weight[:, None] * self.matrix
        return H.plus_products(self.matrix, pin(weighted, weighted[0]))

    def dense(self, nv: int) -> Array:
        """The matrix `[n, nv, *W]`."""
        del nv
        return self.matrix


@node()
class BasisJacobian:
    """Contacts in their basis: normal, two tangents, spin, two rolls.

    The edges of a friction pyramid are combinations of the basis, so that 4, 6 or 10 rows take
    products of 3, 4 or 6. Vectors over rows are lists over the basis of `[ncon, *W]`.

    Attributes:
      basis: `[size, ncon, nv, *W]`.
      used: contacts up to the last that pushes in any world, int scalar; None: not known.
    """

    basis: jax.Array
    used: jax.Array | None

    def times(self, x: Array) -> list:
        """J x, `[nv, *W]` -> list of `[ncon, *W]`."""
        return list(apply_basis(self.basis, x, self.used))

    def transposed(self, f: list, nv: int) -> Array:
        """J' f, list of `[ncon, *W]` -> `[nv, *W]`."""
        del nv
        return apply_basis_transpose(self.basis, f, self.used)

    def add_gram(self, H: AnySymmetric, weight: list) -> AnySymmetric:
        """H + J' W J; W of each contact as nested lists over the basis of `[ncon, *W]`."""
        return gram_basis(H, self.basis, weight, self.used)

    def with_contacts(self, new: Any, first: Array) -> "BasisJacobian":
        """With other rows for the contacts from number `first` on."""
        basis = lax.dynamic_update_slice_in_dim(self.basis, new.basis, first, axis=1)
        return replace(self, basis=basis)
