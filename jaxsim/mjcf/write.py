"""Writes a tree of elements as MJCF text that reads back equal.

Attributes that are set are written, in the order of the schema; numbers in the fewest digits that
give the same bits back.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxsim.mjcf.element import Element, Value

_INDENT = "  "
# Line breaks and tabs would come back as spaces if they were not escaped.
_ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\n": "&#10;",
        "\t": "&#9;",
        "\r": "&#13;",
    }
)


def to_xml(element: Element) -> str:
    """MJCF text of an element and all below it, ending in a line break."""
    return "\n".join(_lines(element)) + "\n"


def format_value(value: Value) -> str:
    """A value as it is written in an attribute, before escaping."""
    if isinstance(value, str):
        return value
    return " ".join(map(_number, np.atleast_1d(value).tolist()))


def _number(x: float | int) -> str:
    text = repr(x)
    return text.removesuffix(".0")


def _lines(top: Element) -> Iterator[str]:
    """The lines of an element and all below it; no recursion, for a tree may be deep."""
    stack: list[tuple[int, Element | str]] = [(0, top)]
    while stack:
        depth, element = stack.pop()
        indent = _INDENT * depth
        if isinstance(element, str):
            yield f"{indent}</{element}>"
            continue
        head = f"{indent}<{element.tag}"
        for name in _order(element):
            head += f' {name}="{format_value(element.attrs[name]).translate(_ESCAPES)}"'
        yield head + (">" if element.children else "/>")
        if element.children:
            stack.append((depth, element.tag))
            stack.extend((depth + 1, child) for child in reversed(element.children))


def _order(element: Element) -> list[str]:
    """Names of the attributes that are set, as the schema orders them."""
    if element.row is None:
        return list(element.attrs)
    return [name for name in element.row.attrs if name in element.attrs]
