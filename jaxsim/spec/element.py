"""An element of the editable model: a checked MJCF element with access to its parent and defaults.

Stage of the pipeline XML text -> `mjcf` -> **`spec`** -> `compile`. The tree of these elements is
the only state of a model under edit; effective values, body order and ids are derived from it on
demand and never stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from jaxsim.mjcf.element import AttrValue, Element
from jaxsim.mjcf.schema import Row
from jaxsim.mjcf.values import BadValue, read_value
from jaxsim.mjcf.write import format_value
from jaxsim.spec.origin import Origin
from jaxsim.spelling import remedy, suggest


class Owner(Protocol):
    """The model that an element is part of, as its elements see it."""

    def inherited(self, element: SpecElement) -> Inherited:
        """Return the attributes that an element inherits from the schema and the default
        classes."""


@dataclass(eq=False)
class SpecElement(Element):
    """One element of a `Spec`; `attrs` holds the attributes that were set, `get` the effective
    values.

    `parent` is None for the root and for an element outside a tree, which has no `spec` either.
    `origin` is set on elements attached from another model, and describes that model. `layout` is
    set on keyframes when the tree changes: the elements for which their numbers were written.
    `source` is set while a copy of a model is compiled: the element of the model itself. `unframed`
    is set on a body that is in a `<frame>` only to keep the order: a scale of the frame does not
    apply to it.
    """

    attrs: dict[str, Any] = field(default_factory=dict)
    row: Row = field(kw_only=True)
    parent: SpecElement | None = field(default=None, repr=False)
    spec: Owner | None = field(default=None, repr=False)
    origin: Origin | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)
    unframed: bool = field(default=False, repr=False)
    source: SpecElement | None = field(default=None, repr=False)

    @property
    def name(self) -> str | None:
        """Return the name, or None for an element without one."""
        return self.attrs.get("name") or None

    @property
    def defined_kind(self) -> str | None:
        """Return the kind of object that this element defines, such as `geom` or `actuator`, or
        None."""
        attr = self.row.attribute("name")
        return attr.kind if attr is not None and attr.type == "name" else None

    @property
    def asset_name(self) -> str | None:
        """Return the name of an asset: its own, else that of its file without folder and
        extension."""
        file = self.attrs.get("file")
        if self.name or not file:
            return self.name
        stem = file.replace("\\", "/").rsplit("/", 1)[-1]
        return stem.rsplit(".", 1)[0] or None

    def own(self, attr: str) -> Any:
        """Return the value that is set on this element itself, or None."""
        return self.attrs.get(attr)

    def is_set(self, attr: str) -> bool:
        """Return whether the element or one of its default classes sets this attribute."""
        return any(attr in layer.attrs for layer in self.layers())

    def get(self, attr: str) -> Any:
        """Return the effective value: the schema's default, overridden by the classes and the
        element.

        A shorter array replaces only the first numbers of a fixed-size attribute, so that
        `friction='0.5'` keeps the default class's second and third coefficient, as in MuJoCo. An
        attribute of any length (`user`) is replaced as a whole.
        """
        inherited = self.inherited()
        value = inherited.get(attr)
        if attr in self.attrs:
            value = inherited.overlaid(attr, value, self.attrs[attr])
        return value.copy() if isinstance(value, np.ndarray) else value

    def set(self, attr: str, value: AttrValue | Sequence[float]) -> None:
        """Set an attribute, as text or in its own type; `""` removes it.

        True and False are spelled as the attribute requires: `true`, or `enable`.

        Raises:
          ValueError: the element has no such attribute, or the value does not fit it.
        """
        entry = self.row.attribute(attr)
        if entry is None:
            end = remedy(attr, self.row.attrs)
            raise ValueError(f"{self.label} has no attribute '{attr}'{end}")
        if isinstance(value, bool | np.bool_) and not entry.is_number:
            value = _spell_boolean(bool(value), entry.keywords)
        text = value if isinstance(value, str) else format_value(np.asarray(value).reshape(-1))
        try:
            read = read_value(entry, text)
        except BadValue as error:
            raise ValueError(f"{self.label}: {error}") from None
        if read is None:
            self.attrs.pop(attr, None)
        else:
            self.attrs[attr] = read

    def update(self, **attrs: AttrValue | Sequence[float]) -> SpecElement:
        """Set several attributes, and return the element.

        A Python keyword gets an underscore: `class_="soft"`.

        Raises:
          ValueError: the element has no such attribute, or the value does not fit it.
        """
        for attr, value in attrs.items():
            self.set(attr.rstrip("_"), value)
        return self

    def unset(self, attr: str) -> None:
        """Remove an attribute from this element, so that its class or the schema applies."""
        self.attrs.pop(attr, None)

    def add(self, tag: str, **attrs: AttrValue | Sequence[float]) -> SpecElement:
        """Append a new child with the given attributes; return it.

        Raises:
          ValueError: no such child is allowed here, or an attribute does not fit it.
        """
        row = self.row.child(tag)
        if row is None:
            near = suggest(tag, self.row.children)
            end = f"did you mean <{near}>?" if near else f"it holds {sorted(self.row.children)}"
            raise ValueError(f"{self.label} cannot hold <{tag}>; {end}")
        if row.instead:
            raise ValueError(f"<{tag}> {row.instead}")
        if row.occurs == "?" and self.find(tag) is not None:
            raise ValueError(f"{self.label} has its <{tag}> already; change that one")
        return self.adopt(SpecElement(tag, row=row).update(**attrs))

    def remove(self) -> None:
        """Remove the element, with everything below it, from the tree; see also `Spec.delete`."""
        self.holder.children.remove(self)
        self.parent = None
        for element in self.walk():
            element.spec = None

    def layers(self) -> list[SpecElement]:
        """Return the elements whose attributes are combined in this one, weakest first and itself
        last."""
        return [*self.inherited().entries, self]

    def inherited(self) -> Inherited:
        """Return the attributes that this element inherits from the schema and the default
        classes."""
        return self.spec.inherited(self) if self.spec is not None else Inherited(self.row, ())

    @property
    def holder(self) -> SpecElement:
        """Return the parent; the element must have one."""
        assert self.parent is not None, f"{self.label} stands alone"
        return self.parent

    @property
    def childclass(self) -> str | None:
        """Return the class that the nearest enclosing body or frame sets for its contents, or
        None."""
        for ancestor in self.ancestors():
            if "childclass" in ancestor.attrs:
                return ancestor.attrs["childclass"]
        return None

    def ancestors(self) -> Iterator[SpecElement]:
        """Yield the parent, its parent, and so on up to the root."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    def frames(self) -> list[SpecElement]:
        """Return the `<frame>` elements between this element and its body, innermost first."""
        found = []
        for ancestor in self.ancestors():
            if ancestor.tag != "frame":
                break
            found.append(ancestor)
        return found

    def adopt(self, child: SpecElement, index: int | None = None) -> SpecElement:
        """Move an element and all below it here, last or to `index`; return it."""
        if child.parent is not None:
            child.parent.children.remove(child)
        child.parent = self
        for element in child.walk():
            element.spec = self.spec
        self.children.insert(len(self.children) if index is None else index, child)
        return child

    def copy(self) -> SpecElement:
        """Return a detached copy of the element and everything below it."""
        return SpecElement.from_element(self)

    @classmethod
    def from_element(cls, element: Element) -> SpecElement:
        """Return a copy of a tree of elements; without recursion, because a chain may have
        thousands of links."""
        root = cls._single(element)
        stack = [(root, element)]
        while stack:
            node, source = stack.pop()
            for below in source.children:
                child = cls._single(below)
                child.parent = node
                node.children.append(child)
                stack.append((child, below))
        return root

    @classmethod
    def _single(cls, element: Element) -> SpecElement:
        """Return a copy of one element, without parent and children."""
        assert element.row is not None, f"{element.label} was not checked"
        attrs = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in element.attrs.items()}
        node = cls(tag=element.tag, attrs=attrs, place=element.place, row=element.row)
        if isinstance(element, SpecElement):
            node.origin, node.layout = element.origin, element.layout
            node.unframed, node.source = element.unframed, element.source
        return node


