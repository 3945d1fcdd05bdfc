"""Constraint rows in a kernel: J x, J' f, costs, and what they add to the Hessian.

Rows lie along the lanes, so that the costs of constraint/cost.py and cone.py, which go row by row,
are asked for all of them at once. Rows that touch one dof each lie at the lane of their dof. Of the
others a program makes a list of those that are active in its world and copies their Jacobians to
memory of its own: of forty places for contacts a world uses four or five.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.kernel import (
    Room,
    lanes_of,
    load,
    loop,
    numbers,
    settle,
    store,
    total,
)
from jaxsim.physics.arrays.system.spd_kernel import Tiles, part, width
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
      row: of such rows the row of each dof, -1 where it has none, int32 `[nv, 1]`; else None.
      cost: of the residuals.
      aref: list over the basis of reference accelerations `[n, worlds]`.
    """

    J: Any
    row: Any
    cost: Cost
    aref: list


def given(block: Block, nv: int) -> list[Given]:
    """What a kernel is given of a block of rows: more than one where a dof has several rows."""
    cost, aref = block.cost, block.aref
    if isinstance(cost, Pyramid | Elliptic):
        cost = replace(cost, used=None)  # the kernel finds who acts
    else:
        aref = [aref]
    match block.J:
        case DofJacobian(dof, sign):
            return [Given(sign, row, cost, aref) for row in _rows_of_dofs(dof, nv)]
        case DenseJacobian(matrix):
            return [Given(matrix[None], None, cost, aref)]
        case BasisJacobian(basis):
            return [Given(basis, None, cost, aref)]
    raise TypeError(f"rows of a {type(block.J).__name__} have no form for kernels")


def _rows_of_dofs(dof: tuple[int, ...], nv: int) -> list[Array]:
    """Tables of the row of each dof, `[nv, 1]`; as many as a dof has rows at most."""
    tables: list[np.ndarray] = []
    for row, at in enumerate(dof):
        free = next((t for t in tables if t[at] < 0), None)
        if free is None:
            free = np.full((nv, 1), -1, np.int32)
            tables.append(free)
        free[at] = row
    return [jnp.asarray(t) for t in tables]


def serves(block: Block) -> bool:
    """Whether there is a form for these rows: Jacobians of flexes by entries have none."""
    return not isinstance(block.J, SparseJacobian) and len(jax.tree.leaves(block.aref)[0]) > 0


class Memory(NamedTuple):
    """What a kernel writes of rows that touch several dofs.

    Attributes:
      order: the active rows in order, then the others, int32 `[n]`.
      J: their Jacobians `[n, basis, width]`, as wide as the tiles of the Hessian.
      force, weight: what they push with and their curvature, lower triangles, row by row.
    """

    order: Room
    J: Room
    force: Room
    weight: Room


class MemoryOfDofs(NamedTuple):
    """What a kernel writes of rows that touch one dof each: their curvature `[width]`."""

    weight: Room


def memory(rows: Given, nv: int) -> Memory | MemoryOfDofs:
    """The memory that rows need."""
    if rows.row is not None:
        return MemoryOfDofs(Room((width(nv),), rows.J.dtype, public=False))
    (size, n), dtype = rows.J.shape[:2], rows.J.dtype
    return Memory(
        Room((n,), jnp.int32, public=False),
        *(
            Room(a, dtype, public=False)
            for a in ((n, size, width(nv)), (n, size), (n, _lower(size)))
        ),
    )


def _lower(size: int) -> int:
    """Entries of a lower triangle."""
    return size * (size + 1) // 2


def read(rows: Given, own: Any, lanes: int) -> "OfDofs | OfBasis":
    """The rows of a world in registers and memory of its program."""
    return (OfBasis if rows.row is None else OfDofs).of(rows, own, lanes)


class OfDofs(NamedTuple):
    """Rows that touch one dof each: `[lanes]`, at the lanes of their dofs.

    Attributes:
      own: `MemoryOfDofs`.
      sign: entry of the Jacobian.
      cost, aref: as in `Given`.
    """

    own: Any
    sign: Array
    cost: Any
    aref: Array

    @classmethod
    def of(cls, given: Given, own: Any, lanes: int) -> "OfDofs":
        """Reads the row of each dof."""
        place, nv = numbers(lanes), given.row.shape[0]
        row = jnp.where(place < nv, load(given.row, place, where=place < nv), -1)
        rest = _gathered((given.J, given.cost, given.aref[0]), row, row >= 0)
        return cls(own, *rest)

    def times(self, x: Array) -> Array:
        """J x."""
        return self.sign * x

    def minus_reference(self, y: Array) -> Array:
        """J x - aref from J x."""
        return y - self.aref

    def push(self, piece: Piece) -> Array:
        """J' f along the dofs; notes the curvature for `add_gram`."""
        place, end = numbers(len(piece.weight)), self.own.weight.shape[0]
        settle()  # nobody reads that of the turn before
        store(self.own.weight, place, value=piece.weight, where=place < end)
        settle()
        return self.sign * piece.force

    def add_gram(self, H: Tiles, piece: Piece, act: Array) -> Tiles:
        """H + J' W J where `act` is true, with what `push` has noted; signs are squared away."""
        del piece
        side = len(H[0][0])
        place = numbers(side)
        there = (place[:, None] == place[None, :]) & act
        weight = [part(self.own.weight, i, side) for i in range(len(H))]
        return [
            [row[0] + jnp.where(there, w[None, :], 0), *row[1:]]
            for row, w in zip(H, weight, strict=True)
        ]


