"""Kernels of a GPU in which a warp is a world.

A program takes one world: vectors over its dofs or rows lie along the lanes of the warp, tiles of a
matrix are in their registers, and its loops end when that world needs no more. Shapes are powers of
two, as the compiler asks for, so that what is read beyond an array is zero. What a program reads
again it copies at first into memory of its own, side by side; there it stays in the caches of its
processor.

On a GPU the kernel is compiled by way of Triton. Elsewhere it is interpreted, which shows what it
computes, slowly.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform

WARP = 32  # lanes of a warp


class Beside(NamedTuple):
    """An array that lies world by world, `[worlds, ...]`, so that lanes read it side by side."""

    array: Any


class Room(NamedTuple):
    """What a kernel writes: `shape` for each world, last where it is `public`, else first."""

    shape: tuple[int, ...]
    dtype: Any
    public: bool = True


def lanes_of(n: int) -> int:
    """The lanes that `n` numbers take: a power of two, at least a warp."""
    return max(WARP, 1 << max(n - 1, 0).bit_length())


def over_worlds(kernel: Callable[[Any, Any], None], given: Any, made: Any, worlds: int) -> Any:
    """Runs a kernel for each world.

    Args:
      kernel: `(given, made)`, in which the arrays of both are references to memory of one world.
      given: arrays `[..., worlds]`, or `[..., 1]` of what all worlds share; and `Beside`.
      made: a tree of `Room`: what the kernel writes, which it may read again.
      worlds: the number of worlds.

    Returns:
      Arrays in the place of each `Room`: `[*shape, worlds]`, of the ones that are not public
      `[worlds, *shape]`.
    """
    from jax.experimental import pallas as pl

    leaves, of_given = jax.tree.flatten(given, is_leaf=lambda a: isinstance(a, Beside))
    rooms, of_made = jax.tree.flatten(made, is_leaf=lambda a: isinstance(a, Room))

    def reads(a: Any) -> Any:
        if isinstance(a, Beside):
            return _world_first(a.array.shape[1:], len(a.array) == 1)
        before, shared = (0,) * (a.ndim - 1), a.shape[-1] == 1
        return pl.BlockSpec((*a.shape[:-1], None), lambda w: (*before, 0 if shared else w))

    def writes(a: Room) -> Any:
        if not a.public:
            return _world_first(a.shape)
        zeros = (0,) * len(a.shape)
        return pl.BlockSpec((*a.shape, None), lambda w: (*zeros, w))

    def place(a: Room) -> Any:
        shape = (*a.shape, worlds) if a.public else (worlds, *a.shape)
        return jax.ShapeDtypeStruct(shape, a.dtype)

    def run(*refs: Any) -> None:
        first, second = refs[: len(leaves)], refs[len(leaves) :]
        kernel(jax.tree.unflatten(of_given, first), jax.tree.unflatten(of_made, second))

    results = pl.pallas_call(
        run,
        grid=(worlds,),
        in_specs=[reads(a) for a in leaves],
        out_specs=[writes(a) for a in rooms],
        out_shape=[place(a) for a in rooms],
        interpret=_interpreted(),
        **({} if _interpreted() else _for_gpu()),
    )(*(a.array if isinstance(a, Beside) else a for a in leaves))
    return jax.tree.unflatten(of_made, results)


def _world_first(shape: tuple[int, ...], shared: bool = False) -> Any:
    """The part of a world in an array `[worlds, *shape]`."""
    from jax.experimental import pallas as pl

    zeros = (0,) * len(shape)
    return pl.BlockSpec((None, *shape), lambda w: (0 if shared else w, *zeros))


def beside(a: Array) -> Beside:
    """An array `[..., worlds]` world by world."""
    return Beside(jnp.moveaxis(a, -1, 0))


def _interpreted() -> bool:
    return platform().kernels != "compiled"


def _for_gpu() -> dict[str, Any]:
    """Triton's form of Pallas. More warps for a world were slower: they wait for each other."""
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=1, num_stages=1)}


def numbers(count: int) -> Array:
    """0, 1, 2, ... along the lanes, int32 `[count]`."""
    return lax.iota(jnp.int32, count)


def load(ref: Any, *index: Array | int, where: Array | None = None) -> Array:
    """Numbers at places that differ from lane to lane, zero where they are not asked for.

    Args:
      ref: memory of a world.
      index: int32 for each of its axes, of one shape or of shapes that broadcast to it.
      where: bool of that shape; None: everywhere.
    """
    from jax.experimental.pallas import triton

    if where is None:
        return jnp.asarray(ref[index])
    index = tuple(jnp.where(where, i, 0) for i in index)
    return triton.load(ref.at[index], mask=where, other=jnp.zeros((), ref.dtype))


def store(ref: Any, *index: Array | int, value: Array, where: Array | None = None) -> None:
    """Writes numbers at places, as `load` reads them."""
    from jax.experimental.pallas import triton

    if where is None:
        ref[index] = value.astype(ref.dtype)
    else:
        triton.store(ref.at[index], value.astype(ref.dtype), mask=where)


def vector(ref: Any, lanes: int) -> Array:
    """An array `[n]` of a world along the lanes."""
    place, n = numbers(lanes), ref.shape[0]
    return load(ref, place, where=None if n == lanes else place < n)


def settle() -> None:
    """What the program has written can be read by all its lanes after this."""
    if not _interpreted():
        from jax.experimental.pallas import triton

        triton.debug_barrier()


def loop(count: Array | int, body: Callable, start: Any) -> Any:
    """`body(k, state)` for each k below a number, whose type has to be that of indices."""
    return lax.fori_loop(jnp.int32(0), jnp.asarray(count, jnp.int32), body, start)


def pick(a: Array, k: Array | int) -> Array:
    """The number of lane `k`, for all of them."""
    return total(jnp.where(numbers(len(a)) == k, a, 0))


def total(a: Array) -> Array:
    """The sum over the lanes."""
    return jnp.sum(a, dtype=a.dtype)


def some(mask: Array) -> Array:
    """Whether it is true in one of the worlds."""
    return jnp.max(mask.astype(jnp.int32)) > 0
