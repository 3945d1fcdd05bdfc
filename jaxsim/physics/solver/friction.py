"""Rows that can slip, in the form that the no-slip iterations (noslip.py) visit.

A visit takes one row of dry friction, or all tangents of a contact. It minimizes the unregularized
dual cost over their forces, all others fixed, and updates the acceleration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.products import basis_responses
from jaxsim.enums import MINVAL
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import CostDerivatives, Huber
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.solver.trust_region import is_invertible, least_in_ball, scale_by_bounds

_MAX_COST_RISE = 1e-10  # increase of the cost above which MuJoCo rejects the new force of a contact


class Bounded(NamedTuple):
    """Rows whose friction has separate bounds: dry friction, and tangents of pyramids.

    The sum of the two edge forces of a pyramid's tangent is constant, so the bound of their
    difference is known, and a contact is equivalent to one row of dry friction per tangent. The
    attributes are lists over the tangents, of length one for rows of dry friction.

    Attributes:
      J, push: Jacobian, and M^-1 J', `[n, nv, *W]`.
      aref, bound: reference acceleration, and bound, `[n, 1, *W]`.
    """

    J: list
    push: list
    aref: list
    bound: list

    @property
    def nonzero_rows(self) -> Array:
        """Return the rows whose force may be nonzero, `[n, 1, *W]` bool."""
        return sum(self.bound[1:], self.bound[0]) > 0

    def visit(self, x: Array, force: list, here: Array) -> tuple[Array, list, Array]:
        """Update one row or contact; the arrays of `self` have no first axis.

        Returns:
          The updated acceleration and forces, and the decrease of the dual cost `[1, *W]`.
        """
        gain, new = jnp.zeros_like(x[:1]), []
        for J, push, aref, bound, f in zip(*self, force, strict=True):
            # Projected Gauss-Seidel step of one row: unconstrained minimum, clipped to the bounds.
            A = sum_items(J * push)
            r = sum_items(J * x) - aref
            free = f - r / jnp.maximum(A, MINVAL)
            to = jnp.where(free > bound, bound, jnp.where(free < -bound, -bound, free))
            step = jnp.where(here, to - f, 0)
            gain = gain - (0.5 * A * step + r) * step
            x = x + push * step
            new.append(f + step)
        return x, new, gain


class Cone(NamedTuple):
    """Tangents of elliptic contacts, bounded together: |f_k / mu_k| <= normal force.

    Attributes:
      J, push, aref: as in `Bounded`.
      A: nested lists, J M^-1 J' of each contact.
      mu: friction coefficients; 0: the contact has no such tangent.
      normal: normal force `[n, 1, *W]`.
      solved: where MuJoCo takes A for invertible.
    """

    J: list
    push: list
    aref: list
    A: list
    mu: list
    normal: jax.Array
    solved: jax.Array

    @property
    def nonzero_rows(self) -> Array:
        """Return the contacts with a positive normal force, `[n, 1, *W]` bool."""
        return self.normal > 0

    def visit(self, x: Array, force: list, here: Array) -> tuple[Array, list, Array]:
        """Update the friction of one contact; see `Bounded.visit`."""
        size, A = len(force), self.A
        # Quadratic in the scaled friction y = f / mu, minimized in the ball |y| <= normal force.
        r = [sum_items(J * x) - aref for J, aref in zip(self.J, self.aref, strict=True)]
        slope = [r[j] - _dot(A[j], force) for j in range(size)]
        of_unit = scale_by_bounds(A, self.mu)
        slope = [mu * b for mu, b in zip(self.mu, slope, strict=True)]
        y = least_in_ball(of_unit, slope, self.normal, self.solved & here)
        step = [mu * a - f for mu, a, f in zip(self.mu, y, force, strict=True)]
        # Reject the step where it raises the cost.
        rise = _dot(step, r) + 0.5 * _dot(step, [_dot(row, step) for row in A])
        moves = here & (rise <= _MAX_COST_RISE)
        step = [jnp.where(moves, a, 0) for a in step]
        for push, a in zip(self.push, step, strict=True):
            x = x + push * a
        new = [f + a for f, a in zip(force, step, strict=True)]
        return x, new, jnp.where(moves, -rise, 0)


FrictionGroup = Bounded | Cone


def can_slip(block: RowBlock) -> bool:
    """Return True if rows of a block can slip."""
    cost = block.cost
    return isinstance(cost, Huber) or (isinstance(cost, Pyramid | Elliptic) and len(cost.mu) > 1)


def friction_group(
    block: RowBlock, r: Any, term: CostDerivatives, reach: list | None, response: Array
) -> tuple[FrictionGroup, list]:
    """Return the slipping rows of a block, and their forces: lists over the tangents `[n, 1, *W]`.

    Args:
      block: block of rows for which `can_slip` is true.
      r, term: its residual, and its force and cost at the solution.
      reach: see `RowForces`; used where the forces do not follow from the residual.
      response: M^-1, `[nv, nv, *W]`.
    """
    return _FRICTION_GROUPS[type(block.cost)](block, r, term, reach, response)


def _dry_friction(
    block: RowBlock, r: Array, term: CostDerivatives, reach: list | None, response: Array
) -> tuple[FrictionGroup, list]:
    del r, reach
    cost = block.cost
    J, push = block.J.dense(len(response)), block.J.responses(response)
    bound = [jnp.where(cost.D > 0, cost.floss, 0)]
    rows = _bounded_rows([J], [push], [block.aref], bound, response)
    return rows, _broadcast_rows([term.force], response)


def _pyramid(
    block: RowBlock, r: list, term: CostDerivatives, reach: list | None, response: Array
) -> tuple[FrictionGroup, list]:
    J, push = _tangents(block, response)
    bounded = _bounded_rows(J, push, block.aref[1:], reach or block.cost.reach(r), response)
    return bounded, _broadcast_rows(term.force[1:], response)


def _cone(
    block: RowBlock, r: list, term: CostDerivatives, reach: list | None, response: Array
) -> tuple[FrictionGroup, list]:
    # Delassus blocks A = J M^-1 J' of each contact.
    del r, reach
    J, push = _tangents(block, response)
    A = [[_rows_dot(a, b) for b in push] for a in J]
    # Dimension of the contact from its nonzero coefficients.
    mu = _broadcast_rows(block.cost.mu[1:], response)
    dim = 1 + jnp.sum(jnp.stack([a > 0 for a in mu]), axis=0, dtype=jnp.int32)
    normal, *force = _broadcast_rows(term.force, response)
    aref = _broadcast_rows(block.aref[1:], response)
    return Cone(J, push, aref, A, mu, normal, is_invertible(scale_by_bounds(A, mu), dim)), force


_FRICTION_GROUPS: dict[
    type, Callable[[RowBlock, Any, CostDerivatives, list | None, Array], tuple[FrictionGroup, list]]
] = {
    Huber: _dry_friction,
    Pyramid: _pyramid,
    Elliptic: _cone,
}


def _tangents(block: RowBlock, response: Array) -> tuple[list, list]:
    """Return J of the tangents of contacts and M^-1 J', lists of `[ncon, nv, *W]`."""
    rows = block.J.basis[1:]
    return list(rows), list(basis_responses(rows, response, block.J.used))


def _bounded_rows(J: list, push: list, aref: list, bound: list, response: Array) -> Bounded:
    return Bounded(J, push, _broadcast_rows(aref, response), _broadcast_rows(bound, response))


def _broadcast_rows(arrays: list, like: Array) -> list:
    """Broadcast values of rows `[n, *W]` to `[n, 1, *W]`, with all worlds."""
    return [jnp.broadcast_to(a, (len(a), *like.shape[2:]))[:, None] for a in arrays]


def _rows_dot(a: Array, b: Array) -> Array:
    """Compute dot products of rows, `[n, nv, *W]` -> `[n, 1, *W]`."""
    return jnp.sum(a * b, axis=1, keepdims=True)


def _dot(a: list, b: list) -> Array:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])
