"""Costs of contacts with friction: pyramidal and elliptic cones, in the basis of each contact.

MuJoCo's documentation, Computation: Constraint model, Friction cones. Residuals and forces are
lists over the basis (normal, tangents, spin, rolls) of `[ncon, *W]`. Pyramids are kept in the
basis, not edge by edge: each of their edges is a combination of two basis vectors, so that products
with the Jacobian are fewer. Elliptic cones have three zones, in MuJoCo's terms top (no force),
middle (cone surface) and bottom (quadratic).
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.node import node
from jaxsim.arrays.products import PerContact
from jaxsim.enums import MINVAL
from jaxsim.math import safe_sqrt
from jaxsim.physics.constraint.cost import (
    CostDerivatives,
    OneSided,
    OneSidedLine,
    SummedLine,
    active,
)
from jaxsim.transforms.materialize import materialize


class Edge(NamedTuple):
    """One edge of every pyramid: a one-sided row with residual r0 + slope r[k].

    Attributes:
      k, sign: basis vector, and side of the normal; 0 and 1 for frictionless contacts.
      slope: sign times the friction coefficient, `[ncon, *W]`.
      D: inverse regularization `[ncon, *W]`; 0: not active.
    """

    k: int
    sign: int
    slope: jax.Array
    D: jax.Array

    def evaluate(self, r: list) -> Array:
        """Evaluate the row from values over the contact basis, `[ncon, *W]`."""
        return r[0] + self.slope * r[self.k]

    def jacobian(self, basis: Array) -> Array:
        """Compute the row's Jacobian from that of the basis, `[basis, ncon, nv, *W]`."""
        return basis[0] + self.slope[:, None] * basis[self.k]


@node()
class Pyramid:
    """Pyramidal cone: edges r0 +- mu[k] r[k], each one-sided.

    Attributes:
      D: inverse regularization of all edges of a contact, `[ncon, *W]`; 0: not active.
      mu: list over the basis of friction coefficients `[ncon, *W]`; zero for the normal and beyond
        the contact's own dimension.
      flat: frictionless contacts (one row, the normal), `[ncon, *W]` bool; None where the model's
        contacts all have friction, or none has.
      used: contacts up to the last active one in any world, int scalar; None: not known.
    """

    D: jax.Array
    mu: list[jax.Array]
    flat: jax.Array | None
    used: jax.Array | None

    def edges(self, k: int) -> OneSided:
        """Return the two edges along basis vector `k`, for the contacts that have it."""
        return OneSided(jnp.where(self.mu[k] > 0, self.D, 0))

    @property
    def normal(self) -> OneSided | None:
        """Return the row of frictionless contacts; None without any."""
        if len(self.mu) == 1:
            return OneSided(self.D)
        return None if self.flat is None else OneSided(jnp.where(self.flat, self.D, 0))

    @property
    def rows(self) -> list[Edge]:
        """Return MuJoCo's rows of each contact: edges +1, -1, +2, -2, ...

        A frictionless contact, whose slopes are zero, has one row: its normal.
        """
        places = [(k, sign) for k in range(1, len(self.mu)) for sign in (1, -1)] or [(0, 1)]
        rows = [Edge(k, sign, sign * self.mu[k], self.edges(k).D) for k, sign in places]
        if self.normal is not None:
            rows[0] = rows[0]._replace(D=rows[0].D + self.normal.D)
        return rows

    def at(self, r: list) -> CostDerivatives:
        """Evaluate force, cost and curvature at a residual, summed onto the basis."""
        # Frictionless contacts contribute their normal row.
        size, zero = len(r), jnp.zeros_like(r[0])
        push, cost, stiff = (zero,) * 3 if self.normal is None else self.normal.at(r[0])
        force, curvature = [zero] * size, [[zero] * size for _ in range(size)]
        # Each pair of edges contributes to the normal and to one tangent: an arrow matrix.
        for k in range(1, size):
            mu, edges = self.mu[k], self.edges(k)
            up, down = edges.at(r[0] + mu * r[k]), edges.at(r[0] - mu * r[k])
            push = push + up.force + down.force
            cost = cost + up.cost + down.cost
            stiff = stiff + up.curvature + down.curvature
            force[k] = mu * (up.force - down.force)
            curvature[0][k] = curvature[k][0] = mu * (up.curvature - down.curvature)
            curvature[k][k] = mu * mu * (up.curvature + down.curvature)
        force[0], curvature[0][0] = push, stiff
        return CostDerivatives(force, cost, curvature)

    def reach(self, r: list) -> list:
        """Return the largest force of each tangent at a constant sum of its edges, `[ncon, *W]`."""
        out = []
        # Sum of both edge forces times the coefficient.
        for k in range(1, len(r)):
            mu, edges = self.mu[k], self.edges(k)
            out.append(mu * (edges.at(r[0] + mu * r[k]).force + edges.at(r[0] - mu * r[k]).force))
        return out

    def lines(self, r: list, v: list) -> list[OneSidedLine]:
        """Restrict the cost of each contact to r + step v, `[ncon, *W]`, one line per edge."""
        # Two one-sided lines per tangent, and the normal of frictionless contacts.
        lines = []
        for k in range(1, len(r)):
            both = (self.mu[k], -self.mu[k])
            lines += [self.edges(k).line(r[0] + mu * r[k], v[0] + mu * v[k]) for mu in both]
        if self.normal is not None:
            lines.append(self.normal.line(r[0], v[0]))
        return lines

    def restrict_to_line(self, r: list, v: list) -> SummedLine:
        """Restrict the cost to r + step v, summed over contacts."""
        if self.used is not None:
            return SummedLine(_line_in_chunks(self, r, v), 0, self.used)
        return SummedLine(materialize(self.line(r, v), r[0]), 1)

    def line(self, r: list, v: list) -> "EdgesLine":
        """Restrict the cost of each contact to r + step v, all edges as one line."""
        lines = self.lines(r, v)
        return EdgesLine(OneSidedLine(*(jnp.stack(parts) for parts in zip(*lines, strict=True))))

    def active(self) -> Array:
        """Count the active rows, `[1, *W]`."""
        edges = [2 * self.edges(k).active() for k in range(1, len(self.mu))]
        return sum(edges[1:], edges[0]) if self.normal is None else sum(edges, self.normal.active())


