"""Batching rule of the primitive `physics`.

`vmap` puts the batch axis where it likes; the rule moves it last, where the physics has its worlds,
and calls the function once for all worlds, or once per tile of `tile` worlds in a `lax.map` (a tile
fits the cache of a CPU core). For 100 worlds in tiles of 16, a state of 28 numbers and a field of
the model, 3 numbers, that all worlds share:

                                      state            field
    vmap, batch axis moved first      [100, 28]        [3]
    padded by copies, split in tiles  [7, 16, 28]      [3]
    one tile in `lax.map`             [16, 28]         [3]
    worlds moved last                 [28, 16]         [3, 1]
    call(state, field, worlds=16)     [28, 16]
    worlds moved first                [16, 28]
    tiles merged, padding dropped     [100, 28]

Three cases: a batch of the linear arguments of a derivative alone (`_evaluate_in_columns`, as
`jax.jacobian` makes it), the first batch axis (`_evaluate_in_worlds`), and a batch of an already
batched call (`_merge_into_worlds`), which merges both axes, [5, 100] worlds to [500].

In these functions `leaves` are the arguments with the batch axis first where they have one, `own`
flags the arguments that have one, and `size` is the length of the batch.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.interpreters import batching

from jaxsim.arrays.array import Array
from jaxsim.transforms.derived_calls import batch_linear_arguments
from jaxsim.transforms.platform import platform
from jaxsim.transforms.primitive import PHYSICS_P, Leaves, PhysicsCall


def _batch_call(leaves: Leaves, axes: Sequence, *, call: PhysicsCall, worlds: int | None) -> tuple:
    """Batch a call; `axes` holds the batch axis of each argument, None where it has none."""
    size = next(a.shape[axis] for a, axis in zip(leaves, axes, strict=True) if axis is not None)
    # Move the batch axis of each argument first.
    first = [
        a if axis is None else _move_axis(a, axis, 0) for a, axis in zip(leaves, axes, strict=True)
    ]
    own = [axis is not None for axis in axes]
    # A batch of linear arguments only, the first batch axis, or a batch of a batched call.
    if call.linear and not any(own[: -call.linear]):
        results = _evaluate_in_columns(first, own, size, call, worlds)
    elif worlds is None:
        results = _evaluate_in_worlds(first, own, size, call)
    else:
        results = _merge_into_worlds(first, own, size, call, worlds)
    return results, [0] * len(results)


batching.primitive_batchers[PHYSICS_P] = _batch_call


def _evaluate_in_columns(
    leaves: list[Array], own: list[bool], size: int, call: PhysicsCall, worlds: int | None
) -> list[Array]:
    """Evaluate the call for several values of its linear arguments, a batch along axis 0."""
    number = len(leaves) - call.linear
    several = [
        a if has else lax.broadcast(a, (size,))
        for a, has in zip(leaves[number:], own[number:], strict=True)
    ]
    return call.derived(batch_linear_arguments)(*leaves[:number], *several, worlds=worlds)


def _evaluate_in_worlds(
    leaves: list[Array], own: list[bool], size: int, call: PhysicsCall
) -> list[Array]:
    """Evaluate the call for many worlds, the first axis of the arguments that `own` flags."""
    if call.fast_path is None or size == 1:
        tile, evaluate = call.tile(size, bool(call.linear)), _call_batch_first
    else:
        tile, evaluate = call.fast_path.call.tile(size, False), _call_or_fast_path
    return _evaluate_in_tiles(
        leaves, own, size, tile, partial(evaluate, own=own, size=tile, call=call)
    )


def _call_or_fast_path(
    leaves: list[Array], own: list[bool], size: int, call: PhysicsCall
) -> list[Array]:
    """Evaluate a tile of worlds by the fast path if all of them allow it, else by the full call."""
    assert call.fast_path is not None
    valid_in_state, fast = call.fast_path
    # Evaluate the condition without derivatives, and branch on whether it is true in every world.
    (found,) = _call_batch_first(lax.stop_gradient(leaves), own, size, valid_in_state)
    tile = call.tile(size, False)
    full = partial(_call_batch_first, own=own, size=tile, call=call)
    results: list[Array] = lax.cond(
        jnp.all(found),
        lambda: _call_batch_first(leaves, own, size, fast),
        lambda: _evaluate_in_tiles(leaves, own, size, tile, full),
    )
    return results


def _evaluate_in_tiles(
    leaves: list[Array], own: list[bool], size: int, tile: int, at_once: Callable
) -> list[Array]:
    """Evaluate many worlds tile by tile with `at_once`, a function of one tile."""
    if tile == size:
        return at_once(leaves)
    # Map over tiles; arguments without a batch axis are closed over.
    parts = [split_into_tiles(a, tile) for a, has in zip(leaves, own, strict=True) if has]

    def one(parts: list[Array]) -> list[Array]:
        rest = iter(parts)
        return at_once([next(rest) if has else a for a, has in zip(leaves, own, strict=True)])

    return [merge_tiles(a, size) for a in lax.map(one, parts)]


def round_up_to_tile(worlds: int, tile: int) -> int:
    """Return the number of worlds rounded up to whole tiles."""
    return worlds + -worlds % tile


def split_into_tiles(a: Array, tile: int) -> Array:
    """Reshape `[worlds, ...]` to `[tiles, tile, ...]`; the last tile is padded by copies."""
    spare = -len(a) % tile
    if spare:
        a = jnp.concatenate([a, jnp.broadcast_to(a[-1:], (spare, *a.shape[1:]))])
    return lax.reshape(a, (len(a) // tile, tile, *a.shape[1:]))


def merge_tiles(a: Array, worlds: int) -> Array:
    """Reshape `[tiles, tile, ...]` to `[worlds, ...]` and drop the padding."""
    a = lax.reshape(a, (a.shape[0] * a.shape[1], *a.shape[2:]))
    return a if len(a) == worlds else lax.slice_in_dim(a, 0, worlds)


def _call_batch_first(
    leaves: list[Array], own: list[bool], size: int, call: PhysicsCall
) -> list[Array]:
    """Evaluate worlds that come first by the function that has them last.

    An argument that all worlds share stays one, with a last axis of 1. Every other argument without
    a batch axis is repeated, so that whatever is computed from a state has all worlds.
    """
    if size == 1 and platform().fuses_calls:  # the single-world program is faster
        given = [a[0] if has else a for a, has in zip(leaves, own, strict=True)]
        return [lax.broadcast(a, (1,)) for a in call(*given)]

    # Move the worlds last, call, and move them first again.
    def last(a: Array, has: bool, shared: bool) -> Array:
        if has:
            return _move_axis(a, 0, -1)
        return lax.broadcast_in_dim(a, (*a.shape, 1 if shared else size), range(a.ndim))

    given = [last(*x) for x in zip(leaves, own, call.shared, strict=True)]
    return [_move_axis(a, -1, 0) for a in call(*given, worlds=size)]


def _merge_into_worlds(
    leaves: list[Array], own: list[bool], size: int, call: PhysicsCall, worlds: int
) -> list[Array]:
    """Evaluate a batch of a batched call by merging both axes into one set of worlds."""
    shared = [a.shape[-1] != worlds for a in leaves]
    if any(one and not may for one, may in zip(shared, call.shared, strict=True)):
        # A tangent or cotangent of an argument that the inner worlds share: its sums over the inner
        # worlds stay separate for each outer batch element, so JAX's own rules batch the function.
        axes = tuple(0 if has else None for has in own)
        each: list[Array] = jax.vmap(call.function(worlds, True), axes)(*leaves)
        return each

    def first(a: Array, has: bool, one: bool) -> tuple[Array, bool]:
        """Return the argument with all worlds first and True, or one for all and False."""
        if one and not has:
            return lax.squeeze(a, (-1,)), False
        a = a if has else lax.broadcast(a, (size,))
        if one:
            a = lax.broadcast_in_dim(a, (*a.shape[:-1], worlds), range(a.ndim))
        a = _move_axis(a, -1, 1)
        return lax.reshape(a, (size * worlds, *a.shape[2:])), True

    # Flatten both batch axes, evaluate as one set of worlds, and unflatten.
    given, has_own = zip(*(first(*x) for x in zip(leaves, own, shared, strict=True)), strict=True)
    found = _evaluate_in_worlds(list(given), list(has_own), size * worlds, call)
    return [_move_axis(lax.reshape(a, (size, worlds, *a.shape[1:])), 1, -1) for a in found]


# A call has hundreds of arguments, and jnp traces a function of its own for each operation.
def _move_axis(a: Array, source: int, destination: int) -> Array:
    """Move one axis, as `jnp.moveaxis`."""
    source, destination = source % a.ndim, destination % a.ndim
    order = [k for k in range(a.ndim) if k != source]
    order.insert(destination, source)
    return a if source == destination else lax.transpose(a, order)
