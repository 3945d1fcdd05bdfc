"""Products of traced matrices with the worlds last: J' G, and products with the contact Jacobian.

The Jacobian of contacts is `[basis, ncon, nv, *W]`: `basis` rows per contact (normal, tangents,
rotations), one slot per contact of the capacity. Where a platform has inexpensive loops the
products process `contacts_per_chunk` contacts per iteration, up to the last slot that any world
uses. J x and J' f are primitives (bilinear.py).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.bilinear import apply, apply_transpose, unrolled_sum, worlds_dot
from jaxsim.arrays.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.linear import HIGHEST_PRECISION
from jaxsim.arrays.node import node
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


@node("function")
class PerContact:
    """Values of contacts that are evaluated chunk by chunk, where they are used.

    Operands of `chunks` may be such values: most slots of the capacity are empty, and those beyond
    the last used one are not evaluated.

    Attributes:
      function: returns the values, from operands of any contacts.
      operands: arrays with the contacts in their first axis.
    """

    function: Callable[..., Any]
    operands: tuple


def values_of(x: Any) -> Any:
    """Return the values of `PerContact`, or other values as they are."""
    return x.function(*x.operands) if isinstance(x, PerContact) else x


def gram(J: Array, G: Array) -> Array:
    """Return J' G of two matrices `[n, nv, *W]`: `[nv, nv, *W]`."""
    n = J.shape[0]
    if J.ndim == 2:
        # The barrier keeps XLA from fusing a transposition of J, after which the product would
        # contract other axes and become a library call.
        J = lax.optimization_barrier(J)
        return lax.dot_general(J, G, (((0,), (0,)), ((), ())), precision=HIGHEST_PRECISION)
    # Many worlds: long sums by a batched dot, short ones as a fused sum of outer products.
    if n > tuning().max_unrolled_terms:
        return worlds_dot(J, G, ((0,), (0,)))
    if not platform().recomputes:
        return jnp.sum(J[:, :, None] * G[:, None], axis=0)
    return unrolled_sum(lambda r: J[r][:, None] * G[r][None], n)


def apply_basis(J: Array, x: Array, used: Array | None = None, size: int | None = None) -> Array:
    """Return J x of contacts: `[basis, ncon, nv, *W]`, `[nv, *W]` -> `[basis, ncon, *W]`.

    `used` and `size` are those of `chunks`; slots beyond `used` are zero.
    """

    def put(out, first, J):
        return dynamic_update_slice_in_dim(out, _apply_rows(J, x), first, axis=1)

    count, length = J.shape[1], size or tuning().contacts_per_chunk
    if used is None or count <= length:
        return _apply_rows(J, x)
    start = jnp.zeros((J.shape[0], count + -count % length, *x.shape[1:]), J.dtype)
    return chunks(put, start, used, (J, 1), size=length)[:, :count]


def row_responses(J: Array, inverse: Array) -> Array:
    """Return J A^-1 of rows `[n, nv, *W]`, for a symmetric A^-1 `[nv, nv, *W]`: `[n, nv, *W]`."""
    return gram(jnp.swapaxes(J, 0, 1), inverse)


def basis_responses(J: Array, inverse: Array, used: Array | None = None) -> Array:
    """Return J A^-1 of contacts: `[basis, ncon, nv, *W]`, `[nv, nv, *W]` -> as J.

    `used` is that of `chunks`; slots beyond it are zero.
    """

    def put(out, first, J):
        new = row_responses(_merge_basis_axis(J), inverse).reshape(J.shape)
        return dynamic_update_slice_in_dim(out, new, first, axis=1)

    count, length = J.shape[1], tuning().contacts_per_chunk
    start = jnp.zeros((J.shape[0], count + -count % length, *J.shape[2:]), J.dtype)
    return chunks(put, start, used, (J, 1))[:, :count]


def apply_basis_transpose(
    J: Array, f: list | PerContact, used: Array | None = None, size: int | None = None
) -> Array:
    """Return J' f of contacts, f a list over the basis of `[ncon, *W]`: `[nv, *W]`."""

    def add(out, _, J, f):
        f = values_of(f)
        if not platform().recomputes and out.ndim > 1:
            return out + jnp.sum(sum(J[k] * f[k][:, None] for k in range(len(f))), axis=0)
        return out + apply_transpose(_merge_basis_axis(J), jnp.concatenate(f))

    start = jnp.zeros(J.shape[2:], J.dtype)
    return chunks(add, start, used, (J, 1), (f, 0), size=size)


