"""Gathers and sums with constant indices, which replace recursions over the kinematic tree.

The tables are numpy arrays from the model's structure. A sum over a path of the tree is one product
with a constant 0/1 matrix, whatever the depth of the tree.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.linear import bind_gather, bind_gather_static, bind_matmul
from jaxsim.math import Components
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


def column(table: np.ndarray, like: Array | Components) -> np.ndarray:
    """Return a constant table `[n]` (or `[n, k]`) with trailing axes for the worlds of `like`.

    `like` is an array or value `[items, *W]`; the table keeps its own axes in front of the worlds.
    """
    a = np.asarray(table)
    if a.dtype == np.float64:
        a = a.astype(_dtype(like))
    return a.reshape(a.shape + (1,) * (_num_axes(like) - 1))


def gather_static(x: PyTree, index: np.ndarray | Sequence[int]) -> PyTree:
    """Return items `x[index]` for a constant integer `index`; a slice if the index is a range."""
    index = np.asarray(index)
    return jax.tree.map(lambda a: _gather_static(a, index), x)


def _gather_static(a: Array, index: np.ndarray) -> Array:
    """Gather by a constant index, with a slice or a broadcast if possible."""
    n = len(index)
    if n == 0:
        return a[:0]
    # A range is a slice, a repeated item a broadcast, everything else a gather.
    first = int(index[0])
    if np.array_equal(index, np.arange(first, first + n)):
        return a if n == a.shape[0] else lax.slice_in_dim(a, first, first + n)
    if n > 1 and (index == first).all():
        return jnp.broadcast_to(a[first : first + 1], (n, *a.shape[1:]))
    return bind_gather_static(a, np.where(index < 0, index + a.shape[0], index))


def gather(table: PyTree, index: Array) -> PyTree:
    """Return items `table[index]` for an index that differs between worlds.

    Args:
      table: `[n, *W]`, or `[n, 1]` when all worlds share it.
      index: int `[k, *W]`.

    Returns:
      `[k, *W]`.
    """
    return jax.tree.map(lambda a: _gather(a, index), table)


def _gather(a: Array | np.ndarray, index: Array) -> Array | None:
    """Gather by a traced index, in the form that suits the platform."""
    a = jnp.asarray(a)
    if index.ndim == 1:
        return bind_gather(a, index)
    # By comparison where gathers are slow; else a gather, from a table that worlds may share.
    if not platform().gathers and len(a) <= tuning().max_compared_table:
        return _gather_by_comparison(a, index)
    if a.shape[-1] == 1:
        return bind_gather(a[:, 0], index.ravel()).reshape(index.shape)
    return bind_gather(jnp.broadcast_to(a, (a.shape[0], *index.shape[1:])), index)


def weighted_sum(weights: np.ndarray, x: PyTree) -> PyTree:
    """Return sum_j weights[i, j] x[j] for a constant matrix `[k, n]` and items `[n, *W]`."""
    return jax.tree.map(lambda a: bind_matmul(weights, a), x)


def sum_groups(x: PyTree, table: np.ndarray) -> PyTree:
    """Sum items `[n, *W]` over the rows of a table of `groups`: `[count, *W]`.

    This is one gather and a sum over a short axis, in a fixed order. Its memory scales with the
    items; a 0/1 product would take items times groups. It sums the forces of elements on their
    vertices.
    """
    return jax.tree.map(lambda a: _sum_groups(a, table), x)


def _sum_groups(a: Array, table: np.ndarray) -> Array:
    """Sum the items of each row of a table; the index after the last item is padding."""
    count, most = table.shape
    if most == 0 or not len(a):
        return jnp.zeros((count, *a.shape[1:]), a.dtype)
    # All items in their order on consecutive rows: zero items before and after them.
    rows = np.flatnonzero(table[:, 0] < len(a))
    if most == 1 and np.array_equal(table[rows, 0], np.arange(len(a))):
        before, after = int(rows[0]), int(count - 1 - rows[-1])
        if before + len(a) + after == count:
            return _pad_items(a, before, after)
    # Padding in the table addresses an appended zero item.
    padded = jnp.concatenate([a, jnp.zeros_like(a[:1])]) if (table == len(a)).any() else a
    picked = _gather_static(padded, table.ravel())
    return picked if most == 1 else jnp.sum(picked.reshape(count, most, *a.shape[1:]), axis=1)


def _pad_items(a: Array, before: int, after: int) -> Array:
    """Return the items with zero items before and after them."""
    parts = [jnp.zeros((before, *a.shape[1:]), a.dtype), a]
    parts.append(jnp.zeros((after, *a.shape[1:]), a.dtype))
    return jnp.concatenate(parts) if before or after else a


def max_by_row(a: Array, groups: np.ndarray) -> Array:
    """Return the largest item in each row of a table, `[n, *W]`, `[k, most]` -> `[k, *W]`."""
    return jnp.max(gather_static(a, groups.ravel()).reshape(*groups.shape, *a.shape[1:]), axis=1)


def sum_items(a: Array) -> Array:
    """Return the sum over the items, `[n, *W] -> [1, *W]`."""
    return bind_matmul(np.ones((1, len(a))), a)


def running_sum(a: Array) -> Array:
    """Return the inclusive prefix sum of the items, `[n, *W] -> [n, *W]`, in their dtype.

    XLA:CPU lowers `cumsum` to a window reduction and transposes the worlds first; a scan does
    neither.
    """
    if not platform().scans:
        return lax.cumsum(a)

    def add(total: Array, item: Array) -> tuple[Array, Array]:
        return total + item, total + item

    return lax.scan(add, jnp.zeros_like(a, shape=a.shape[1:]), a)[1]


def diagonal(A: Array) -> Array:
    """Return the diagonal of a square matrix, `[n, n, *W] -> [n, *W]`."""
    n = A.shape[0]
    return gather_static(A.reshape(n * n, *A.shape[2:]), np.arange(n) * (n + 1))


def _gather_by_comparison(a: Array, index: Array) -> Array:
    """Gather by comparing the index with all items: one sum into which XLA fuses the comparison."""
    item = np.arange(len(a), dtype=index.dtype).reshape(-1, 1, *(1,) * (index.ndim - 1))
    offered = jnp.where(index[None] == item, a[:, None], jnp.zeros((), a.dtype))
    if a.dtype == bool:
        return jnp.any(offered, axis=0)
    return jnp.sum(offered, axis=0, dtype=a.dtype)


def _num_axes(like: Array | Components) -> int:
    """Return the number of axes of an array or value."""
    return len(like.shape)


def _dtype(like: Array | Components) -> np.dtype:
    """Return the dtype of an array or value."""
    return like.parts[0].dtype if isinstance(like, Components) else like.dtype
