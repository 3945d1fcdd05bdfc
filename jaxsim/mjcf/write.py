"""Writes a tree of elements as MJCF text that reads back equal.

Attributes that are set are written, in the order of the schema; numbers in the fewest digits that
give the same bits back.
"""

from __future__ import annotations

import numpy as np
from lxml import etree

from jaxsim.errors import ModelError, Problem
from jaxsim.mjcf.element import Element, Value

_INDENT = "  "


def to_xml(element: Element) -> str:
    """MJCF text of an element and all below it, ending in a line break.

    Raises:
      ModelError: a name or a text has a character that XML cannot hold.
    """
    top = _start(None, element)
    stack = [(element, top, "\n")]  # no recursion, for a tree may be deep
    while stack:
        element, node, outer = stack.pop()
        inner = outer + _INDENT
        for child in element.children:
            below = _start(node, child)
            below.tail = inner
            stack.append((child, below, inner))
        if element.children:
            node.text, below.tail = inner, outer
    return etree.tostring(top, encoding="unicode") + "\n"


def format_value(value: Value) -> str:
    """Return a value as it is written in an attribute, before escaping."""
    if isinstance(value, str):
        return value
    return " ".join(map(_number, np.atleast_1d(value).tolist()))


def _number(x: float | int) -> str:
    text = repr(x)
    return text.removesuffix(".0")


def _start(parent: etree._Element | None, element: Element) -> etree._Element:
    """Return the element without its children, as the last one of its parent."""
    tag = element.tag
    node = etree.Element(tag) if parent is None else etree.SubElement(parent, tag)
    for name in _order(element):
        text = format_value(element.attrs[name])
        try:
            node.set(name, text)
        except ValueError:
            message = (
                f"{element.label}: XML cannot hold {name}={text!r}; remove its control characters"
            )
            raise ModelError(Problem(element.place, message)) from None
    return node


def _order(element: Element) -> list[str]:
    """Return the names of the attributes that are set, as the schema orders them."""
    if element.row is None:
        return list(element.attrs)
    return [name for name in element.row.attrs if name in element.attrs]
