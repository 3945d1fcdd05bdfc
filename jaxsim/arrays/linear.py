"""Gather, scatter-add and constant matrix products as JAX primitives closed under transposition.

JAX transposes a gather to a scatter, and a product to one with other contracting axes; a fused CPU
kernel (transforms/cpu_fusion.py) can hold neither. These primitives transpose to each other
instead:

    selected  y = x[index], constant index        transpose: put,    x_bar[index] += y_bar
    picked    y = x[index], index per world       transpose: placed, the same per world
    weighted  y = W x, constant matrix W          transpose: weighted, x_bar = W' y_bar

On platforms where loops are inexpensive (`loops`) the scatters and products lower to loops.
"""

from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.arrays.array import Array
from jaxsim.arrays.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
    take,
)
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning

HIGHEST_PRECISION = lax.Precision.HIGHEST


class ConstantTable:
    """A constant array as a parameter of a primitive, hashed and compared by its values."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.ascontiguousarray(values)
        self._key = (self.values.shape, self.values.dtype.str, self.values.tobytes())

    def __eq__(self, other: object) -> bool:
        """Return whether the other table has equal values, shape and dtype."""
        return isinstance(other, ConstantTable) and self._key == other._key

    def __hash__(self) -> int:
        """Return the hash of the values."""
        return hash(self._key)

    def __repr__(self) -> str:
        """Return dtype and shape, without values, for the text of a jaxpr."""
        return f"{self.values.dtype}{list(self.values.shape)}"

    @property
    def transposed(self) -> Self:
        """Return the table of the transposed matrix."""
        return type(self)(self.values.T)


def bind_gather_static(x: Array, index: np.ndarray) -> Array:
    """Return `x[index]` for a constant index, `[n, ...]` -> `[k, ...]`."""
    found: Array = _GATHER_STATIC_P.bind(x, index=ConstantTable(index.astype(np.int32)))
    return found


def bind_gather(x: Array, index: Array) -> Array:
    """Return `x[index]` for a traced index.

    The index is one per world, `[n, *W]`, int `[k, *W]` -> `[k, *W]`, or one for all, `[n, ...]`,
    int `[k]` -> `[k, ...]`. It must be in bounds.
    """
    found: Array = _GATHER_P.bind(x, index)
    return found


def bind_matmul(weights: np.ndarray, x: Array) -> Array:
    """Return W x for a constant matrix W `[k, n]`, `[n, ...]` -> `[k, ...]`."""
    found: Array = _MATMUL_P.bind(x, weights=ConstantTable(weights), loops=platform().fuses_calls)
    return found


def _gather_static(x: Array, *, index: ConstantTable) -> Array:
    """Gather by a constant index."""
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    sizes = (1, *x.shape[1:])
    start = index.values[:, None]
    return lax.gather(x, start, numbers, sizes, mode="promise_in_bounds")


def _scatter_static(y: Array, *, index: ConstantTable, size: int, loops: bool) -> Array:
    """Sum items with the same constant index, `[k, ...]` -> `[size, ...]`."""
    most = np.bincount(index.values).max()
    if not loops or size * most > tuning().max_padding_factor * len(y) + size:
        return _scatter_add(y, jnp.asarray(index.values), size, loops)
    # Gather the items of each index side by side, padded with a zero item, and sum them.
    table = group_table(index.values, size)
    padded = jnp.concatenate([y, jnp.zeros_like(y[:1])])
    every = _gather_static(padded, index=ConstantTable(table.ravel()))
    if most == 1:
        return every
    every = every.reshape(size, most, *y.shape[1:])
    return sum((every[:, k] for k in range(1, most)), every[:, 0])


def group_table(owner: np.ndarray, count: int) -> np.ndarray:
    """Return the items of each owner as a table `[count, most]`.

    Rows are padded with the index after the last item. An item of owner -1 is in no group.
    """
    owner = np.asarray(owner, int)
    # Sort items by owner, then find the position of each within its group.
    order = np.argsort(owner, kind="stable")
    order = order[owner[order] >= 0]
    number = np.bincount(owner[order], minlength=count)
    table = np.full((count, number.max(initial=0)), len(owner))
    place = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
    table[owner[order], place] = order
    return table


def _scatter_add(y: Array, index: Array, size: int, loops: bool) -> Array:
    """Scatter-add items by a traced index, in a loop over items or as one scatter."""
    out = jnp.zeros_like(y, shape=(size, *y.shape[1:]))
    if not loops:
        return out.at[index].add(y, mode="promise_in_bounds")

    def add(k: Array, out: Array) -> Array:
        """Add item k to its target."""
        here = dynamic_index_in_dim(index, k, keepdims=False)
        item = dynamic_slice_in_dim(y, k, 1)
        return dynamic_update_slice_in_dim(out, dynamic_slice_in_dim(out, here, 1) + item, here, 0)

    return lax.fori_loop(0, len(y), add, out)


def _gather(x: Array, index: Array) -> Array:
    """Gather by a traced index."""
    if index.ndim == 1:
        return take(x, index)
    return jnp.take_along_axis(x, index, axis=0, mode="promise_in_bounds")


def _scatter(y: Array, index: Array, *, size: int, loops: bool) -> Array:
    """Sum items with the same index in a world, `[k, *W]` -> `[size, *W]`."""
    if index.ndim == 1:
        return _scatter_add(y, index, size, loops)
    # Flatten items and worlds to one scatter.
    worlds = y.shape[1]
    place = index * worlds + np.arange(worlds, dtype=np.int32)[None]
    return _scatter_add(y.ravel(), place.ravel(), size * worlds, loops).reshape(size, worlds)


def _matmul(x: Array, *, weights: ConstantTable, loops: bool) -> Array:
    """Multiply by a constant matrix."""
    several = x.ndim > 2  # XLA would call a library
    if loops and x.ndim > 1 and (several or weights.values.size > tuning().max_loop_free_size):
        return _item_by_item(weights.values, x)
    # Contracting the first axis of both is the form that a fused kernel can hold
    # (transforms/cpu_fusion.py).
    dims = (((0,), (0,)), ((), ()))
    matrix = jnp.asarray(weights.values.T, x.dtype)
    return lax.dot_general(matrix, x, dims, precision=HIGHEST_PRECISION)


def _item_by_item(weights: np.ndarray, x: Array) -> Array:
    """Multiply by a constant matrix in a loop over the items, with all worlds vectorized.

    Each iteration adds the share of one item to all sums. In a kernel a product would add up each
    entry on its own, world by world.
    """
    number, n = weights.shape
    ones = (weights == 1).all()
    table = jnp.asarray(weights.T.reshape(n, number, *(1,) * (x.ndim - 1)), x.dtype)

    def add(k: Array, out: Array) -> Array:
        item = dynamic_slice_in_dim(x, k, 1)
        return out + (item if ones else dynamic_index_in_dim(table, k, keepdims=False) * item)

    return lax.fori_loop(0, n, add, jnp.zeros_like(x, shape=(number, *x.shape[1:])))


def _operation(name: str, function: Callable, shape: Callable, *how: str) -> Primitive:
    """Define a primitive whose result has the dtype of its first argument.

    Args:
      name: its name in a jaxpr.
      function: its implementation.
      shape: takes the same arguments and returns the shape of the result.
      how: the names of its static parameters.
    """
    operation = Primitive(name)
    operation.def_impl(jax.jit(function, static_argnames=how))
    operation.def_abstract_eval(
        lambda x, *more, **how: jax.core.ShapedArray(shape(x, *more, **how), x.dtype)
    )
    mlir.register_lowering(operation, mlir.lower_fun(function, multiple_results=False))
    return operation


def _scatter_shape(y: Any, *_: Any, size: int, **__: Any) -> tuple[int, ...]:
    """Return the shape of a scatter's result."""
    return (size, *y.shape[1:])


