"""Values that are computed exactly once, however many users they have.

XLA's loop fusion on CPU recomputes an inexpensive value in every loop that uses it:

    b = f(a)              loop 1:  for i: c[i] = g(f(a[i]))
    c = g(b)      ->      loop 2:  for i: e[i] = h(f(a[i]))          f is evaluated twice
    e = h(b)

Along a chain of values the copies multiply exponentially. Nor do they have the same bits: XLA
contracts a product and a sum (FMA) in one loop and not in the next. For a number this is harmless,
for a decision it is not: near a tie, which is common since bodies at rest lie exactly flat, the x
coordinate of a point could follow one branch and its y coordinate the other.

XLA does not fuse across a `cond`. So a value is materialized by a branch on a predicate that is
true, but opaque to the compiler:

    b = cond(opaque_true, f, anything else, a)

`materialize` passes existing values through such a branch, `materialize_result` evaluates a
function in it. On other platforms fusion does not duplicate work, and a branch would wait for the
host: there both leave the program as it is.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.transforms.platform import platform


def is_unbatched(like: Array) -> bool:
    """Return whether an array of the physics, `[items]` or `[items, worlds]`, has one world."""
    return like.ndim < 2 or like.shape[-1] == 1


def materialize(tree: PyTree, like: Array) -> PyTree:
    """Return the same values, each computed exactly once.

    Args:
      tree: arrays to materialize.
      like: an array of the physics. Values are materialized if it has a world axis, `[items,
        worlds]`; for one world, where everything is small, they are not.
    """
    if is_unbatched(like):
        return tree
    return _evaluate_in_branch(lambda t: t, _permute_leaves, tree)


def materialize_result(function: Callable[..., PyTree], *operands: Any) -> PyTree:
    """Evaluate `function(*operands)` exactly once; differentiable.

    The function is pure. JAX traces it once for operands of the same shapes if it is the same
    object each time.
    """

    def zeros(*operands: Any) -> PyTree:
        return zeros_from_shapes(jax.eval_shape(traced, *operands))

    traced = jax.jit(function, inline=True)
    return _evaluate_in_branch(traced, zeros, *operands)


def materialize_decision(choose: Callable[..., PyTree], *operands: Any) -> PyTree:
    """Evaluate `choose(*operands)`, integers and booleans without derivative, exactly once."""
    return materialize_result(choose, *lax.stop_gradient(operands))


def _evaluate_in_branch(function: Callable, otherwise: Callable, *operands: Any) -> Any:
    """Evaluate a function in the branch that is always taken; `otherwise` has the same shapes."""
    if not platform().recomputes:
        return function(*operands)
    opaque_true = lax.optimization_barrier(jnp.ones((), bool))
    return lax.cond(opaque_true, function, otherwise, *operands)


def zeros_from_shapes(shapes: PyTree) -> PyTree:
    """Return zeros of these shapes and dtypes."""
    return jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)


def _permute_leaves(tree: PyTree) -> PyTree:
    """Return other values of the same shapes at no cost: arrays of equal shape are permuted."""
    leaves, structure = jax.tree.flatten(tree)
    alike: dict = {}
    for k, leaf in enumerate(leaves):
        alike.setdefault((leaf.shape, leaf.dtype), []).append(k)
    out = list(leaves)
    for group in alike.values():
        if len(group) == 1:
            out[group[0]] = lax.optimization_barrier(leaves[group[0]])
        for here, there in zip(group, group[1:] + group[:1], strict=True):
            if here != there:
                out[here] = leaves[there]
    return jax.tree.unflatten(structure, out)


def pack_digits(digits: tuple) -> jax.Array:
    """Pack integers from 0 to 3 and booleans, the results of a decision, into one integer.

    XLA:CPU fuses each array of a result separately.
    """
    code = jnp.zeros(digits[0].shape, jnp.int32)
    for digit in digits:
        code = 4 * code + digit.astype(jnp.int32)
    return code


def unpack_digits(code: jax.Array, count: int) -> list[jax.Array]:
    """Unpack the integers of `pack_digits`; compare with 1 for a boolean."""
    return [(code >> 2 * k) & 3 for k in reversed(range(count))]
