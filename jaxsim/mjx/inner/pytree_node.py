"""MJX's base class of records, `PyTreeNode`: a frozen dataclass that is a pytree.

A field whose annotation contains an array or such a record is a child; every other field is
auxiliary data of the pytree, whose numpy arrays are compared by content.
"""

import copy
import dataclasses
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import jax
import numpy as np

from jaxsim.model.record.record import Record


class _Content:
    """A value of the auxiliary data; arrays in it are equal if type, shape and numbers are."""

    def __init__(self, value: Any):
        self.value = value
        self.key = _content(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _content(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return type(value).__name__, *map(_content, value)
    return value


def dataclass(cls: type, register_as_pytree: bool = True) -> type:
    """Make a class a frozen dataclass, registered with JAX as a pytree.

    Args:
      cls: the class; its annotations are its fields.
      register_as_pytree: whether it is registered.
    """
    made: Any = dataclasses.dataclass(frozen=True)(cls)
    if not hasattr(made, "replace"):
        made.replace = dataclasses.replace
    if not register_as_pytree:
        return made
    try:
        hints = typing.get_type_hints(made)
    except NameError:  # annotations that are strings and name local classes
        hints = {}
    names: dict[bool, list[str]] = {True: [], False: []}
    for field in dataclasses.fields(made):
        names[_has_arrays(hints.get(field.name, field.type))].append(field.name)
    leaves, rest = names[True], names[False]

    def flatten_with_keys(node: Any) -> tuple:
        children = tuple((jax.tree_util.GetAttrKey(n), getattr(node, n)) for n in leaves)
        return children, tuple(_Content(getattr(node, n)) for n in rest)

    def unflatten(identity: tuple, children: Iterable) -> Any:
        values = dict(zip(rest, (c.value for c in identity), strict=True))
        return made(**values, **dict(zip(leaves, children, strict=True)))

    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten)
    return made


def _has_arrays(annotation: Any) -> bool:
    """Return whether values of this annotation contain arrays of JAX."""
    if isinstance(annotation, str):
        return "jax.Array" in annotation or "jnp.ndarray" in annotation
    if annotation is jax.Array:
        return True
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return True
    if dataclasses.is_dataclass(annotation):
        return any(_has_arrays(f.type) for f in dataclasses.fields(annotation))
    return any(map(_has_arrays, typing.get_args(annotation)))


class PyTreeNode:
    """Base class of records: a subclass is a frozen dataclass and a pytree."""

    def __init_subclass__(cls, register_as_pytree: bool = True, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        dataclass(cls, register_as_pytree)

    def replace(self, **values: Any) -> Self:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **values)  # type: ignore[type-var]

    @classmethod
    def fields(cls) -> tuple[dataclasses.Field, ...]:
        """Return the fields, as `dataclasses.fields` does."""
        return dataclasses.fields(cls)  # type: ignore[arg-type]

    def tree_replace(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some fields replaced, also those of nested records: "inner.field"."""
        new = self
        for name, value in values.items():
            new = _replace_at_path(new, name.split("."), value)
        return new


def _replace_at_path(node: Any, path: Sequence[str], value: Any) -> Any:
    """Return a copy of a record with the field at a path replaced.

    In a list of records every one that has the field gets the value, or its item of a sequence.
    """
    first, *rest = path
    if not rest:
        return node.replace(**{first: value})
    inner = getattr(node, first)
    if not isinstance(inner, list):
        return node.replace(**{first: _replace_at_path(inner, rest, value)})
    items = copy.copy(inner)
    for i, item in enumerate(items):
        if hasattr(item, rest[0]):
            items[i] = _replace_at_path(
                item, rest, value[i] if hasattr(value, "__iter__") else value
            )
    return node.replace(**{first: items})
