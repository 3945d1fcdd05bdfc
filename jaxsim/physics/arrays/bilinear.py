"""J x, J' f and the outer product f x' as operations of JAX.

Each is linear in both of its factors, and a derivative of one is made of the other two:

    y = J x:     J_ = y_ x',   x_ = J' y_        (a_: what weights of the result amount to)
    x = J' f:    J_ = f x_',   f_ = J x_
    J = f x':    f_ = J_ x,    x_ = J_' f

With the worlds last XLA has no fast contraction of its own: written out as a sum of products of
rows it makes one loop over memory, vectorized over worlds. One world, and sums too long to write
out, go through dots. A derivative is written in the same forms, where JAX's own rules would take a
sum apart into slices and put these together again.
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.call.differentiated import differentiated
from jaxsim.physics.arrays.linear import HIGHEST
from jaxsim.physics.arrays.pin import pin
from jaxsim.physics.arrays.platform import platform

WRITE_OUT = 128  # longest sum that is written out


def apply(J: Array, x: Array) -> Array:
    """J x: `[n, k, *W]`, `[k, *W]` -> `[n, *W]`."""
    return _bind("J x", J, x)


def apply_transpose(J: Array, f: Array) -> Array:
    """J' f: `[n, k, *W]`, `[n, *W]` -> `[k, *W]`."""
    return _bind("J' f", J, f)


def outer(f: Array, x: Array) -> Array:
    """f x': `[n, *W]`, `[k, *W]` -> `[n, k, *W]`."""
    return _bind("f x'", f, x)


def outer_sum(pairs: Iterable[tuple[Array, Array]]) -> Array:
    """f x' + g y' + ... of pairs (f, x), (g, y), ..."""
    first, *rest = pairs
    total = sum((outer(*pair) for pair in rest), outer(*first))
    # backwards all pairs take products with the same weights: these are found once
    return pin(total, first[0]) if differentiated() else total


def _bind(kind: str, a: Array, b: Array) -> Array:
    product: Array = BILINEAR.bind(a, b, kind=kind, whole=not platform().recomputes)
    return product


def _columns(J: Array, x: Array, whole: bool) -> Array:
    if J.ndim == 2:
        return jnp.matmul(J, x, precision=HIGHEST)
    if J.shape[1] > WRITE_OUT:
        return worlds_dot(J, x, ((1,), (0,)))
    if whole:
        return jnp.sum(J * x[None], axis=1)
    shape = (len(J), 1, *x.shape[1:])
    worlds = range(2, len(shape))

    def term(i: int) -> Array:
        item = lax.broadcast_in_dim(lax.slice_in_dim(x, i, i + 1), shape, (1, *worlds))
        return lax.slice_in_dim(J, i, i + 1, axis=1) * item

    return written_sum(term, J.shape[1])[:, 0]


def _rows(J: Array, f: Array, whole: bool) -> Array:
    if J.ndim == 2:
        return jnp.matmul(f, J, precision=HIGHEST)
    if J.shape[0] > WRITE_OUT:
        return worlds_dot(J, f, ((0,), (0,)))
    if whole:
        return jnp.sum(J * f[:, None], axis=0)
    shape = (1, J.shape[1], *f.shape[1:])
    worlds = range(2, len(shape))

    def term(r: int) -> Array:
        item = lax.broadcast_in_dim(lax.slice_in_dim(f, r, r + 1), shape, (0, *worlds))
        return lax.slice_in_dim(J, r, r + 1) * item

    return written_sum(term, J.shape[0])[0]


def _outer(f: Array, x: Array, whole: bool) -> Array:
    del whole
    return f[:, None] * x[None]


def written_sum(term: Callable[[int], Array], n: int) -> Array:
    """term(0) + ... + term(n - 1)."""
    out = term(0)
    for k in range(1, n):
        out = out + term(k)
    return out


