"""The element tree of a model, and queries on it.

Derived properties, such as the order of bodies, effective attributes or the merged settings of
repeated sections, are computed when they are requested, so that an edit can never leave stale data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

from jaxsim.mjcf.element import AttrValue
from jaxsim.mjcf.schema import ROOT, Row
from jaxsim.spec.body import Body, bodies_of
from jaxsim.spec.defaults import class_elements, default_class
from jaxsim.spec.element import Inherited, SpecElement
from jaxsim.spec.layout import copy_layouts

# Attributes that set several others, and override them if they come later.
_ATTRIBUTE_ALIASES = {"assetdir": ("meshdir", "texturedir")}


class Tree:
    """The elements of a model.

    `path` is the file it was read from, and `files` the files in memory that it may refer to; both
    are used to locate the files of its assets.
    """

    def __init__(
        self,
        root: SpecElement | None = None,
        *,
        path: str = "",
        files: Mapping[str, bytes] | None = None,
    ):
        self.root = root = root or SpecElement(ROOT.tag, row=ROOT)
        self.path = path
        self.files = files
        # identities of objects at the last compilation (compile/identity.py)
        self.compiled: Mapping[str, tuple[tuple[Hashable, int], ...]] | None = None
        # inherited attributes of a frozen tree, shared by elements of one row and class
        self._inherited: dict[SpecElement, Inherited] | None = None
        self._of_class: dict[tuple, Inherited] = {}
        for element in root.walk():
            element.spec = self

    @property
    def modelname(self) -> str:
        """Return the model's name; MuJoCo calls a nameless one `MuJoCo Model`."""
        return self.root.attrs.get("model", "MuJoCo Model")

    @property
    def bodies(self) -> list[Body]:
        """Return all bodies in MuJoCo's order: depth first, the world first."""
        return bodies_of(self.root)

    def copy(self) -> Self:
        """Return an independent copy."""
        copy = type(self)(self.root.copy(), path=self.path, files=self.files)
        copy_layouts(self.root, copy.root)
        if self.compiled is not None:
            twin: dict[Hashable, Hashable] = dict(
                zip(self.root.walk(), copy.root.walk(), strict=True)
            )
            copy.compiled = {
                kind: tuple((twin.get(e, e), count) for e, count in keys)
                for kind, keys in self.compiled.items()
            }
        return copy

    def walk(self) -> Iterator[SpecElement]:
        """Return an iterator over all elements, in document order."""
        return self.root.walk()

    def sections(self, tag: str) -> list[SpecElement]:
        """Return the top-level elements with this tag, in document order."""
        return self.root.find_all(tag)

    def section(self, tag: str) -> list[SpecElement]:
        """Return the contents of all top-level sections with this tag, in document order."""
        return [child for section in self.sections(tag) for child in section.children]

    def last_section(self, tag: str) -> SpecElement:
        """Return the last top-level element with this tag; create it if necessary."""
        found, root = self.sections(tag), self.root
        return found[-1] if found else root.adopt(SpecElement(tag, row=root.row.children[tag]))

    def find(self, kind: str, name: str) -> SpecElement | None:
        """Return the element that defines an object of this kind and name, or None.

        An unnamed asset has the name of its file, without folder and extension.
        """
        return next(
            (e for e in self.walk() if e.asset_name == name and e.defined_kind == kind), None
        )

    def settings(self, tag: str, child: str | None = None) -> dict[str, AttrValue]:
        """Return the attributes of a repeated section such as `option`, or of its child such as
        `flag`.

        Where repeated sections differ, the last one counts; unset attributes are absent.
        """
        elements = self.section(tag) if child else self.sections(tag)
        merged: dict[str, AttrValue] = {}
        for element in elements:
            if child is None or element.tag == child:
                for replaced in (
                    a for name in element.attrs for a in _ATTRIBUTE_ALIASES.get(name, ())
                ):
                    merged.pop(replaced, None)
                merged.update(element.attrs)
        return merged

    def setting(self, tag: str, attr: str, child: str | None = None) -> Any:
        """Return one attribute of a repeated section: the last one written, else the schema's
        default."""
        given = self.settings(tag, child).get(attr)
        return self.schema_default(tag, attr, child) if given is None else given

    def schema_default(self, tag: str, attr: str, child: str | None = None) -> Any:
        """Return the schema's default of an attribute of a section, or of the section's child."""
        row = self.root.row.children[tag]
        return (row.children[child] if child else row).attrs[attr].default

    def author(self, tag: str, attr: str) -> SpecElement | None:
        """Return the section that determines an attribute, for messages."""
        return next((e for e in reversed(self.sections(tag)) if attr in e.attrs), None)

    def freeze(self) -> Self:
        """Declare that the tree will not change any more, so that queries may be cached."""
        self._inherited, self._of_class = {}, {}
        return self

    def inherited(self, element: SpecElement) -> Inherited:
        """Return the attributes that an element inherits from the schema and the default
        classes."""
        if self._inherited is None:
            return self._inherited_by_class(element.row, default_class(element))
        found = self._inherited.get(element)
        if found is None or found.row is not element.row:
            key = element.row, default_class(element)
            if key not in self._of_class:
                self._of_class[key] = self._inherited_by_class(*key)
            found = self._inherited[element] = self._of_class[key]
        return found

    def _inherited_by_class(self, row: Row, key: tuple[str, frozenset[str]] | None) -> Inherited:
        return Inherited(row, () if key is None else self.default_entries(*key))

    def default_entries(self, name: str, tags: Iterable[str]) -> list[SpecElement]:
        """Return the entries of a default class with one of these tags, outermost class first."""
        parts = class_elements(self.root, name)
        return [e for part in parts for e in part.children if e.tag in tags]
