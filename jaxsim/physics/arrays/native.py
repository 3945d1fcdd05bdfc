"""The bridge between public functions of one world and the worlds-last code of the physics.

A function of the physics takes unpacked records (components instead of short axes, one number per
world as one item) and arrays `[items, *W]`. `worlds` makes the public function of it:

  * called for one world it unpacks, runs and packs;
  * under `vmap` it moves the worlds last and runs the same code once for all of them, instead of
    letting every operation be batched with the worlds first, which is several times slower;
  * its derivatives are made in the same way, in whatever order jit, vmap, grad, jvp and scan stand
    around it (call.py).
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxsim.enums import SolverType
from jaxsim.math import Components, Inertia, Quat, Rot, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.fields import KINDS, Field, Record
from jaxsim.model.model import Model
from jaxsim.model.structure import rows_beside_contacts
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.call.batched import filled
from jaxsim.physics.arrays.call.call import Call, Shortcut
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


def unpack_values(record: type[Record], values: Mapping) -> dict:
    """The inverse of `pack_values`."""
    return {n: _unpack(record.fields[n], value, 0) for n, value in values.items()}


def _unpack(field: Field, value: Any, rank: int) -> Any:
    if value is None or field.static:
        return value
    if field.nested is not None:
        return unpack(value, rank) if isinstance(value, Record) else value
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
    if field.nested is not None:
        return pack(value, like) if isinstance(value, Record) else value
    if isinstance(value, Components):
        items = len(field.shape) or 1
        value = value.to_array(axis=items)
        inner = KINDS[field.kind]
        if len(inner) == 2:
            shape = value.shape
            value = value.reshape(*shape[:items], *inner, *shape[items + 1 :])
    return value if field.shape else value[0]


class Short(NamedTuple):
    """A shorter function that does in some states, for tiles of worlds of large models.

    Attributes:
      serves: whether there is one for a model.
      holds: takes what the function takes; whether all worlds are in such a state, one bool.
      function: the shorter one.
    """

    serves: Callable[[Model], bool]
    holds: Callable
    function: Callable


def worlds(core: Callable, short: Short | None = None) -> Callable:
    """Makes the public function `(m, d, *arrays) -> Data or arrays` of a physics function.

    Args:
      core: takes unpacked records and arrays `[items, *W]`, returns a record or arrays.
      short: a shorter function for some states; None: there is none.

    Returns:
      The function for one world; under `vmap` it runs `core` with the worlds last.
    """

    @functools.wraps(core)
    def public(*args):
        leaves, form = jax.tree.flatten(args)
        shared = [_may_be_shared(a) for a in args for _ in jax.tree.leaves(a)]
        results: list = []  # their form, known when the function has been traced

        def run(
            core: Callable, results: list, number: int | None, staged: bool, *leaves: Array
        ) -> list[Array]:
            del staged
            given = jax.tree.unflatten(form, leaves)
            rank = 0 if number is None else 1
            out = core(*(unpack(a, rank) if isinstance(a, Record) else a for a in given))
            values, form_of_results = jax.tree.flatten(_like_input(out, given))
            results[:] = [form_of_results]
            if number is None:
                return values
            return [jnp.broadcast_to(a, (*a.shape[:-1], number)) for a in values]

        shortcut = None
        if short is not None and is_large(args[0]) and short.serves(args[0]):
            runs = (functools.partial(run, f, []) for f in (short.holds, short.function))
            shortcut = Shortcut(*(Call(run, shared, 0, _tile_of_short) for run in runs))
        tile = functools.partial(tile_size, args[0])
        call = Call(functools.partial(run, core, results), shared, 0, tile, shortcut=shortcut)
        values = call(*map(jnp.asarray, leaves))
        return jax.tree.unflatten(results[0], values)

    return public


def _may_be_shared(argument: Any) -> bool:
    """Whether leaves of an argument may serve all worlds: a model's, and of what says so."""
    return isinstance(argument, Model) or getattr(argument, "for_all_worlds", False)


def as_one_world(function: Callable[..., Tree], m: Model, d: Data, *more: Tree) -> Tree:
    """Calls a function of one world, in the public form, from inside the physics.

    Args:
      function: `(m, d, *more) -> array` of one world.
      m, d: in the form of the physics; working values are left out.
      more: arrays `[n, *W]`, and functions with such numbers.

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


LANES = (4, 8, 16)  # worlds that kernels take at a time: whole vectors of numbers
FEWER = 1.08  # what a world costs by eights, of what it costs by sixteens
LANES_TOLD = jax.make_user_context(default_value=None)  # how many a caller wants, or None
LARGE = 96  # dofs of models of which the systems of a tile of worlds fit no cache


def tile_size(m: Model, worlds: int, linear: bool = False) -> int:
    """How many worlds are taken at a time; the last tile is filled up where they are not enough.

    On a CPU as many as a vector has numbers, so that there are no loops over worlds. Where a model
    is large and its method of solution takes many worlds at once, one at a time: a world is then a
    few large kernels. Newton's method takes large ones one by one itself (solver/by_world.py). Not
    of a derivative (`linear`), which goes through all rows and takes the library's factorization.
    """
    newton = m.opt.solver == SolverType.NEWTON and m.opt.noslip_iterations == 0
    by_world = newton and not m.resolves_shells
    return _lanes(worlds) if linear or by_world or not is_large(m) else 1


def is_large(m: Model) -> bool:
    """Whether a model can have rows and the systems of a tile of worlds fit no cache."""
    # there is room for one contact where nothing can touch
    rows = rows_beside_contacts(m) > 0 or m.structure.ncontact > 1
    return m.nv > LARGE and rows and platform().tiles


def _tile_of_short(worlds: int, linear: bool) -> int:
    """The same of a function that does nothing with rows."""
    del linear
    return _lanes(worlds)


def _lanes(worlds: int) -> int:
    """As many as a vector has numbers, where that matters."""
    if not platform().tiles:
        return worlds
    if LANES_TOLD.value is not None:
        return int(LANES_TOLD.value)
    few, half, whole = LANES
    if worlds <= few:
        return few if worlds > 1 else 1
    by_half = FEWER * filled(worlds, half)
    return half if by_half < filled(worlds, whole) else whole


def _like_input(out: Any, args: tuple) -> Any:
    """Packs a record as the argument of its type came; passes arrays through."""
    if not isinstance(out, Record):
        return out
    like = next(a for a in args if type(a) is type(out))
    return pack(out, like)
