"""The least value of a quadratic in a ball: friction of an elliptic contact with a given normal.

    minimize 1/2 y' A y + y' b,   |y| <= r

MuJoCo's documentation, Computation: Solver algorithms (PGS). Its solution is y = -(A + s I)^-1 b
with s = 0 inside the ball, and on it the s > 0 for which |y| = r. Vectors are lists and matrices
nested lists, of arrays of equal shape, so that the 2 to 5 unknowns are written out.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.physics.arrays.array import Array

SINGULAR = 1e-10  # determinant, or pivot, below which MuJoCo does not solve
SLACK = 1e-10  # by which |y|^2 may exceed r^2, as MuJoCo has it
LIMIT = 20  # iterations; from 0 they converge from below, mostly in three or four


def scaled(A: list, mu: list) -> list:
    """A in units of the bounds mu; the identity for tangents that a contact does not have."""
    return [
        [mu[j] * a * mu[k] + (jnp.where(mu[j] > 0, 0.0, 1.0) if j == k else 0.0)
         for k, a in enumerate(row)]
        for j, row in enumerate(A)
    ]  # fmt: skip


def solvable(A: list, dim: Array) -> Array:
    """Whether MuJoCo takes A for invertible; where it does not, it gives up and takes no friction.

    Args:
      A: symmetric matrix; rows and columns that a contact does not have are those of the identity.
      dim: dimension of the contact: 3 or 4, where the determinant decides, or 6, the pivots.
    """
    pivots = [row[k] for k, row in enumerate(_factor(A))]
    least, product = pivots[0], pivots[0]
    for pivot in pivots[1:]:
        least, product = jnp.minimum(least, pivot), product * pivot
    return jnp.where(dim > 4, least, product) >= SINGULAR


def least_in_ball(A: list, b: list, r: Array, solved: Array) -> list:
    """The minimizer.

    Args:
      A: symmetric positive definite where `solved`.
      b: slope at zero.
      r: radius.
      solved: where the result is wanted; elsewhere it is zero.
    """
    solved = solved & (r >= MINVAL)
    A = [
        [jnp.where(solved, a, float(j == k)) for k, a in enumerate(row)] for j, row in enumerate(A)
    ]
    b = [jnp.where(solved, a, 0) for a in b]
    return _least(A, b, jnp.where(solved, r, 1.0))[0]


@jax.custom_jvp
def _least(A: list, b: list, r: Array) -> tuple[list, Array]:
    """y and s, by Newton's method on 1/|y| = 1/r, which is nearly linear in s."""
    eps = 8 * float(jnp.finfo(r.dtype).eps)

    def solution(s):
        factor = _factor(_shifted(A, s))
        y = _solve(factor, [-a for a in b])
        return y, _dot(y, y), _dot(y, _solve(factor, y))

    def proceed(state):
        k, _, busy = state
        return (k < LIMIT) & jnp.any(busy)

    def newton(state):
        k, s, busy = state
        _, square, bend = solution(s)
        length = jnp.sqrt(jnp.where(busy, square, 1.0))
        outside = (square > r * r + jnp.where(s > 0, 0, SLACK)) & (length > (1 + eps) * r)
        busy = busy & outside
        step = (length / r - 1) * square / jnp.where(busy, bend, 1.0)
        return k + 1, jnp.where(busy, s + step, s), busy

    start = (jnp.int32(0), jnp.zeros_like(r), jnp.ones(r.shape, bool))
    s = lax.while_loop(proceed, newton, start)[1]
    y, square, _ = solution(s)
    # on the ball exactly, though the iterations ended before
    onto = jnp.where(s > 0, r / jnp.sqrt(jnp.where(s > 0, square, 1.0)), 1.0)
    return [onto * a for a in y], s


@_least.defjvp
def _tangent(primals: tuple, tangents: tuple) -> tuple:
    """Of the solution: (A + s I) dy + ds y = -(dA y + db), and on the ball y' dy = r dr."""
    A, b, r = primals
    dA, db, dr = tangents
    y, s = _least(A, b, r)
    factor = _factor(_shifted(A, s))
    change = [-(_dot(row, y) + d) for row, d in zip(dA, db, strict=True)]
    free, along = _solve(factor, change), _solve(factor, y)
    held = s > 0
    ds = (_dot(y, free) - r * dr) / jnp.where(held, _dot(y, along), 1.0)
    ds = jnp.where(held, ds, 0)
    return (y, s), ([u - ds * w for u, w in zip(free, along, strict=True)], ds)


def _shifted(A: list, s: Array) -> list:
    """A + s I."""
    return [[a + s if j == k else a for k, a in enumerate(row)] for j, row in enumerate(A)]


def _factor(A: list) -> list:
    """A = L D L': below the diagonal L, on it D."""
    n = len(A)
    F = [list(row) for row in A]
    for k in range(n):
        for j in range(k + 1, n):
            ratio = F[j][k] / _safe(F[k][k])
            for i in range(k + 1, j + 1):
                F[j][i] = F[j][i] - ratio * F[i][k]
        # the column is divided when the rest does not need it any more
        for j in range(k + 1, n):
            F[j][k] = F[j][k] / _safe(F[k][k])
    return F


def _solve(F: list, b: Sequence) -> list:
    """x with L D L' x = b."""
    x = list(b)
    n = len(x)
    for j in range(n):
        for k in range(j):
            x[j] = x[j] - F[j][k] * x[k]
    x = [a / _safe(F[k][k]) for k, a in enumerate(x)]
    for j in reversed(range(n)):
        for k in range(j + 1, n):
            x[j] = x[j] - F[k][j] * x[k]
    return x


def _safe(pivot: Array) -> Array:
    """A divisor: pivots that are not positive are those of matrices that nobody solves with."""
    return jnp.where(pivot > 0, pivot, 1.0)


def _dot(a: Sequence, b: Sequence) -> Array:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])
