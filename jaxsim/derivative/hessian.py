"""Second derivatives along a direction."""

from collections.abc import Callable
from typing import TypeVar

import jax

_PyTreeT = TypeVar("_PyTreeT")


def hessian_vector(f: Callable[[_PyTreeT], jax.Array], x: _PyTreeT, v: _PyTreeT) -> _PyTreeT:
    """Multiply a direction by the Hessian of a function, at about the cost of two gradients.

    Forward mode over reverse mode (Pearlmutter, Fast exact multiplication by the Hessian, Neural
    Computation 6, 1994); the matrix itself is never made.

    Args:
      f: from arrays, or a tree of them, to one number (), such as the cost of a rollout.
      x: where.
      v: the direction, shaped as `x`.

    Returns:
      As `x`.

    Example:
      >>> x, v = jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0])
      >>> hessian_vector(lambda x: x[0] ** 2 * x[1], x, v).tolist()
      [4.0, 2.0]
    """
    return jax.jvp(jax.grad(f), (x,), (v,))[1]
