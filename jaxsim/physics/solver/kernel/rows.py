"""Constraint rows in the memory of a kernel: J x, J' f, costs, and what they add to the Hessian.

The costs are those of constraint/cost.py and cone.py, asked row by row. Rows that do not act in any
world of a warp are left out: it makes a list of those that do, first of the rows that are active,
in each iteration of those that push.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import LANES, loop, read, room, some, write
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided, Piece, Quadratic
from jaxsim.physics.constraint.jacobian import (
    BasisJacobian,
    DenseJacobian,
    DofJacobian,
    SparseJacobian,
)
from jaxsim.physics.constraint.rows import Block

Cost = Quadratic | OneSided | Huber | Pyramid | Elliptic


class Given(NamedTuple):
    """Rows as they come.

    Attributes:
      J: `[basis, n, nv, worlds]`; of rows that touch one dof each their entries `[n, worlds]`.
      dof: of such rows the dofs, int32 `[n, 1]`; else None.
      cost: of the residuals.
      aref: list over the basis of reference accelerations `[n, worlds]`.
    """

    J: Any
    dof: Any
    cost: Cost
    aref: list


def given(block: Block) -> Given:
    """What a kernel is given of a block of rows."""
    cost, aref = block.cost, block.aref
    if isinstance(cost, Pyramid | Elliptic):
        cost = replace(cost, used=None)  # the kernel finds who acts
    else:
        aref = [aref]
    match block.J:
        case DofJacobian(dof, sign):
            table = jnp.asarray(np.array(dof, np.int32)[:, None])
            return Given(sign, table, cost, aref)
        case DenseJacobian(matrix):
            return Given(matrix[None], None, cost, aref)
        case BasisJacobian(basis):
            return Given(basis, None, cost, aref)
    raise TypeError(f"rows of a {type(block.J).__name__} have no form for kernels")


def serves(block: Block) -> bool:
    """Whether there is a form for these rows: Jacobians of flexes by entries have none."""
    return not isinstance(block.J, SparseJacobian) and len(jax.tree.leaves(block.aref)[0]) > 0


class Memory(NamedTuple):
    """What a kernel writes of a block of rows; row `k` of basis vector `p` stands at `basis k + p`.

    Attributes:
      r: residuals `[n basis, worlds]`.
      change: J v, likewise.
      active: int32 `[n, worlds]`: rows that are active in some world of a warp, in order.
      pushing: likewise of those that have a curvature; None where rows touch one dof each.
      weight: their curvatures, lower triangles row by row, `[n triangle, worlds]`.
    """

    r: Any
    change: Any
    active: Any
    pushing: Any
    weight: Any


def memory(rows: Given, like: Array) -> Memory:
    """Shapes of `Memory`."""
    size = len(rows.aref)
    n = len(jax.tree.leaves(rows.cost)[0])
    residuals, numbers = room((n * size,), like), room((n,), like, jnp.int32)
    if rows.dof is not None:
        return Memory(residuals, residuals, numbers, None, None)
    weight = room((n * (size * (size + 1) // 2),), like)
    return Memory(residuals, residuals, numbers, numbers, weight)


class Rows(NamedTuple):
    """A block of rows in memory; `number` of them are active in some world of the warp."""

    given: Given
    own: Memory
    number: Any

    @classmethod
    def of(cls, given: Given, own: Memory) -> "Rows":
        """Looks for the active rows."""

        def look(k: Array, number: Array) -> Array:
            D = _row(given.cost, k).D
            here = some(jnp.broadcast_to(D[0] if isinstance(D, list) else D, (LANES,)) > 0)
            return _listed(own.active, number, k, here)

        return cls(given, own, loop(len(jax.tree.leaves(given.cost)[0]), look, jnp.int32(0)))

    @property
    def size(self) -> int:
        """Vectors of the basis."""
        return len(self.given.aref)

    @property
    def of_dofs(self) -> bool:
        """Whether each row touches one dof."""
        return self.given.dof is not None

    def each(self, body: Any, start: Any = None) -> Any:
        """`body(k, state)` for the active rows."""
        return loop(self.number, lambda i, s: body(entry(self.own.active, i), s), start)

    def times(self, x: Any, out: Any, minus_reference: bool) -> None:
        """J x, or J x - aref, for x in memory; into `own.r` or `own.change`."""

        def row(k: Array, _: None) -> None:
            for p, y in enumerate(self._times(k, x)):
                aref = read(self.given.aref[p], k) if minus_reference else 0
                write(out, self.size * k + p, y - aref)

        self.each(row)

    def cost(self, r: Any) -> Array:
        """The cost at residuals, `[LANES]`."""

        def row(k: Array, total: Array) -> Array:
            return total + self._piece(k, r).cost

        return self.each(row, jnp.zeros((LANES,), r.dtype))

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """First and second derivative of the cost along r + step change."""

        def row(k: Array, sums: tuple) -> tuple:
            r, v = (self._residual(k, a) for a in (self.own.r, self.own.change))
            for line in _row(self.given.cost, k).lines(r, v):
                sums = tuple(a + b for a, b in zip(sums, line.derivatives(step), strict=True))
            return sums

        found: tuple = self.each(row, (jnp.zeros_like(step), jnp.zeros_like(step)))
        return found

    def crossed(self, step: Array) -> Array:
        """How many rows have another quadratic at r + step change than at r."""

        def row(k: Array, number: Array) -> Array:
            r, v = (self._residual(k, a) for a in (self.own.r, self.own.change))
            return sum((a.crossed(step) for a in _row(self.given.cost, k).lines(r, v)), number)

        number: Array = self.each(row, jnp.zeros_like(step))
        return number

    def push(self, force: Any, diagonal: Any) -> Array:
        """Adds J' f, and what rows of one dof have for the Hessian; notes what the others have.

        Args:
          force: `[nv, worlds]` in memory.
          diagonal: likewise.

        Returns:
          How many rows push in some world of the warp, int32.
        """

        def row(k: Array, number: Array) -> Array:
            piece = self._piece(k, self.own.r)
            if self.of_dofs:
                dof = read(self.given.dof, k)
                write(force, dof, force[dof, :] + read(self.given.J, k) * piece.force)
                write(diagonal, dof, diagonal[dof, :] + piece.weight)
                return number

            f, weight = _lists(piece)

            def along(j: Array, _: None) -> None:
                push = sum(read(self.given.J, p, k, j) * f[p] for p in range(self.size))
                write(force, j, force[j, :] + push)

            loop(force.shape[0], along)
            for q, w in enumerate(weight):
                write(self.own.weight, len(weight) * number + q, w)
            bends = some(jnp.broadcast_to(weight[0], (LANES,)) != 0)
            return _listed(self.own.pushing, number, k, bends)

        number: Array = self.each(row, jnp.int32(0))
        return number

    def _times(self, k: Array, x: Any) -> list[Array]:
        """A row of J x over the basis."""
        J = self.given.J
        if self.of_dofs:
            return [read(J, k) * x[read(self.given.dof, k), :]]

        def along(j: Array, sums: list) -> list:
            return [a + read(J, p, k, j) * x[j, :] for p, a in enumerate(sums)]

        return loop(J.shape[2], along, [jnp.zeros((LANES,), x.dtype)] * self.size)

    def _piece(self, k: Array, r: Any) -> Piece:
        """Force, cost and curvature of a row."""
        return _row(self.given.cost, k).at(self._residual(k, r))

    def _residual(self, k: Array, r: Any) -> Any:
        """What a cost takes: of contacts a list over the basis."""
        values = [r[self.size * k + p, :] for p in range(self.size)]
        return values if isinstance(self.given.cost, Pyramid | Elliptic) else values[0]


def _row(cost: Cost, k: Array) -> Any:
    """The cost of one row, or contact."""
    return jax.tree.map(lambda a: read(a, k), cost)


def _lists(piece: Piece) -> tuple[list, list]:
    """Force over the basis, and the lower triangle of the curvature."""
    if not isinstance(piece.force, list):
        return [piece.force], [piece.weight]
    basis = range(len(piece.force))
    return piece.force, [piece.weight[p][q] for p in basis for q in range(p + 1)]


def entry(numbers: Any, i: Array) -> Array:
    """An entry of a list, which all worlds of a warp share."""
    return jnp.max(numbers[i, :])


def _listed(numbers: Any, number: Array, k: Array, here: Array) -> Array:
    """Puts `k` at the end of a list; whether it stays there is for `here` to say."""
    write(numbers, number, k)
    return number + here.astype(jnp.int32)
