"""Constraint rows in a GPU kernel: J x, J' f, costs, and their contribution to the Hessian.

Rows are distributed over the lanes of a warp, so that the costs of constraint/cost.py and
constraint/cone.py, which are elementwise in rows, are evaluated for all of them at once. Scratch
memory is shared by the lanes of a warp; `synchronize_lanes` is the barrier between its writes and
reads. There are two layouts:

    rows with one nonzero (`OfDofs`): joint limits and friction, on the lane of their dof

        lane (dof)     0      1      2      3      4      5
        row            -      0      -      -      1      -      `_rows_of_dofs`, or `RowInputs.row`

    the others (`OfBasis`): a world uses four or five of forty contact slots, so the active ones are
    compacted, and their Jacobians copied to scratch memory

        slot           0      1      2      3      4      5
        active         0      1      0      0      1      1
        lane           -      0      -      -      1      2      `RowMemory.order` = 1, 4, 5, ...

`times` sums over the dofs, which is a sum over the lanes for each row; `transpose_times` and
`add_gram` visit the rows that act one after another (`_each`).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.linalg.spd_kernel import Tiles, load_part, padded_width
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import CostDerivatives, Huber, OneSided, Quadratic
from jaxsim.physics.constraint.jacobian import (
    BasisJacobian,
    DenseJacobian,
    DofJacobian,
    SparseJacobian,
)
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.transforms.pallas import (
    Output,
    lane_indices,
    lanes_of,
    load,
    loop,
    store,
    sum_lanes,
    synchronize_lanes,
)

_Cost = Quadratic | OneSided | Huber | Pyramid | Elliptic


class RowInputs(NamedTuple):
    """Rows as inputs of a kernel, in memory.

    Attributes:
      J: `[basis, n, nv, worlds]`; for rows with one nonzero their entries `[n, worlds]`.
      row: for rows with one nonzero the row of each dof, -1 for none, int32 `[nv, 1]`; else None.
      cost: cost of the residuals.
      aref: list over the basis of reference accelerations `[n, worlds]`.
    """

    J: Any
    row: Any
    cost: _Cost
    aref: list


def row_inputs(block: RowBlock, nv: int) -> list[RowInputs]:
    """Convert a block of rows to kernel inputs: several where a dof has more than one row."""
    cost, aref = block.cost, block.aref
    if isinstance(cost, Pyramid | Elliptic):
        cost = replace(cost, used=None)  # the kernel compacts the active rows itself
    else:
        aref = [aref]
    match block.J:
        case DofJacobian(dof, sign):
            return [RowInputs(sign, row, cost, aref) for row in _rows_of_dofs(dof, nv)]
        case DenseJacobian(matrix):
            return [RowInputs(matrix[None], None, cost, aref)]
        case BasisJacobian(basis):
            return [RowInputs(basis, None, cost, aref)]
    raise TypeError(f"rows of a {type(block.J).__name__} have no form for kernels")


def _rows_of_dofs(dof: tuple[int, ...], nv: int) -> list[Array]:
    """Tabulate the rows of each dof: tables `[nv, 1]`, as many as a dof has rows at most."""
    tables: list[np.ndarray] = []
    # Put each row in the first table whose slot for its dof is free.
    for row, at in enumerate(dof):
        free = next((t for t in tables if t[at] < 0), None)
        if free is None:
            free = np.full((nv, 1), -1, np.int32)
            tables.append(free)
        free[at] = row
    return [jnp.asarray(t) for t in tables]


def supports_block(block: RowBlock) -> bool:
    """Return True if the kernel supports these rows; sparse Jacobians (flexes) are not."""
    return not isinstance(block.J, SparseJacobian) and len(jax.tree.leaves(block.aref)[0]) > 0


class RowMemory(NamedTuple):
    """Scratch memory of rows with several nonzeros.

    Attributes:
      order: ids of the active rows in order, then of the others, int32 `[n]`.
      J: Jacobians of the active rows `[n, basis, width]`, padded to the tiles of the Hessian.
      force, curvature: their forces, and the lower triangles of their curvature, row by row.
    """

    order: Output
    J: Output
    force: Output
    curvature: Output


class MemoryOfDofs(NamedTuple):
    """Scratch memory of rows with one nonzero: their curvature `[width]`."""

    curvature: Output


def row_memory(rows: RowInputs, nv: int) -> RowMemory | MemoryOfDofs:
    """Allocate the scratch memory of rows."""
    # Rows with one nonzero store a diagonal only.
    if rows.row is not None:
        return MemoryOfDofs(Output((padded_width(nv),), rows.J.dtype, public=False))
    (size, n), dtype = rows.J.shape[:2], rows.J.dtype
    return RowMemory(
        Output((n,), jnp.int32, public=False),
        *(
            Output(a, dtype, public=False)
            for a in ((n, size, padded_width(nv)), (n, size), (n, _lower(size)))
        ),
    )


def _lower(size: int) -> int:
    """Return the number of entries of a lower triangle."""
    return size * (size + 1) // 2


def load_rows(rows: RowInputs, own: Any, lanes: int) -> "OfDofs | OfBasis":
    """Read the rows of a world into registers and scratch memory."""
    return (OfBasis if rows.row is None else OfDofs).of(rows, own, lanes)


class OfDofs(NamedTuple):
    """Rows with one nonzero: `[lanes]`, each on the lane of its dof.

    Attributes:
      own: `MemoryOfDofs`.
      sign: entry of the Jacobian.
      cost, aref: as in `RowInputs`.
    """

    own: Any
    sign: Array
    cost: Any
    aref: Array

    @classmethod
    def of(cls, given: RowInputs, own: Any, lanes: int) -> "OfDofs":
        """Gather the row of each dof."""
        # Lanes beyond nv have no row.
        place, nv = lane_indices(lanes), given.row.shape[0]
        row = jnp.where(place < nv, load(given.row, place, where=place < nv), -1)
        rest = _gather_lanes((given.J, given.cost, given.aref[0]), row, row >= 0)
        return cls(own, *rest)

    def times(self, x: Array) -> Array:
        """Compute J x."""
        return self.sign * x

    def minus_reference(self, y: Array) -> Array:
        """Compute J x - aref from J x."""
        return y - self.aref

    def transpose_times(self, term: CostDerivatives) -> Array:
        """Compute J' f along the dofs, and store the curvature for `add_gram`."""
        # Store the curvature by dof; `add_gram` reads it tile by tile.
        place, end = lane_indices(len(term.curvature)), self.own.curvature.shape[0]
        synchronize_lanes()  # all lanes have read the values of the previous iteration
        store(self.own.curvature, place, value=term.curvature, where=place < end)
        synchronize_lanes()
        return self.sign * term.force

    def add_gram(self, H: Tiles, term: CostDerivatives, act: Array) -> Tiles:
        """Add J' W J to H where `act` is true, with the curvature stored by `transpose_times`.

        The Jacobian has entries +-1, so that J' W J is the diagonal W.
        """
        del term
        # The diagonal of the tile.
        side = len(H[0][0])
        place = lane_indices(side)
        there = (place[:, None] == place[None, :]) & act
        curvature = [load_part(self.own.curvature, i, side) for i in range(len(H))]
        return [
            [row[0] + jnp.where(there, w[None, :], 0), *row[1:]]
            for row, w in zip(H, curvature, strict=True)
        ]


