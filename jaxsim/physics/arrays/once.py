"""Values that are computed once.

XLA:CPU recomputes a cheap value in each loop that uses it, and contracts products with sums in one
loop and not in the next: two copies of a value differ in the last digit. For a number that is
harmless (only the program grows). For a decision it is not: near a tie, and things at rest do lie
exactly flat, the x coordinate of a point could follow one branch and its y coordinate the other.
What is computed here comes out of a branch of its own, into which XLA does not look, so all its
users see the same.

On other platforms fusion does not duplicate work, and a branch would wait for the host.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.cache import bounded
from jaxsim.physics.arrays.array import Tree
from jaxsim.physics.arrays.platform import platform


def once(function: Callable[..., Tree], *operands: Any) -> Tree:
    """`function(*operands)`, evaluated exactly once; differentiable.

    `function` is traced once for operands of the same shape: it has to be pure and made once too.
    """
    return apart(_traced(function), *operands)


def apart(function: Callable[..., Tree], *operands: Any) -> Tree:
    """As `once`, for a function that is made anew for each trace, as one that holds traced values.

    Traced once only if it is made by `jax.jit(..., inline=True)`.
    """
    if not platform().recomputes:
        return function(*operands)

    def never(*operands):
        return blank(jax.eval_shape(function, *operands))

    always = lax.optimization_barrier(jnp.ones((), bool))  # true, but XLA cannot tell
    return lax.cond(always, function, never, *operands)


def blank(shapes: Tree) -> Tree:
    """Zeros of these shapes."""
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def decide(choose: Callable[..., Tree], *operands: Any) -> Tree:
    """`choose(*operands)`, integers and booleans without derivative, evaluated exactly once."""
    return once(choose, *lax.stop_gradient(operands))


@bounded(1024)
def _traced(function: Callable) -> Callable:
    return jax.jit(function, inline=True)


def encode(digits: tuple) -> jax.Array:
    """Booleans and integers from 0 to 3 in one integer: XLA:CPU computes each array on its own."""
    code = jnp.zeros(digits[0].shape, jnp.int32)
    for digit in digits:
        code = 4 * code + digit.astype(jnp.int32)
    return code


def decode(code: jax.Array, count: int) -> list[jax.Array]:
    """The integers of `encode`; compare with 1 for a boolean."""
    return [(code >> 2 * k) & 3 for k in reversed(range(count))]
