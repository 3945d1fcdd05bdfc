"""Eigenvalues and eigenvectors of a symmetric 3 x 3 matrix, differentiable where they are
distinct."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.functions.quaternion import mat_to_quat, mul_quat_axis
from jaxsim.math import safe_divide

_MAX_SWEEPS = 10  # Jacobi sweeps over all three pairs; the method converges quadratically
_OFF_DIAGONAL = np.array([[0, 1], [0, 2], [1, 2]])


class Eig3(NamedTuple):
    """Eigendecomposition of a symmetric matrix, eigvec diag(eigval) eigvec'.

    Attributes:
      eigval: in descending order, (3,).
      eigvec: right-handed eigenvectors in the columns, (3, 3).
      quat: the rotation eigvec as a quaternion, (4,).
    """

    eigval: jax.Array
    eigvec: jax.Array
    quat: jax.Array


@jax.custom_jvp
def eig3(mat: Array) -> Eig3:
    """Return the eigenvalues and eigenvectors of a symmetric matrix.

    Jacobi's method (Golub, Van Loan: Matrix Computations, section 8.5). Eigenvectors of equal
    eigenvalues are arbitrary; their derivative is taken as zero.

    Args:
      mat: symmetric, (3, 3).

    Returns:
      An Eig3.
    """
    mat = jnp.asarray(mat)
    unit = jnp.eye(3, dtype=mat.dtype)
    pairs = jnp.asarray(np.tile(_OFF_DIAGONAL, (_MAX_SWEEPS, 1)))
    (A, V), _ = lax.scan(_rotate, (mat, unit), pairs)
    values = jnp.diag(A)
    order = jnp.argsort(-values)
    V = V[:, order]
    V = V * jnp.stack([jnp.ones_like(V[0, 0])] * 2 + [_determinant(V)])[None]  # right-handed
    return Eig3(values[order], V, mat_to_quat(V))


@eig3.defjvp
def _eig3_jvp(primals: tuple, tangents: tuple) -> tuple[Eig3, Eig3]:
    """Compute tangents from d(V D V') = V ([w] D - D [w] + dD) V', w the rotation of the axes in
    their own frame."""
    found = eig3(*primals)
    V, values = found.eigvec, found.eigval
    change = V.T @ tangents[0] @ V
    a, b = np.array([2, 0, 1]), np.array([1, 2, 0])
    w = safe_divide(change[a, b], values[b] - values[a])
    spin = jnp.zeros_like(V).at[a, b].set(w).at[b, a].set(-w)
    turned = mul_quat_axis(found.quat, w) / 2
    return found, Eig3(jnp.diag(change), V @ spin, turned)


def _rotate(state: tuple, pair: Array) -> tuple:
    """Zero one off-diagonal entry by a Jacobi rotation."""
    A, V = state
    p, q = pair[0], pair[1]
    tangent = safe_divide(A[q, q] - A[p, p], 2 * A[p, q])  # cotangent of twice the rotation angle
    sign = jnp.where(tangent < 0, -1, 1).astype(A.dtype)
    t = sign / (jnp.abs(tangent) + jnp.sqrt(1 + tangent * tangent))
    t = jnp.where(A[p, q] == 0, 0, t)
    c = 1 / jnp.sqrt(1 + t * t)
    J = jnp.eye(3, dtype=A.dtype).at[p, p].set(c).at[q, q].set(c)
    J = J.at[p, q].set(t * c).at[q, p].set(-t * c)
    return (J.T @ A @ J, V @ J), None


def _determinant(V: Array) -> Array:
    return jnp.sign(jnp.dot(V[:, 0], jnp.cross(V[:, 1], V[:, 2])))
