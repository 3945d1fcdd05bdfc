"""Fields that are plain copies of attributes, declared in tables for all objects of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.spec import SpecElement
from jaxsim.spec.element import Inherited

_Value = np.ndarray | float | int | bool


class Column(NamedTuple):
    """A field and the attribute that it copies.

    Attributes:
      field: MuJoCo's name of the field.
      attr: the attribute; its schema default is used if it is unset.
      width: numbers per object, 0 for a scalar field; longer values are truncated.
      dtype: float64, int32 or bool (keywords "true" and "false").
    """

    field: str
    attr: str
    width: int = 0
    dtype: type = np.float64
    keywords: Mapping[str, int] | None = None


def copy_columns(
    c: Compilation, elements: Iterable[SpecElement], columns: Iterable[Column]
) -> None:
    """Add the fields of a table, one row per element."""
    elements = list(elements)
    sources = [element.inherited() for element in elements]
    for column in columns:
        values = list(_values(elements, sources, column))
        shape = (len(elements), column.width) if column.width else (len(elements),)
        c.fields[column.field] = np.array(values, column.dtype).reshape(shape)
        c.copied.append((elements, column))


def _values(
    elements: Iterable[SpecElement], sources: Iterable[Inherited], column: Column
) -> Iterator[_Value]:
    """Yield the value of each element; elements that inherit it from the same class share it."""
    shared: dict[Inherited, _Value] = {}
    for element, source in zip(elements, sources, strict=True):
        if column.attr in element.attrs:
            yield _value(element.get(column.attr), column)
            continue
        if source not in shared:
            shared[source] = _value(source.get(column.attr), column)
        yield shared[source]


def _value(value: Any, column: Column) -> _Value:
    if column.keywords is not None:
        return column.keywords[value]
    if column.dtype is bool:
        return value == "true"
    if column.width:
        padded = np.zeros(column.width)
        if value is not None:
            given = np.atleast_1d(value)[: column.width]
            padded[: len(given)] = given
        return padded
    return 0 if value is None else np.atleast_1d(value)[0]


def polynomial_coefficients(elements: list[SpecElement], attr: str) -> np.ndarray:
    """Return the second and third coefficient of a polynomial attribute, (n, 2)."""
    table = np.zeros((len(elements), 2))
    for row, element in zip(table, elements, strict=True):
        value = np.atleast_1d(element.get(attr))[1:3]
        row[: len(value)] = value
    return table


def user_data(c: Compilation, prefix: str, elements: Sequence[SpecElement | None]) -> None:
    """Add `<prefix>_user`, whose width `nuser_<prefix>` is that of the longest, or given by
    `<size>`."""
    rows = [np.zeros(0) if e is None or e.get("user") is None else e.get("user") for e in elements]
    longest = max((len(row) for row in rows), default=0)
    width = int(c.spec.setting("size", f"nuser_{prefix}"))
    if width < 0:
        width = longest
    for element, row in zip(elements, rows, strict=True):
        if len(row) > width:
            c.fault(element, f"user has {len(row)} numbers, but <size nuser_{prefix}='{width}'>")
    author = c.spec.author("size", f"nuser_{prefix}")
    if not fits_bounds(c, author, f"nuser_{prefix}", width * len(rows)):
        width = 0
    table = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        table[i, : min(width, len(row))] = row[:width]
    c.fields[f"{prefix}_user"] = table
    c.fields[f"nuser_{prefix}"] = width
