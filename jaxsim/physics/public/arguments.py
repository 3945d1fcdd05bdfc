"""Validation of the arguments of public functions, field by field against the declarations.

Shapes and dtypes are known while a program is traced, so the check costs nothing at run time. A
wrong shape would otherwise broadcast into a wrong value, or fail deep inside under another name.
"""

import operator
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxsim.model.allocate import check_supported
from jaxsim.model.callbacks import Callbacks
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data, SolverStat
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.option import Option, Statistic
from jaxsim.model.record.check import brief_value
from jaxsim.model.record.record import Record
from jaxsim.model.structure import Structure, cache_by_structure

_Shape = tuple[int, ...]

_MAX_CONTACT_CAPACITY = 2**20  # largest contact capacity of a world

# Shapes of the arguments besides Model and Data, by name; "function.name" where one differs.
_ARGUMENT_SHAPES: dict[str, tuple[str | int, ...]] = {
    "qpos": ("nq",),
    "qpos1": ("nq",),
    "qpos2": ("nq",),
    "qvel": ("nv",),
    "vec": ("nv",),
    "force": ("nv",),
    "apply_ft.force": (3,),
    "torque": (3,),
    "qfrc_target": ("nv",),
    "efc_vec": ("rows",),
    "jar": ("rows",),
    "dst": ("nv", "nv"),
    "point": (3,),
    "axis": (3,),
    "pos": (3,),
    "quat": (4,),
    "dt": (),
    "body": (),
    "bodyexclude": (),
    "cutoff": (),
    "geom": (),
    "geom1": (),
    "geom2": (),
    "distmax": (),
    "objid": (),
    "site": (),
    "contact": (),
}


def check_callbacks(function: str, m: Model) -> None:
    """Raise ValueError if a callback is not a function."""
    for name, value in vars(m.callbacks or Callbacks()).items():
        if not (value is None or callable(value)):
            raise ValueError(
                f"{function}: callbacks: {name}: expected a function or None, got "
                f"{brief_value(value)}"
            )


def check_model(function: str, m: Any) -> None:
    """Raise ValueError if `m` is not a Model, or its leaves have the wrong shapes.

    Or if its numbers do not fit its structure (`Model.check_values`).

    Raises:
      UnsupportedError: the model cannot be simulated.
    """
    if not isinstance(m, Model):
        remedy = "; make one with jaxsim.put_model" if type(m).__name__ == "MjModel" else ""
        raise ValueError(f"{function}: m: expected a Model, got {type(m).__name__}{remedy}")
    check_supported(m)
    # For a batched model the message suggests vmap with in_axes.
    for name, value, dims in _leaves(m, m, "m."):
        remedy = (
            "; for many models use jax.vmap, with the axis of each field that has one: "
            f"jax.tree.map(lambda _: None, m).replace({name.rpartition('.')[2]}=0)"
        )
        _check(function, m, name, value, dims, remedy)
    m.check_values(f"{function}: m.")


def check_data(function: str, m: Model, d: Any, worlds: _Shape = ()) -> None:
    """Raise ValueError if `d` is not a Data, or its fields do not have the shapes of the model.

    Args:
      function: the caller, for messages.
      m: the model, without leading axes.
      d: expected to be a Data of that model.
      worlds: leading axes that each field must have; () for one world.
    """
    if not isinstance(d, Data):
        raise ValueError(f"{function}: d: expected a Data, got {type(d).__name__}")
    remedy = "" if worlds else "; for many worlds use jax.vmap: jax.vmap(jaxsim.step, (None, 0))"
    for name, value, dims in _leaves(m, d, "d."):
        _check(function, m, name, value, worlds + dims, remedy)


def check_count(name: str, value: Any, most: int | None = None) -> int:
    """Return a count as an int; raise ValueError if it is not an integer in 0..`most`."""
    dtype = np.dtype(getattr(value, "dtype", np.int64))
    whole = hasattr(value, "__index__") and np.ndim(value) == 0 and dtype.kind in "iu"
    # Booleans are integers in Python, but not counts.
    if isinstance(value, bool) or not whole:
        raise ValueError(f"{name}: expected a whole number, got {brief_value(value)}")
    count = operator.index(value)
    if count < 0 or (most is not None and count > most):
        limit = "at least 0" if most is None else f"from 0 to {most}"
        raise ValueError(f"{name}: expected a whole number, {limit}, got {count}")
    return count


def check_capacity(contacts: Any, pairs: Any = None) -> None:
    """Raise ValueError if a capacity for contacts or near pairs is not a positive integer."""
    for name, number in (("contacts", contacts), ("pairs", pairs)):
        if number is not None and check_count(name, number, _MAX_CONTACT_CAPACITY) == 0:
            raise ValueError(
                f"{name}: expected a capacity of at least 1, got 0; leave {name} out for one that "
                'follows from the model, or turn contacts off with <flag contact="disable"/>'
            )


def check_smooth(value: Any) -> float | None:
    """Return a smoothing length of contacts as float, or None; raise ValueError if invalid."""
    if value is None:
        return None
    # Finite, nonnegative scalar.
    real = isinstance(value, int | float | np.number | jax.Array | np.ndarray)
    length = float(value) if real and not isinstance(value, bool) and np.ndim(value) == 0 else -1.0
    if not 0 <= length < np.inf:
        raise ValueError(
            f"smooth: expected a length in meters, at least 0, got {brief_value(value)}"
        )
    return length


