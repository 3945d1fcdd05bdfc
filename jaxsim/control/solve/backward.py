"""The backward pass: the best change of the controls of a linear-quadratic model.

From the last step to the first, with V the cost to go, x' = A x + B u + c, and p = V_x + V_xx c:

    Q_x  = l_x + A'p                Q_xx = l_xx + A'V_xx A
    Q_u  = l_u + B'p                Q_ux = l_ux + B'V_xx A,   Q_uu = l_uu + B'V_xx B + mu 1

The feedforward part k minimizes the quadratic model within the limits; the feedback K acts on the
controls that are not held by a limit. Tassa, Mansard, Todorov, ICRA 2014, sections II and III. The
gap c is the defect f(x, u) - x_next of a step: zero for a motion, nonzero between the pieces of a
motion (Giftthaler et al., IROS 2018, section III).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.functions.box_qp_solver import box_qp, free_solve


class QuadraticModel(NamedTuple):
    """Steps and their costs near a motion; z = (dx, du), nz = nx + nu.

    Attributes:
      dynamics: derivative of each next state, (steps, nx, nz).
      gap: defect f(x_t, u_t) - x_t+1, (steps, nx).
      gradient: gradient of the cost of each step and of the end, (steps + 1, nz).
      hessian: second derivative of these costs, (steps + 1, nz, nz).
    """

    dynamics: jax.Array
    gap: jax.Array
    gradient: jax.Array
    hessian: jax.Array


class Policy(NamedTuple):
    """Change of the controls: u = clip(u_old + length k + K dx).

    Attributes:
      k: feedforward part, (steps, nu).
      K: feedback, (steps, nu, nx).
      slope: first and second order of the expected change of the cost, (2,): for a step length s it
        is s slope[0] + s^2 slope[1].
      good: whether all systems could be solved, () bool.
      V_x, V_xx: cost to go from the end of each step, V_x dx + dx' V_xx dx / 2, (steps, nx) and
        (steps, nx, nx).
    """

    k: jax.Array
    K: jax.Array
    slope: jax.Array
    good: jax.Array
    V_x: jax.Array
    V_xx: jax.Array


def backward(
    model: QuadraticModel, lower: jax.Array, upper: jax.Array, regularization: jax.Array
) -> Policy:
    """Return the best change of the controls.

    Args:
      model: the steps and costs.
      lower, upper: limits of the change of each control, (steps, nu).
      regularization: mu, added to the curvature along each control, ().
    """
    nx = model.dynamics.shape[1]
    nu = lower.shape[1]

    def one(after: tuple, now: tuple) -> tuple[tuple, tuple]:
        V_x, V_xx = after
        F, gap, cost_z, cost_zz, low, high = now
        Q = cost_z + F.T @ (V_x + V_xx @ gap)
        QQ = cost_zz + F.T @ V_xx @ F
        Q_uu, Q_ux = QQ[nx:, nx:], QQ[nx:, :nx]
        damped = Q_uu + regularization * jnp.eye(nu, dtype=Q.dtype)
        k, free, *_ = box_qp(damped, Q[nx:], low, high)
        K = -free_solve(damped, Q_ux, free)
        slope = jnp.stack([k @ Q[nx:], k @ Q_uu @ k / 2])
        new_x = Q[:nx] + K.T @ (Q_uu @ k + Q[nx:]) + Q_ux.T @ k
        new_xx = QQ[:nx, :nx] + K.T @ Q_uu @ K + K.T @ Q_ux + Q_ux.T @ K
        return (new_x, (new_xx + new_xx.T) / 2), (k, K, slope, V_x, V_xx)

    end = model.gradient[-1, :nx], model.hessian[-1, :nx, :nx]
    steps = (model.dynamics, model.gap, model.gradient[:-1], model.hessian[:-1], lower, upper)
    _, (k, K, slopes, V_x, V_xx) = lax.scan(one, end, steps, reverse=True)
    good = jnp.all(jnp.isfinite(k)) & jnp.all(jnp.isfinite(K))
    return Policy(k, K, jnp.sum(slopes, axis=0), good, V_x, V_xx)
