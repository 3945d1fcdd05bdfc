"""How a field of Model or Data is declared: once, with its shape, unit and meaning.

A record class lists its fields in its body; allocation, shape checks, documentation and the
conversion between public arrays and the form used inside the physics all read that list.

    class Data(Record):
        qvel = array("nv", unit="m/s or rad/s", doc="generalized velocity")
        xpos = array("nbody", kind="vec", unit="m", doc="position of each body frame")
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax

# trailing shape of the public array for each kind of value
KINDS: dict[str, tuple[int, ...]] = {
    "real": (),
    "vec": (3,),
    "quat": (4,),
    "rot": (3, 3),
    "spatial": (6,),
    "inertia": (10,),
}


@dataclass(frozen=True)
class Field:
    """Declaration of one field.

    Attributes:
      shape: sizes of the item axes, as symbols ("nbody") or numbers; `()` is one per world.
      kind: what an item is; its key in `KINDS` gives the last axes of the public array.
      dtype: "float" (the model's precision), "int" or "bool".
      unit: unit of the values.
      doc: meaning, in one line.
      keep: whether `make_data` allocates it by default.
      static: decides the shape of the program: hashed, never traced.
      nested: the record class of the value, for a field that is itself a record.
    """

    shape: tuple[str | int, ...] = ()
    kind: str = "real"
    dtype: str = "float"
    unit: str = ""
    doc: str = ""
    keep: bool = True
    static: bool = False
    nested: type | None = None

    def dims(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The public shape, with symbols looked up in `sizes`."""
        own = tuple(n if isinstance(n, int) else int(sizes[n]) for n in self.shape)
        return own + KINDS[self.kind]


def array(*shape: str | int, kind="real", dtype="float", unit="", doc="", keep=True) -> Any:
    """Declares a traced array field."""
    return Field(shape, kind, dtype, unit, doc, keep)


def static(doc: str = "") -> Any:
    """Declares a static field: a Python value that is part of the program's identity."""
    return Field(doc=doc, static=True)


def nested(record: type, doc: str = "") -> Any:
    """Declares a field that is a record of its own."""
    return Field(doc=doc, nested=record)


class Record:
    """An immutable set of declared fields; a pytree whose static fields are its identity.

    A field that is not given is None: an empty subtree, so two records with different fields
    present have different tree structures and never share a compiled program by accident.
    """

    fields: ClassVar[dict[str, Field]] = {}
    _leaves: ClassVar[tuple[str, ...]] = ()
    _statics: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {name: f for name, f in vars(cls).items() if isinstance(f, Field)}
        for name in own:
            delattr(cls, name)
        cls.fields = {**cls.fields, **own}
        cls._leaves = tuple(n for n, f in cls.fields.items() if not f.static)
        cls._statics = tuple(n for n, f in cls.fields.items() if f.static)
        jax.tree_util.register_pytree_with_keys(
            cls, cls._flatten_with_keys, cls._unflatten, flatten_func=cls._flatten
        )

    def __init__(self, **values):
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}")
        store = self.__dict__
        for name in self.fields:
            store[name] = values.get(name)

    def replace(self, **values) -> Self:
        """A copy with some fields changed."""
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}")
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.__dict__.update(values)
        return new

    def __setattr__(self, name, value):
        raise AttributeError(
            f"{type(self).__name__} is immutable: use .replace({name}=...) to get a changed copy"
        )

    # pytree protocol
    def _flatten(self):
        store = self.__dict__
        return tuple(store[n] for n in self._leaves), tuple(store[n] for n in self._statics)

    def _flatten_with_keys(self):
        children, aux = self._flatten()
        keys = (jax.tree_util.GetAttrKey(n) for n in self._leaves)
        return tuple(zip(keys, children, strict=True)), aux

    @classmethod
    def _unflatten(cls, aux, children):
        new = object.__new__(cls)
        new.__dict__.update(zip(cls._leaves, children, strict=True))
        new.__dict__.update(zip(cls._statics, aux, strict=True))
        return new

    def __repr__(self) -> str:
        present = (f"{n}={_brief(v)}" for n, v in self.__dict__.items() if v is not None)
        return f"{type(self).__name__}({', '.join(present)})"


def _brief(value) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)
