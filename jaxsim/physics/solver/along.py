"""The constraint cost along a line: what the line search evaluates again and again.

Along r + step v each piece of the cost is a function of a few numbers that do not depend on the
step. They are made once for a line; an evaluation then costs a handful of operations a row.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.enums import MINVAL, ConeType, ConstraintType
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.products import sum_used
from jaxsim.physics.arrays.select import total
from jaxsim.physics.constraint.rows import ContactRows, DenseRows, DofRows


class OneSided(NamedTuple):
    """Rows `[n, *W]` that push where r + step v < 0; slope and bend are D r v and D v v."""

    r: jax.Array
    v: jax.Array
    slope: jax.Array
    bend: jax.Array

    @classmethod
    def of(cls, D, r, v):
        """The line of rows with residual r and change v."""
        return cls(r, v, D * r * v, D * v * v)

    def derivatives(self, step):
        """First and second derivative of the cost with respect to the step, `[n, *W]`."""
        pushes = self.r + step * self.v < 0
        return (
            jnp.where(pushes, self.slope + step * self.bend, 0),
            jnp.where(pushes, self.bend, 0),
        )


class Huber(NamedTuple):
    """Rows of dry friction `[n, *W]`: slope and bend as above, within the bound floss."""

    r: jax.Array
    v: jax.Array
    slope: jax.Array
    bend: jax.Array
    D: jax.Array
    floss: jax.Array

    def derivatives(self, step):
        """As OneSided."""
        r = self.r + step * self.v
        inside = jnp.abs(self.D * r) < self.floss
        beyond = jnp.where(self.D > 0, jnp.sign(r) * self.floss * self.v, 0)
        return (
            jnp.where(inside, self.slope + step * self.bend, beyond),
            jnp.where(inside, self.bend, 0),
        )


class Edges(NamedTuple):
    """The edges of friction pyramids, each one-sided: `[edges, ncon, *W]`."""

    rows: OneSided

    def derivatives(self, step):
        """Sums over the edges of each contact, `[ncon, *W]`."""
        first, second = self.rows.derivatives(step[None])
        return sum(first), sum(second)


class Cone(NamedTuple):
    """Elliptic cones `[ncon, *W]`, see `cost._cone`.

    With N = mu r0 and U = friction r along the line, N = N0 + step N1 and U'U = UU + 2 step UV +
    step^2 VV; slope and bend are those of the quadratic below the cone.
    """

    N0: jax.Array
    N1: jax.Array
    UU: jax.Array
    UV: jax.Array
    VV: jax.Array
    slope: jax.Array
    bend: jax.Array
    mu: jax.Array
    Dm: jax.Array
    alone: tuple[jax.Array, OneSided] | None  # which contacts are frictionless, and their normals

    def derivatives(self, step):
        """As OneSided."""
        N = self.N0 + step * self.N1
        square = self.UU + step * (2 * self.UV + step * self.VV)
        apart = square > MINVAL * MINVAL
        T = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0)
        mu = self.mu
        free = mu * T <= N
        below = (mu * N + T <= 0) & ~free
        per_T = jnp.where(apart, 1 / jnp.where(apart, T, 1.0), 0)
        dT = (self.UV + step * self.VV) * per_T
        gap, dgap = N - mu * T, self.N1 - mu * dT
        bend = self.Dm * (dgap * dgap - gap * mu * (self.VV - dT * dT) * per_T)
        first = jnp.where(below, self.slope + step * self.bend, self.Dm * gap * dgap)
        second = jnp.where(below, self.bend, bend)
        first, second = jnp.where(free, 0, first), jnp.where(free, 0, second)
        if self.alone is None:
            return first, second
        flat, normal = self.alone
        one, two = normal.derivatives(step)
        return jnp.where(flat, one, first), jnp.where(flat, two, second)


class Line(NamedTuple):
    """The cost along one line: what is quadratic throughout, and the pieces by block.

    Attributes:
      slope, curvature: derivatives at step 0 of the quadratic part `[1, *W]`.
      pieces: lines of rows, each with the number of its rows that can count, or None for all.
    """

    slope: jax.Array
    curvature: jax.Array
    pieces: list

    def derivatives(self, step):
        """First and second derivative of the whole cost with respect to the step, `[1, *W]`."""
        first, second = self.slope + self.curvature * step, self.curvature
        for piece, axis, used in self.pieces:
            a, b = sum_used(lambda part: part.derivatives(step), piece, axis, used)
            first, second = first + a, second + b
        return first, second


def line(blocks: tuple, r: list, v: list, slope, curvature) -> Line:
    """The cost along r + step v.

    Args:
      blocks: blocks of rows.
      r, v: residuals at the start and their change per unit step, block by block.
      slope, curvature: derivatives of the part of the cost without constraints, `[1, *W]`.
    """
    pieces = []
    for block, x, y in zip(blocks, r, v, strict=True):
        if isinstance(block, ContactRows):
            piece = _edges(block, x, y) if block.cone == ConeType.PYRAMIDAL else _cone(block, x, y)
            pieces.append((pin(piece, slope), 1 if isinstance(piece, Edges) else 0, block.used))
        elif block.floss is None and block.type == ConstraintType.EQUALITY:
            slope, curvature = slope + total(block.D * x * y), curvature + total(block.D * y * y)
        else:
            pieces.append((pin(_single(block, x, y), slope), 0, None))
    return Line(slope, curvature, pieces)


def _single(block: DofRows | DenseRows, r, v) -> OneSided | Huber:
    rows = OneSided.of(block.D, r, v)
    if block.floss is None:
        return rows
    return Huber(rows.r, rows.v, rows.slope, rows.bend, block.D, block.floss)


def _edges(block: ContactRows, r: list, v: list) -> Edges:
    """Edges +-k of each contact; of a frictionless one its normal."""
    size = len(r)
    if size == 1:
        each = [OneSided.of(block.D, r[0], v[0])]
    else:
        each = []
        for k in range(1, size):
            mu = block.mu[k]
            D = jnp.where(mu > 0, block.D, 0)
            for slope in (mu, -mu):
                each.append(OneSided.of(D, r[0] + slope * r[k], v[0] + slope * v[k]))
        if block.flat is not None:
            each.append(OneSided.of(jnp.where(block.flat, block.D, 0), r[0], v[0]))
    return Edges(OneSided(*(jnp.stack(parts) for parts in zip(*each, strict=True))))


def _cone(block: ContactRows, r: list, v: list) -> OneSided | Cone:
    mu, size = block.mu[0], len(r)
    if size == 1:
        return OneSided.of(block.D, r[0], v[0])
    assert block.Dt is not None  # only pyramids have none
    U = [f * x for f, x in zip(block.mu[1:], r[1:], strict=True)]
    V = [f * y for f, y in zip(block.mu[1:], v[1:], strict=True)]

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    there = mu > 0  # 0 where there is no contact
    Dm = jnp.where(there, block.D, 0) / jnp.where(there, mu * mu * (1 + mu * mu), 1.0)
    weighted = [D * y for D, y in zip(block.Dt, v, strict=True)]
    alone = None if block.flat is None else (block.flat, OneSided.of(block.D, r[0], v[0]))
    return Cone(
        mu * r[0], mu * v[0], dot(U, U), dot(U, V), dot(V, V), dot(r, weighted), dot(v, weighted),
        mu, Dm, alone,
    )  # fmt: skip
