"""The cost of a constraint residual: force, cost and curvature, block by block.

MuJoCo's documentation, Computation: Constraint model, "Primal problem": the solver minimizes

    1/2 (x - a0)' M (x - a0) + sum_i s_i(J_i x - aref_i),    M a0 = qfrc_smooth

where s is a quadratic (equality), a quadratic on one side (limits, contact edges), a Huber function
(dry friction) or the dual of an elliptic cone. Forces are -ds/dr. Everything here is a function
of the residual r = J x - aref alone.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxsim.enums import ConeType, ConstraintType
from jaxsim.math import safe_sqrt
from jaxsim.physics.constraint.rows import ContactRows, DenseRows, DofRows


class Piece(NamedTuple):
    """What a block of rows contributes at a residual.

    Attributes:
      force: -ds/dr: `[n, *W]`, or a list over the contact basis.
      cost: `[n, *W]`.
      weight: d2s/dr2: `[n, *W]`, or for contacts a symmetric matrix of `[n, *W]` as nested lists.
    """

    force: Any
    cost: Any
    weight: Any


def evaluate(block, r) -> Piece:
    """Force, cost and curvature of a block at its residual.

    Args:
      block: DofRows, DenseRows or ContactRows.
      r: residual `[n, *W]`, or a list over the contact basis.
    """
    if isinstance(block, ContactRows):
        return _pyramid(block, r) if block.cone == ConeType.PYRAMIDAL else _cone(block, r)
    if block.floss is not None:
        return _huber(block, r)
    if block.type == ConstraintType.EQUALITY:
        return Piece(-block.D * r, 0.5 * block.D * r * r, block.D)
    return _one_sided(block.D, r)


def _one_sided(D, r) -> Piece:
    """Quadratic where violated (r < 0), free elsewhere."""
    weight = jnp.where(r < 0, D, 0)
    force = -weight * r
    return Piece(force, -0.5 * force * r, weight)


def _huber(block: DofRows | DenseRows, r) -> Piece:
    """Dry friction: quadratic near zero, of slope floss beyond."""
    D, floss = block.D, block.floss
    assert floss is not None
    inside = jnp.abs(D * r) < floss
    force = jnp.where(inside, -D * r, jnp.where(D > 0, -jnp.sign(r) * floss, 0))
    bend = 0.5 * floss * floss / jnp.where(D > 0, D, 1.0)
    cost = jnp.where(inside, 0.5 * D * r * r, jnp.where(D > 0, jnp.abs(r) * floss - bend, 0))
    return Piece(force, cost, jnp.where(inside, D, 0))


def _pyramid(block: ContactRows, r: list) -> Piece:
    """Edges r0 +- mu[k] r[k], each one-sided, summed onto the basis."""
    size = len(r)
    if size == 1:
        one = _one_sided(block.D, r[0])
        return Piece([one.force], one.cost, [[one.weight]])
    # a frictionless contact in a model with friction: its one row is the normal
    zero = jnp.zeros_like(r[0])
    if block.flat is None:
        normal, cost, stiff = zero, zero, zero
    else:
        normal, cost, stiff = _one_sided(jnp.where(block.flat, block.D, 0), r[0])
    force = [zero] * size
    weight = [[zero] * size for _ in range(size)]
    for k in range(1, size):
        mu = block.mu[k]
        D = jnp.where(mu > 0, block.D, 0)
        up, down = _one_sided(D, r[0] + mu * r[k]), _one_sided(D, r[0] - mu * r[k])
        normal = normal + up.force + down.force
        cost = cost + up.cost + down.cost
        stiff = stiff + up.weight + down.weight
        force[k] = mu * (up.force - down.force)
        weight[0][k] = weight[k][0] = mu * (up.weight - down.weight)
        weight[k][k] = mu * mu * (up.weight + down.weight)
    force[0] = normal
    weight[0][0] = stiff
    return Piece(force, cost, weight)


def _cone(block: ContactRows, r: list) -> Piece:
    """Elliptic cone: free above it, quadratic below its dual, and distance to it between.

    With N = mu r0 and U_k = friction_k r_k, T = |U|:  free where N >= mu T, quadratic where
    mu N + T <= 0, else cost = 1/2 Dm (N - mu T)^2 with Dm = D / (mu^2 (1 + mu^2)).
    """
    size = len(r)
    mu = block.mu[0]
    if size == 1:
        one = _one_sided(block.D, r[0])
        return Piece([one.force], one.cost, [[one.weight]])
    scale = [mu, *block.mu[1:]]
    U = [s * x for s, x in zip(scale, r, strict=True)]
    N = U[0]
    T = safe_sqrt(sum(u * u for u in U[1:]))
    free = mu * T <= N
    below = (mu * N + T <= 0) & ~free
    if block.flat is not None:
        free = jnp.where(block.flat, r[0] >= 0, free)
        below = jnp.where(block.flat, r[0] < 0, below)
    middle = ~(free | below)
    # mu is 0 where there is no contact: divide only where the cone is
    Dm = jnp.where(middle, block.D, 0) / jnp.where(middle, mu * mu * (1 + mu * mu), 1.0)
    gap = N - mu * T
    unit = [u / jnp.where(T > 0, T, 1.0) for u in U]  # unit[0] is not used

    quad = [jnp.where(below, D, 0) for D in block.Dt or ()]
    force = [-q * x for q, x in zip(quad, r, strict=True)]
    cost = sum(0.5 * q * x * x for q, x in zip(quad, r, strict=True)) + 0.5 * Dm * gap * gap
    force[0] = force[0] - Dm * gap * mu
    for k in range(1, size):
        force[k] = force[k] + Dm * gap * mu * unit[k] * scale[k]

    weight = [[jnp.zeros_like(N)] * size for _ in range(size)]
    weight[0][0] = quad[0] + Dm * mu * mu
    bend = -mu * gap / jnp.where(T > 0, T, 1.0)
    for j in range(1, size):
        weight[0][j] = weight[j][0] = -Dm * mu * unit[j] * scale[0] * scale[j]
        for k in range(1, j + 1):
            curve = mu * mu * unit[j] * unit[k] + bend * (float(j == k) - unit[j] * unit[k])
            w = Dm * curve * scale[j] * scale[k]
            weight[j][k] = weight[k][j] = w + quad[j] if j == k else w
    return Piece(force, cost, weight)
