"""The Hessian M + J' W J in a kernel, by blocks that are made when they are asked for."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import loop, read
from jaxsim.physics.arrays.system import spd_kernel
from jaxsim.physics.arrays.system.spd_kernel import places, within
from jaxsim.physics.solver.kernel.rows import Rows, entry


class Hessian(NamedTuple):
    """The matrix of a Newton step; it has what `spd_kernel.solve` asks for.

    Attributes:
      M: `[nv, nv, worlds]` in memory.
      size: nv.
      diagonal: what rows of one dof add, `[nv, worlds]` in memory.
      rows: blocks of other rows, with the number of those in them that push.
    """

    M: Any
    size: int
    diagonal: Any
    rows: list[tuple[Rows, Array]]

    def block(self, i: Array, j: Array) -> list[list[Array]]:
        """Entries of a block of the matrix."""
        rows, columns = places(i), places(j)
        inertia = spd_kernel.Given(self.M, self.size)
        out = [[inertia.entry(r, c) + self._one_dof(r, c) for c in columns] for r in rows]
        for block, number in self.rows:
            out = loop(number, lambda k, a, b=block: _plus(b, k, rows, columns, a), out)
        return out

    def _one_dof(self, r: Array, c: Array) -> Array:
        value = self.diagonal[within(r, self.size), :]
        return jnp.where((r == c) & (r < self.size), value, jnp.zeros_like(value))


def _plus(block: Rows, i: Array, rows: list, columns: list, out: list) -> list:
    """The block of the matrix with what the row of place `i` in the list adds."""
    k, basis = entry(block.own.pushing, i), range(block.size)
    triangle = block.size * (block.size + 1) // 2
    lower = {
        (p, q): block.own.weight[triangle * i + p * (p + 1) // 2 + q, :]
        for p in basis
        for q in range(p + 1)
    }
    right = [[_jacobian(block, p, k, c) for p in basis] for c in columns]
    weighted = [
        [sum(lower[max(p, q), min(p, q)] * column[q] for q in basis) for p in basis]
        for column in right
    ]
    left = [[_jacobian(block, p, k, r) for p in basis] for r in rows]
    return [
        [value + sum(left[a][p] * weighted[c][p] for p in basis) for c, value in enumerate(values)]
        for a, values in enumerate(out)
    ]


def _jacobian(block: Rows, p: int, k: Array, dof: Array) -> Array:
    nv = block.given.J.shape[2]
    value = read(block.given.J, p, k, within(dof, nv))
    return jnp.where(dof < nv, value, jnp.zeros_like(value))
