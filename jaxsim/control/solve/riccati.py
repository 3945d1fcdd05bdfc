"""The discrete-time algebraic Riccati equation.

    P = Q + A'P (1 + G P)^-1 A,   G = B R^-1 B'

by the structure-preserving doubling algorithm (Chu, Fan, Lin, Wang, Structure-preserving algorithms
for periodic discrete-time algebraic Riccati equations, Int. J. Control 77, 2004): k iterations
cover 2^k steps. The number of iterations is fixed, so that both derivative modes work.
"""

import jax
import jax.numpy as jnp
from jax import lax

_MAX_DOUBLING_STEPS = 32  # 4e9 steps


def riccati(A: jax.Array, B: jax.Array, Q: jax.Array, R: jax.Array) -> jax.Array:
    """Return the matrix P of the optimal cost to go x'Px.

    Args:
      A: (n, n).
      B: (n, k).
      Q: symmetric, positive semidefinite, (n, n).
      R: symmetric positive definite, (k, k).

    Returns:
      (n, n); not finite if the system is not stabilizable.

    Example:
      >>> one = jnp.ones((1, 1))
      >>> round(float(riccati(one, one, one, one)[0, 0]), 4)
      1.618
    """
    unit = jnp.eye(len(A), dtype=A.dtype)

    def double(now: tuple, _: None) -> tuple[tuple, None]:
        A, G, H = now
        W = unit + G @ H
        W_A, W_G = jnp.linalg.solve(W, A), jnp.linalg.solve(W, G)
        G, H = G + A @ W_G @ A.T, H + A.T @ H @ W_A
        return (A @ W_A, (G + G.T) / 2, (H + H.T) / 2), None

    G = B @ jnp.linalg.solve(R, B.T)
    (_, _, P), _ = lax.scan(double, (A, G, Q), None, length=_MAX_DOUBLING_STEPS)
    return P
