"""Return mapping of von Mises plasticity: the part of an elastic strain that flows.

MuJoCo's documentation, XML reference: flex/elasticity/yield; Simo and Hughes, *Computational
Inelasticity*, chapter 3. With d the deviator of an elastic strain E, the equivalent strain e is

    solids    e^2 = 2/3 d:d                        d flows
    planes    e^2 = 2/3 d:d + c tr(E)^2            E flows, where the area grows (tr(E) > 0)
              e^2 = 2/3 d:d                        d flows, elsewhere

If e exceeds the yield strain y, the fraction 1 - y / e flows (radial return). A matrix is a list of
rows of arrays `[n, *W]`: a tensor in orthonormal axes, or in general axes with one index raised.
"""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import safe_divide, safe_sqrt

Matrix = list[list[Array]]
_MAX_RETURN_MAPPING_STEPS = (
    24  # Newton iterations; for strongly unequal edges the first ones only halve the distance
)


def plastic_flow(E: Matrix, y: Array, thinning: float) -> tuple[Array, Array]:
    """Return the fraction that flows, and the diagonal term of E that does not, `[n, *W]` each.

    Args:
      E: elastic strain.
      y: yield strain, `[n, *W]`.
      thinning: c of planes.
    """
    # Equivalent strain from the deviator; a growing plane adds its change of area.
    mean = trace(E) / len(E)
    square = 2 / 3 * (trace(matrix_product(E, E)) - len(E) * mean * mean)
    # Planes: tr(E)^2 counts where the area grows.
    if len(E) == 2:
        grows = mean > 0
        square = square + jnp.where(grows, thinning * (2 * mean) ** 2, 0)
        mean = jnp.where(grows, 0, mean)
    size = safe_sqrt(square)
    return jnp.where(size > y, 1 - safe_divide(y, size), 0), mean


def isochoric_shift(A: Matrix) -> Array:
    """Return x such that det(A + x 1) = 1 and A + x 1 is positive definite, `[n, *W]`.

    With D the deviator of A and t = x + tr(A) / 3, it is the largest root of

        t^3 - j t + det(D) - 1 = 0,   j = 1/2 tr(D D)

    to which Newton's method converges from above, starting at 1 + 2 sqrt(j / 3). The last step is
    differentiable and gives the derivative of the root.
    """
    # Deviator of A, with the invariants j and det(D).
    mean = trace(A) / 3
    D = [[a - mean if i == j else a for j, a in enumerate(row)] for i, row in enumerate(A)]
    j, rest = 0.5 * trace(matrix_product(D, D)), det(D) - 1

    def step(t: Array, j: Array, rest: Array) -> Array:
        slope = 3 * t * t - j
        return t - safe_divide(t * (t * t - j) + rest, slope)

    # Iterate without derivatives, then take one differentiable step with a fixed slope.
    fixed = lax.stop_gradient((j, rest))
    start = 1 + 2 * jnp.sqrt(fixed[0] / 3)
    t = lax.fori_loop(0, _MAX_RETURN_MAPPING_STEPS, lambda _, t: step(t, *fixed), start)
    # Slope at the root, without derivative.
    slope = 3 * t * t - fixed[0]
    return t - safe_divide(t * (t * t - j) + rest, slope) - mean


def matrix_product(A: Matrix, B: Matrix) -> Matrix:
    """Compute A B."""
    span = range(len(A))
    return [[_sum_terms(A[i][k] * B[k][j] for k in span) for j in span] for i in span]


def trace(A: Matrix) -> Array:
    """Return the sum of the diagonal."""
    return _sum_terms(A[i][i] for i in range(len(A)))


def det(A: Matrix) -> Array:
    """Return the determinant of a matrix with two or three rows."""
    return _sum_terms(a * c for a, c in zip(A[0], _cofactors(A)[0], strict=True))


def matrix_inverse(A: Matrix) -> Matrix:
    """Return A^-1, by cofactors."""
    cofactors, whole = _cofactors(A), det(A)
    return [[row[i] / whole for row in cofactors] for i in range(len(A))]


def _cofactors(A: Matrix) -> Matrix:
    if len(A) == 2:
        (a, b), (c, d) = A
        return [[d, -c], [-b, a]]
    # Cofactors by cyclic index shifts.
    n = np.arange(3)

    def minor(i: int, j: int) -> Array:
        (p, q), (r, s) = (i + 1 + n[:2]) % 3, (j + 1 + n[:2]) % 3
        return A[p][r] * A[q][s] - A[p][s] * A[q][r]

    return [[minor(i, j) for j in range(3)] for i in range(3)]


def _sum_terms(terms: Iterable[Array]) -> Array:
    first, *others = terms
    for term in others:
        first = first + term
    return first