def check_array(function: str, m: Model, name: str, value: Any) -> None:
    """Raise ValueError if an argument does not have the shape declared in `_ARGUMENT_SHAPES`."""
    own = f"{function}.{name}"
    # A key "function.argument" has priority.
    symbols = _ARGUMENT_SHAPES[own if own in _ARGUMENT_SHAPES else name]
    if symbols == ("rows",):  # as many as constraint_rows has, which that function knows
        symbols = np.shape(value)[:1]
    dims = tuple(n if isinstance(n, int) else m.structure.sizes[n] for n in symbols)
    _check(function, m, name, value, dims, "; for many worlds use jax.vmap")


# Kinds of objects that functions take ids of, with the field that counts them.
OBJECT_COUNT_FIELDS = {"body": "nbody", "geom": "ngeom", "site": "nsite", "camera": "ncam"}


def object_id(function: str, m: Model, name: str, which: Any, kind: str | None = None) -> Any:
    """Return the id of an object given by id or name; traced ids and arrays pass unchecked.

    Args:
      function: the caller, for messages.
      m: the model.
      name: name of the argument.
      which: name, id or array of ids.
      kind: kind of the object, a key of `OBJECT_COUNT_FIELDS`; None: derived from the argument's
        name.

    Raises:
      ValueError: no such object exists.
    """
    kind = kind or name.rstrip("12")
    # Names are resolved by the model; traced ids pass.
    if isinstance(which, str):
        return name2id(m, kind, which)
    if isinstance(which, jax.core.Tracer) or np.ndim(which):
        return which
    check_array(function, m, name, which)
    if not np.issubdtype(np.asarray(which).dtype, np.integer):
        raise ValueError(
            f"{function}: {name}: expected a name or a number, got {brief_value(which)}"
        )
    there = getattr(m, OBJECT_COUNT_FIELDS[kind])
    if not 0 <= (index := operator.index(which)) < there:
        raise ValueError(f"{function}: {name}: there is no {kind} {index}; the model has {there}")
    return index


def check_points(function: str, m: Model, name: str, value: Any) -> None:
    """Raise ValueError if an argument is neither a vector (3,) nor an array (n, 3)."""
    shape = np.shape(value)
    if len(shape) not in (1, 2) or shape[-1] != 3:
        raise ValueError(
            f"{function}: {name}: expected shape (3,) or (n, 3), got {brief_value(value)}"
        )
    _check(function, m, name, value if hasattr(value, "shape") else np.asarray(value), shape, "")


def check_equal_counts(function: str, **points: Any) -> None:
    """Raise ValueError if arrays of vectors differ in length; one vector matches any length."""
    # A single vector is broadcast, so length 1 is always allowed.
    number = {name: np.shape(value)[0] for name, value in points.items() if np.ndim(value) == 2}
    if len({*number.values()} - {1}) > 1:
        given = ", ".join(f"{n} {name}" for name, n in number.items())
        raise ValueError(f"{function}: expected one vector or equally many, got {given}")


def _check(function: str, m: Model, name: str, value: Any, dims: _Shape, batch: str) -> None:
    """Raise ValueError for a wrong shape, or for another precision than the model's."""
    # Compare shape, then dtype.
    shape = value.shape if hasattr(value, "shape") else _shape(function, name, value, dims)
    if shape != dims:
        extra = len(shape) - len(dims)
        remedy = batch if extra > 0 and shape[extra:] == dims else ""
        raise ValueError(
            f"{function}: {name}: expected shape {dims}, got {brief_value(value)}{remedy}"
        )
    given, wanted = getattr(value, "dtype", None), m.qpos0.dtype
    if given == wanted or given is None or not np.issubdtype(given, np.floating):
        return
    if not isinstance(value, jax.Array):  # a numpy array takes JAX's default precision
        given = jax.dtypes.canonicalize_dtype(given)
    if given != wanted:
        raise ValueError(
            f"{function}: {name}: is {given}, the model is {wanted}; convert one of them, or make "
            "both under the same jax_enable_x64"
        )


def _shape(function: str, name: str, value: Any, dims: _Shape) -> _Shape:
    """Return the shape of a scalar; a list would be a tree of scalars, not an array."""
    if not isinstance(value, int | float):
        kind = "None" if value is None else f"a {type(value).__name__}"
        raise ValueError(f"{function}: {name}: expected an array of shape {dims}, got {kind}")
    return ()


def _leaves(m: Model, record: Record, prefix: str) -> Iterator[tuple[str, Any, _Shape]]:
    """Yield name, value and declared shape of every array that a record has."""
    for name, dims in _declared_shapes(m)[type(record)]:
        value = getattr(record, name)
        if dims is not None and (value is not None or name in PRESENT[type(record)]):
            yield prefix + name, value, dims
        elif isinstance(value, Record):
            yield from _leaves(m, value, f"{prefix}{name}.")


# fields that are None in no model and in no state
PRESENT = {
    Model: Model.fields.keys() - {"smooth"},
    Option: Option.fields.keys(),
    Data: frozenset(("time", "qpos", "qvel")),
    **dict.fromkeys((Statistic, Contact, SolverStat), frozenset()),
}


@cache_by_structure
def _declared_shapes(s: Structure) -> dict[type, tuple[tuple[str, _Shape | None], ...]]:
    """Return names and shapes of the fields of each record; None for a nested record."""
    return {
        record: tuple(
            (name, f.dims(s.sizes) if f.nested is None else None)
            for name, f in record.fields.items()
            if not f.static
        )
        for record in (Model, Option, Statistic, Data, Contact, SolverStat)
    }
