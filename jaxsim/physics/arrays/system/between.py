"""What rows that touch few blocks of a matrix add to it.

A contact touches the dofs of one or two groups, which the state chooses. What it adds to a Hessian
are blocks on the diagonal, and one beside it; each form of matrix adds them in its own way.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import written_sum
from jaxsim.physics.arrays.call.differentiated import loops_pay
from jaxsim.physics.arrays.node import node
from jaxsim.physics.arrays.pin import few, pin
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.products import CHUNK, gram
from jaxsim.physics.arrays.select import column, pick


@node("dofs")
class Between:
    """Rows of contacts with the weights of a sum J' W J.

    Attributes:
      dofs: the rows of the matrix that are a group, all of one length; a smaller group has its
        first one again.
      own: `[basis, ncon, slots k, *W]`: entries for the groups of each slot, one after another.
      group: of each slot, int `[ncon, *W]`, -1: none. Of two the first is the later one.
      weight: W of each contact, nested lists over the basis of `[ncon, *W]`.
      used: contacts up to the last that counts in any world; None: all are taken at once.
    """

    dofs: tuple[tuple[int, ...], ...]
    own: jax.Array
    group: tuple[jax.Array, ...]
    weight: list
    used: jax.Array | None

    @property
    def table(self) -> np.ndarray:
        """`dofs` as an array `[number, k]`."""
        return np.array(self.dofs)

    @property
    def are_ranges(self) -> bool:
        """Whether each group is a range of rows."""
        table = self.table
        count = table.max(axis=1, keepdims=True) - table[:, :1] + 1
        place = np.arange(table.shape[1])
        return np.array_equal(table[:, :1] + np.where(place < count, place, 0), table)

    @property
    def items(self) -> tuple:
        """Arrays and the axes that number the contacts, for `chunks`."""
        return (self.own, 1), (self.weight, 0), (self.group, 0)


def products(own: Array, weight: list) -> Array:
    """The products of each contact, `[ncon, slots k, slots k, *W]`."""
    size = len(own)
    half = [sum(weight[j][k][:, None] * own[k] for k in range(size)) for j in range(size)]
    half = pin(half, own[0, 0])
    return written_sum(lambda j: own[j][:, :, None] * half[j][:, None], size)


def equal(index: Array, number: int, dtype: np.dtype) -> Array:
    """1 where a contact has an index, else 0: `[ncon, *W]` -> `[ncon, number, *W]`.

    As numbers to multiply by: loops that choose are not vectorized.
    """
    same = index[:, None] == column(np.arange(number, dtype=index.dtype), index)[None]
    made: Array = pin(same.astype(dtype), index)
    return made


def added(out: Array, values: Array, index: Array, axis: int = 0) -> Array:
    """Items with what contacts add to them.

    Args:
      out: `[..., number, ..., *W]`, the items in `axis`.
      values: `[ncon, ..., *W]`.
      index: the item of each contact, int `[ncon, *W]`; -1: none.
      axis: which of `out`.
    """
    if index.ndim > 1 or len(values) > CHUNK or not loops_pay():
        return out + jnp.moveaxis(_spread(values, index, out.shape[axis]), 0, axis)
    here = (index >= 0).reshape(-1, *(1,) * (values.ndim - 1))
    values = jnp.where(here, values, 0)
    for value, k in zip(values, jnp.maximum(index, 0), strict=True):
        old = lax.dynamic_index_in_dim(out, k, axis, keepdims=False)
        out = lax.dynamic_update_index_in_dim(out, old + value, k, axis)
    return out


def _spread(values: Array, index: Array, number: int) -> Array:
    """Sums over contacts onto the index of each: `[ncon, ..., *W]` -> `[number, ..., *W]`."""
    here = equal(index, number, values.dtype)
    if few(index):
        flat = gram(here.reshape(len(here), -1), values.reshape(len(values), -1))
        return flat.reshape(number, *values.shape[1:])
    more = (1,) * (values.ndim - index.ndim)
    here = here.reshape(len(here), number, *more, here.shape[-1])
    if len(values) > CHUNK or not platform().recomputes:
        return jnp.sum(here * values[:, None], axis=0)
    return written_sum(lambda c: here[c] * values[c][None], len(values))


def chosen(table: Array, group: Array) -> Array:
    """The numbers of one group a contact, of a table by groups.

    Args:
      table: `[number, k, *W]`.
      group: of each contact, int `[ncon, *W]`; -1: any numbers.

    Returns:
      `[ncon, k, *W]`.
    """
    group = jnp.maximum(group, 0)
    number, k, *worlds = table.shape
    if table.ndim == 2:
        return table.at[group].get(mode="promise_in_bounds")
    places = group[:, None] * k + column(np.arange(k, dtype=group.dtype), group)[None]
    size = max(worlds[0], group.shape[-1])
    places = jnp.broadcast_to(places, (len(group), k, size))
    return pick(table.reshape(number * k, -1), places.reshape(-1, size)).reshape(len(group), k, -1)
