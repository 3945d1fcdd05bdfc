"""Sums over groups that are known in advance: of the forces of elements on their vertices.

A group is a row of a constant table, padded with the number of the item after the last. The sum is
one `take` and one reduction over a short axis, in a fixed order; its memory follows the items, not
items times groups as that of a 0/1 product does.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.select import take


def groups(owner: np.ndarray, count: int) -> np.ndarray:
    """`[count, most]`: the items of each owner; an item of owner -1 is in no group."""
    owner = np.asarray(owner, int)
    order = np.argsort(owner, kind="stable")
    order = order[owner[order] >= 0]
    number = np.bincount(owner[order], minlength=count)
    table = np.full((count, number.max(initial=0)), len(owner))
    place = np.arange(len(order)) - np.repeat(np.cumsum(number) - number, number)
    table[owner[order], place] = order
    return table


def sum_groups(x: Tree, table: np.ndarray) -> Tree:
    """Sums of items `[n, *W]` over the rows of a table: `[count, *W]`."""
    return jax.tree.map(lambda a: _sum(a, table), x)


def _sum(a: Array, table: np.ndarray) -> Array:
    count, most = table.shape
    if most == 0 or not len(a):
        return jnp.zeros((count, *a.shape[1:]), a.dtype)
    padded = jnp.concatenate([a, jnp.zeros_like(a[:1])]) if (table == len(a)).any() else a
    picked = take(padded, table.ravel())
    return picked if most == 1 else jnp.sum(picked.reshape(count, most, *a.shape[1:]), axis=1)
