"""The bridge between public functions of one world and the worlds-last code of the physics.

A function of the physics takes unpacked records (components instead of short axes, one number per
world as one item) and arrays `[items, *W]`. `worlds` makes the public function of it:

  * called for one world it unpacks, runs and packs;
  * under `vmap` it moves the worlds last and runs the same code once for all of them, instead of
    letting every operation be batched with the worlds first, which is several times slower;
  * its derivative is that of the one-world form, so that every order of jit, vmap, grad, jvp and
    scan works.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from jaxsim.math import Components, Inertia, Quat, Rot, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.fields import KINDS, Field, Record
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.platform import platform

AnyRecord = TypeVar("AnyRecord", bound=Record)

VALUES: dict[str, type[Components]] = {
    "vec": Vec,
    "quat": Quat,
    "rot": Rot,
    "spatial": Spatial,
    "inertia": Inertia,
}


def unpack(record: AnyRecord, rank: int) -> AnyRecord:
    """A record with public arrays (worlds last, `rank` world axes) in the form of the physics."""
    values = {n: _unpack(f, getattr(record, n), rank) for n, f in record.fields.items()}
    return record.converted(values, native=True)


def pack(record: AnyRecord, like: Record) -> AnyRecord:
    """The inverse of `unpack`, for the fields that are present in `like`."""
    values = {n: _pack(f, getattr(record, n), getattr(like, n)) for n, f in record.fields.items()}
    return record.converted(values | dict.fromkeys(record.working), native=False)


def pack_values(record: type[Record], values: Mapping) -> dict:
    """The public arrays of some fields of a record, from their form in the physics."""
    return {n: _pack(record.fields[n], value, value) for n, value in values.items()}


def _unpack(field: Field, value: Any, rank: int) -> Any:
    if value is None or field.static:
        return value
    if isinstance(value, Record):
        return unpack(value, rank)
    value = jnp.asarray(value)
    if not field.shape:
        value = value[None]
    if field.kind == "real":
        return value
    items = len(field.shape) or 1
    inner = KINDS[field.kind]
    if len(inner) == 2:
        shape = value.shape
        value = value.reshape(*shape[:items], inner[0] * inner[1], *shape[items + 2 :])
    return VALUES[field.kind].from_array(value, axis=items)


def _pack(field: Field, value: Any, like: Any) -> Any:
    if like is None or field.static:
        return like if like is None else value
    if isinstance(like, Record):
        return pack(value, like)
    if isinstance(value, Components):
        items = len(field.shape) or 1
        value = value.to_array(axis=items)
        inner = KINDS[field.kind]
        if len(inner) == 2:
            shape = value.shape
            value = value.reshape(*shape[:items], *inner, *shape[items + 1 :])
    return value if field.shape else value[0]


def worlds(core: Callable) -> Callable:
    """Makes the public function `(m, d, *arrays) -> Data or arrays` of a physics function.

    Args:
      core: takes unpacked records and arrays `[items, *W]`, returns a record or arrays.

    Returns:
      The function for one world, with a batching rule that runs `core` with the worlds last.
    """

    def run(rank: int, *args):
        out = core(*(unpack(a, rank) if isinstance(a, Record) else a for a in args))
        return _like_input(out, args)

    def one_world(*args):
        return run(0, *args)

    batched = custom_vmap(one_world)

    def all_at_once(size: int, in_batched: Sequence, args: tuple) -> Any:
        last = [_many(a, b, size) for a, b in zip(args, in_batched, strict=True)]
        return jax.tree.map(functools.partial(_worlds_first, size), run(1, *last))

    @batched.def_vmap
    def many_worlds(size, in_batched, *args):
        if not any(jax.tree.leaves(in_batched)):
            out = one_world(*args)
            return out, jax.tree.map(lambda _: False, out)
        tile = tile_size(args[0], size)
        if tile == size:
            out = all_at_once(size, in_batched, args)
        else:
            at_once = functools.partial(all_at_once, tile, in_batched)
            out = _by_tiles(at_once, in_batched, args, size // tile)
        return out, jax.tree.map(lambda _: True, out)

    differentiable = jax.custom_jvp(batched)

    @differentiable.defjvp
    def tangent(primals, tangents):
        out, change = jax.jvp(one_world, primals, tangents)
        return _with_all_worlds(out, primals), change

    @functools.wraps(core)
    def public(*args):
        return differentiable(*args)

    return public


def _with_all_worlds(out: Tree, inputs: tuple) -> Tree:
    """Results of the one-world form, batched as soon as one input is.

    The batching rule above gives all results all worlds. vmap of the one-world form leaves those
    alone that no batched input reaches (counters, what follows from the model); where a derivative
    is taken of a vmap, both forms have to agree.
    """
    never = _any_batched(inputs)
    return jax.tree.map(lambda a: lax.select(never, a, a), out)


@custom_vmap
def _false(inputs: tuple) -> Array:
    del inputs
    return jnp.zeros((), bool)


@_false.def_vmap
def _false_of_each(size: int, in_batched: Sequence, inputs: tuple) -> tuple[Array, bool]:
    del in_batched, inputs
    return jnp.zeros(size, bool), True


@jax.custom_jvp
def _any_batched(inputs: tuple) -> Array:
    """False; under vmap, one for each world if anything in `inputs` is batched."""
    return _false(inputs)


@_any_batched.defjvp
def _no_tangent(primals: tuple, tangents: tuple) -> tuple:
    del tangents
    return _any_batched(*primals), np.zeros((), jax.dtypes.float0)


def as_one_world(function: Callable[..., Tree], m: Model, d: Data, *more: Array) -> Tree:
    """Calls a function of one world, in the public form, from inside the physics.

    Args:
      function: `(m, d, *more) -> array` of one world.
      m, d: in the form of the physics; working values are left out.
      more: arrays `[n, *W]`.

    Returns:
      Its result `[..., *W]`.
    """
    arguments = (pack(m, m), pack(d, d), *more)
    if d.qpos.ndim == 1:
        return function(*arguments)
    size = d.qpos.shape[-1]
    own = jax.tree.map(lambda a: a.shape[-1] == size, arguments)
    axes = jax.tree.map(lambda is_own: -1 if is_own else None, own)
    arguments = jax.tree.map(lambda a, is_own: a if is_own else a[..., 0], arguments, own)
    return jax.vmap(function, in_axes=axes, out_axes=-1)(*arguments)


TILES = (32, 256)  # least and most worlds that a CPU takes at a time
CACHE = 768 * 1024  # bytes of a core's cache that one matrix of all worlds of a tile may take


def tile_size(m: Model, worlds: int) -> int:
    """How many worlds are taken at a time.

    On a CPU: as many as keep the matrices of the solver in the cache of a core, and a divisor of
    the number of worlds, unless there is only a small one.
    """
    least, most = TILES
    matrix = m.nv**2 * m.qpos0.dtype.itemsize
    most = min(max(CACHE // max(matrix, 1), least), most)
    if worlds <= most or not platform().tiles:
        return worlds
    tile = max(n for n in range(1, most + 1) if worlds % n == 0)
    return tile if 4 * tile >= most else worlds


def _by_tiles(function: Callable, in_batched: Sequence, args: tuple, tiles: int) -> Any:
    """`function(args)` for equal parts of the worlds, one after another."""
    leaves, tree = jax.tree.flatten(args)
    flags = jax.tree.leaves(tuple(in_batched))
    own_worlds = [a for a, f in zip(leaves, flags, strict=True) if f]
    split = [a.reshape(tiles, a.shape[0] // tiles, *a.shape[1:]) for a in own_worlds]

    def one(parts):
        rest = iter(parts)
        own = [next(rest) if f else a for a, f in zip(leaves, flags, strict=True)]
        return function(jax.tree.unflatten(tree, own))

    out = lax.map(one, split)
    return jax.tree.map(lambda a: a.reshape(tiles * a.shape[1], *a.shape[2:]), out)


def _like_input(out: Any, args: tuple) -> Any:
    """Packs a record as the argument of its type came; passes arrays through."""
    if not isinstance(out, Record):
        return out
    like = next(a for a in args if type(a) is type(out))
    return pack(out, like)


def _many(arg: Any, batched: Any, size: int) -> Any:
    """An argument with the worlds last. What all worlds share of a model stays one; the rest is
    repeated, so that everything computed from a state has all worlds."""
    shared = 1 if isinstance(arg, Model) else size

    def last(a: Array, is_batched: bool) -> Array:
        if is_batched:
            return jnp.moveaxis(a, 0, -1)
        a = jnp.asarray(a)
        return jnp.broadcast_to(a[..., None], (*a.shape, shared))

    return jax.tree.map(last, arg, batched)


def _worlds_first(size: int, a: Array) -> Array:
    return jnp.moveaxis(jnp.broadcast_to(a, (*a.shape[:-1], size)), -1, 0)
