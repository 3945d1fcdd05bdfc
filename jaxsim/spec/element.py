"""An element of the editable model: a checked MJCF element that knows its parent and its defaults.

Part of the walk XML text -> `mjcf` -> **`spec`** -> `compile`. The tree of these elements is the whole
truth about a model under edit; effective values, body order and ids are derived from it on demand and
never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxsim.mjcf.element import Element, Value

if TYPE_CHECKING:
    from jaxsim.spec.spec import Spec


@dataclass(eq=False)
class SpecElement(Element):
    """One element of a `Spec`; `attrs` holds what the user gave, `get` what is in effect.

    `settings` and `layout` are set on elements that were attached from another model: the compiler
    settings there, and for a keyframe the elements its numbers were written for.
    """

    children: list[SpecElement] = field(default_factory=list)
    parent: SpecElement | None = field(default=None, repr=False)
    spec: Spec | None = field(default=None, repr=False)
    settings: Any = field(default=None, repr=False)
    layout: Any = field(default=None, repr=False)

    @property
    def name(self) -> str | None:
        """The name, or None for an element without one."""
        return self.attrs.get("name") or None

    @property
    def asset_name(self) -> str | None:
        """The name of an asset: its own, else that of its file without folder and extension."""
        file = self.attrs.get("file")
        if self.name or not file:
            return self.name
        stem = file.replace("\\", "/").rsplit("/", 1)[-1]
        return stem.rsplit(".", 1)[0] or None

    def own(self, attr: str) -> Value | None:
        """The value that is written on this element itself, or None."""
        return self.attrs.get(attr)

    def is_set(self, attr: str) -> bool:
        """Whether the element or one of its default classes gives this attribute."""
        return any(attr in layer.attrs for layer in self.layers())

    def get(self, attr: str) -> Value | None:
        """The value in effect: the schema's default, overlaid by the default classes and the element.

        A shorter array replaces only the first numbers of a fixed-size attribute, so that
        `friction='0.5'` keeps the default class's second and third coefficient, as in MuJoCo. An
        attribute of any length (`user`) is replaced as a whole.
        """
        entry = self.row.attribute(attr) if self.row is not None else None
        value = entry.default if entry is not None else None
        whole = entry is None or entry.variable_length
        for layer in self.layers():
            if attr in layer.attrs:
                value = _overlay(value, layer.attrs[attr], whole)
        return value.copy() if isinstance(value, np.ndarray) else value

    def layers(self) -> list[SpecElement]:
        """The elements whose attributes make up this one, weakest first and itself last."""
        return self.spec.layers(self) if self.spec is not None else [self]

    @property
    def childclass(self) -> str | None:
        """The class that the nearest enclosing body or frame sets for its contents, or None."""
        for ancestor in self.ancestors():
            if "childclass" in ancestor.attrs:
                return ancestor.attrs["childclass"]
        return None

    def ancestors(self) -> Iterator[SpecElement]:
        """The parent, its parent, and so on up to the root."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def frames(self) -> list[SpecElement]:
        """The `<frame>`s between this element and its body, innermost first."""
        found = []
        for ancestor in self.ancestors():
            if ancestor.tag != "frame":
                break
            found.append(ancestor)
        return found

    def adopt(self, child: SpecElement, index: int | None = None) -> SpecElement:
        """Puts a free-standing element among the children, last or at `index`; returns it."""
        child.parent = self
        for element in child.walk():
            element.spec = self.spec
        self.children.insert(len(self.children) if index is None else index, child)
        return child

    def copy(self) -> SpecElement:
        """A free-standing copy of the element and everything below it."""
        return SpecElement.from_element(self)

    @classmethod
    def from_element(cls, element: Element) -> SpecElement:
        """Copies a tree of plain elements."""
        attrs = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in element.attrs.items()}
        node = cls(tag=element.tag, attrs=attrs, place=element.place, row=element.row)
        node.settings = getattr(element, "settings", None)
        node.layout = getattr(element, "layout", None)
        for child in element.children:
            node.adopt(cls.from_element(child))
        return node


def _overlay(under: Value | None, over: Value, whole: bool) -> Value:
    """`over` laid on the first entries of `under`."""
    arrays = isinstance(under, np.ndarray) and isinstance(over, np.ndarray)
    if whole or not arrays or len(over) >= len(under):
        return over
    return np.concatenate([over, under[len(over) :]])