class OfBasis(NamedTuple):
    """Rows, or contacts, with a Jacobian each: those that are active, one a lane.

    Attributes:
      own: `Memory`.
      lanes: of a vector over the dofs.
      number: how many are active.
      cost, aref: as in `Given`.
    """

    own: Any
    lanes: int
    number: Array
    cost: Any
    aref: list

    @classmethod
    def of(cls, given: Given, own: Any, lanes: int) -> "OfBasis":
        """Looks for the active rows, and copies what belongs to them."""
        size, n, nv = given.J.shape
        row = numbers(lanes_of(n))
        D = jax.tree.leaves(given.cost.D)[0]
        active = load(D, row, where=row < n) > 0
        until = jnp.cumsum(active.astype(jnp.int32), dtype=jnp.int32)
        count = total(active.astype(jnp.int32))
        place = jnp.where(active, until - 1, count + row - until)  # the others behind
        store(own.order, place, value=row, where=row < n)
        settle()

        dof, end = numbers(lanes), own.J.shape[2]

        def copy(k: Array, _: None) -> None:
            row = own.order[k]
            for p in range(size):
                values = load(given.J, p, row, dof, where=dof < nv)
                store(own.J, k, p, dof, value=values, where=dof < end)

        loop(count, copy, None)
        there = row < count
        order = load(own.order, row, where=there)
        settle()
        return cls(own, lanes, count, *_gathered((given.cost, given.aref), order, there))

    def times(self, x: Array) -> Any:
        """J x: of contacts a list over the basis."""
        size, lane = len(self.aref), numbers(len(self.aref[0]))

        def row(k: Array, out: list) -> list:
            products = (total(self._row(k, p) * x) for p in range(size))
            return [jnp.where(lane == k, y, a) for y, a in zip(products, out, strict=True)]

        out = loop(self.number, row, [jnp.zeros_like(a) for a in self.aref])
        return out if self._of_contacts else out[0]

    def minus_reference(self, y: Any) -> Any:
        """J x - aref from J x."""
        if not self._of_contacts:
            return y - self.aref[0]
        return [a - b for a, b in zip(y, self.aref, strict=True)]

    def push(self, piece: Piece) -> Array:
        """J' f along the dofs; notes the curvature for `add_gram`."""
        contacts, basis = self._of_contacts, range(len(self.aref))
        force = piece.force if contacts else [piece.force]
        weight = piece.weight if contacts else [[piece.weight]]
        lane, n = numbers(len(force[0])), self.own.J.shape[0]
        settle()  # nobody reads those of the turn before
        for p in basis:
            store(self.own.force, lane, p, value=force[p], where=lane < n)
        for k, w in enumerate(weight[p][q] for p in basis for q in range(p + 1)):
            store(self.own.weight, lane, k, value=w, where=lane < n)
        settle()

        def row(k: Array, out: Array) -> Array:
            pushes = (self.own.force[k, p] * self._row(k, p) for p in basis)
            return sum(pushes, out)

        out = jnp.zeros((self.lanes,), self.own.J.dtype)
        out = self._each(_some_number(force), row, out)
        return out

    def add_gram(self, H: Tiles, piece: Piece, act: Array) -> Tiles:
        """H + J' W J where `act` is true, with the curvature that `push` has noted."""
        basis = range(len(self.aref))
        normal = piece.weight[0][0] if self._of_contacts else piece.weight

        def row(k: Array, H: Tiles) -> Tiles:
            side = len(H[0][0])
            J = [[part(self.own.J, i, side, k, p) for i in range(len(H))] for p in basis]
            for p in basis:
                weight = [self.own.weight[k, _lower(max(p, q)) + min(p, q)] for q in basis]
                right = [
                    sum(w * a for w, a in zip(weight, column, strict=True))
                    for column in zip(*J, strict=True)
                ]
                H = [
                    [tile + J[p][i][:, None] * right[j][None, :] for j, tile in enumerate(tiles, i)]
                    for i, tiles in enumerate(H)
                ]
            return H

        out: Tiles = self._each((normal != 0) & act, row, H)
        return out

    @property
    def _of_contacts(self) -> bool:
        return isinstance(self.cost, Pyramid | Elliptic)

    def _row(self, k: Array, p: int) -> Array:
        """The Jacobian of an active row, along the dofs."""
        dof, end = numbers(self.lanes), self.own.J.shape[2]
        return load(self.own.J, k, p, dof, where=None if self.lanes == end else dof < end)

    def _each(self, mask: Array, body: Any, start: Any) -> Any:
        """`body(k, state)` for the active rows where a mask `[lanes of rows]` is true."""
        lane, end = numbers(len(mask)), jnp.int32(len(mask))

        def after(k: Array) -> Array:
            return jnp.min(jnp.where(mask & (lane > k), lane, end))

        def turn(state: tuple) -> tuple:
            k, value = state
            return after(k), body(k, value)

        state = (after(jnp.int32(-1)), start)
        return lax.while_loop(lambda state: state[0] < end, turn, state)[1]


Rows = OfDofs | OfBasis


def _some_number(force: list) -> Array:
    there = force[0] != 0
    for f in force[1:]:
        there = there | (f != 0)
    return there


def _gathered(tree: Any, index: Array, there: Array) -> Any:
    """Numbers of rows, one a lane; zero, or false, where a lane has no row."""

    def gather(ref: Any) -> Array:
        return load(ref, index, where=there)

    return jax.tree.map(gather, tree)