def worlds_dot(a: Array, b: Array, contract: tuple) -> Array:
    """Contraction with the last axis of both as batch."""
    batch = ((a.ndim - 1,), (b.ndim - 1,))
    dtype = jnp.result_type(a, b)
    size = max(a.shape[-1], b.shape[-1])
    a = jnp.broadcast_to(a, (*a.shape[:-1], size)).astype(dtype)
    b = jnp.broadcast_to(b, (*b.shape[:-1], size)).astype(dtype)
    out = lax.dot_general(a, b, (contract, batch), precision=HIGHEST)
    return jnp.moveaxis(out, 0, -1)


PRODUCTS = {"J x": _columns, "J' f": _rows, "f x'": _outer}


def _product(a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    """A product; `whole`: as one sum that the compiler takes apart, not written out."""
    return PRODUCTS[kind](a, b, whole)


# of each product, what weights of the result make of the first factor and of the second
FIRST: dict[str, Callable] = {
    "J x": lambda y, x: outer(*_once(y, x)),
    "J' f": lambda x, f: outer(*_once(f, x)),
    "f x'": lambda J, x: apply(J, x),
}
SECOND: dict[str, Callable] = {
    "J x": lambda y, J: apply_transpose(J, y),
    "J' f": lambda x, J: apply(J, x),
    "f x'": lambda J, f: apply_transpose(J, f),
}


def _once(f: Array, x: Array) -> tuple[Array, Array]:
    """Factors of an outer product, which would else be found again for each of its entries."""
    pinned: tuple[Array, Array] = pin((f, x), f)
    return pinned


BILINEAR = Primitive("bilinear")
BILINEAR.def_impl(_product)


@BILINEAR.def_abstract_eval
def _result(a: Any, b: Any, *, kind: str, whole: bool) -> jax.core.ShapedArray:
    del whole
    own = 1 if kind == "f x'" else 2  # axes of items of the first factor
    n, k = (a.shape[0], b.shape[0]) if own == 1 else a.shape[:2]
    items = {"J x": (n,), "J' f": (k,), "f x'": (n, k)}[kind]
    rest = np.broadcast_shapes(a.shape[own:], b.shape[1:])
    return jax.core.ShapedArray((*items, *rest), jnp.result_type(a.dtype, b.dtype))


mlir.register_lowering(BILINEAR, mlir.lower_fun(_product, multiple_results=False))


def _of_first(weights: Array, a: Any, b: Array, *, kind: str, whole: bool) -> Array:
    del whole
    return _for_all(FIRST[kind](weights, b), a.aval)


def _of_second(weights: Array, a: Array, b: Any, *, kind: str, whole: bool) -> Array:
    del whole
    return _for_all(SECOND[kind](weights, a), b.aval)


def _for_all(change: Array, like: Any) -> Array:
    """The sum over worlds, where one factor serves all of them."""
    one = tuple(k for k, n in enumerate(like.shape) if n != change.shape[k])
    return jnp.sum(change, axis=one, keepdims=True) if one else change


def _by_first(change: Array, a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    del a
    change = pin(change, change) if kind == "f x'" else change
    return BILINEAR.bind(change, b, kind=kind, whole=whole)


def _by_second(change: Array, a: Array, b: Array, *, kind: str, whole: bool) -> Array:
    del b
    return BILINEAR.bind(a, pin(change, change), kind=kind, whole=whole)


# A changed vector is found once, not again for each row of the product; backwards, where pins are
# transposed, so is what a product amounts to for it.
ad.defbilinear(BILINEAR, _of_first, _of_second)
ad.defjvp(BILINEAR, _by_first, _by_second)


def _batched(factors: tuple, axes: tuple, *, kind: str, whole: bool) -> tuple[Array, int]:
    def product(a: Array, b: Array) -> Array:
        return _product(a, b, kind=kind, whole=whole)

    return jax.vmap(product, axes)(*factors), 0


batching.primitive_batchers[BILINEAR] = _batched