def gram_basis(
    H: Any, J: Array, weight: list | PerContact, used: Array | None = None, size: int | None = None
) -> Any:
    """Return H + J' W J of contacts.

    Args:
      H: a symmetric matrix (linalg/operator.py).
      J: `[basis, ncon, nv, *W]`.
      weight: W of each contact, nested lists over the basis of `[ncon, *W]`.
      used, size: as in `chunks`.
    """

    def add(H, _, J, weight):
        basis = range(J.shape[0])
        weight = values_of(weight)
        if used is not None:  # once: each product would slice and evaluate again
            J, weight = materialize((J, weight), J[0, 0])
        # W J, then the product J' (W J).
        rows = [sum(weight[j][k][:, None] * J[k] for k in basis) for j in basis]
        return H.add_outer(_merge_basis_axis(J), jnp.concatenate(materialize(rows, J[0, 0])))

    return chunks(add, H, used, (J, 1), (weight, 0), size=size)


def sum_used(
    numbers: Callable, tree: Any, axis: int, used: Array | None = None
) -> tuple[Array, ...]:
    """Return the sums over contacts of `numbers(tree)`: `[ncon, *W]` each -> `[1, *W]` each.

    For `PerContact` they are those of its values.
    """

    def add(out, _, part):
        found = numbers(values_of(part))
        return tuple(a + sum_items(b) for a, b in zip(out, found, strict=True))

    shapes = jax.eval_shape(lambda tree: numbers(values_of(tree)), tree)
    start = tuple(jnp.zeros((1, *s.shape[1:]), s.dtype) for s in shapes)
    sums: tuple[Array, ...] = chunks(add, start, used, (tree, axis))
    return sums


def chunks(
    add: Callable[..., Any],
    start: Any,
    used: Array | None,
    *items: tuple,
    size: int | None = None,
) -> Any:
    """Fold over the contacts in chunks, up to the last one that any world uses.

    The compiled program is that of a few contacts, and its time scales with the contacts that
    exist, not with the capacity. Under differentiation `used` is None, because a loop of unknown
    length has no reverse mode.

    Args:
      add: `(out, first, *parts) -> out`, for the contacts from slot `first` on.
      start: the initial `out`.
      used: number of slots up to the last used one of any world, int scalar. None: process all
        slots at once.
      items: pairs (arrays, their contact axis).
      size: contacts per iteration; None: `contacts_per_chunk` of the tuning.
    """
    length = size or tuning().contacts_per_chunk
    count = jax.tree.leaves(items[0][0])[0].shape[items[0][1]]
    if used is None or count <= length:
        return add(start, 0, *(tree for tree, _ in items))
    # Pad to whole chunks, and stop after the chunk with the last used slot.
    padded = [_pad_contacts(tree, axis, -count % length) for tree, axis in items]

    def chunk(k, out):
        first = k * length
        parts = (
            _slice_contacts(t, first, length, axis)
            for t, (_, axis) in zip(padded, items, strict=True)
        )
        return add(out, first, *parts)

    return lax.fori_loop(0, (used + length - 1) // length, chunk, start)


def _pad_contacts(tree: PyTree, axis: int, pad: int) -> PyTree:
    """Pad the contact axis of arrays with zeros."""
    if not pad:
        return tree

    def longer(a):
        return jnp.pad(a, [(0, pad if k == axis else 0) for k in range(a.ndim)])

    return jax.tree.map(longer, tree)


def _slice_contacts(tree: PyTree, first: Array, size: int, axis: int) -> PyTree:
    """Slice the contact axis of arrays."""
    return jax.tree.map(lambda a: dynamic_slice_in_dim(a, first, size, axis), tree)


def one_item(tree: PyTree, k: Array, axis: int) -> PyTree:
    """Return item k of arrays, as arrays with one item."""
    return jax.tree.map(lambda a: dynamic_slice_in_dim(a, k, 1, axis), tree)


def _apply_rows(J: Array, x: Array) -> Array:
    """Return J x with the basis and contact axes of J."""
    return apply(_merge_basis_axis(J), x).reshape(*J.shape[:2], *x.shape[1:])


def _merge_basis_axis(J: Array) -> Array:
    """Reshape `[basis, ncon, nv, *W]` to `[basis ncon, nv, *W]`."""
    return J.reshape(-1, *J.shape[2:])
