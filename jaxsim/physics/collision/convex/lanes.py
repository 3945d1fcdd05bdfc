"""Work on the few lanes that need it, whichever they are, a fixed number at a time.

Values of a lane are kept in one table for each type of number while lanes are gathered and put
back: one gather, whatever a lane consists of.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Components
from jaxsim.physics.arrays.array import Array, Tree


def for_some(
    function: Callable[[Any], Tree], needed: Array, lanes: Any, otherwise: Tree, size: int
) -> Tree:
    """`function` of the lanes that need it, and a given value elsewhere.

    Lanes are gathered `size` at a time, as often as there are some left: memory goes by `size`, and
    time by how many need it. What a lane gets does not depend on the others.

    Args:
      function: of values of `size` lanes; lane by lane.
      needed: bool `[n]`.
      lanes: operands, `[..., n]`.
      otherwise: the result of the other lanes, `[..., n]`.
      size: how many are taken at a time.
    """
    n = needed.shape[0]
    size = min(size, n)
    place = jnp.cumsum(needed.astype(jnp.int32), dtype=jnp.int32) - 1
    count = place[-1] + 1
    # the lanes that need it, in their order; n, which is no lane, behind them
    padded = -(-n // size) * size
    order = jnp.full(padded, n, jnp.int32)
    every = jnp.arange(n, dtype=jnp.int32)
    order = order.at[jnp.where(needed, place, padded)].set(every, mode="drop")
    given, form = _tables(lanes)
    results, form_of_results = _tables(otherwise)

    def turn(state: tuple[Array, list]) -> tuple[Array, list]:
        start, results = state
        index = lax.dynamic_slice_in_dim(order, start, size)
        some = [x.at[:, index].get(mode="clip") for x in given]
        found, _ = _tables(function(_from_tables(some, form)))
        put = zip(results, found, strict=True)
        return start + size, [r.at[:, index].set(f, mode="drop") for r, f in put]

    def going(state: tuple[Array, list]) -> Array:
        return state[0] < count

    _, results = lax.while_loop(going, turn, (jnp.int32(0), results))
    return _from_tables(results, form_of_results)


class _Form(NamedTuple):
    """How a value is made of tables: of each leaf its type, shape without lanes, and first row."""

    structure: jax.tree_util.PyTreeDef
    leaves: list[tuple[np.dtype, tuple[int, ...], int]]
    dtypes: list[np.dtype]


def _tables(value: Tree) -> tuple[list[jax.Array], _Form]:
    """The leaves of a value as rows of one table for each type."""
    leaves, structure = jax.tree.flatten(value)
    rows: dict[np.dtype, list[jax.Array]] = {}
    where = []
    for leaf in leaves:
        table = rows.setdefault(leaf.dtype, [])
        where.append((leaf.dtype, leaf.shape[:-1], sum(len(r) for r in table)))
        table.append(leaf.reshape(-1, leaf.shape[-1]))
    form = _Form(structure, where, list(rows))
    return [jnp.concatenate(table) for table in rows.values()], form


def _from_tables(tables: list[jax.Array], form: _Form) -> Any:
    """The inverse of `_tables`."""
    by_type = dict(zip(form.dtypes, tables, strict=True))
    leaves = []
    for dtype, shape, first in form.leaves:
        part = by_type[dtype][first : first + int(np.prod(shape, dtype=int))]
        leaves.append(part.reshape(*shape, part.shape[-1]))
    return jax.tree.unflatten(form.structure, leaves)


def in_front(x: Tree, like: Array | Components) -> Tree:
    """Values of lanes `[n]` with as many axes in front as `like` has."""
    rank = len(like.shape)
    return jax.tree.map(lambda a: a.reshape((1,) * (rank - a.ndim) + a.shape), x)
