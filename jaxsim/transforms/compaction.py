"""Compact active lanes: gather those that need work, compute, scatter the results back.

A lane is one element of the last axis (a geom pair of a world, for instance). For ten lanes of
which four are active, in chunks of three:

    lane       0  1  2  3  4  5  6  7  8  9
    needed     0  1  0  0  1  1  0  0  1  0
    slot       -  0  -  -  1  2  -  -  3  -      prefix sum
    order      1  4  5 | 8  n  n                 lanes by slot, padded to whole chunks by n = 10
    chunk 0    gather lanes 1 4 5, evaluate, scatter to lanes 1 4 5
    chunk 1    gather lanes 8 9 9, evaluate, scatter to lane 8; lane n is dropped

In kernels of a CPU each leaf is gathered by itself. Results are written chunk by chunk in the order
of the slots, then lane by lane, so that one kernel holds the whole search; where the loop over
chunks is too large for a kernel (cpu_fusion.py), XLA writes a chunk without copying the others.
Elsewhere leaves are packed as rows of one table per dtype, so that each chunk takes one gather and
one scatter, however many leaves a lane has.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
    take_clipped,
)
from jaxsim.math import Components
from jaxsim.transforms.materialize import materialize_result, zeros_from_shapes
from jaxsim.transforms.platform import platform


def evaluate_active_lanes(
    function: Callable[[Any], PyTree],
    needed: Array,
    lanes: Any,
    size: int,
    otherwise: PyTree | None = None,
) -> PyTree:
    """Evaluate `function` on the active lanes, and return a given value for the others.

    Active lanes are gathered in chunks of `size`, in a `while_loop` over the chunks: memory scales
    with `size`, time with the number of active lanes. The result of a lane does not depend on the
    others.

    Args:
      function: elementwise over lanes, of values with `size` lanes; it may close over traced
        values.
      needed: bool `[n]`, the active lanes.
      lanes: operands, `[..., n]`.
      size: lanes per chunk.
      otherwise: the result of the inactive lanes, `[..., n]`; zeros by default.
    """
    n = needed.shape[0]
    size = min(size, n)
    function = jax.jit(function, inline=True)  # traced once, for its shapes and its values
    if otherwise is None:
        otherwise = zeros_from_shapes(
            _set_num_lanes(jax.eval_shape(function, _set_num_lanes(lanes, size)), n)
        )
    order, count = _active_lane_order(needed, size)
    if platform().fuses_calls:
        return _evaluate_in_kernel(function, lanes, otherwise, order, count, size)
    # Pack operands and results as one table per dtype.
    given, form = pack_tables(lanes)
    results, form_of_results = pack_tables(otherwise)

    def process_chunk(state: tuple[Array, list]) -> tuple[Array, list]:
        """Compute one chunk: gather its lanes, evaluate, scatter the results."""
        start, results = state
        index = dynamic_slice_in_dim(order, start, size)
        some = [take_clipped(x, ..., index) for x in given]
        found, _ = pack_tables(function(unpack_tables(some, form)))
        put = zip(results, found, strict=True)
        return start + size, [
            r.at[:, index].set(f, mode="drop", wrap_negative_indices=False) for r, f in put
        ]

    def has_active_lanes(state: tuple[Array, list]) -> Array:
        """Return whether active lanes are left."""
        return state[0] < count

    _, results = lax.while_loop(has_active_lanes, process_chunk, (jnp.int32(0), results))
    return unpack_tables(results, form_of_results)


def evaluate_part(function: Callable[[Any], PyTree], needed: Array, lanes: Any, size: int) -> Any:
    """Evaluate a part of a function of compacted lanes.

    In kernels of a CPU the part gets a loop over its own active lanes: compile time grows faster
    than a kernel, so several loops compile faster than one that holds all parts. Elsewhere the
    lanes are compacted already, and the part is evaluated on all of them.

    Args:
      function, needed, lanes, size: as of `evaluate_active_lanes`.
    """
    if not platform().fuses_calls:
        return function(lanes)
    return evaluate_active_lanes(function, needed, lanes, size)


def _evaluate_in_kernel(
    function: Callable[[Any], PyTree],
    lanes: Any,
    results: PyTree,
    order: Array,
    count: Array,
    size: int,
) -> PyTree:
    """Evaluate the lanes in `order` as a kernel of a CPU can: without tables and scatters.

    Starting an operation costs nothing there, so each leaf is gathered by itself, and only
    chunks of active lanes are read and written.
    """

    def process_chunk(state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        """Compute one chunk: gather its lanes, evaluate, write the results in slot order."""
        start, slots = state
        index = dynamic_slice_in_dim(order, start, size)
        some = jax.tree.map(lambda x: take_clipped(x, ..., index), lanes)
        # Evaluated as a branch of its own (materialize.py), else every write would recompute it.
        found = materialize_result(function, some)

        def write(slots: Array, value: Array) -> Array:
            return dynamic_update_slice_in_dim(slots, value, start, axis=slots.ndim - 1)

        return start + size, jax.tree.map(write, slots, found)

    def has_active_lanes(state: tuple[Array, PyTree]) -> Array:
        """Return whether active lanes are left."""
        return state[0] < count

    def put(k: Array, results: PyTree) -> PyTree:
        """Write one slot to its lane."""
        at = dynamic_index_in_dim(order, k, keepdims=False)

        def write(result: Array, value: Array) -> Array:
            lane = dynamic_slice_in_dim(value, k, 1, axis=-1)
            return dynamic_update_slice_in_dim(result, lane, at, axis=result.ndim - 1)

        return jax.tree.map(write, results, slots)

    empty = zeros_from_shapes(_set_num_lanes(results, len(order)))
    _, slots = lax.while_loop(has_active_lanes, process_chunk, (jnp.int32(0), empty))
    return lax.fori_loop(jnp.int32(0), count, put, results)


def evaluate_used_slots(
    function: Callable[[Any], PyTree],
    slots: Any,
    used: Array,
    size: int,
    axis: int = 0,
) -> PyTree:
    """Evaluate `function` on the first slots of all worlds, chunk by chunk up to the last used one.

    Args:
      function: elementwise over slots.
      slots: operands, `[n, *W]`.
      used: the largest number of used slots of any world.
      size: slots per chunk.
      axis: the axis of the results that counts slots.

    Returns:
      `[..., n, *W]`, with all axes of worlds; zero in chunks that are not evaluated.
    """
    n = len(jax.tree.leaves(slots)[0])
    size = min(size, n)

    def evaluate(slots: Any) -> PyTree:
        """Evaluate some slots, with all results in full shape."""
        found = materialize_result(function, slots)
        worlds = jnp.broadcast_shapes(*(x.shape[axis + 1 :] for x in jax.tree.leaves(found)))
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (*x.shape[: axis + 1], *worlds)), found)

    def process_chunk(state: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        """Evaluate and write one chunk; the last one overlaps the one before it."""
        begin, results = state
        start = jnp.minimum(begin, n - size)
        some = jax.tree.map(lambda x: dynamic_slice_in_dim(x, start, size), slots)
        write = functools.partial(dynamic_update_slice_in_dim, start_index=start, axis=axis)
        return begin + size, jax.tree.map(write, results, evaluate(some))

    def has_used_slots(state: tuple[Array, PyTree]) -> Array:
        """Return whether used slots are left."""
        return state[0] < used

    shapes = jax.eval_shape(evaluate, jax.tree.map(lambda x: x[:size], slots))
    none = jax.tree.map(
        lambda x: jnp.zeros((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype), shapes
    )
    return lax.while_loop(has_used_slots, process_chunk, (jnp.int32(0), none))[1]


def _active_lane_order(needed: Array, size: int) -> tuple[Array, Array]:
    """Return the indices of the active lanes, padded to whole chunks by n, and their count."""
    n = needed.shape[0]
    padded = -(-n // size) * size
    every = jnp.arange(n, dtype=jnp.int32)
    if platform().fuses_calls:
        # Lane by lane: lanes that are not active are overwritten by the next one.
        def offer(lane: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            count, order = state
            order = dynamic_update_slice_in_dim(order, lane[None], count, axis=0)
            here = dynamic_index_in_dim(needed, lane, keepdims=False)
            return count + here.astype(jnp.int32), order

        start = jnp.int32(0), jnp.zeros(padded + 1, jnp.int32)
        count, order = lax.fori_loop(jnp.int32(0), jnp.int32(n), offer, start)
        place = jnp.arange(padded, dtype=jnp.int32)
        return jnp.where(place < count, order[:padded], n), count
    # Slot of each active lane, by a prefix sum.
    slot = jnp.cumsum(needed.astype(jnp.int32), dtype=jnp.int32) - 1
    order = jnp.full(padded, n, jnp.int32)
    order = order.at[jnp.where(needed, slot, padded)].set(
        every, mode="drop", wrap_negative_indices=False
    )
    return order, slot[-1] + 1


def _set_num_lanes(value: PyTree, size: int) -> PyTree:
    """Return the abstract value with another number of lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape[:-1], size), x.dtype), value)