@dataclass(frozen=True, eq=False)
class Layout:
    """The elements of the model for which a keyframe was written, in order of their ids."""

    joints: tuple[SpecElement, ...]
    actuators: tuple[SpecElement, ...]
    mocaps: tuple[SpecElement, ...]


class Inherited:
    """Attributes that elements of one row and class have without setting them."""

    def __init__(self, row: Row, entries: Sequence[SpecElement]):
        self.row = row
        self.entries = entries  # entries of the default classes, outermost first
        self._values: dict[str, Any] = {}

    def get(self, attr: str) -> Any:
        """Return the schema's default of an attribute, overridden by the classes; read-only."""
        if attr not in self._values:
            entry = self.row.attribute(attr)
            value = entry.default if entry is not None else None
            for layer in self.entries:
                if attr in layer.attrs:
                    value = self.overlaid(attr, value, layer.attrs[attr])
            self._values[attr] = value
        return self._values[attr]

    def overlaid(self, attr: str, under: Any, over: Any) -> Any:
        """Return a value of an attribute applied over another: an array of fixed size replaces the
        first numbers."""
        arrays = isinstance(under, np.ndarray) and isinstance(over, np.ndarray)
        if not arrays or len(over) >= len(under):
            return over
        entry = self.row.attribute(attr)
        if entry is None or entry.variable_length:
            return over
        return np.concatenate([over, under[len(over) :]])


def _spell_boolean(on: bool, keywords: tuple[str, ...]) -> str:
    """Return a boolean in the keywords of an attribute: the first pair of words that it allows."""
    pairs = (("false", "true"), ("disable", "enable"))
    return next((pair[on] for pair in pairs if set(pair) <= set(keywords)), str(on).lower())
