"""A small quadratic program with a box, by projected Newton steps.

    minimize x'Hx / 2 + q'x,   lower <= x <= upper

Tassa, Mansard, Todorov: Control-limited differential dynamic programming, ICRA 2014, section III.
Of every turn the Newton step is taken along the numbers that are free; a number is clamped where it
is at a limit and its gradient leads outwards. All lengths of the step are tried at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.factor import solve_spd

TURNS = 30  # most Newton steps; the set of clamped numbers settles in a few
LENGTHS = 12  # of a step: 1, 1/2, 1/4, ...


class BoxSolution(NamedTuple):
    """The solution of a quadratic program with a box.

    Attributes:
      x: the solution, (n,); not finite if H is not positive definite.
      free: which numbers are not held by a limit, (n,) bool.
    """

    x: jax.Array
    free: jax.Array


def box_qp(H: jax.Array, q: jax.Array, lower: jax.Array, upper: jax.Array) -> BoxSolution:
    """Minimizes x'Hx / 2 + q'x within a box.

    Args:
      H: symmetric positive definite, (n, n).
      q: (n,).
      lower, upper: limits, (n,) each; may be infinite.

    Example:
      >>> box_qp(jnp.eye(2), jnp.array([-3.0, 0.5]), -jnp.ones(2), jnp.ones(2)).x.tolist()
      [1.0, -0.5]
    """
    lengths = jnp.asarray(0.5 ** np.arange(LENGTHS), q.dtype)
    small = 8 * jnp.finfo(q.dtype).eps * (1 + jnp.max(jnp.abs(q), initial=0))

    def value(x: jax.Array) -> jax.Array:
        return x @ (H @ x / 2 + q)

    def turn(state: tuple) -> tuple:
        i, x, _ = state
        gradient = q + H @ x
        free = is_free(x, gradient)
        step = free_solve(H, -gradient, free)
        tried = jnp.clip(x[None] + lengths[:, None] * step[None], lower[None], upper[None])
        values = jax.vmap(value)(tried)
        best = jnp.argmin(values)
        better = values[best] <= value(x)
        new = jnp.where(better, tried[best], x)
        settled = jnp.all(jnp.abs(jnp.where(free, gradient, 0)) <= small)
        ended = settled | ~better | ~jnp.any(free) | jnp.all(new == x)
        broken = ~jnp.all(jnp.isfinite(step))
        return i + 1, jnp.where(broken, jnp.nan, new), ended | broken

    def is_free(x: jax.Array, gradient: jax.Array) -> jax.Array:
        return ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))

    start = (
        jnp.zeros((), jnp.int32),
        jnp.clip(jnp.zeros_like(q), lower, upper),
        jnp.zeros((), bool),
    )
    _, x, _ = lax.while_loop(lambda s: ~s[2] & (s[0] < TURNS), turn, start)
    return BoxSolution(x, is_free(x, q + H @ x))


def free_solve(H: jax.Array, b: jax.Array, free: jax.Array) -> jax.Array:
    """H^-1 b among the free numbers, zero at the others.

    Args:
      H: (n, n).
      b: (n,) or (n, k).
      free: (n,) bool.
    """
    both = free[:, None] & free[None, :]
    unit = jnp.eye(len(free), dtype=H.dtype)
    mask = free.reshape(len(free), *(1,) * (b.ndim - 1))
    return solve_spd(jnp.where(both, H, unit), jnp.where(mask, b, 0))
