"""The products J x, J' f and f x' as one JAX primitive with derivative rules of its own.

Each product is linear in both factors, and the cotangent of a factor is one of the other two
products (`_bar` marks a cotangent):

    y = J x:     J_bar = y_bar x',   x_bar = J' y_bar
    x = J' f:    J_bar = f x_bar',   f_bar = J x_bar
    J = f x':    f_bar = J_bar x,    x_bar = J_bar' f

XLA has no fast contraction for arrays whose last axis is the batch. An unrolled sum of products of
rows compiles to one loop over memory that is vectorized over worlds. One world, and sums longer
than `max_unrolled_terms` terms, use `dot_general`. The derivative rules produce the same forms;
JAX's own rules would split an unrolled sum into slices and concatenate them again.
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import dynamic_index_in_dim
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def apply(J: Array, x: Array) -> Array:
    """Return J x: `[n, k, *W]`, `[k, *W]` -> `[n, *W]`."""
    return _bind("J x", J, x)


def apply_transpose(J: Array, f: Array) -> Array:
    """Return J' f: `[n, k, *W]`, `[n, *W]` -> `[k, *W]`."""
    return _bind("J' f", J, f)


def outer(f: Array, x: Array) -> Array:
    """Return the outer product f x': `[n, *W]`, `[k, *W]` -> `[n, k, *W]`."""
    return _bind("f x'", f, x)


def outer_sum(pairs: Iterable[tuple[Array, Array]]) -> Array:
    """Return the sum f x' + g y' + ... over the pairs (f, x), (g, y), ..."""
    first, *rest = pairs
    total = sum((outer(*pair) for pair in rest), outer(*first))
    # In reverse mode all pairs multiply the same cotangent, which is materialized once.
    return materialize(total, first[0]) if is_differentiated() else total


def _bind(kind: str, a: Array, b: Array) -> Array:
    """Bind the primitive; `whole` is set where the compiler does not recompute fused values."""
    product: Array = _BILINEAR_P.bind(a, b, kind=kind, whole=not platform().recomputes)
    return product


def _product_by_columns(J: Array, x: Array, whole: bool) -> Array:
    """Return J x as a sum over the columns of J."""
    if J.ndim == 2:
        return jnp.matmul(J, x, precision=HIGHEST_PRECISION)
    # Many worlds: long sums by a batched dot, short ones unrolled over the columns.
    if J.shape[1] > tuning().max_unrolled_terms:
        if len(J) == 1 and not whole:
            return _dot_in_loop(J[0], x)
        return worlds_dot(J, x, ((1,), (0,)))
    if whole or not len(x):
        return jnp.sum(J * x[None], axis=1)
    shape = (len(J), 1, *x.shape[1:])
    worlds = range(2, len(shape))

    def term(i: int) -> Array:
        item = lax.broadcast_in_dim(lax.slice_in_dim(x, i, i + 1), shape, (1, *worlds))
        return lax.slice_in_dim(J, i, i + 1, axis=1) * item

    return unrolled_sum(term, J.shape[1])[:, 0]


def _product_by_rows(J: Array, f: Array, whole: bool) -> Array:
    """Return J' f as a sum over the rows of J."""
    if J.ndim == 2:
        return jnp.matmul(f, J, precision=HIGHEST_PRECISION)
    # Many worlds: long sums by a batched dot, short ones unrolled over the rows.
    if J.shape[0] > tuning().max_unrolled_terms:
        if J.shape[1] == 1 and not whole:
            return _dot_in_loop(J[:, 0], f)
        return worlds_dot(J, f, ((0,), (0,)))
    if whole or not len(f):
        return jnp.sum(J * f[:, None], axis=0)
    shape = (1, J.shape[1], *f.shape[1:])
    worlds = range(2, len(shape))

    def term(r: int) -> Array:
        item = lax.broadcast_in_dim(lax.slice_in_dim(f, r, r + 1), shape, (0, *worlds))
        return lax.slice_in_dim(J, r, r + 1) * item

    return unrolled_sum(term, J.shape[0])[0]


def _outer_product(f: Array, x: Array, whole: bool) -> Array:
    """Return f x'; one form serves all platforms."""
    del whole
    return f[:, None] * x[None]


def unrolled_sum(term: Callable[[int], Array], n: int) -> Array:
    """Return the unrolled sum term(0) + ... + term(n - 1)."""
    out = term(0)
    for k in range(1, n):
        out = out + term(k)
    return out


def _dot_in_loop(a: Array, b: Array) -> Array:
    """Return the scalar product of vectors, `[n, *W]`, `[n, *W]` -> `[1, *W]`.

    XLA rewrites a batched dot of this form as a sum, and calls a library if it is long. A
    kernel cannot hold such a call: the program would not compile.
    """

    def add(k: Array, total: Array) -> Array:
        """Add the product of two items."""
        return total + dynamic_index_in_dim(a, k) * dynamic_index_in_dim(b, k)

    shape = (1, *np.broadcast_shapes(a.shape[1:], b.shape[1:]))
    zero = jnp.zeros(shape, jnp.result_type(a, b))
    return lax.fori_loop(jnp.int32(0), jnp.int32(len(b)), add, zero)


