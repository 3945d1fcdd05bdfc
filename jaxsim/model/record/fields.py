"""Declarations of the fields of Model and Data, each with its shape, unit and meaning.

A record class (record.py) lists its fields in its body. Allocation, shape checks, documentation and
the conversion between public arrays and the form used inside the physics derive from that list.

    class Data(Record):
        qvel = array("nv", unit="m/s or rad/s", doc="generalized velocity")
        xpos = array("nbody", kind="vec", unit="m", doc="position of each body frame")
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, overload

import jax
import numpy as np

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


@overload
def array(
    *shape: str | int,
    dtype: str = "float",
    unit: str = "",
    doc: str = "",
    keep: Literal[True] = True,
) -> jax.Array: ...


@overload
def array(
    *shape: str | int,
    kind: str = "real",
    dtype: str = "float",
    unit: str = "",
    doc: str = "",
    keep: bool = True,
    only: tuple[str, ...] = (),
) -> Any: ...


def array(
    *shape: str | int, kind="real", dtype="float", unit="", doc="", keep=True, only=()
) -> Any:
    """Declare an array field, which is traced.

    To type checkers a field of real numbers is a `jax.Array`. The others are Any: the physics
    stores a vector by its components (`kind`), and a field may be absent (`keep`, `only`).
    """
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
