"""GPU kernels in Pallas/Triton in which one warp simulates one world.

A kernel is written for one world: vectors over dofs or rows lie along the lanes of the warp, matrix
tiles in its registers, and its loops end when that world has converged. Triton requires shapes that
are powers of two, so reads past the end of an array are masked to zero. Data that is read
repeatedly is first copied to scratch memory of the world, contiguous along the lanes, where it
stays in the caches of its multiprocessor.

On a GPU the kernel is compiled by Triton. On other platforms Pallas interprets it, for tests only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.transforms.platform import platform

WARP_SIZE = 32  # lanes of a warp


class WorldsFirst(NamedTuple):
    """An array stored world by world, `[worlds, ...]`, so that lanes read it contiguously."""

    array: Any


class Output(NamedTuple):
    """An output of a kernel: `shape` per world, with the worlds last if `public`, else first."""

    shape: tuple[int, ...]
    dtype: Any
    public: bool = True


def lanes_of(n: int) -> int:
    """Return the number of lanes for `n` numbers: a power of two, at least one warp."""
    return max(WARP_SIZE, 1 << max(n - 1, 0).bit_length())


def run_per_world(kernel: Callable[[Any, Any], None], given: Any, made: Any, worlds: int) -> Any:
    """Run a kernel for each world, one per grid cell.

    Args:
      kernel: `(given, made)`, in which the arrays of both are references to memory of one world.
      given: arrays `[..., worlds]`, or `[..., 1]` if all worlds share them; and `WorldsFirst`.
      made: a tree of `Output`: the outputs of the kernel, which it may read again.
      worlds: the number of worlds.

    Returns:
      An array for each `Output`: `[*shape, worlds]`, or `[worlds, *shape]` if it is not public.
    """
    from jax.experimental import pallas as pl

    leaves, of_given = jax.tree.flatten(given, is_leaf=lambda a: isinstance(a, WorldsFirst))
    outputs, of_made = jax.tree.flatten(made, is_leaf=lambda a: isinstance(a, Output))

    def reads(a: Any) -> Any:
        """Return the block of one world in an input."""
        if isinstance(a, WorldsFirst):
            return _world_first(a.array.shape[1:], len(a.array) == 1)
        before, shared = (0,) * (a.ndim - 1), a.shape[-1] == 1
        return pl.BlockSpec((*a.shape[:-1], None), lambda w: (*before, 0 if shared else w))

    def writes(a: Output) -> Any:
        """Return the block of one world in an output."""
        if not a.public:
            return _world_first(a.shape)
        zeros = (0,) * len(a.shape)
        return pl.BlockSpec((*a.shape, None), lambda w: (*zeros, w))

    def place(a: Output) -> Any:
        """Return shape and dtype of an output over all worlds."""
        shape = (*a.shape, worlds) if a.public else (worlds, *a.shape)
        return jax.ShapeDtypeStruct(shape, a.dtype)

    def run(*refs: Any) -> None:
        """Call the kernel with its references as trees."""
        first, second = refs[: len(leaves)], refs[len(leaves) :]
        kernel(jax.tree.unflatten(of_given, first), jax.tree.unflatten(of_made, second))

    # One program instance per world.
    results = pl.pallas_call(
        run,
        grid=(worlds,),
        in_specs=[reads(a) for a in leaves],
        out_specs=[writes(a) for a in outputs],
        out_shape=[place(a) for a in outputs],
        interpret=_is_interpreted(),
        **({} if _is_interpreted() else _triton_options()),
    )(*(a.array if isinstance(a, WorldsFirst) else a for a in leaves))
    return jax.tree.unflatten(of_made, results)


def _world_first(shape: tuple[int, ...], shared: bool = False) -> Any:
    """Return the block of one world in an array `[worlds, *shape]`."""
    from jax.experimental import pallas as pl

    zeros = (0,) * len(shape)
    return pl.BlockSpec((None, *shape), lambda w: (0 if shared else w, *zeros))


def move_worlds_first(a: Array) -> WorldsFirst:
    """Move the worlds of an array `[..., worlds]` first."""
    return WorldsFirst(jnp.moveaxis(a, -1, 0))


def _is_interpreted() -> bool:
    """Return whether kernels are interpreted instead of compiled."""
    return platform().kernels != "compiled"


def _triton_options() -> dict[str, Any]:
    """Return Triton's options. More warps per world are slower, because they synchronize."""
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=1, num_stages=1)}


def lane_indices(count: int) -> Array:
    """Return the lane indices 0, 1, 2, ..., int32 `[count]`."""
    return lax.iota(jnp.int32, count)


def load(ref: Any, *index: Array | int, where: Array | None = None) -> Array:
    """Gather numbers at indices that differ between lanes; zero where masked out.

    Args:
      ref: memory of a world.
      index: int32 for each of its axes, of one shape or of shapes that broadcast to it.
      where: bool mask of that shape; None: everywhere.
    """
    from jax.experimental.pallas import triton

    if where is None:
        return jnp.asarray(ref[index])
    index = tuple(jnp.where(where, i, 0) for i in index)
    return triton.load(ref.at[index], mask=where, other=jnp.zeros((), ref.dtype))


def store(ref: Any, *index: Array | int, value: Array, where: Array | None = None) -> None:
    """Scatter numbers to indices that differ between lanes, with the arguments of `load`."""
    from jax.experimental.pallas import triton

    if where is None:
        ref[index] = value.astype(ref.dtype)
    else:
        triton.store(ref.at[index], value.astype(ref.dtype), mask=where)


def vector(ref: Any, lanes: int) -> Array:
    """Load an array `[n]` of a world along the lanes, padded with zeros."""
    place, n = lane_indices(lanes), ref.shape[0]
    return load(ref, place, where=None if n == lanes else place < n)


def synchronize_lanes() -> None:
    """Synchronize the lanes: afterwards all of them can read what the kernel has written."""
    if not _is_interpreted():
        from jax.experimental.pallas import triton

        triton.debug_barrier()


def loop(count: Array | int, body: Callable, start: Any) -> Any:
    """Run `body(k, state)` for each k below `count`, with the int32 counter of Triton's indices."""
    return lax.fori_loop(jnp.int32(0), jnp.asarray(count, jnp.int32), body, start)


def broadcast_lane(a: Array, k: Array | int) -> Array:
    """Broadcast the number of lane `k` to all lanes."""
    return sum_lanes(jnp.where(lane_indices(len(a)) == k, a, 0))


def sum_lanes(a: Array) -> Array:
    """Return the sum over the lanes."""
    return jnp.sum(a, dtype=a.dtype)


def any_lane(mask: Array) -> Array:
    """Return whether a mask is true in any lane."""
    return jnp.max(mask.astype(jnp.int32)) > 0
