"""Values that are computed exactly once, so that all their users see the same bits.

XLA:CPU recomputes an inexpensive value in each loop that uses it, and contracts products with sums
(FMA) in one loop and not in the next, so two copies of a value can differ in the last digit. For a
number this is harmless, apart from the program's size. For a decision it is not: near a tie, which
is common since bodies at rest lie exactly flat, the x coordinate of a point could follow one branch
and its y coordinate the other. The functions here evaluate in a branch of a `cond` whose predicate
is always true but opaque to XLA, which does not fuse across it.

On other platforms fusion does not duplicate work, and a branch would wait for the host.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import PyTree
from jaxsim.cache import bounded_cache
from jaxsim.transforms.platform import platform


def materialize_result(function: Callable[..., PyTree], *operands: Any) -> PyTree:
    """Evaluate `function(*operands)` exactly once; differentiable.

    `function` is traced once for operands of the same shapes: it must be pure, and the same object
    in each trace.
    """
    return materialize_closure(_cache_trace(function), *operands)


def materialize_closure(function: Callable[..., PyTree], *operands: Any) -> PyTree:
    """Evaluate exactly once a function that is recreated in each trace, such as a closure.

    It is retraced each time unless it is wrapped by `jax.jit(..., inline=True)`.
    """
    if not platform().recomputes:
        return function(*operands)

    def never(*operands):
        return zeros_from_shapes(jax.eval_shape(function, *operands))

    always = lax.optimization_barrier(jnp.ones((), bool))  # true, but opaque to XLA
    return lax.cond(always, function, never, *operands)


def zeros_from_shapes(shapes: PyTree) -> PyTree:
    """Return zeros of these shapes and dtypes."""
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def materialize_decision(choose: Callable[..., PyTree], *operands: Any) -> PyTree:
    """Evaluate `choose(*operands)`, integers and booleans without derivative, exactly once."""
    return materialize_result(choose, *lax.stop_gradient(operands))


@bounded_cache(1024)
def _cache_trace(function: Callable) -> Callable:
    """Return the function with a cached trace."""
    return jax.jit(function, inline=True)


def pack_digits(digits: tuple) -> jax.Array:
    """Pack integers from 0 to 3 and booleans into one integer.

    XLA:CPU fuses each array of a result separately.
    """
    code = jnp.zeros(digits[0].shape, jnp.int32)
    for digit in digits:
        code = 4 * code + digit.astype(jnp.int32)
    return code


def unpack_digits(code: jax.Array, count: int) -> list[jax.Array]:
    """Unpack the integers of `pack_digits`; compare with 1 for a boolean."""
    return [(code >> 2 * k) & 3 for k in reversed(range(count))]
