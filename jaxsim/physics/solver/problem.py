"""The constrained dynamics of one step as a convex problem in the acceleration.

MuJoCo's documentation, Computation: Constraint model, primal problem (Gauss's principle with soft
constraints):

    minimize 1/2 (x - a0)' M (x - a0) + sum s_i(J_i x - aref_i),   M a0 = smooth.

A block of rows (constraint/rows.py) owns its Jacobian J, reference acceleration aref and cost s;
this module sums over blocks: residuals r = J x - aref, forces f = -s'(r), curvatures W = s''(r),
the gradient M x - smooth - J' f and the Hessian H = M + J' W J. Elliptic cones: constraint/cone.py.
M and H are block-diagonal in groups of dofs that are known at compile time: `M.parts`, and the
larger `parts` of H, with a drawing in physics/partition.py. linalg/choose.py decides the form in
which H is accumulated and solved (docs/developer/linear-algebra.md).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.node import node
from jaxsim.arrays.products import sum_used
from jaxsim.enums import ConstraintType
from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.blocked_lower import BlockedLower
from jaxsim.linalg.cholesky import broadcast_to_worlds
from jaxsim.linalg.choose import Choice, Form, HessianFacts, choose_operator
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.inverse_blocks import InverseBlocks, inverse_blocks
from jaxsim.linalg.operator import AnySymmetric, MassMatrix, Symmetric
from jaxsim.linalg.packed_lower import PackedLower
from jaxsim.linalg.skyline import Skyline
from jaxsim.linalg.tree_sparse import TreeSparse
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.cone import Pyramid
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian
from jaxsim.physics.constraint.cost import CostDerivatives, Parabola
from jaxsim.physics.constraint.jacobian import DofJacobian
from jaxsim.physics.constraint.rows import ConstraintBlocks
from jaxsim.physics.partition import Parts, inertia_blocks, solver_blocks
from jaxsim.physics.solver.kernel.rows import supports_block
from jaxsim.transforms.derivative_context import prefer_loops
from jaxsim.transforms.materialize import is_unbatched


class RowForces(NamedTuple):
    """Forces of the rows where they do not follow from their residuals.

    Attributes:
      blocks: forces block by block, as in `CostDerivatives` (constraint/cost.py).
      reach: for pyramids the largest force along each tangent, as `Pyramid.reach`; else None.
    """

    blocks: list
    reach: list | None


@node("parts", "tied")
class ConstraintProblem:
    """Convex problem: minimize 1/2 (x - a0)' M (x - a0) + sum s_i(J_i x - aref_i), M a0 = smooth.

    Attributes:
      M: joint-space inertia. Methods other than Newton's need `Dense`; for Newton's it has another
        form if H is accumulated in it (`accumulates_in_form_of_inertia`).
      smooth: generalized force without constraints `[nv, *W]`.
      rows: constraint rows.
      parts: groups of coupled dofs in H, see physics/partition.py; empty: one group of all dofs.
      tied: groups of dofs that are coupled whatever contacts exist; empty: not known.
    """

    M: Any  # a MassMatrix
    smooth: jax.Array
    rows: ConstraintBlocks
    parts: Parts = ()
    tied: Parts = ()

    @classmethod
    def of(cls, m: Model, d: Data, force: Array) -> "ConstraintProblem":
        """Build the problem of a state with a generalized force `[nv, *W]`."""
        return cls(Dense(d.M, inertia_blocks(m)), force, d.rows, solver_blocks(m))

    def times(self, x: Array) -> list:
        """Compute J x, block by block."""
        return [block.J.times(x) for block in self.rows.blocks]

    def residual(self, x: Array) -> list:
        """Compute J x - aref, block by block."""
        return self.minus_reference(self.times(x))

    def minus_reference(self, Jx: list) -> list:
        """Compute J x - aref from J x."""
        return [b.minus_reference(y) for b, y in zip(self.rows.blocks, Jx, strict=True)]

    def evaluate(self, r: list) -> list[CostDerivatives]:
        """Return force, cost and curvature of each block at its residual."""
        return [block.cost.at(x) for block, x in zip(self.rows.blocks, r, strict=True)]

    def derivatives(self, r: list) -> list[CostDerivatives]:
        """Return what `evaluate` does; for contacts only where it is used (`PerContact`)."""
        return [block.derivatives(x) for block, x in zip(self.rows.blocks, r, strict=True)]

    def force(self, terms: list[CostDerivatives]) -> Array:
        """Compute J' f, `[nv, *W]`."""
        return self.transpose_times([term.force for term in terms])

    def transpose_times(self, forces: list) -> Array:
        """Compute J' f, `[nv, *W]`, from the forces block by block."""
        out = jnp.zeros_like(self.smooth)
        for block, force in zip(self.rows.blocks, forces, strict=True):
            out = out + block.J.transpose_times(force, out.shape[0])
        return out

    def force_at(self, x: Array) -> Array:
        """Compute J' f at an acceleration."""
        return self.force(self.evaluate(self.residual(x)))

    def row_forces(self, x: Array) -> RowForces:
        """Return the forces of the rows at an acceleration, to be stored."""
        r = self.residual(x)
        # Contact forces need their reach where they are stored.
        cost = None if self.rows.contact is None else self.rows.contact.cost
        reach = cost.reach(r[-1]) if isinstance(cost, Pyramid) else None
        return RowForces([term.force for term in self.evaluate(r)], reach)

    def hessian(self, terms: list[CostDerivatives], H: AnySymmetric) -> AnySymmetric:
        """Return H + J' W J, with W the curvature of the cost; the Hessian if H is M."""
        for block, term in zip(self.rows.blocks, terms, strict=True):
            H = block.J.add_gram(H, term.curvature)
        return H

    @property
    def couplings(self) -> Parts:
        """Return `tied` if contacts couple pairs of dof groups and are truncated to active ones."""
        J = None if self.rows.contact is None else self.rows.contact.J
        pairs = isinstance(J, GroupJacobian) and len(J.group) > 1 and J.used is not None
        return self.tied if pairs and len(self.tied) > 1 else ()

    def choose_hessian(self, records: bool = False, differentiated: bool = False) -> Choice[Form]:
        """Choose the form in which Newton's method accumulates and solves H.

        Args:
          records: whether the iterations are recorded, which the GPU kernel does not support.
          differentiated: whether H is that of a derivative, at the solution; iterations are not
            differentiated (solution.py).
        """
        blocks, contact = self.rows.blocks, self.rows.contact
        facts = HessianFacts(
            size=len(self.smooth),
            blocks=tuple(len(part) for part in self.parts),
            uncoupled_blocks=len(self.couplings),
            batched=not is_unbatched(self.smooth),
            has_sparse_inertia=isinstance(self.M, TreeSparse),
            has_single_dof_rows=all(
                isinstance(block.J, DofJacobian) or block.type == ConstraintType.LIMIT_JOINT
                for block in blocks
            ),
            has_active_count=contact is None or contact.J.used is not None,
            suits_kernel=not records and all(map(supports_block, blocks)),
        )
        return choose_operator(facts, differentiated)

    def accumulates_in_form_of_inertia(self) -> bool:
        """Return whether Newton's method starts H from M as it is stored, not from the dense M.

        Blocks are a start for one world only: in a batch they cost more than a dense matrix.
        """
        if isinstance(self.M, Dense):
            return True
        choice = self.choose_hessian()
        if isinstance(self.M, TreeSparse):
            return choice.form is Form.TREE_SPARSE
        one = choice.by_world or is_unbatched(self.smooth)
        same = choice.form is Form.BLOCK_DIAGONAL and self.M.parts == self.parts
        return prefer_loops() and one and (same or choice.form is Form.SKYLINE)

    def accumulator(self, form: Form) -> Symmetric:
        """Return M in the form in which H is accumulated and solved, or as its blocks."""
        M: MassMatrix = self.M
        return _FROM_DENSE[form](M.matrix, self) if isinstance(M, Dense) else M

    def newton_step(
        self, start: Symmetric, form: Form, first: Array | bool, r: list, g: Array
    ) -> Array:
        """Compute -H^-1 g, with the Hessian at a residual.

        Args:
          start: the result of `accumulator`.
          form: the form of H.
          first: bool scalar; where it is true H is M, without the constraints.
          r: residual J x - aref, block by block.
          g: gradient `[nv, *W]`.
        """
        if first is True:
            return -self.solve_inertia(g)

        # Assemble H at the residual.
        def full_hessian(r: list) -> Symmetric:
            terms = self.derivatives(r)
            if form is Form.SKYLINE and isinstance(start, BlockDiagonal):
                # Writing zeros again costs less than a copy.
                return self.hessian(terms, Skyline.of_parts(start, self.couplings))
            return self.hessian(terms, start)

        if form is Form.TREE_SPARSE or self.parts == self.M.parts:
            return -lax.cond(first, lambda r: start, full_hessian, r).solve(g)
        # M has smaller blocks than H, which are solved at a fraction of the cost.
        return -lax.cond(
            first, lambda r: self.solve_inertia(g), lambda r: full_hessian(r).solve(g), r
        )

    def solve_inertia(self, b: Array) -> Array:
        """Compute M^-1 b."""
        x: Array = self.M.solve(b)
        return x

    def inverse_inertia(self) -> InverseBlocks:
        """Compute M^-1 by its blocks, for methods that apply it many times."""
        return inverse_blocks(self.M.matrix, self.M.parts)

    def inertia_times(self, x: Array) -> Array:
        """Compute M x."""
        product: Array = self.M.times(x)
        return product

    def restrict_to_line(self, at: "Point", move: "Point") -> list:
        """Restrict the cost to the line at + step * move; returns terms to sum (linesearch.py)."""
        slope, bend = sum_items((at.Mx - self.smooth) * move.x), sum_items(move.x * move.Mx)
        rows = zip(self.rows.blocks, at.r, move.r, strict=True)
        return [Parabola(slope, bend), *(block.cost.restrict_to_line(r, v) for block, r, v in rows)]

    def cost(self, at: "Point") -> Array:
        """Compute the cost up to a constant, `[1, *W]`: 1/2 x'Mx - x'smooth + constraint cost."""
        gauss = sum_items((0.5 * at.Mx - self.smooth) * at.x)
        contact = self.rows.contact
        used = None if contact is None else contact.cost.used
        terms = self.derivatives(at.r)
        if used is None:
            return gauss + sum(sum_items(term.cost) for term in terms)
        *single, last = terms
        (of_contacts,) = sum_used(lambda cost: (cost,), last.cost, 0, used)
        return gauss + sum((sum_items(term.cost) for term in single), of_contacts)

    def better(self, a: "Point", b: "Point") -> "Point":
        """Return the point of smaller cost, per world."""
        take_a = self.cost(a) < self.cost(b)
        return jax.tree.map(lambda u, v: jnp.where(take_a, u, v), a, b)

    def point(self, x: Array) -> "Point":
        """Return the point at an acceleration, with M x and the residuals."""
        return Point(x, self.inertia_times(x), self.residual(x))


@node()
class Point:
    """Acceleration with M x and residuals r; also a direction, with M v and J v."""

    x: jax.Array
    Mx: jax.Array
    r: list


# Conversion of a dense M to the form of H.
_FROM_DENSE = {
    Form.DENSE: lambda M, p: Dense(M, p.parts),
    Form.BLOCK_DIAGONAL: lambda M, p: BlockDiagonal.of(M, p.parts),
    Form.SKYLINE: lambda M, p: Skyline.of(M, p.couplings),
    Form.PACKED_LOWER: lambda M, p: PackedLower.of(broadcast_to_worlds(M, p.smooth)),
    Form.BLOCKED_LOWER: lambda M, p: BlockedLower.of(broadcast_to_worlds(M, p.smooth)),
}
