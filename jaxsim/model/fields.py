"""Declarations of the fields of Model and Data, each with its shape, unit and meaning.

A record class lists its fields in its body. Allocation, shape checks, documentation and the
conversion between public arrays and the form used inside the physics derive from that list.

    class Data(Record):
        qvel = array("nv", unit="m/s or rad/s", doc="generalized velocity")
        xpos = array("nbody", kind="vec", unit="m", doc="position of each body frame")

`Record` is not built on `flax.struct.dataclass`, although flax can save it
(serialization/checkpoint.py). Declarations have symbolic shapes, units and meanings; `replace`
checks shapes; a field may be absent; working values are not part of the pytree; a state dict has no
arrays of size zero. A dataclass would contribute only the pytree registration, which is one call in
`__init_subclass__`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.spelling import remedy

# Trailing shape of the public array for each kind of value.
FIELD_KINDS: dict[str, tuple[int, ...]] = {
    "real": (),
    "vec": (3,),
    "quat": (4,),
    "rot": (3, 3),
    "spatial": (6,),
    "inertia": (10,),
}


# numpy type of each kind of number.
DTYPES: dict[str, type] = {"float": np.floating, "int": np.integer, "bool": np.bool_}


@dataclass(frozen=True)
class Field:
    """Declaration of one field.

    Attributes:
      shape: sizes of the item axes, as symbols ("nbody") or numbers; `()` is one per world.
      kind: what an item is; its key in `FIELD_KINDS` gives the last axes of the public array.
      dtype: "float" (the model's precision), "int" or "bool".
      unit: unit of the values.
      doc: meaning, in one line.
      keep: whether `make_data` allocates it by default.
      static: decides the shape of the program: hashed, never traced.
      nested: the record class of the value, for a field that is itself a record.
      optional: whether a record may be None in an object that can be simulated.
      remedy: how a record is changed, for messages.
      only: tables of the structure, options ("opt.density") or properties of the model; None in a
        model in which all of them are zero.
    """

    shape: tuple[str | int, ...] = ()
    kind: str = "real"
    dtype: str = "float"
    unit: str = ""
    doc: str = ""
    keep: bool = True
    static: bool = False
    nested: type | None = None
    optional: bool = False
    remedy: str = ""
    only: tuple[str, ...] = ()

    def dims(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the public shape, with symbols looked up in `sizes`."""
        own = tuple(n if isinstance(n, int) else int(sizes[n]) for n in self.shape)
        return own + FIELD_KINDS[self.kind]


def array(
    *shape: str | int, kind="real", dtype="float", unit="", doc="", keep=True, only=()
) -> Any:
    """Declare an array field, which is traced."""
    return Field(shape, kind, dtype, unit, doc, keep, only=only)


def static(doc: str = "") -> Any:
    """Declare a static field: a Python value that is part of the program's identity."""
    return Field(doc=doc, static=True)


def nested(
    record: type, doc: str = "", keep: bool = True, optional: bool = False, remedy: str = ""
) -> Any:
    """Declare a field that is a record itself."""
    return Field(
        doc=doc, nested=record, keep=keep, optional=optional, remedy=remedy or _RECORD_REMEDY
    )


_RECORD_REMEDY = "tree_replace({'opt.timestep': ...}) changes one field of such a record"


@dataclass(frozen=True)
class Work:
    """Declaration of a working value, see `work`."""

    doc: str


def work(doc: str) -> Any:
    """Declare a working value, which one stage passes to later stages within a call.

    It is not part of the pytree, and records returned to the caller do not have it.
    """
    return Work(doc)


class Declared(dict[str, Field]):
    """Field declarations by name; calling it, as MJX's `Data.fields()`, returns dataclass
    fields."""

    def __call__(self) -> tuple[dataclasses.Field, ...]:
        """Return the fields as those of a dataclass."""
        return dataclasses.fields(self._dataclass)

    @cached_property
    def _dataclass(self) -> type:
        types = ((n, Any if f.static else f.nested or jax.Array) for n, f in self.items())
        fields: list[Any] = [(n, kind, dataclasses.field(default=None)) for n, kind in types]
        original = ("_original", dataclasses.InitVar[Any], dataclasses.field(default=None))
        return dataclasses.make_dataclass("Fields", [*fields, original], init=False, eq=False)

    def as_dataclass(self) -> dict[str, dataclasses.Field]:
        """Return the attribute by which `dataclasses.fields` and `replace` recognize a class."""
        fields: dict[str, dataclasses.Field] = self._dataclass.__dataclass_fields__  # type: ignore[attr-defined]
        return fields


class Impl(Enum):
    """Implementations of MJX's Data, for programs written for MJX; only JAX exists here."""

    JAX = "jax"


class Record:
    """Immutable record of declared fields; a pytree whose static fields are its identity.

    A field that is not given is None, an empty subtree. Records with different fields present
    therefore have different tree structures and never share a compiled program by accident.
    """

    fields: ClassVar[Declared] = Declared()
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field]]
    working: ClassVar[dict[str, Work]] = {}
    _leaves: ClassVar[tuple[str, ...]] = ()
    _statics: ClassVar[tuple[str, ...]] = ()
    _children: ClassVar[Any]  # _values_of(_leaves)
    _identity: ClassVar[Any]  # _values_of(_statics)
    _native: bool  # in the form used inside the physics, see transforms/layout.py

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {name: f for name, f in vars(cls).items() if isinstance(f, Field)}
        between = {name: w for name, w in vars(cls).items() if isinstance(w, Work)}
        for name in (*own, *between):
            delattr(cls, name)
        cls.fields = Declared({**cls.fields, **own})
        cls.working = {**cls.working, **between}
        cls._leaves = tuple(n for n, f in cls.fields.items() if not f.static)
        statics = tuple(n for n, f in cls.fields.items() if f.static)
        cls._statics = (*statics, "_native")
        cls._children, cls._identity = _values_of(cls._leaves), _values_of(cls._statics)
        cls.__dataclass_fields__ = cls.fields.as_dataclass()
        jax.tree_util.register_pytree_with_keys(
            cls, cls._flatten_with_keys, cls._unflatten, flatten_func=cls._flatten
        )

    def __init__(self, **values):
        original = values.pop("_original", None)
        if original is not None:  # dataclasses.replace passes all fields, some of them changed
            changed = {n: v for n, v in values.items() if v is not original.__dict__.get(n)}
            self.__dict__.update(original.replace(**changed).__dict__)
            return
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}")
        store = self.__dict__
        for name in (*self.fields, *self.working):
            store[name] = values.get(name)
        store["_native"] = False

    def replace(self, **values) -> Self:
        """Return a copy with some fields replaced.

        Arrays and numbers of another type are converted to that of the field.

        Raises:
          ValueError: the shape of a value differs from the declared one; leading batch axes are
            allowed. A field that is a record takes only such a record, of the same sizes.
            Other values without a shape, such as the axes of a vmap, are not checked, nor is a
            record of axes.

        Example:
          >>> float(d.replace(qvel=jnp.ones(1)).qvel[0])
          1.0
          >>> d.replace(qvel=jnp.ones(1, int)).qvel.dtype == d.qvel.dtype
          True
          >>> d.replace(qvel=jnp.ones(3))
          Traceback (most recent call last):
          ValueError: qvel: expected shape (1,), with any leading axes of a batch; got float...[3]
        """
        unknown = values.keys() - self.fields.keys() - self.working.keys()
        if unknown:
            name = sorted(unknown)[0]
            raise TypeError(
                f"{type(self).__name__} has no field {name!r}{self._remedy(name, values[name])}"
            )
        if not self._native:
            self._check(values)
            values = {n: self._cast_to_field(n, value) for n, value in values.items()}
        return self.replace_unchecked(values, self._native)

    def tree_replace(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some fields replaced, also fields of nested records: "opt.timestep".

        Raises:
          TypeError: there is no such field.
          ValueError: the shape of a value differs from the declared one.

        Example:
          >>> m.tree_replace({"opt.gravity": jnp.zeros(3)}).opt.gravity.shape
          (3,)
        """
        new = self
        for name, value in values.items():
            # MJX's prefix of some names
            owner, _, rest = name.removeprefix("_impl.").partition(".")
            if rest:
                inner = self.fields.get(owner)
                if inner is None or inner.nested is None:
                    what = "is no record" if inner else "is no field"
                    raise TypeError(f"{name}: {owner!r} {what} of {type(self).__name__}")
                value = getattr(new, owner).tree_replace({rest: value})
            new = new.replace(**{owner: value})
        return new

    def replace_unchecked(self, values: Mapping[str, Any], native: bool) -> Self:
        """Return a copy with some fields replaced, in the public form or that of the physics; no
        checks."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.__dict__.update(values)
        new.__dict__["_native"] = native
        return new

    def _check(self, values: Mapping[str, Any]) -> None:
        """Raise ValueError if a new value does not have the declared shape."""
        sizes = self._sizes(values)
        for name, value in values.items():
            field = self.fields.get(name)
            if field is None:
                continue
            check_field(name, field, value, self.__dict__[name], sizes)
            if field.nested is not None and self._holds_arrays():
                self._check_record(name, field, value)

    def _holds_arrays(self) -> bool:
        """Return whether this is a record of arrays, rather than of the axes of a vmap."""
        return any(hasattr(self.__dict__[name], "dtype") for name in self._leaves)

    def _has_sizes(self) -> bool:
        """Return whether the sizes of records in this one are fixed."""
        return True

    def _check_record(self, name: str, field: Field, value: Any) -> None:
        """Raise ValueError if the new value of a field that is a record is none, or does not fit.

        Args:
          name: name of the field.
          field: its declaration.
          value: the new value; None where such a field may be absent.
        """
        nested_type, old = field.nested, self.__dict__[name]
        assert nested_type is not None
        if value is None and (field.optional or old is None):
            return
        if not isinstance(value, nested_type):
            expected = f"a {nested_type.__name__}{' or None' * field.optional}"
            is_record = isinstance(value, Record)
            got = f"a {type(value).__name__}" if is_record else brief_value(value)
            raise ValueError(f"{name}: expected {expected}, got {got}; {field.remedy}")
        if not isinstance(value, Record) or not isinstance(old, Record):
            return
        # Arrays that are None are named by the function that needs them; static values have none.
        gone = [n for n in value._statics if value.__dict__[n] is None]
        if gone:
            raise ValueError(f"{name}: the new one has no {gone[0]}; {field.remedy}")
        if not self._has_sizes():
            return
        for inner, declared in value.fields.items():
            before = old.__dict__[inner]
            if not declared.static and hasattr(before, "dtype"):
                try:
                    check_field(f"{name}.{inner}", declared, value.__dict__[inner], before, {})
                except ValueError as error:
                    raise ValueError(f"{error}; {field.remedy}") from None

    def _cast_to_field(self, name: str, value: Any) -> Any:
        """Return a new value converted to the type of its field.

        Another type would change the signature of the next call, so that the program is compiled
        again, and would change the type of a loop carry. So would a weak type, such as that of
        `jnp.asarray(1.0)`.
        """
        field = self.fields.get(name)
        dtype = None if field is None or field.static else self._dtype(name, field)
        if field is None or dtype is None:
            return jnp.asarray(value, value.dtype) if _is_weak(value) else value
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            if not _is_number(value.dtype) or (value.dtype == dtype and not _is_weak(value)):
                return value
            on_device = isinstance(value, jax.Array)
            return jnp.asarray(value, dtype) if on_device else value.astype(dtype)
        one = not field.shape and not FIELD_KINDS[field.kind]
        if one and isinstance(value, bool | int | float) and hasattr(self.__dict__[name], "dtype"):
            return jnp.asarray(value, dtype)
        return value

    def _dtype(self, name: str, field: Field) -> Any:
        """Return the type of a field's present or future value; None if it does not hold numbers.

        JAX's transformations replace the arrays by masks, tangents and other objects.
        """
        declared = DTYPES[field.dtype]
        old = getattr(self.__dict__[name], "dtype", None)
        if old is not None:
            fits = jax.dtypes.issubdtype(old, declared)
            return jax.dtypes.canonicalize_dtype(old) if fits else None
        if self.__dict__[name] is not None or field.nested is not None:
            return None
        if field.dtype != "float":
            return np.dtype(np.int32 if field.dtype == "int" else bool)
        others = (getattr(self.__dict__[n], "dtype", None) for n in self._leaves)
        known = (t for t in others if t is not None and jax.dtypes.issubdtype(t, np.floating))
        precision = next(known, None)
        return None if precision is None else jax.dtypes.canonicalize_dtype(precision)

    def _sizes(self, values: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the known sizes of the symbols in declarations."""
        del values
        return {}

    def _remedy(self, name: str, value: Any) -> str:
        """Return the remedy for an unknown field, for the end of a message."""
        del value
        for owner, field in self.fields.items():
            if name in getattr(field.nested, "fields", ()):
                return f": it is one of {owner}; tree_replace({{'{owner}.{name}': ...}})"
        return remedy(name, self.fields)

    @property
    def _original(self) -> Self:
        """Return the record itself, which `dataclasses.replace` passes to the constructor of the
        copy."""
        return self

    @property
    def impl(self) -> Impl:
        """Return the MJX implementation, for programs written for MJX."""
        return Impl.JAX

    @property
    def _impl(self) -> Self:
        """Return the record itself: MJX keeps implementation-specific fields in this attribute."""
        return self

    def __setattr__(self, name, value):
        raise AttributeError(
            f"{type(self).__name__} is immutable: use .replace({name}=...) to get a changed copy"
        )

    # pytree protocol
    def _flatten(self):
        # runs at each call of a compiled program: no Python loop
        return self._children(self.__dict__), self._identity(self.__dict__)

    def _flatten_with_keys(self):
        children, aux = self._flatten()
        keys = (jax.tree_util.GetAttrKey(n) for n in self._leaves)
        return tuple(zip(keys, children, strict=True)), aux

    @classmethod
    def _unflatten(cls, aux, children):
        new = object.__new__(cls)
        new.__dict__.update(zip(cls._leaves, children, strict=True))
        new.__dict__.update(zip(cls._statics, aux, strict=True))
        new.__dict__.update(dict.fromkeys(cls.working))
        return new

    def __repr__(self) -> str:
        values = ((n, self.__dict__[n]) for n in self.fields)
        shown = (f"{n}={brief_value(v)}" for n, v in values if v is not None and _size_text(v))
        return f"{type(self).__name__}({', '.join(shown)})"


def _values_of(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple]:
    """Return a function that returns the values of some names, in their order."""
    if len(names) > 1:
        return itemgetter(*names)
    return staticmethod(lambda store: tuple(store[n] for n in names))


def check_field(name: str, field: Field, value, old, sizes: Mapping[str, int]) -> None:
    """Raise ValueError if a new value of a field does not have the declared shape.

    Only values with a shape are checked: JAX's transformations replace arrays by axes, flags and
    other objects. A number has shape () if it replaces an array.

    Args:
      name: name of the field.
      field: its declaration.
      value: the new value; leading batch axes may precede the declared shape.
      old: the value that it replaces.
      sizes: sizes of the symbols in the declaration; a symbol that is missing keeps its old size.
    """
    if field.static:
        if isinstance(value, jax.Array | np.ndarray):
            raise ValueError(
                f"{name}: is static, it decides the shape of the program: expected a Python value, "
                f"got {brief_value(value)}"
            )
        return
    shape = _shape_of(value, old)
    if shape is None:
        return
    if getattr(getattr(value, "dtype", None), "kind", "") in NO_NUMBERS:
        raise ValueError(f"{name}: expected real numbers, got {brief_value(value)}")
    if field.nested is not None:
        raise ValueError(
            f"{name}: expected a {field.nested.__name__}, got {brief_value(value)}; {field.remedy}"
        )
    expected = _expected_shape(field, old, sizes)
    have = shape[max(len(shape) - len(expected), 0) :]
    if len(have) < len(expected) or any(
        n not in (None, k) for n, k in zip(expected, have, strict=True)
    ):
        raise ValueError(
            f"{name}: expected shape {_format_shape(field, expected)}, with any leading axes of a "
            "batch; "
            f"got {brief_value(value)}"
        )


def _is_number(dtype: Any) -> bool:
    return any(jax.dtypes.issubdtype(dtype, kind) for kind in (np.bool_, np.integer, np.floating))


def _is_weak(value: Any) -> bool:
    """Return whether the type of an array is weak, as that of a Python number."""
    return bool(getattr(value, "weak_type", False))


def _shape_of(value, old) -> tuple[int, ...] | None:
    """Return the shape of an array or number; None for anything else."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return tuple(value.shape)
    if isinstance(value, int | float) and not isinstance(value, bool) and hasattr(old, "dtype"):
        return ()
    return None


def _expected_shape(field: Field, old, sizes: Mapping[str, int]) -> tuple[int | None, ...]:
    """Return the expected shape; None for an unknown size."""
    own = len(field.shape)
    rank = own + len(FIELD_KINDS[field.kind])
    before = tuple(old.shape[-rank:]) if rank and hasattr(old, "dtype") else ()
    known = before[:own] if len(before) == rank else (None,) * own
    items = (
        n if isinstance(n, int) else sizes.get(n, k)
        for n, k in zip(field.shape, known, strict=True)
    )
    return (*items, *FIELD_KINDS[field.kind])


def _format_shape(field: Field, expected: tuple[int | None, ...]) -> str:
    """Return a shape as text, with the symbol of an unknown size."""
    names = (*field.shape, *FIELD_KINDS[field.kind])
    sizes = [str(n) if k is None else str(k) for n, k in zip(names, expected, strict=True)]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _size_text(value) -> int:
    return value.size if hasattr(value, "size") else 1


def brief_value(value) -> str:
    """Return a value as short text: the type and shape of an array instead of its numbers."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return (
        text
        if len(text) <= _MAX_BRIEF_CHARS or isinstance(value, Record)
        else text[:_MAX_BRIEF_CHARS] + "..."
    )


NO_NUMBERS = frozenset("cOSUMm")  # numpy kinds that are not real: complex, object, text, date
_MAX_BRIEF_CHARS = 60  # characters of a value that is no array
