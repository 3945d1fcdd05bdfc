"""Selections and sums as operations of JAX, whose derivatives are such operations.

JAX's own rules make of a selection, backwards, a scatter, and of a product with a matrix one of
other axes; neither can be held by a kernel of a CPU (cpu_kernels.py). Here

    y = x[index]            backwards   x_[index] += y_
    y = W x                 backwards   x_ = W' y_

and what stands on the right is a loop where loops are cheap.
"""

from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform

HIGHEST = lax.Precision.HIGHEST
WASTE = 2  # places in rows of equal length that items are first selected to, for each item
SMALL = 32  # numbers of a table whose products need no loop of their own in kernels


class Table:
    """A constant array as a parameter of an operation: equal to those with the same numbers."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = np.ascontiguousarray(values)
        self._key = (self.values.shape, self.values.dtype.str, self.values.tobytes())

    def __eq__(self, other: object) -> bool:
        """Whether it has the same numbers."""
        return isinstance(other, Table) and self._key == other._key

    def __hash__(self) -> int:
        """Of its numbers."""
        return hash(self._key)

    def __repr__(self) -> str:
        """Its type and shape, not its numbers, in the text of a program."""
        return f"{self.values.dtype}{list(self.values.shape)}"

    @property
    def transposed(self) -> Self:
        """The table of the transposed matrix."""
        return type(self)(self.values.T)


def selected(x: Array, index: np.ndarray) -> Array:
    """`x[index]` for a constant index, `[n, ...]` -> `[k, ...]`."""
    found: Array = SELECTED.bind(x, index=Table(index.astype(np.int32)))
    return found


def picked(x: Array, index: Array) -> Array:
    """`x[index]`, each world by its own index, `[n, *W]`, int `[k, *W]` -> `[k, *W]`, or all by
    one, `[n, ...]`, int `[k]` -> `[k, ...]`."""
    found: Array = PICKED.bind(x, index)
    return found


def weighted(weights: np.ndarray, x: Array) -> Array:
    """W x for a constant matrix, `[n, ...]` -> `[k, ...]`."""
    found: Array = WEIGHTED.bind(x, weights=Table(weights), loops=platform().in_kernels)
    return found


def _selected(x: Array, *, index: Table) -> Array:
    numbers = lax.GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    sizes = (1, *x.shape[1:])
    start = index.values[:, None]
    return lax.gather(x, start, numbers, sizes, mode="promise_in_bounds")


def _put(y: Array, *, index: Table, size: int, loops: bool) -> Array:
    """Sums of the items that go to the same place, `[k, ...]` -> `[size, ...]`."""
    most = np.bincount(index.values).max()
    if not loops or size * most > WASTE * len(y) + size:
        return _added(y, jnp.asarray(index.values), size, loops)
    table = groups(index.values, size)
    padded = jnp.concatenate([y, jnp.zeros_like(y[:1])])
    every = _selected(padded, index=Table(table.ravel()))
    if most == 1:
        return every
    every = every.reshape(size, most, *y.shape[1:])
    return sum((every[:, k] for k in range(1, most)), every[:, 0])


def groups(owner: np.ndarray, count: int) -> np.ndarray:
    """`[count, most]`: the items of each owner, padded with the number of the item after the last.

    An item of owner -1 is in no group.
    """
    owner = np.asarray(owner, int)
    order = np.argsort(owner, kind="stable")
    order = order[owner[order] >= 0]
    number = np.bincount(owner[order], minlength=count)
    table = np.full((count, number.max(initial=0)), len(owner))
    place = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
    table[owner[order], place] = order
    return table


def _added(y: Array, index: Array, size: int, loops: bool) -> Array:
    """The same for an index that is an array."""
    out = jnp.zeros_like(y, shape=(size, *y.shape[1:]))
    if not loops:
        return out.at[index].add(y, mode="promise_in_bounds")

    def add(k: Array, out: Array) -> Array:
        here = lax.dynamic_index_in_dim(index, k, keepdims=False)
        item = lax.dynamic_slice_in_dim(y, k, 1)
        return lax.dynamic_update_slice_in_dim(
            out, lax.dynamic_slice_in_dim(out, here, 1) + item, here, 0
        )

    return lax.fori_loop(0, len(y), add, out)


def _picked(x: Array, index: Array) -> Array:
    if index.ndim == 1:
        return x.at[index].get(mode="promise_in_bounds")
    return jnp.take_along_axis(x, index, axis=0, mode="promise_in_bounds")


def _placed(y: Array, index: Array, *, size: int, loops: bool) -> Array:
    """Sums of the items that go to the same place of a world, `[k, *W]` -> `[size, *W]`."""
    if index.ndim == 1:
        return _added(y, index, size, loops)
    worlds = y.shape[1]
    place = index * worlds + np.arange(worlds, dtype=np.int32)[None]
    return _added(y.ravel(), place.ravel(), size * worlds, loops).reshape(size, worlds)


def _weighted(x: Array, *, weights: Table, loops: bool) -> Array:
    several = x.ndim > 2  # of which XLA makes a library's product
    if loops and x.ndim > 1 and (several or weights.values.size > SMALL):
        return _item_by_item(weights.values, x)
    # in this form a kernel of a CPU can hold it (cpu_kernels.py)
    dims = (((0,), (0,)), ((), ()))
    matrix = jnp.asarray(weights.values.T, x.dtype)
    return lax.dot_general(matrix, x, dims, precision=HIGHEST)


def _item_by_item(weights: np.ndarray, x: Array) -> Array:
    """The same in a kernel, which adds up each number of a product alone, world by world.

    So each item adds its share to all sums, in all worlds at once.
    """
    number, n = weights.shape
    ones = (weights == 1).all()
    table = jnp.asarray(weights.T.reshape(n, number, *(1,) * (x.ndim - 1)), x.dtype)

    def add(k: Array, out: Array) -> Array:
        item = lax.dynamic_slice_in_dim(x, k, 1)
        return out + (item if ones else lax.dynamic_index_in_dim(table, k, keepdims=False) * item)

    return lax.fori_loop(0, n, add, jnp.zeros_like(x, shape=(number, *x.shape[1:])))


def _operation(name: str, function: Callable, shape: Callable, *how: str) -> Primitive:
    """An operation whose result has the type of its first argument, and a shape of its own.

    Args:
      name: its name in programs.
      function: what it does.
      shape: of the same arguments to the shape of the result.
      how: the names of its parameters.
    """
    operation = Primitive(name)
    operation.def_impl(jax.jit(function, static_argnames=how))
    operation.def_abstract_eval(
        lambda x, *more, **how: jax.core.ShapedArray(shape(x, *more, **how), x.dtype)
    )
    mlir.register_lowering(operation, mlir.lower_fun(function, multiple_results=False))
    return operation


def _sized(y: Any, *_: Any, size: int, **__: Any) -> tuple[int, ...]:
    return (size, *y.shape[1:])


SELECTED = _operation(
    "selected", _selected, lambda x, *, index: (len(index.values), *x.shape[1:]), "index"
)
PUT = _operation("put", _put, _sized, "index", "size", "loops")
PICKED = _operation("picked", _picked, lambda x, index: (index.shape[0], *x.shape[1:]))
PLACED = _operation("placed", _placed, _sized, "size", "loops")
WEIGHTED = _operation(
    "weighted",
    _weighted,
    lambda x, *, weights, **_: (len(weights.values), *x.shape[1:]),
    *("weights", "loops"),
)


def _unselected(weights: Array, x: Any, *, index: Table) -> list[Array]:
    how = {"size": x.aval.shape[0], "loops": platform().in_kernels}
    return [PUT.bind(weights, index=index, **how)]


def _unput(weights: Array, y: Any, *, index: Table, **_: Any) -> list[Array]:
    del y
    return [SELECTED.bind(weights, index=index)]


def _unweighted(y: Array, x: Any, *, weights: Table, loops: bool) -> list[Array]:
    del x
    return [WEIGHTED.bind(y, weights=weights.transposed, loops=loops)]


ad.deflinear2(SELECTED, _unselected)
ad.deflinear2(PUT, _unput)
ad.deflinear2(WEIGHTED, _unweighted)


def _unpicked(weights: Array, x: Any, index: Array) -> list:
    how = {"size": x.aval.shape[0], "loops": platform().in_kernels}
    return [PLACED.bind(weights, index, **how), None]


def _unplaced(weights: Array, y: Any, index: Array, **_: Any) -> list:
    del y
    return [PICKED.bind(weights, index), None]


ad.defjvp(PICKED, lambda change, _, index: PICKED.bind(change, index), None)
ad.defjvp(PLACED, lambda change, _, index, **how: PLACED.bind(change, index, **how), None)
ad.primitive_transposes[PICKED] = _unpicked
ad.primitive_transposes[PLACED] = _unplaced


def _of_several(operation: Primitive) -> None:
    """Several at once stand in the axis behind the items."""

    def batched(x: tuple, axis: tuple, **how: Any) -> tuple[Array, int]:
        return operation.bind(jnp.moveaxis(x[0], axis[0], 1), **how), 1

    batching.primitive_batchers[operation] = batched


def _of_several_worlds(operation: Primitive) -> None:
    """Several at once are more worlds."""

    def batched(given: tuple, axes: tuple, **how: Any) -> tuple[Array, int]:
        size = next(a.shape[k] for a, k in zip(given, axes, strict=True) if k is not None)
        x, index = (_behind(a, k, size) for a, k in zip(given, axes, strict=True))
        if axes[1] is None and given[1].ndim == 1:
            return operation.bind(x, given[1], **how), 1
        rest = x.shape[1:]
        index = index.reshape(*index.shape, *(1,) * (x.ndim - index.ndim))
        index = jnp.broadcast_to(index, (len(index), *rest))
        found = operation.bind(*(a.reshape(len(a), -1) for a in (x, index)), **how)
        return found.reshape(len(found), *rest), 1

    batching.primitive_batchers[operation] = batched


def _behind(a: Array, axis: int | None, size: int) -> Array:
    """With the axis of several behind the items."""
    if axis is None:
        return jnp.broadcast_to(a[:, None], (len(a), size, *a.shape[1:]))
    return jnp.moveaxis(a, axis, 1)


for _one in (SELECTED, PUT, WEIGHTED):
    _of_several(_one)
for _one in (PICKED, PLACED):
    _of_several_worlds(_one)
