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
from jaxsim.physics.arrays.once import apart, blank


def for_some(
    function: Callable[[Any], Tree],
    needed: Array,
    lanes: Any,
    size: int,
    otherwise: Tree | None = None,
) -> Tree:
    """`function` of the lanes that need it, and a given value elsewhere.

    Lanes are gathered `size` at a time, as often as there are some left: memory goes by `size`, and
    time by how many need it. What a lane gets does not depend on the others.

    Args:
      function: of values of `size` lanes; lane by lane. It may hold traced values.
      needed: bool `[n]`.
      lanes: operands, `[..., n]`.
      size: how many are taken at a time.
      otherwise: the result of the other lanes, `[..., n]`; by default zeros.
    """
    n = needed.shape[0]
    size = min(size, n)
    function = jax.jit(function, inline=True)  # traced once, for its form and for its result
    if otherwise is None:
        otherwise = blank(_with_lanes(jax.eval_shape(function, _with_lanes(lanes, size)), n))
    order, count = _order(needed, size)
    given, form = tables(lanes)
    results, form_of_results = tables(otherwise)

    def turn(state: tuple[Array, list]) -> tuple[Array, list]:
        start, results = state
        index = lax.dynamic_slice_in_dim(order, start, size)
        some = [x.at[:, index].get(mode="clip") for x in given]
        # apart: put together in one table, each row would be computed in it again
        found, _ = tables(apart(function, from_tables(some, form)))
        put = zip(results, found, strict=True)
        return start + size, [r.at[:, index].set(f, mode="drop") for r, f in put]

    def going(state: tuple[Array, list]) -> Array:
        return state[0] < count

    _, results = lax.while_loop(going, turn, (jnp.int32(0), results))
    return from_tables(results, form_of_results)


def _order(needed: Array, size: int) -> tuple[Array, Array]:
    """The lanes that need it, in their order, filled up to whole sizes with what is no lane."""
    n = needed.shape[0]
    place = jnp.cumsum(needed.astype(jnp.int32), dtype=jnp.int32) - 1
    padded = -(-n // size) * size
    order = jnp.full(padded, n, jnp.int32)
    every = jnp.arange(n, dtype=jnp.int32)
    order = order.at[jnp.where(needed, place, padded)].set(every, mode="drop")
    return order, place[-1] + 1


def _with_lanes(value: Tree, size: int) -> Tree:
    """The form of a value with another number of lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape[:-1], size), x.dtype), value)


class Form(NamedTuple):
    """How a value is made of tables: of each leaf its type, shape without lanes, and first row."""

    structure: jax.tree_util.PyTreeDef
    leaves: list[tuple[np.dtype, tuple[int, ...], int]]
    dtypes: list[np.dtype]


def tables(value: Tree) -> tuple[list[jax.Array], Form]:
    """The leaves of a value as rows of one table for each type."""
    leaves, structure = jax.tree.flatten(value)
    rows: dict[np.dtype, list[jax.Array]] = {}
    where = []
    for leaf in leaves:
        table = rows.setdefault(leaf.dtype, [])
        where.append((leaf.dtype, leaf.shape[:-1], sum(len(r) for r in table)))
        table.append(leaf.reshape(-1, leaf.shape[-1]))
    form = Form(structure, where, list(rows))
    return [jnp.concatenate(table) for table in rows.values()], form


def from_tables(tables: list[jax.Array], form: Form) -> Any:
    """The inverse of `tables`."""
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
