"""Costs of the residual r = J x - aref of a constraint row, one class per shape.

MuJoCo's documentation, Computation: Constraint model, "Primal problem": the solver minimizes

    1/2 (x - a0)' M (x - a0) + sum_i s_i(J_i x - aref_i),    M a0 = qfrc_smooth

where s is a quadratic (equality), a one-sided quadratic (limits, edges of contacts), a Huber
function (dry friction) or the squared distance to an elliptic cone (cone.py). Forces are -ds/dr.

The line search evaluates derivatives of s(r + step v) repeatedly. `restrict_to_line` computes their
coefficients once per line, and those of contacts whose number is known in each evaluation, for used
slots only; `lines` returns them row by row, for the Pallas kernels (solver/kernel/).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.node import node
from jaxsim.arrays.products import PerContact, sum_used
from jaxsim.transforms.materialize import materialize


class CostDerivatives(NamedTuple):
    """Cost of a block of rows at a residual, with its first and second derivative.

    Attributes:
      force: -ds/dr: `[n, *W]`, or a list over the contact basis.
      cost: `[n, *W]`.
      curvature: d2s/dr2: `[n, *W]`, or for contacts a symmetric matrix of `[n, *W]` as nested
        lists.
    """

    force: Any
    cost: Any
    curvature: Any

    @classmethod
    def in_chunks(cls, cost: Any, r: Any) -> "CostDerivatives":
        """Return the derivatives of contacts, evaluated chunk by chunk (`PerContact`)."""
        operands = replace(cost, used=None), r
        return cls(*(PerContact(of, operands) for of in (_force, _cost, _curvature)))


def _force(cost: Any, r: Any) -> Any:
    return cost.at(r).force


def _cost(cost: Any, r: Any) -> Any:
    return cost.at(r).cost


def _curvature(cost: Any, r: Any) -> Any:
    return cost.at(r).curvature


class SummedLine(NamedTuple):
    """Cost along a line, summed over rows.

    Attributes:
      rows: costs of the rows. `derivatives(step)` returns the first and second derivative of each
        row with respect to the step, `[n, *W]`; `num_crossed(step)` 1 where the cost of a row is
        not one quadratic from step 0 to there, else 0, `[n, *W]`.
        `PerContact` is evaluated chunk by chunk.
      axis: axis of its arrays that indexes the rows.
      used: number of rows up to the last active one, int scalar, or None for all.
    """

    rows: Any
    axis: int = 0
    used: jax.Array | None = None

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the sum, `[1, *W]`."""
        first, second = sum_used(
            lambda part: part.derivatives(step), self.rows, self.axis, self.used
        )
        return first, second

    def num_crossed(self, step: Array) -> Array:
        """Count the rows that left their quadratic piece of step 0, `[1, *W]`."""
        (number,) = sum_used(
            lambda part: (part.num_crossed(step),), self.rows, self.axis, self.used
        )
        return number


class Parabola(NamedTuple):
    """Quadratic along a line: its derivatives at step 0, `[1, *W]` where rows are summed."""

    slope: jax.Array
    curvature: jax.Array

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return the first and second derivative, `[1, *W]`."""
        return self.slope + step * self.curvature, self.curvature

    def num_crossed(self, step: Array) -> Array:
        """Return zero: a parabola has one piece."""
        return jnp.zeros_like(step)

    def change(self, step: Array) -> Array:
        """Return the change of the cost from step 0."""
        return step * (self.slope + 0.5 * step * self.curvature)


@node()
class Quadratic:
    """Cost of equalities: D r^2 / 2. D is the inverse regularization `[n, *W]`, 0 if not active."""

    D: jax.Array

    def at(self, r: Array) -> CostDerivatives:
        """Evaluate force, cost and curvature at a residual `[n, *W]`."""
        return CostDerivatives(-self.D * r, 0.5 * self.D * r * r, self.D)

    def lines(self, r: Array, v: Array) -> list[Parabola]:
        """Restrict the cost of each row to r + step v, `[n, *W]`, as terms to sum."""
        return [Parabola(self.D * r * v, self.D * v * v)]

    def restrict_to_line(self, r: Array, v: Array) -> Parabola:
        """Restrict the cost to r + step v, summed over rows."""
        return Parabola(*map(sum_items, self.lines(r, v)[0]))

    def active(self) -> Array:
        """Count the active rows, `[1, *W]`."""
        return active(self.D)


@node()
class OneSided:
    """Cost of limits and edges of contacts: D r^2 / 2 where r < 0, else 0. D as in Quadratic."""

    D: jax.Array

    def at(self, r: Array) -> CostDerivatives:
        """Evaluate force, cost and curvature at a residual `[n, *W]`."""
        curvature = jnp.where(r < 0, self.D, 0)
        force = -curvature * r
        return CostDerivatives(force, -0.5 * force * r, curvature)

    def line(self, r: Array, v: Array) -> "OneSidedLine":
        """Restrict the cost of each row to r + step v."""
        return OneSidedLine(r, v, self.D * r * v, self.D * v * v)

    def lines(self, r: Array, v: Array) -> "list[OneSidedLine]":
        """Restrict the cost of each row to r + step v, `[n, *W]`, as terms to sum."""
        return [self.line(r, v)]

    def restrict_to_line(self, r: Array, v: Array) -> SummedLine:
        """Restrict the cost to r + step v, summed over rows."""
        return SummedLine(materialize(self.line(r, v), r))

    def active(self) -> Array:
        """Count the active rows, `[1, *W]`."""
        return active(self.D)


class OneSidedLine(NamedTuple):
    """Rows `[n, *W]` that are active where r + step v < 0; slope and curvature are D r v and
    D v v."""

    r: jax.Array
    v: jax.Array
    slope: jax.Array
    curvature: jax.Array

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return derivatives of each row's cost with respect to the step, `[n, *W]`."""
        pushes = self.r + step * self.v < 0
        return (
            jnp.where(pushes, self.slope + step * self.curvature, 0),
            jnp.where(pushes, self.curvature, 0),
        )

    def num_crossed(self, step: Array) -> Array:
        """Return 1 where a row becomes active or inactive, else 0, `[n, *W]`."""
        changes = (self.r < 0) != (self.r + step * self.v < 0)
        return jnp.where(changes & (self.curvature > 0), 1, 0).astype(self.r.dtype)

    def change(self, step: Array) -> Array:
        """Return the change of each row's cost from step 0, `[n, *W]`, without cancellation."""
        r = self.r + step * self.v
        pushed, pushes = self.r < 0, r < 0
        same = step * (self.slope + 0.5 * step * self.curvature)
        # Rows that change state have v != 0.
        per_v = 1 / jnp.where(self.v != 0, self.v, 1.0)
        begins = 0.5 * self.curvature * (r * per_v) ** 2
        ends = -0.5 * self.curvature * (self.r * per_v) ** 2
        return jnp.where(pushed, jnp.where(pushes, same, ends), jnp.where(pushes, begins, 0))


