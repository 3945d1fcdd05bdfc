"""Record: an immutable object of declared fields, registered as a pytree.

`Record` is not built on `flax.struct.dataclass`, although flax can save it
(serialization/checkpoint.py). Declarations (fields.py) have symbolic shapes, units and meanings;
`replace` checks shapes (check.py); a field may be absent; working values are not part of the
pytree; a state dict has no arrays of size zero. A dataclass would contribute only the pytree
registration, which is one call in `__init_subclass__`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from operator import itemgetter
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.record.check import brief_value, check_field
from jaxsim.model.record.fields import DTYPES, FIELD_KINDS, Declared, Field, Work
from jaxsim.spelling import remedy


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
        shown = (
            f"{n}={brief_value(v)}" for n, v in values if v is not None and getattr(v, "size", True)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def _values_of(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple]:
    """Return a function that returns the values of some names, in their order."""
    if len(names) > 1:
        return itemgetter(*names)
    return staticmethod(lambda store: tuple(store[n] for n in names))


def _is_number(dtype: Any) -> bool:
    return any(jax.dtypes.issubdtype(dtype, kind) for kind in (np.bool_, np.integer, np.floating))


def _is_weak(value: Any) -> bool:
    """Return whether the type of an array is weak, as that of a Python number."""
    return bool(getattr(value, "weak_type", False))