_GATHER_STATIC_P = _operation(
    "selected", _gather_static, lambda x, *, index: (len(index.values), *x.shape[1:]), "index"
)
_SCATTER_STATIC_P = _operation("put", _scatter_static, _scatter_shape, "index", "size", "loops")
_GATHER_P = _operation("picked", _gather, lambda x, index: (index.shape[0], *x.shape[1:]))
_SCATTER_P = _operation("placed", _scatter, _scatter_shape, "size", "loops")
_MATMUL_P = _operation(
    "weighted",
    _matmul,
    lambda x, *, weights, **_: (len(weights.values), *x.shape[1:]),
    *("weights", "loops"),
)


def _transpose_gather_static(weights: Array, x: Any, *, index: ConstantTable) -> list[Array]:
    """Transpose a constant gather."""
    how = {"size": x.aval.shape[0], "loops": platform().fuses_calls}
    return [_SCATTER_STATIC_P.bind(weights, index=index, **how)]


def _transpose_scatter_static(
    weights: Array, y: Any, *, index: ConstantTable, **_: Any
) -> list[Array]:
    """Transpose a constant scatter-add."""
    del y
    return [_GATHER_STATIC_P.bind(weights, index=index)]


def _transpose_matmul(y: Array, x: Any, *, weights: ConstantTable, loops: bool) -> list[Array]:
    """Transpose a constant matrix product."""
    del x
    return [_MATMUL_P.bind(y, weights=weights.transposed, loops=loops)]


