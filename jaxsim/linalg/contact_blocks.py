"""Contact blocks: the rows of contacts, in the form in which they are added to a Hessian.

A contact touches the dofs of one or two groups (kinematic trees), which the state chooses. Its
share J' W J of a Hessian consists of the diagonal blocks of the groups and the off-diagonal block
of the pair; each matrix format adds these in its own way. `own` holds the nonzero columns of J
only, `slots` groups of `k` dofs each, so that the state changes indices, not shapes.

A contact of trees 0 and 2, of three trees (the later tree is in the first slot):

    J      [ a  .  b ]           J' W J   [ a' W a    .    a' W b ]
    own    [ b  a ]                       [   .       .      .    ]
    group    2  0                         [ b' W a    .    b' W b ]

`contact_products` returns the four blocks as one matrix of the order of `own`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import unrolled_sum
from jaxsim.arrays.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim, take
from jaxsim.arrays.gather import column, gather
from jaxsim.arrays.node import node
from jaxsim.arrays.products import PerContact, gram, values_of
from jaxsim.transforms.derivative_context import prefer_loops
from jaxsim.transforms.materialize import is_unbatched, materialize
from jaxsim.transforms.platform import platform
from jaxsim.transforms.tuning import tuning


@node("dofs")
class ContactBlocks:
    """Rows of contacts and the weights of a sum J' W J.

    Attributes:
      dofs: the matrix rows of each group, padded to one length k by repeating the first row.
      own: `[basis, ncon, slots k, *W]`: the columns of J of the groups of each slot, concatenated.
      group: group in each slot, int `[ncon, *W]`, -1: none. The first of two has the later rows.
      weight: W of each contact, nested lists over the basis of `[ncon, *W]`.
      used: number of contacts up to the last used slot of any world; None: process all at once.
    """

    dofs: tuple[tuple[int, ...], ...]
    own: jax.Array
    group: tuple[jax.Array, ...]
    weight: list | PerContact
    used: jax.Array | None

    @property
    def table(self) -> np.ndarray:
        """Return `dofs` as an array `[number, k]`."""
        return np.array(self.dofs)

    @property
    def are_ranges(self) -> bool:
        """Return whether each group is a contiguous range of rows."""
        table = self.table
        count = table.max(axis=1, keepdims=True) - table[:, :1] + 1
        place = np.arange(table.shape[1])
        return np.array_equal(table[:, :1] + np.where(place < count, place, 0), table)

    @property
    def items(self) -> tuple:
        """Return the arrays with their contact axes, for `chunks`."""
        return (self.own, 1), (self.weight, 0), (self.group, 0)


def contact_products(own: Array, weight: list | PerContact) -> Array:
    """Return the products J' W J of each contact, `[ncon, slots k, slots k, *W]`."""
    size = len(own)
    W: list = values_of(weight)
    if isinstance(weight, PerContact):
        W = materialize(W, own[0, 0])
    # W J, then J' (W J), unrolled over the basis.
    half = [sum(W[j][k][:, None] * own[k] for k in range(size)) for j in range(size)]
    half = materialize(half, own[0, 0])
    return unrolled_sum(lambda j: own[j][:, :, None] * half[j][:, None], size)


def one_hot(index: Array, number: int, dtype: np.dtype) -> Array:
    """Return the one-hot encoding of an index: `[ncon, *W]` -> `[ncon, number, *W]`.

    It consists of numbers to multiply by, because XLA:CPU does not vectorize loops with `select`.
    """
    same = index[:, None] == column(np.arange(number, dtype=index.dtype), index)[None]
    made: Array = materialize(same.astype(dtype), index)
    return made


def scatter_add_contacts(out: Array, values: Array, index: Array, axis: int = 0) -> Array:
    """Scatter-add the values of contacts onto items.

    Args:
      out: `[..., number, ..., *W]`, with the items in `axis`.
      values: `[ncon, ..., *W]`.
      index: item of each contact, int `[ncon, *W]`; -1: none.
      axis: axis of the items in `out`.
    """
    if index.ndim > 1 or len(values) > tuning().contacts_per_chunk or not prefer_loops():
        return out + jnp.moveaxis(_scatter_by_index(values, index, out.shape[axis]), 0, axis)
    # One world and few contacts: read, add and write the item of each contact.
    here = (index >= 0).reshape(-1, *(1,) * (values.ndim - 1))
    values = jnp.where(here, values, 0)
    for value, k in zip(values, jnp.maximum(index, 0), strict=True):
        old = dynamic_index_in_dim(out, k, axis, keepdims=False)
        out = dynamic_update_index_in_dim(out, old + value, k, axis)
    return out


def _scatter_by_index(values: Array, index: Array, number: int) -> Array:
    """Sum values of contacts by index, `[ncon, ..., *W]` -> `[number, ..., *W]`."""
    here = one_hot(index, number, values.dtype)
    # One world: a matrix product with the one-hot encoding.
    if is_unbatched(index):
        flat = gram(here.reshape(len(here), -1), values.reshape(len(values), -1))
        return flat.reshape(number, *values.shape[1:])
    # Many worlds: a sum over contacts of one-hot encoding times values.
    more = (1,) * (values.ndim - index.ndim)
    here = here.reshape(len(here), number, *more, here.shape[-1])
    if len(values) > tuning().contacts_per_chunk or not platform().recomputes:
        return jnp.sum(here * values[:, None], axis=0)
    return unrolled_sum(lambda c: here[c] * values[c][None], len(values))


def gather_group(table: Array, group: Array) -> Array:
    """Gather the numbers of one group per contact from a table over groups.

    Args:
      table: `[number, k, *W]`.
      group: group of each contact, int `[ncon, *W]`; for -1 the result is arbitrary.

    Returns:
      `[ncon, k, *W]`.
    """
    group = jnp.maximum(group, 0)
    number, k, *worlds = table.shape
    if table.ndim == 2:
        return take(table, group)
    # Flat indices of the numbers of each group.
    places = group[:, None] * k + column(np.arange(k, dtype=group.dtype), group)[None]
    size = max(worlds[0], group.shape[-1])
    places = jnp.broadcast_to(places, (len(group), k, size))
    return gather(table.reshape(number * k, -1), places.reshape(-1, size)).reshape(
        len(group), k, -1
    )