class EdgesLine(NamedTuple):
    """Edges of pyramids along a line: `[edges, ncon, *W]`."""

    rows: OneSidedLine

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return derivatives of each contact's cost with respect to the step, `[ncon, *W]`."""
        first, second = self.rows.derivatives(step[None])
        return sum(first[1:], first[0]), sum(second[1:], second[0])

    def num_crossed(self, step: Array) -> Array:
        """Count the edges of each contact that become active or inactive, `[ncon, *W]`."""
        num_crossed = self.rows.num_crossed(step[None])
        return sum(num_crossed[1:], num_crossed[0])

    def change(self, step: Array) -> Array:
        """Return the change of each contact's cost from step 0, `[ncon, *W]`."""
        change = self.rows.change(step[None])
        return sum(change[1:], change[0])


@node()
class Elliptic:
    """Elliptic cone: free above it, quadratic below its dual, squared distance to it in between.

    With N = mu r0 and U_k = friction_k r_k, T = |U|:  free where N >= mu T, quadratic where
    mu N + T <= 0, else cost = 1/2 Dm (N - mu T)^2 with Dm = D / (mu^2 (1 + mu^2)).

    Attributes:
      D: list over the basis of inverse regularizations `[ncon, *W]`; 0: not active.
      mu: list over the basis `[ncon, *W]`: the slope after regularization, then the friction
        coefficients, zero beyond the contact's own dimension.
      flat, used: as in `Pyramid`.
    """

    D: list[jax.Array]
    mu: list[jax.Array]
    flat: jax.Array | None
    used: jax.Array | None

    def at(self, r: list) -> CostDerivatives:
        """Evaluate force, cost and curvature at a residual."""
        size, mu = len(r), self.mu[0]
        if size == 1:
            one = OneSided(self.D[0]).at(r[0])
            return CostDerivatives([one.force], one.cost, [[one.curvature]])
        # Coordinates of the unit cone, and the zone of each contact.
        U = self._scaled(r)
        N, T = U[0], _length(U[1:])
        free, below = self.zones(r)
        middle = ~(free | below)
        Dm = self._stiffness(middle)
        gap = N - mu * T
        unit = [u / jnp.where(T > 0, T, 1.0) for u in U]  # unit[0] is not used

        # Quadratic zone, then the cone surface: gradient of 1/2 Dm (N - mu T)^2.
        quad = [jnp.where(below, D, 0) for D in self.D]
        force = [-q * x for q, x in zip(quad, r, strict=True)]
        cost = sum(0.5 * q * x * x for q, x in zip(quad, r, strict=True)) + 0.5 * Dm * gap * gap
        force[0] = force[0] - Dm * gap * mu
        # Tangential gradient: along U / T, scaled by the friction coefficients.
        for k in range(1, size):
            force[k] = force[k] + Dm * gap * mu * unit[k] * self.mu[k]
        return CostDerivatives(force, cost, self._curvature(Dm, gap, T, unit, quad))

    def zones(self, r: list) -> tuple[Array, Array]:
        """Return the contacts in the free and in the quadratic zone, `[ncon, *W]` bool each."""
        if len(r) == 1:
            return r[0] >= 0, r[0] < 0
        # Compare N with the cone mu T, and with its dual.
        mu, (N, *U) = self.mu[0], self._scaled(r)
        T = _length(U)
        free = mu * T <= N
        below = (mu * N + T <= 0) & ~free
        if self.flat is not None:
            free = jnp.where(self.flat, r[0] >= 0, free)
            below = jnp.where(self.flat, r[0] < 0, below)
        return free, below

    def _scaled(self, r: list) -> list:
        """Return the residual in the coordinates of a cone of unit friction."""
        return [s * x for s, x in zip(self.mu, r, strict=True)]

    def _stiffness(self, where: Array) -> Array:
        """Return Dm where `where` is true, else 0; mu is 0 without a contact, hence the guard."""
        mu = self.mu[0]
        return jnp.where(where, self.D[0], 0) / jnp.where(where, mu * mu * (1 + mu * mu), 1.0)

    def _curvature(self, Dm: Array, gap: Array, T: Array, unit: list, quad: list) -> list[list]:
        """Compute the second derivatives of the cost, symmetric."""
        # Hessian of the normal, and of the quadratic zone.
        size, mu = len(unit), self.mu[0]
        curvature = [[jnp.zeros_like(gap)] * size for _ in range(size)]
        curvature[0][0] = quad[0] + Dm * mu * mu
        # Cone surface: outer product of the gradient, plus the curvature of the cone across it.
        across = -mu * gap / jnp.where(T > 0, T, 1.0)
        for j in range(1, size):
            curvature[0][j] = curvature[j][0] = -Dm * mu * unit[j] * mu * self.mu[j]
            for k in range(1, j + 1):
                curve = mu * mu * unit[j] * unit[k] + across * (float(j == k) - unit[j] * unit[k])
                w = Dm * curve * self.mu[j] * self.mu[k]
                curvature[j][k] = curvature[k][j] = w + quad[j] if j == k else w
        return curvature

    def lines(self, r: list, v: list) -> "list[OneSidedLine | ConeLine]":
        """Restrict the cost of each contact to r + step v, `[ncon, *W]`."""
        # The normal row, used alone by frictionless contacts.
        normal = OneSided(self.D[0]).line(r[0], v[0])
        if len(r) == 1:
            return [normal]
        mu = self.mu[0]
        # Quadratic form of U along the line.
        U = [f * x for f, x in zip(self.mu[1:], r[1:], strict=True)]
        V = [f * y for f, y in zip(self.mu[1:], v[1:], strict=True)]
        weighted = [D * y for D, y in zip(self.D, v, strict=True)]
        line = ConeLine(
            N0=mu * r[0],
            N1=mu * v[0],
            UU=_dot(U, U),
            UV=_dot(U, V),
            VV=_dot(V, V),
            slope=_dot(r, weighted),
            curvature=_dot(v, weighted),
            mu=mu,
            Dm=self._stiffness(mu > 0),
            alone=None if self.flat is None else (self.flat, normal),
        )
        return [line]

    def restrict_to_line(self, r: list, v: list) -> SummedLine:
        """Restrict the cost to r + step v, summed over contacts."""
        if self.used is not None:
            return SummedLine(_line_in_chunks(self, r, v), 0, self.used)
        return SummedLine(materialize(self.line(r, v), r[0]))

    def line(self, r: list, v: list) -> "OneSidedLine | ConeLine":
        """Restrict the cost of each contact to r + step v."""
        return self.lines(r, v)[0]

    def active(self) -> Array:
        """Count the active rows, `[1, *W]`."""
        counts = [active(D) for D in self.D]
        return sum(counts[1:], counts[0])