def worlds_dot(a: Array, b: Array, contract: tuple) -> Array:
    """Contract two arrays whose last axis is the batch axis; return it with the batch axis last."""
    batch = ((a.ndim - 1,), (b.ndim - 1,))
    dtype = jnp.result_type(a, b)
    size = max(a.shape[-1], b.shape[-1])
    a = jnp.broadcast_to(a, (*a.shape[:-1], size)).astype(dtype)
    b = jnp.broadcast_to(b, (*b.shape[:-1], size)).astype(dtype)
    out = lax.dot_general(a, b, (contract, batch), precision=HIGHEST_PRECISION)
    return jnp.moveaxis(out, 0, -1)


_PRODUCT_FUNCTIONS = {"J x": _product_by_columns, "J' f": _product_by_rows, "f x'": _outer_product}


def _evaluate_product(a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    """Evaluate one product; `whole` leaves the sum to the compiler instead of unrolling it."""
    return _PRODUCT_FUNCTIONS[kind](a, b, whole)


# Cotangents of the first and of the second factor of each product, from the result's cotangent.
_FIRST_COTANGENTS: dict[str, Callable] = {
    "J x": lambda y, x: outer(*_materialize_factors(y, x)),
    "J' f": lambda x, f: outer(*_materialize_factors(f, x)),
    "f x'": lambda J, x: apply(J, x),
}
_SECOND_COTANGENTS: dict[str, Callable] = {
    "J x": lambda y, J: apply_transpose(J, y),
    "J' f": lambda x, J: apply(J, x),
    "f x'": lambda J, f: apply_transpose(J, f),
}


def _materialize_factors(f: Array, x: Array) -> tuple[Array, Array]:
    """Pin the factors of an outer product, which would be recomputed for each of its entries."""
    pinned: tuple[Array, Array] = materialize((f, x), f)
    return pinned


_BILINEAR_P = Primitive("bilinear")
_BILINEAR_P.def_impl(_evaluate_product)


@_BILINEAR_P.def_abstract_eval
def _product_type(a: Any, b: Any, *, kind: str, whole: bool) -> jax.core.ShapedArray:
    """Return the shape and dtype of a product."""
    del whole
    own = 1 if kind == "f x'" else 2  # axes of items of the first factor
    n, k = (a.shape[0], b.shape[0]) if own == 1 else a.shape[:2]
    items = {"J x": (n,), "J' f": (k,), "f x'": (n, k)}[kind]
    rest = np.broadcast_shapes(a.shape[own:], b.shape[1:])
    return jax.core.ShapedArray((*items, *rest), jnp.result_type(a.dtype, b.dtype))


mlir.register_lowering(_BILINEAR_P, mlir.lower_fun(_evaluate_product, multiple_results=False))


def _first_cotangent(weights: Array, a: Any, b: Array, *, kind: str, whole: bool) -> Array:
    """Return the cotangent of the first factor."""
    del whole
    return _sum_shared_cotangent(_FIRST_COTANGENTS[kind](weights, b), a.aval)


def _second_cotangent(weights: Array, a: Array, b: Any, *, kind: str, whole: bool) -> Array:
    """Return the cotangent of the second factor."""
    del whole
    return _sum_shared_cotangent(_SECOND_COTANGENTS[kind](weights, a), b.aval)


def _sum_shared_cotangent(change: Array, like: Any) -> Array:
    """Sum a cotangent over the worlds if all worlds share the factor."""
    one = tuple(k for k, n in enumerate(like.shape) if n != change.shape[k])
    return jnp.sum(change, axis=one, keepdims=True) if one else change


def _first_tangent(change: Array, a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    """Return the tangent of the product due to the first factor."""
    del a
    change = materialize(change, change) if kind == "f x'" else change
    return _BILINEAR_P.bind(change, b, kind=kind, whole=whole)


def _second_tangent(change: Array, a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    """Return the tangent of the product due to the second factor."""
    del b
    return _BILINEAR_P.bind(a, materialize(change, change), kind=kind, whole=whole)


# A tangent vector is pinned, so that it is not recomputed for each row of the product. A pin is
# transposed with the rest, so the same holds for the vector's cotangent.
ad.defbilinear(_BILINEAR_P, _first_cotangent, _second_cotangent)
ad.defjvp(_BILINEAR_P, _first_tangent, _second_tangent)


def _batch_product(factors: tuple, axes: tuple, *, kind: str, whole: bool) -> tuple[Array, int]:
    """Batch the product with JAX's own rules; a call's worlds have rules of their own (call/)."""

    def product(a: Array, b: Array) -> Array:
        return _evaluate_product(a, b, kind=kind, whole=whole)

    return jax.vmap(product, axes)(*factors), 0


batching.primitive_batchers[_BILINEAR_P] = _batch_product