ad.deflinear2(_GATHER_STATIC_P, _transpose_gather_static)
ad.deflinear2(_SCATTER_STATIC_P, _transpose_scatter_static)
ad.deflinear2(_MATMUL_P, _transpose_matmul)


def _transpose_gather(weights: Array, x: Any, index: Array) -> list:
    """Transpose a gather by a traced index."""
    how = {"size": x.aval.shape[0], "loops": platform().fuses_calls}
    return [_SCATTER_P.bind(weights, index, **how), None]


def _transpose_scatter(weights: Array, y: Any, index: Array, **_: Any) -> list:
    """Transpose a scatter-add by a traced index."""
    del y
    return [_GATHER_P.bind(weights, index), None]


ad.defjvp(_GATHER_P, lambda change, _, index: _GATHER_P.bind(change, index), None)
ad.defjvp(_SCATTER_P, lambda change, _, index, **how: _SCATTER_P.bind(change, index, **how), None)
ad.primitive_transposes[_GATHER_P] = _transpose_gather
ad.primitive_transposes[_SCATTER_P] = _transpose_scatter


def _batch_behind_items(operation: Primitive) -> None:
    """Register a batching rule that puts the batch axis behind the items."""

    def batched(x: tuple, axis: tuple, **how: Any) -> tuple[Array, int]:
        return operation.bind(jnp.moveaxis(x[0], axis[0], 1), **how), 1

    batching.primitive_batchers[operation] = batched


def _batch_into_worlds(operation: Primitive) -> None:
    """Register a batching rule that merges the batch axis into the worlds."""

    def batched(given: tuple, axes: tuple, **how: Any) -> tuple[Array, int]:
        size = next(a.shape[k] for a, k in zip(given, axes, strict=True) if k is not None)
        x, index = (_move_batch_last(a, k, size) for a, k in zip(given, axes, strict=True))
        if axes[1] is None and given[1].ndim == 1:
            return operation.bind(x, given[1], **how), 1
        # Merge the batch axis with the worlds, apply, and split them again.
        rest = x.shape[1:]
        index = index.reshape(*index.shape, *(1,) * (x.ndim - index.ndim))
        index = jnp.broadcast_to(index, (len(index), *rest))
        found = operation.bind(*(a.reshape(len(a), -1) for a in (x, index)), **how)
        return found.reshape(len(found), *rest), 1

    batching.primitive_batchers[operation] = batched


def _move_batch_last(a: Array, axis: int | None, size: int) -> Array:
    """Move the batch axis behind the items."""
    if axis is None:
        return jnp.broadcast_to(a[:, None], (len(a), size, *a.shape[1:]))
    return jnp.moveaxis(a, axis, 1)


for _one in (_GATHER_STATIC_P, _SCATTER_STATIC_P, _MATMUL_P):
    _batch_behind_items(_one)
for _one in (_GATHER_P, _SCATTER_P):
    _batch_into_worlds(_one)
