"""Prefix sums over a constant forest: over the ancestors, or the descendants, of each item.

One loop over the items, vectorized over worlds and components: from the roots down it adds the
parent `source` to the child `target` (ancestors), from the leaves up the child to the parent
(descendants). Its work is linear in the items, that of a product with a 0/1 matrix quadratic. Both
sums are linear and each is the transpose of the other, so they are one JAX primitive,
`forest_sums`: reverse mode of a plain loop that updates an array would save that array for every
iteration.

`forest` holds the parent of each item, `down` is true for ancestor sums, and `row`/`first` are
shape and start of the slices of one item.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import dynamic_slice, dynamic_update_slice

Forest = tuple[int, ...]  # parent of each item, a smaller index; -1: none


def ancestor_sums(x: PyTree, forest: Forest) -> PyTree:
    """Return the sums over each item and its ancestors, `[n, *W] -> [n, *W]`."""
    return _sum_in_columns(x, forest, down=True)


def descendant_sums(x: PyTree, forest: Forest) -> PyTree:
    """Return the sums over each item and its descendants, `[n, *W] -> [n, *W]`."""
    return _sum_in_columns(x, forest, down=False)


def _sum_in_columns(x: PyTree, forest: Forest, down: bool) -> PyTree:
    """Concatenate all arrays as columns, so that one loop sums them, and split the result."""
    leaves, structure = jax.tree.flatten(x)
    rows = [a.reshape(len(a), math.prod(a.shape[1:])) for a in leaves]
    sums = _FOREST_SUMS_P.bind(jnp.concatenate(rows, axis=1), forest=forest, down=down)
    ends = np.cumsum([a.shape[1] for a in rows])[:-1].tolist()
    parts = jnp.split(sums, ends, axis=1)
    return jax.tree.unflatten(
        structure, [p.reshape(a.shape) for p, a in zip(parts, leaves, strict=True)]
    )


@partial(jax.jit, static_argnames=("forest", "down"))
def _sums(x: Array, *, forest: Forest, down: bool) -> Array:
    """Sum over ancestors (`down`) or descendants, one item per iteration."""
    parent = np.array(forest, np.int32)
    child = np.flatnonzero(parent >= 0).astype(np.int32)
    if not len(child):
        return x
    # Parents precede their children: ascending for ancestors, descending for descendants.
    child = child if down else child[::-1]
    pair = (parent[child], child) if down else (child, parent[child])
    source, target = (jnp.asarray(a) for a in pair)
    row, first = (1, x.shape[1]), np.int32(0)

    def add(iteration: Array, x: Array) -> Array:
        # Add the source row to the target row.
        here, there = (target[iteration], first), (source[iteration], first)
        added = dynamic_slice(x, here, row) + dynamic_slice(x, there, row)
        return dynamic_update_slice(x, added, here)

    sums: Array = lax.fori_loop(0, len(child), add, x)
    return sums


_FOREST_SUMS_P = Primitive("forest_sums")
_FOREST_SUMS_P.def_impl(_sums)
_FOREST_SUMS_P.def_abstract_eval(lambda x, **_: jax.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(_FOREST_SUMS_P, mlir.lower_fun(_sums, multiple_results=False))


def _transpose_sum(weights: Array, x: Array, *, forest: Forest, down: bool) -> list[Array]:
    """Transpose a sum over ancestors to one over descendants, and vice versa."""
    del x
    return [_FOREST_SUMS_P.bind(weights, forest=forest, down=not down)]


def _batch_as_columns(x: tuple, axis: tuple, **how: object) -> tuple[Array, int]:
    """Batch the sums as more columns."""
    a = jnp.moveaxis(x[0], axis[0], 2)
    return _FOREST_SUMS_P.bind(a.reshape(len(a), -1), **how).reshape(a.shape), 2


ad.deflinear2(_FOREST_SUMS_P, _transpose_sum)
batching.primitive_batchers[_FOREST_SUMS_P] = _batch_as_columns