@node()
class Huber:
    """Cost of dry friction: quadratic near zero, of slope floss beyond.

    Attributes:
      D: as in Quadratic.
      floss: bound of the force `[n, *W]` [N or N m].
    """

    D: jax.Array
    floss: jax.Array

    def at(self, r: Array) -> CostDerivatives:
        """Evaluate force, cost and curvature at a residual `[n, *W]`."""
        # Saturate the force at the bound.
        D, floss = self.D, self.floss
        inside = jnp.abs(D * r) < floss
        force = jnp.where(inside, -D * r, jnp.where(D > 0, -jnp.sign(r) * floss, 0))
        offset = 0.5 * floss * floss / jnp.where(D > 0, D, 1.0)
        cost = jnp.where(inside, 0.5 * D * r * r, jnp.where(D > 0, jnp.abs(r) * floss - offset, 0))
        return CostDerivatives(force, cost, jnp.where(inside, D, 0))

    def lines(self, r: Array, v: Array) -> "list[HuberLine]":
        """Restrict the cost of each row to r + step v, `[n, *W]`, as terms to sum."""
        return [HuberLine(r, v, self.D * r * v, self.D * v * v, self.D, self.floss)]

    def restrict_to_line(self, r: Array, v: Array) -> SummedLine:
        """Restrict the cost to r + step v, summed over rows."""
        return SummedLine(materialize(self.lines(r, v)[0], r))

    def active(self) -> Array:
        """Count the active rows, `[1, *W]`."""
        return active(self.D)


class HuberLine(NamedTuple):
    """Rows of dry friction `[n, *W]`: slope and curvature are D r v and D v v, within
    the bound."""

    r: jax.Array
    v: jax.Array
    slope: jax.Array
    curvature: jax.Array
    D: jax.Array
    floss: jax.Array

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return derivatives of each row's cost with respect to the step, `[n, *W]`."""
        r = self.r + step * self.v
        inside = jnp.abs(self.D * r) < self.floss
        beyond = jnp.where(self.D > 0, jnp.sign(r) * self.floss * self.v, 0)
        return (
            jnp.where(inside, self.slope + step * self.curvature, beyond),
            jnp.where(inside, self.curvature, 0),
        )

    def num_crossed(self, step: Array) -> Array:
        """Return 1 where a row reaches its bound or leaves it, else 0, `[n, *W]`."""
        changes = self._zone(self.r) != self._zone(self.r + step * self.v)
        return changes.astype(self.r.dtype)

    def change(self, step: Array) -> Array:
        """Return the change of each row's cost from step 0, `[n, *W]`, without cancellation."""
        # Within one zone the change is exact; across zones subtract the costs.
        cost, r = Huber(self.D, self.floss), self.r + step * self.v
        start, end = self._zone(self.r), self._zone(r)
        same = jnp.where(
            start == 0,
            step * (self.slope + 0.5 * step * self.curvature),
            start * self.floss * step * self.v,
        )
        return jnp.where(start == end, same, cost.at(r).cost - cost.at(self.r).cost)

    def _zone(self, r: Array) -> Array:
        """Return 0 within the bound and for inactive rows, else the sign of the residual."""
        inside = (jnp.abs(self.D * r) < self.floss) | (self.D == 0)
        return jnp.where(inside, 0, jnp.sign(r))


def active(D: Array) -> Array:
    """Count rows with a regularization, `[1, *W]`; a float sum, exact below 2^24 rows."""
    return sum_items((D > 0).astype(D.dtype)).astype(jnp.int32)
