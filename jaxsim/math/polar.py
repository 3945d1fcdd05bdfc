"""Rotation factor of the polar decomposition."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math.components import select_where
from jaxsim.math.guard import safe_divide
from jaxsim.math.quaternion import matrix_quaternions
from jaxsim.math.rotation import Quat, Rot
from jaxsim.math.vector import Vec

_MAX_POLAR_ITERATIONS = 60  # maximum number of iterations; near a rotation it takes four


def nearest_rotation(F: Rot) -> Quat:
    """Return the rotation R that maximizes the trace of R' F: that of the polar decomposition.

    The optimality condition is that S = R' F is symmetric. Newton's method: a rotation w in the
    axes of R that makes S symmetric to second order solves

        (trace(S) 1 - sym(S)) w = vector of S - S'

    If this matrix is not positive definite, the iteration uses the step of Müller et al., *A robust
    method to extract the rotational part of deformations*, 2016: the vector over |trace(S)|. The
    derivative is that of the rotation itself, by one differentiable Newton step. Values and
    derivatives are meaningless where two singular values are opposite.

    Args:
      F: matrices `[n, *W]`.
    """
    fixed = lax.stop_gradient(F)
    start = _gram_schmidt_rotation(fixed)

    def iterate(state: tuple) -> tuple:
        # One step in the axes of the present rotation.
        count, R, _ = state
        w = _newton_step(R.T @ fixed)
        R = R @ Quat.from_rotation_vector(w).normalize().matrix()
        return count + 1, R, jnp.max(w.dot(w), initial=0.0)

    def not_converged(state: tuple) -> jax.Array:
        count, _, last = state
        return (count < _MAX_POLAR_ITERATIONS) & (last > _min_rotation2(fixed.xx.dtype))

    first = (jnp.zeros((), jnp.int32), start, jnp.ones((), fixed.xx.dtype))
    R = lax.stop_gradient(lax.while_loop(not_converged, iterate, first)[1])
    # One differentiable step carries the implicit derivative.
    S = R.T @ F
    w = _solve(lax.stop_gradient(S), _vector(S))
    return (_quaternion(R) * Quat.from_rotation_vector(w)).normalize()


def _quaternion(R: Rot) -> Quat:
    """Convert a rotation matrix to a quaternion, with w >= 0 unless w is near 0."""
    candidates = [Quat(*row) for row in matrix_quaternions(R.parts)]
    squares = [row.parts[k] for k, row in enumerate(candidates)]
    # Select the candidate with the largest square.
    best, most = candidates[0], squares[0]
    for q, square in zip(candidates[1:], squares[1:], strict=True):
        best = select_where(square > most, q, best)
        most = jnp.maximum(square, most)
    return best.normalize()


def _min_rotation2(dtype: np.dtype) -> float:
    """Return the squared rotation below which the iteration has converged."""
    return float(4 * np.finfo(dtype).eps) ** 2


def _gram_schmidt_rotation(F: Rot) -> Rot:
    """Return an initial rotation by Gram-Schmidt: first column, then second column."""
    a, b, _ = F.cols
    x = a.normalize()
    y = (b - x.scale(x.dot(b))).normalize(_orthogonal_unit(x))
    return Rot.from_cols(x, y, x.cross(y))


def _orthogonal_unit(x: Vec) -> Vec:
    """Return a unit vector perpendicular to x."""
    zero = jnp.zeros_like(x.x)
    flat = jnp.abs(x.x) < 0.5
    other = Vec(jnp.where(flat, zero + 1, zero), jnp.where(flat, zero, zero + 1), zero)
    return x.cross(other).normalize()


def _newton_step(S: Rot) -> Vec:
    off = _vector(S)
    # Newton step where the matrix is positive definite (leading minors), else Müller's; at most 1
    # rad.
    stiff, (first, minor, whole) = _stiffness_matrix(S)
    trace = S.xx + S.yy + S.zz
    safe = (first > 0) & (minor > 0) & (whole > 0)
    plain = off.scale(safe_divide(jnp.ones_like(trace), jnp.abs(trace)))
    w = select_where(safe, _adjugate(stiff, off).scale(1 / jnp.where(safe, whole, 1.0)), plain)
    # Limit the step to one radian.
    size = w.norm()
    return w.scale(jnp.where(size > 1, 1 / jnp.where(size > 1, size, 1.0), 1.0))


def _solve(S: Rot, off: Vec) -> Vec:
    stiff, (_, _, whole) = _stiffness_matrix(S)
    return _adjugate(stiff, off).scale(safe_divide(jnp.ones_like(whole), whole))


def _stiffness_matrix(S: Rot) -> tuple[tuple, tuple]:
    """Return trace(S) 1 - sym(S), as (xx, yy, zz, xy, xz, yz), and its leading minors."""
    a, b, c = S.yy + S.zz, S.xx + S.zz, S.xx + S.yy
    xy, xz, yz = (-0.5 * (p + q) for p, q in ((S.xy, S.yx), (S.xz, S.zx), (S.yz, S.zy)))
    minor = a * b - xy * xy
    whole = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz)
    return (a, b, c, xy, xz, yz), (a, minor, whole)


def _adjugate(A: tuple, v: Vec) -> Vec:
    """Multiply a vector by the adjugate of a symmetric matrix."""
    a, b, c, xy, xz, yz = A
    p, q, r = b * c - yz * yz, a * c - xz * xz, a * b - xy * xy
    s, t, u = xz * yz - xy * c, xy * yz - xz * b, xy * xz - a * yz
    return Vec(
        p * v.x + s * v.y + t * v.z,
        s * v.x + q * v.y + u * v.z,
        t * v.x + u * v.y + r * v.z,
    )


def _vector(S: Rot) -> Vec:
    """Return the vector w with [w] = S - S'."""
    return Vec(S.zy - S.yz, S.xz - S.zx, S.yx - S.xy)
