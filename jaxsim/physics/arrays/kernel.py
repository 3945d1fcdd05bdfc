"""Kernels of a GPU in which a lane is a world: loops over items, with the items in memory.

The layout of the physics, `[items, worlds]`, is the one such a kernel wants: what the lanes of a
warp read together lies together. A lane reads and writes numbers of its own world only, so that
nothing has to wait for another; a warp goes on as long as one of its worlds does.

On a GPU the kernel is compiled by way of Triton. Elsewhere it is interpreted, which shows what it
computes, slowly.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.platform import platform

LANES = 32  # worlds of one program: the lanes of a warp


def serves(like: Array) -> bool:
    """Whether the worlds of an array `[n, *W]` fill the lanes."""
    return like.ndim == 2 and like.shape[-1] % LANES == 0 and like.shape[0] > 0


def room(items: tuple[int, ...], like: Array, dtype: Any = None) -> jax.ShapeDtypeStruct:
    """Memory for `items` of each world, of the type of an array of the physics or another."""
    return jax.ShapeDtypeStruct((*items, like.shape[-1]), dtype or like.dtype)


def over_lanes(kernel: Callable[[Any, Any], None], given: Any, made: Any, worlds: int) -> Any:
    """Runs a kernel for all worlds, those of a warp at a time.

    Args:
      kernel: `(given, made)`, in which the arrays of both are references to memory; of a world, or
        of all of them where the last axis is one.
      given: arrays `[..., worlds]` or `[..., 1]`.
      made: shapes of what the kernel writes, which it may read again.
      worlds: a multiple of `LANES`.
    """
    from jax.experimental import pallas as pl

    leaves, of_given = jax.tree.flatten(given)
    shapes, of_made = jax.tree.flatten(made)

    def spec(a: Any) -> Any:
        before, last = (0,) * (a.ndim - 1), a.shape[-1]
        if last == 1:
            return pl.BlockSpec(a.shape, lambda k: (*before, 0))
        return pl.BlockSpec((*a.shape[:-1], LANES), lambda k: (*before, k))

    def run(*refs: Any) -> None:
        first, second = refs[: len(leaves)], refs[len(leaves) :]
        kernel(jax.tree.unflatten(of_given, first), jax.tree.unflatten(of_made, second))

    interpret = platform().kernels != "compiled"
    results = pl.pallas_call(
        run,
        grid=(worlds // LANES,),
        in_specs=[spec(a) for a in leaves],
        out_specs=[spec(a) for a in shapes],
        out_shape=shapes,
        interpret=interpret,
        **({} if interpret else _for_gpu()),
    )(*leaves)
    return jax.tree.unflatten(of_made, results)


def _for_gpu() -> dict[str, Any]:
    """One warp a program; Triton's form of Pallas has pointers, which loops over memory need."""
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=1, num_stages=1)}


def read(ref: Any, *place: Array | int) -> Array:
    """A number of each world `[LANES]`, or the one that serves all worlds, a scalar."""
    value: Array = ref[(*place, 0 if ref.shape[-1] == 1 else slice(None))]
    return value


def write(ref: Any, place: Array | int, value: Array) -> None:
    """Sets a number of each world."""
    ref[place, :] = jnp.broadcast_to(value, (LANES,)).astype(ref.dtype)


def loop(count: Array | int, body: Callable, start: Any = None) -> Any:
    """`body(k, state)` for each k below a number, whose type has to be that of indices."""
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), body, start)


def copy(to: Any, of: Any, count: int) -> None:
    """Copies the first items of an array `[items, worlds]`."""

    def item(k: Array, _: None) -> None:
        write(to, k, read(of, k))

    loop(count, item)


def some(mask: Array) -> Array:
    """Whether it is true in one of the worlds."""
    return jnp.max(mask.astype(jnp.int32)) > 0