class OfBasis(NamedTuple):
    """Rows, or contacts, with dense Jacobians: the active ones, one per lane.

    Attributes:
      own: `RowMemory`.
      lanes: lanes of a vector over the dofs.
      number: number of active rows.
      cost, aref: as in `RowInputs`.
    """

    own: Any
    lanes: int
    number: Array
    cost: Any
    aref: list

    @classmethod
    def of(cls, given: RowInputs, own: Any, lanes: int) -> "OfBasis":
        """Compact the active rows, and copy their Jacobians to scratch memory."""
        size, n, nv = given.J.shape
        # One lane per row slot.
        row = lane_indices(lanes_of(n))
        # Stream compaction: the prefix sum of the flags is the address of each active row.
        D = jax.tree.leaves(given.cost.D)[0]
        active = load(D, row, where=row < n) > 0
        until = jnp.cumsum(active.astype(jnp.int32), dtype=jnp.int32)
        count = sum_lanes(active.astype(jnp.int32))
        place = jnp.where(active, until - 1, count + row - until)  # the others behind
        store(own.order, place, value=row, where=row < n)
        synchronize_lanes()

        dof, end = lane_indices(lanes), own.J.shape[2]

        # Copy the Jacobians of the active rows, lane by lane over the dofs.
        def copy(k: Array, _: None) -> None:
            row = own.order[k]
            for p in range(size):
                values = load(given.J, p, row, dof, where=dof < nv)
                store(own.J, k, p, dof, value=values, where=dof < end)

        loop(count, copy, None)
        # Gather costs and references of the active rows, one per lane.
        there = row < count
        order = load(own.order, row, where=there)
        synchronize_lanes()
        return cls(own, lanes, count, *_gather_lanes((given.cost, given.aref), order, there))

    def times(self, x: Array) -> Any:
        """Compute J x; a list over the basis for contacts."""
        # A dot product over the dofs for each row; lane k keeps the result of row k.
        size, lane = len(self.aref), lane_indices(len(self.aref[0]))

        def row(k: Array, out: list) -> list:
            products = (sum_lanes(self._row(k, p) * x) for p in range(size))
            return [jnp.where(lane == k, y, a) for y, a in zip(products, out, strict=True)]

        out = loop(self.number, row, [jnp.zeros_like(a) for a in self.aref])
        return out if self._of_contacts else out[0]

    def minus_reference(self, y: Any) -> Any:
        """Compute J x - aref from J x."""
        if not self._of_contacts:
            return y - self.aref[0]
        return [a - b for a, b in zip(y, self.aref, strict=True)]

    def transpose_times(self, term: CostDerivatives) -> Array:
        """Compute J' f along the dofs, and store the curvature for `add_gram`."""
        contacts, basis = self._of_contacts, range(len(self.aref))
        # Store forces and lower triangles of the curvature, one row per lane.
        force = term.force if contacts else [term.force]
        curvature = term.curvature if contacts else [[term.curvature]]
        lane, n = lane_indices(len(force[0])), self.own.J.shape[0]
        synchronize_lanes()  # all lanes have read the values of the previous iteration
        for p in basis:
            store(self.own.force, lane, p, value=force[p], where=lane < n)
        for k, w in enumerate(curvature[p][q] for p in basis for q in range(p + 1)):
            store(self.own.curvature, lane, k, value=w, where=lane < n)
        synchronize_lanes()

        # Sum over the rows with a nonzero force.
        def row(k: Array, out: Array) -> Array:
            terms = (self.own.force[k, p] * self._row(k, p) for p in basis)
            return sum(terms, out)

        out = jnp.zeros((self.lanes,), self.own.J.dtype)
        out = self._each(_some_number(force), row, out)
        return out

    def add_gram(self, H: Tiles, term: CostDerivatives, act: Array) -> Tiles:
        """Add J' W J to H where `act` is true, with the curvature stored by `transpose_times`."""
        # Rows without curvature contribute nothing.
        basis = range(len(self.aref))
        normal = term.curvature[0][0] if self._of_contacts else term.curvature

        def row(k: Array, H: Tiles) -> Tiles:
            side = len(H[0][0])
            J = [[load_part(self.own.J, i, side, k, p) for i in range(len(H))] for p in basis]
            # Rank-1 updates of the upper tiles, one per row of the contact basis.
            for p in basis:
                # Row p of W J.
                curvature = [self.own.curvature[k, _lower(max(p, q)) + min(p, q)] for q in basis]
                right = [
                    sum(w * a for w, a in zip(curvature, column, strict=True))
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
        """Load the Jacobian of an active row, along the dofs."""
        dof, end = lane_indices(self.lanes), self.own.J.shape[2]
        return load(self.own.J, k, p, dof, where=None if self.lanes == end else dof < end)

    def _each(self, mask: Array, body: Any, start: Any) -> Any:
        """Iterate `body(k, state)` over the active rows whose entry of `mask` is true."""
        lane, end = lane_indices(len(mask)), jnp.int32(len(mask))

        # Next lane whose mask is set, by a reduction.
        def after(k: Array) -> Array:
            return jnp.min(jnp.where(mask & (lane > k), lane, end))

        def iteration(state: tuple) -> tuple:
            k, value = state
            return after(k), body(k, value)

        state = (after(jnp.int32(-1)), start)
        return lax.while_loop(lambda state: state[0] < end, iteration, state)[1]


KernelRows = OfDofs | OfBasis


def _some_number(force: list) -> Array:
    there = force[0] != 0
    for f in force[1:]:
        there = there | (f != 0)
    return there


def _gather_lanes(tree: Any, index: Array, there: Array) -> Any:
    """Gather values of rows, one per lane; zero, or False, on lanes without a row."""

    def gather(ref: Any) -> Array:
        return load(ref, index, where=there)

    return jax.tree.map(gather, tree)
