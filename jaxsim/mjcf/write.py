"""Write an element tree as MJCF text that reads back equal.

Set attributes are written in the order of the schema; numbers with the fewest digits that restore
the same bits.
"""

from __future__ import annotations

import numpy as np
from lxml import etree

from jaxsim.errors import LocatedProblem, ModelError
from jaxsim.mjcf.element import AttrValue, Element

_INDENT = "  "


def to_xml(element: Element) -> str:
    """Return the MJCF text of an element and all below it, ending in a line break.

    Raises:
      ModelError: a name or a text has a character that XML cannot represent.
    """
    top = _start_element(None, element)
    stack = [(element, top, "\n")]  # no recursion, because a tree may be deep
    while stack:
        element, node, outer = stack.pop()
        inner = outer + _INDENT
        for child in element.children:
            below = _start_element(node, child)
            below.tail = inner
            stack.append((child, below, inner))
        if element.children:
            node.text, below.tail = inner, outer
    return etree.tostring(top, encoding="unicode") + "\n"


def format_value(value: AttrValue) -> str:
    """Return a value as the text of an attribute, before escaping."""
    if isinstance(value, str):
        return value
    return " ".join(map(_format_number, np.atleast_1d(value).tolist()))


def _format_number(x: float | int) -> str:
    text = repr(x)
    return text.removesuffix(".0")


def _start_element(parent: etree._Element | None, element: Element) -> etree._Element:
    """Return the XML element without its children, appended to its parent."""
    tag = element.tag
    node = etree.Element(tag) if parent is None else etree.SubElement(parent, tag)
    for name in _attribute_order(element):
        text = format_value(element.attrs[name])
        try:
            node.set(name, text)
        except ValueError:
            message = (
                f"{element.label}: XML cannot hold {name}={text!r}; remove its control characters"
            )
            raise ModelError(LocatedProblem(element.place, message)) from None
    return node


def _attribute_order(element: Element) -> list[str]:
    """Return the names of the attributes that are set, in the order of the schema."""
    if element.row is None:
        return list(element.attrs)
    return [name for name in element.row.attrs if name in element.attrs]
