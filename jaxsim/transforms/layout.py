"""The bridge between public functions of one world and the worlds-last code of the physics.

A physics function takes unpacked records (components instead of short axes, one item per scalar
field) and arrays `[items, *W]`. `batched` makes it a public function:

  * called for one world, it unpacks, runs and packs;
  * under `vmap` it moves the batch axis last and runs the same code once for all worlds. JAX's own
    batching, with the batch axis first in every operation, would be several times slower;
  * derivatives keep this layout in any order of jit, vmap, grad, jvp and scan
    (transforms/primitive.py).

A field in the three layouts, for one world and in a tile of 16:

    field       public          one world            16 worlds
    time        ()              [1]                  [1, 16]
    qpos        (nq,)           [nq]                 [nq, 16]
    xpos        (nbody, 3)      Vec of 3 [nbody]     Vec of 3 [nbody, 16]
    geom_xmat   (ngeom, 3, 3)   Rot of 9 [ngeom]     Rot of 9 [ngeom, 16]
    body_mass   (nbody,)        [nbody]              [nbody, 1], shared by all worlds

On a CPU worlds run in tiles of as many worlds as a vector register has numbers (`tile_size`).
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef

from jaxsim.arrays.array import Array, PyTree
from jaxsim.cache import bounded_cache
from jaxsim.enums import SolverType
from jaxsim.extend.registry import has_extensions
from jaxsim.math import Components, Inertia, Quat, Rot, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.fields import FIELD_KINDS, Field
from jaxsim.model.record.record import Record
from jaxsim.model.structure import max_noncontact_rows
from jaxsim.trace_context import jax_options, trace_context
from jaxsim.transforms.batching import round_up_to_tile
from jaxsim.transforms.platform import platform
from jaxsim.transforms.primitive import FastPath, PhysicsCall
from jaxsim.transforms.tuning import tuning

# Cached calls per function: argument structures, shapes and trace contexts. The traces of a step of
# the humanoid and of its gradient, for one world and for a tile, take 54 MB.
MAX_CALLS = 4

_AnyRecord = TypeVar("_AnyRecord", bound=Record)

_VALUE_TYPES: dict[str, type[Components]] = {
    "vec": Vec,
    "quat": Quat,
    "rot": Rot,
    "spatial": Spatial,
    "inertia": Inertia,
}


def unpack_record(record: _AnyRecord, rank: int) -> _AnyRecord:
    """Convert a record of public arrays, with `rank` world axes, to the form of the physics."""
    values = {n: _unpack(f, getattr(record, n), rank) for n, f in record.fields.items()}
    return record.replace_unchecked(values, native=True)


def pack_record(record: _AnyRecord, like: Record) -> _AnyRecord:
    """Convert a record back to public arrays, for the fields that are present in `like`."""
    values = {
        n: _pack_field(f, getattr(record, n), getattr(like, n)) for n, f in record.fields.items()
    }
    return record.replace_unchecked(values | dict.fromkeys(record.working), native=False)


def pack_values(record: type[Record], values: Mapping) -> dict:
    """Convert some fields of a record from the form of the physics to public arrays."""
    return {n: _pack_field(record.fields[n], value, value) for n, value in values.items()}


def unpack_values(record: type[Record], values: Mapping) -> dict:
    """Convert some public fields of one world to the form of the physics."""
    return {n: _unpack(record.fields[n], value, 0) for n, value in values.items()}


def _unpack(field: Field, value: Any, rank: int) -> Any:
    """Convert one field to the form of the physics."""
    if value is None or field.static:
        return value
    if field.nested is not None:
        return unpack_record(value, rank) if isinstance(value, Record) else value
    # A scalar field becomes one item.
    value = jnp.asarray(value)
    if not field.shape:
        value = value[None]
    if field.kind == "real":
        return value
    # Split the short axes behind the items into components.
    items = len(field.shape) or 1
    inner = FIELD_KINDS[field.kind]
    if len(inner) == 2:
        shape = value.shape
        value = value.reshape(*shape[:items], inner[0] * inner[1], *shape[items + 2 :])
    return _VALUE_TYPES[field.kind].from_array(value, axis=items)


def _pack_field(field: Field, value: Any, like: Any) -> Any:
    """Convert one field to its public form."""
    if like is None or field.static:
        return like if like is None else value
    if field.nested is not None:
        return pack_record(value, like) if isinstance(value, Record) else value
    # Stack the components to short axes behind the items.
    if isinstance(value, Components):
        items = len(field.shape) or 1
        value = value.to_array(axis=items)
        inner = FIELD_KINDS[field.kind]
        if len(inner) == 2:
            shape = value.shape
            value = value.reshape(*shape[:items], *inner, *shape[items + 1 :])
    return value if field.shape else value[0]


class FastPathRule(NamedTuple):
    """A less expensive function that is valid in some states, for tiles of worlds of large models.

    Attributes:
      applies_to_model: `m -> bool`, whether the model has one.
      valid_in_state: of the arguments of `function`; returns one bool, whether `function` is valid
        in all worlds.
      function: the less expensive function.
    """

    applies_to_model: Callable[[Model], bool]
    valid_in_state: Callable
    function: Callable


def batched(core: Callable, fast_path: FastPathRule | None = None) -> Callable:
    """Make the public function `(m, d, *arrays) -> Data or arrays` of a physics function.

    Args:
      core: takes unpacked records and arrays `[items, *W]`, returns a record or arrays.
      fast_path: a less expensive function that is valid in some states, or None.

    Returns:
      The function of one world; under `vmap` it runs `core` with the worlds last.
    """

    # All programs of a process that call the function for one structure, shapes and dtypes share
    # one call, and so its traces and those of its derivatives.
    @bounded_cache(MAX_CALLS)
    def shared_call(form: PyTreeDef, kinds: tuple[_Kind, ...], _: tuple) -> _BoundCall:
        return _bind_call(core, fast_path, form, kinds, has_user_code=False)

    @functools.wraps(core)
    def public(*args):
        leaves, form = jax.tree.flatten(args)
        leaves = [jnp.asarray(a) for a in leaves]
        kinds = tuple(map(_Kind.of, leaves))
        if _calls_user_code(args):
            bound = _bind_call(core, fast_path, form, kinds, has_user_code=True)
        else:
            bound = shared_call(form, kinds, _environment())
        values = bound.call(*leaves)
        return jax.tree.unflatten(bound.form_of_results[0], values)

    return public


class _Kind(NamedTuple):
    """Shape and type of an array, on which a trace depends."""

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool

    @classmethod
    def of(cls, a: Array) -> "_Kind":
        aval = jax.typeof(a)
        return cls(aval.shape, aval.dtype, aval.weak_type)


class _BoundCall(NamedTuple):
    """A call, and the tree structure of its results, known once it is evaluated or traced."""

    call: PhysicsCall
    form_of_results: list[PyTreeDef]


def _bind_call(
    core: Callable,
    fast_path: FastPathRule | None,
    form: PyTreeDef,
    kinds: tuple[_Kind, ...],
    *,
    has_user_code: bool,
) -> _BoundCall:
    """Return the call of a core function for arguments of one structure, shapes and dtypes."""
    # Shapes instead of arrays: a cached call must not keep values or tracers alive.
    args = jax.tree.unflatten(form, [jax.ShapeDtypeStruct(k.shape, k.dtype) for k in kinds])
    shared = [_may_be_shared(a) for a in args for _ in jax.tree.leaves(a)]
    # The function of a user is traced at once: its errors belong to the line that calls it.
    like = None if has_user_code else _result_like(core, args)
    form_of_results: list[PyTreeDef] = [jax.tree.structure(like)] if like is not None else []
    call = PhysicsCall(
        functools.partial(_run_unpacked, core, form, form_of_results, like),
        shared,
        0,
        functools.partial(tile_size, args[0]),
        results=None if like is None else functools.partial(_results_like, like),
        fast_path=_fast_path(fast_path, args[0], form, shared),
        name=getattr(core, "__name__", "call").lstrip("_"),
    )
    return _BoundCall(call, form_of_results)


def _result_like(core: Callable, args: tuple) -> Data | None:
    """Return the argument whose shapes and dtypes the results have; None: they must be traced.

    A function that returns a Data returns the fields of the one that it is given. A scan under
    `vmap` asks for the results of one world, which is never evaluated: to trace it took as long as
    to trace the tile of worlds.
    """
    states = [a for a in args if isinstance(a, Data)]
    returns_state = inspect.signature(core).return_annotation in (Data, "Data")
    if not (returns_state and states and isinstance(args[0], Model)):
        return None
    precision = args[0].qpos0.dtype
    return states[0] if _has_declared_dtypes(states[0], precision) else None


def _has_declared_dtypes(record: Record, precision: np.dtype) -> bool:
    """Return whether all arrays of a record have the dtypes of their declarations."""
    dtypes = {"float": precision, "int": np.dtype(np.int32), "bool": np.dtype(bool)}
    for name, field in record.fields.items():
        value = getattr(record, name)
        if field.nested is not None and isinstance(value, Record):
            if not _has_declared_dtypes(value, precision):
                return False
        elif not field.static and value is not None and value.dtype != dtypes[field.dtype]:
            return False
    return True


def _results_like(like: Data, avals: Sequence, worlds: int | None) -> list:
    """Return the avals of results that have the shapes and dtypes of an argument."""
    del avals
    last = () if worlds is None else (worlds,)
    return [jax.core.ShapedArray((*a.shape, *last), a.dtype) for a in jax.tree.leaves(like)]


def _calls_user_code(args: tuple) -> bool:
    """Return whether functions of a user run in a call; they may read values that change."""
    models = (a for a in args if isinstance(a, Model))
    return has_extensions() or any(m.callbacks is not None for m in models)


def _environment() -> tuple:
    """Return all that decides about a trace besides the function and its arguments."""
    # A call takes from its caller whether a derivative is taken.
    context = trace_context()._replace(differentiated=False)
    return context, platform(), jax.sharding.get_abstract_mesh(), jax_options()


def _run_unpacked(
    core: Callable,
    form: PyTreeDef,
    form_of_results: list[PyTreeDef],
    expected: Data | None,
    worlds: int | None,
    staged: bool,
    *leaves: Array,
) -> list[Array]:
    """Unpack the arguments, run the physics function and pack its results.

    Args:
      core: the physics function.
      form: tree structure of the arguments.
      form_of_results: receives the tree structure of the results.
      expected: shapes and dtypes of the results that the caller relies on; None: any.
      worlds, staged, leaves: as in `PhysicsCall.run`.
    """
    del staged
    args = jax.tree.unflatten(form, leaves)
    rank = 0 if worlds is None else 1
    out = core(*(unpack_record(a, rank) if isinstance(a, Record) else a for a in args))
    values, form_of_out = jax.tree.flatten(_like_input(out, args))
    form_of_results[:] = [form_of_out]
    if worlds is not None:
        # Results that do not depend on the state are the same in all worlds.
        values = [jnp.broadcast_to(a, (*a.shape[:-1], worlds)) for a in values]
    if expected is not None:
        _check_results(form_of_out, values, expected, worlds)
    return values


def _check_results(
    form: PyTreeDef, values: Sequence[Array], expected: Data, worlds: int | None
) -> None:
    """Raise TypeError if results differ from what `_result_like` has promised."""
    if form != jax.tree.structure(expected):
        raise TypeError(f"expected a state of the form {jax.tree.structure(expected)}, got {form}")
    paths = jax.tree.leaves_with_path(expected)
    for (path, _), a, like in zip(paths, values, _results_like(expected, (), worlds), strict=True):
        if (a.shape, a.dtype) != (like.shape, like.dtype):
            name = jax.tree_util.keystr(path)
            raise TypeError(f"{name}: expected {like.str_short()}, got {a.dtype}{list(a.shape)}")


def _fast_path(
    rule: FastPathRule | None, m: Any, form: PyTreeDef, shared: list[bool]
) -> FastPath | None:
    """Return the calls of a less expensive function, where the model is large and has one."""
    if rule is None or not is_large(m) or not rule.applies_to_model(m):
        return None
    runs = (
        functools.partial(_run_unpacked, function, form, [], None)
        for function in (rule.valid_in_state, rule.function)
    )
    return FastPath(*(PhysicsCall(run, shared, 0, _tile_without_rows) for run in runs))


def _may_be_shared(argument: Any) -> bool:
    """Return whether all worlds may share an argument: a model, or one that declares it."""
    return isinstance(argument, Model) or getattr(type(argument), "for_all_worlds", False)


def call_as_one_world(function: Callable[..., PyTree], m: Model, d: Data, *more: PyTree) -> PyTree:
    """Call a function of one world, in the public form, from inside the physics.

    Args:
      function: `(m, d, *more) -> array` of one world.
      m, d: in the form of the physics; working values are dropped.
      more: arrays `[n, *W]`, and pytrees of such arrays.

    Returns:
      Its result `[..., *W]`.
    """
    arguments = (pack_record(m, m), pack_record(d, d), *more)
    if d.qpos.ndim == 1:
        return function(*arguments)
    # Batch over the worlds, except for arguments that all worlds share.
    size = d.qpos.shape[-1]
    own = jax.tree.map(lambda a: a.shape[-1] == size, arguments)
    axes = jax.tree.map(lambda is_own: -1 if is_own else None, own)
    arguments = jax.tree.map(lambda a, is_own: a if is_own else a[..., 0], arguments, own)
    return jax.vmap(function, in_axes=axes, out_axes=-1)(*arguments)


def tile_size(m: Model, worlds: int, linear: bool = False) -> int:
    """Return how many worlds run at a time; the last tile is padded.

    On a CPU this is the number of numbers in a vector, so that no loops over worlds are left. A
    large model whose solver iterates over many worlds at once runs one world at a time, in a few
    large kernels. Newton's method itself splits large models by world
    (physics/solver/per_world.py). Derivatives (`linear`) always run in tiles: they process all rows
    and use the library's factorization.
    """
    newton = m.opt.solver == SolverType.NEWTON and m.opt.noslip_iterations == 0
    by_world = newton and not m.resolves_shells
    return _tile_size(worlds) if linear or by_world or not is_large(m) else 1


def is_large(m: Model) -> bool:
    """Return whether a model has rows, and the systems of a tile of worlds exceed the cache."""
    # The capacity is one contact even if no geoms can collide.
    rows = max_noncontact_rows(m) > 0 or m.structure.ncontact > 1
    return m.nv > tuning().max_tiled_dofs and rows and platform().tiles


def _tile_without_rows(worlds: int, linear: bool) -> int:
    """Return the tile of a function that processes no constraint rows."""
    del linear
    return _tile_size(worlds)


def _tile_size(worlds: int) -> int:
    """Return the tile of worlds: whole vectors on a CPU, all worlds elsewhere."""
    if not platform().tiles:
        return worlds
    if (requested := trace_context().tile) is not None:
        return requested
    few, half, whole = tuning().world_tiles
    if worlds <= few:
        return few if worlds > 1 else 1
    by_half = tuning().tile_8_cost * round_up_to_tile(worlds, half)
    return half if by_half < round_up_to_tile(worlds, whole) else whole


def _like_input(out: Any, args: tuple) -> Any:
    """Pack a record with the fields of the argument of its type; return arrays as they are."""
    if not isinstance(out, Record):
        return out
    like = next(a for a in args if type(a) is type(out))
    return pack_record(out, like)