class TableLayout(NamedTuple):
    """Layout of a value in tables: tree structure; dtype, shape and first row of each leaf."""

    structure: jax.tree_util.PyTreeDef
    leaves: list[tuple[np.dtype, tuple[int, ...], int]]
    dtypes: list[np.dtype]


def pack_tables(value: PyTree) -> tuple[list[jax.Array], TableLayout]:
    """Pack the leaves of a value as rows of one table per dtype."""
    # Append each leaf to the table of its dtype and record its first row.
    leaves, structure = jax.tree.flatten(value)
    rows: dict[np.dtype, list[jax.Array]] = {}
    where = []
    for leaf in leaves:
        table = rows.setdefault(leaf.dtype, [])
        where.append((leaf.dtype, leaf.shape[:-1], sum(len(r) for r in table)))
        table.append(leaf.reshape(-1, leaf.shape[-1]))
    form = TableLayout(structure, where, list(rows))
    return [jnp.concatenate(table) for table in rows.values()], form


def unpack_tables(tables: list[jax.Array], form: TableLayout) -> Any:
    """Unpack a value from tables, the inverse of `pack_tables`."""
    by_type = dict(zip(form.dtypes, tables, strict=True))
    leaves = []
    for dtype, shape, first in form.leaves:
        part = by_type[dtype][first : first + int(np.prod(shape, dtype=int))]
        leaves.append(part.reshape(*shape, part.shape[-1]))
    return jax.tree.unflatten(form.structure, leaves)


def add_leading_axes(x: PyTree, like: Array | Components) -> PyTree:
    """Reshape values of lanes `[n]` to the rank of `like`, with axes of 1 in front."""
    rank = len(like.shape)
    return jax.tree.map(lambda a: a.reshape((1,) * (rank - a.ndim) + a.shape), x)