def _line_in_chunks(cost: Pyramid | Elliptic, r: list, v: list) -> PerContact:
    """Return the lines of contacts, evaluated chunk by chunk."""
    return PerContact(_line, (replace(cost, used=None), r, v))


def _line(cost: Pyramid | Elliptic, r: list, v: list) -> "EdgesLine | OneSidedLine | ConeLine":
    return cost.line(r, v)


def _length(U: list) -> Array:
    return safe_sqrt(sum(u * u for u in U))


def _dot(a: list, b: list) -> Array:
    return sum(x * y for x, y in zip(a, b, strict=True))


class ConeLine(NamedTuple):
    """Elliptic cones along a line `[ncon, *W]`, see `Elliptic`.

    With N = mu r0 and U = friction r, N = N0 + step N1 and U'U = UU + 2 step UV + step^2 VV.
    `slope` and `curvature` belong to the quadratic zone; `alone` has the mask of frictionless
    contacts, and their normals.
    """

    N0: jax.Array
    N1: jax.Array
    UU: jax.Array
    UV: jax.Array
    VV: jax.Array
    slope: jax.Array
    curvature: jax.Array
    mu: jax.Array
    Dm: jax.Array
    alone: tuple[jax.Array, OneSidedLine] | None

    def derivatives(self, step: Array) -> tuple[Array, Array]:
        """Return derivatives of each contact's cost with respect to the step, `[ncon, *W]`."""
        # N, T and the zone at the step.
        N = self.N0 + step * self.N1
        square = self.UU + step * (2 * self.UV + step * self.VV)
        apart = square > MINVAL * MINVAL
        T = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0)
        mu = self.mu
        free = mu * T <= N
        below = (mu * N + T <= 0) & ~free
        # Derivatives of 1/2 Dm (N - mu T)^2 on the cone surface.
        per_T = jnp.where(apart, 1 / jnp.where(apart, T, 1.0), 0)
        dT = (self.UV + step * self.VV) * per_T
        gap, dgap = N - mu * T, self.N1 - mu * dT
        on_cone = self.Dm * (dgap * dgap - gap * mu * (self.VV - dT * dT) * per_T)
        # Combine the zones: quadratic below, zero above.
        first = jnp.where(below, self.slope + step * self.curvature, self.Dm * gap * dgap)
        second = jnp.where(below, self.curvature, on_cone)
        first, second = jnp.where(free, 0, first), jnp.where(free, 0, second)
        if self.alone is None:
            return first, second
        flat, normal = self.alone
        one, two = normal.derivatives(step)
        return jnp.where(flat, one, first), jnp.where(flat, two, second)

    def num_crossed(self, step: Array) -> Array:
        """Return 0 where a contact is free, or quadratic, at step 0 and at the step, else 1."""
        # A contact stays on one quadratic if it is free, or quadratic, at both ends.
        start, end = self._state_at(0 * step), self._state_at(step)
        same = (start.free & end.free) | (start.below & end.below) | (self.Dm == 0)
        num_crossed = jnp.where(same, 0, 1).astype(step.dtype)
        if self.alone is None:
            return num_crossed
        flat, normal = self.alone
        return jnp.where(flat, normal.num_crossed(step), num_crossed)

    def change(self, step: Array) -> Array:
        """Return the change of each contact's cost from step 0, without cancellation.

        With gap = N - mu T it is half of Dm gap^2 between the zones, and of
        Dm (gap^2 + (mu N + T)^2) below the cone, since D_k r_k^2 = D U_k^2 / mu^2.
        """
        mu, start, end = self.mu, self._state_at(0 * step), self._state_at(step)
        # T_end - T_start without cancellation, from the difference of squares.
        square = step * (2 * self.UV + step * self.VV)
        length = start.T + end.T
        dT = square / jnp.where(length > 0, length, 1.0)
        dgap = step * self.N1 - mu * dT
        middle = 0.5 * self.Dm * dgap * (2 * start.gap + dgap)
        lowest = step * (self.slope + 0.5 * step * self.curvature)
        below = 0.5 * self.Dm * (end.depth**2 - start.depth**2)
        # Terms of gap^2, which the quadratic zone has too.
        leaves = -0.5 * self.Dm * start.gap**2
        enters = 0.5 * self.Dm * end.gap**2
        held = jnp.where(end.free, leaves, middle)
        shared = jnp.where(start.free, jnp.where(end.free, 0, enters), held)
        change = jnp.where(start.below & end.below, lowest, shared + below)
        if self.alone is None:
            return change
        flat, normal = self.alone
        return jnp.where(flat, normal.change(step), change)

    def _state_at(self, step: Array) -> "_Place":
        """Evaluate the contacts at a step."""
        N = self.N0 + step * self.N1
        square = self.UU + step * (2 * self.UV + step * self.VV)
        apart = square > MINVAL * MINVAL
        T = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0)
        free = self.mu * T <= N
        depth = self.mu * N + T
        below = (depth <= 0) & ~free
        return _Place(T, N - self.mu * T, jnp.where(below, depth, 0), free, below)


class _Place(NamedTuple):
    """Evaluation of contacts `[ncon, *W]`: T, N - mu T, mu N + T (quadratic zone), zones."""

    T: jax.Array
    gap: jax.Array
    depth: jax.Array
    free: jax.Array
    below: jax.Array
