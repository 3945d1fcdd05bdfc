"""Minimize a convex quadratic in a ball: the friction subproblem of an elliptic contact.

    minimize 1/2 y' A y + y' b,   |y| <= r

This is the trust-region subproblem of `solPGS` and `solNoSlip` (MuJoCo's documentation,
Computation: Solver algorithms, PGS), with the normal force given. The solution is
y = -(A + s I)^-1 b with multiplier s = 0 inside the ball, and on its boundary the s > 0 for which
|y| = r. Vectors are lists and matrices nested lists of arrays of equal shape, so that the algebra
of the 2 to 5 unknowns is unrolled.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL

_MIN_PIVOT = 1e-10  # determinant, or pivot, below which MuJoCo takes A for singular
_RADIUS_SLACK = 1e-10  # tolerance on |y|^2 > r^2, MuJoCo's
_MAX_ITERATIONS = (
    20  # Newton iterations; they converge monotonically from s = 0, mostly in three or four
)


def scale_by_bounds(A: list, mu: list) -> list:
    """Scale A by the bounds mu on both sides; the identity for tangents that a contact lacks."""
    return [
        [mu[j] * a * mu[k] + (jnp.where(mu[j] > 0, 0.0, 1.0) if j == k else 0.0)
         for k, a in enumerate(row)]
        for j, row in enumerate(A)
    ]  # fmt: skip


def is_invertible(A: list, dim: Array) -> Array:
    """Check whether MuJoCo takes A for invertible; elsewhere it applies no friction.

    Args:
      A: symmetric matrix; rows and columns that a contact lacks are those of the identity.
      dim: dimension of the contact: for 3 and 4 the determinant decides, for 6 the smallest pivot.
    """
    # Pivots of L D L'; their product is the determinant.
    pivots = [row[k] for k, row in enumerate(_factor(A))]
    least, product = pivots[0], pivots[0]
    for pivot in pivots[1:]:
        least, product = jnp.minimum(least, pivot), product * pivot
    return jnp.where(dim > 4, least, product) >= _MIN_PIVOT


def least_in_ball(A: list, b: list, r: Array, solved: Array) -> list:
    """Return the minimizer in the ball.

    Args:
      A: symmetric matrix, positive definite where `solved`.
      b: gradient at zero.
      r: radius of the ball.
      solved: where the result is wanted; elsewhere it is zero.
    """
    # Outside of the mask solve with the identity, so that nothing is singular.
    solved = solved & (r >= MINVAL)
    A = [
        [jnp.where(solved, a, float(j == k)) for k, a in enumerate(row)] for j, row in enumerate(A)
    ]
    b = [jnp.where(solved, a, 0) for a in b]
    return _least(A, b, jnp.where(solved, r, 1.0))[0]


@jax.custom_jvp
def _least(A: list, b: list, r: Array) -> tuple[list, Array]:
    """Return y and s, by Newton's method on 1/|y(s)| = 1/r, which is nearly linear in s."""
    eps = 8 * float(jnp.finfo(r.dtype).eps)

    # y(s) by one factorization, with |y|^2 and y' (A + s I)^-1 y.
    def solution(s):
        factor = _factor(_add_to_diagonal(A, s))
        y = _solve(factor, [-a for a in b])
        return y, _dot(y, y), _dot(y, _solve(factor, y))

    def not_converged(state):
        k, _, active = state
        return (k < _MAX_ITERATIONS) & jnp.any(active)

    def newton(state):
        k, s, active = state
        # Evaluate y(s), and d|y|^2/ds by one more solve.
        _, square, bend = solution(s)
        length = jnp.sqrt(jnp.where(active, square, 1.0))
        outside = (square > r * r + jnp.where(s > 0, 0, _RADIUS_SLACK)) & (length > (1 + eps) * r)
        active = active & outside
        # Newton step on the secular equation (More and Sorensen 1983).
        step = (length / r - 1) * square / jnp.where(active, bend, 1.0)
        return k + 1, jnp.where(active, s + step, s), active

    start = (jnp.int32(0), jnp.zeros_like(r), jnp.ones(r.shape, bool))
    s = lax.while_loop(not_converged, newton, start)[1]
    y, square, _ = solution(s)
    # Project onto the sphere, which removes what is left of the iteration error.
    onto = jnp.where(s > 0, r / jnp.sqrt(jnp.where(s > 0, square, 1.0)), 1.0)
    return [onto * a for a in y], s


@_least.defjvp
def _optimality_tangent(primals: tuple, tangents: tuple) -> tuple:
    """Differentiate the optimality conditions.

    Inside the ball (A + s I) dy + ds y = -(dA y + db); on its boundary also y' dy = r dr.
    """
    # Right-hand side -(dA y + db), and the two solves of the bordered system.
    A, b, r = primals
    dA, db, dr = tangents
    y, s = _least(A, b, r)
    factor = _factor(_add_to_diagonal(A, s))
    change = [-(_dot(row, y) + d) for row, d in zip(dA, db, strict=True)]
    # Eliminate dy, solve the boundary condition for ds, then substitute back.
    free, along = _solve(factor, change), _solve(factor, y)
    held = s > 0
    ds = (_dot(y, free) - r * dr) / jnp.where(held, _dot(y, along), 1.0)
    ds = jnp.where(held, ds, 0)
    return (y, s), ([u - ds * w for u, w in zip(free, along, strict=True)], ds)


def _add_to_diagonal(A: list, s: Array) -> list:
    """Return A + s I."""
    return [[a + s if j == k else a for k, a in enumerate(row)] for j, row in enumerate(A)]


def _factor(A: list) -> list:
    """Factorize A = L D L'; the result has L below the diagonal and D on it."""
    n = len(A)
    F = [list(row) for row in A]
    for k in range(n):
        for j in range(k + 1, n):
            ratio = F[j][k] / _positive_pivot(F[k][k])
            for i in range(k + 1, j + 1):
                F[j][i] = F[j][i] - ratio * F[i][k]
        # Divide the column by the pivot once the trailing columns have been updated.
        for j in range(k + 1, n):
            F[j][k] = F[j][k] / _positive_pivot(F[k][k])
    return F


def _solve(F: list, b: Sequence) -> list:
    """Solve L D L' x = b."""
    x = list(b)
    n = len(x)
    # Forward substitution with L.
    for j in range(n):
        for k in range(j):
            x[j] = x[j] - F[j][k] * x[k]
    # Division by D, then back substitution with L'.
    x = [a / _positive_pivot(F[k][k]) for k, a in enumerate(x)]
    for j in reversed(range(n)):
        for k in range(j + 1, n):
            x[j] = x[j] - F[k][j] * x[k]
    return x


def _positive_pivot(pivot: Array) -> Array:
    """Replace nonpositive pivots by 1; they occur only where the result is masked."""
    return jnp.where(pivot > 0, pivot, 1.0)


def _dot(a: Sequence, b: Sequence) -> Array:
    return sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), a[0] * b[0])
