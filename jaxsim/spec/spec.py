"""Spec: a model that can be looked at and changed, between the XML text and the compiled arrays.

A Spec is its element tree (`spec.root`) and nothing else. What follows from the tree, such as the
order of bodies, the attributes in effect or the merged settings of repeated sections, is worked out
when it is asked for, so that an edit can never leave a stale copy behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxsim.mjcf.element import Element, Value
from jaxsim.mjcf.write import to_xml
from jaxsim.spec.body import Body, bodies_of
from jaxsim.spec.defaults import class_elements, default_layers
from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import definition, rename


class Spec:
    """An editable model.

    `path` is the file it was read from, and `files` the files in memory that it may refer to; both
    serve to find the files of its assets.
    """

    def __init__(
        self, root: SpecElement, *, path: str = "", files: Mapping[str, bytes] | None = None
    ):
        self.root = root
        self.path = path
        self.files = files
        self._layers: dict[SpecElement, list[SpecElement]] | None = None
        for element in root.walk():
            element.spec = self

    @classmethod
    def from_element(
        cls, root: Element, *, path: str = "", files: Mapping[str, bytes] | None = None
    ) -> Spec:
        """Builds a Spec from the checked tree of an MJCF file, which it copies."""
        return cls(SpecElement.from_element(root), path=path, files=files)

    def copy(self) -> Spec:
        """An independent copy."""
        return Spec(self.root.copy(), path=self.path, files=self.files)

    def path_of(self, file: str) -> str:
        """A file that the model names, relative to its own file."""
        return file if os.path.isabs(file) else os.path.join(os.path.dirname(self.path), file)

    def find(self, kind: str, name: str) -> SpecElement | None:
        """The element that defines an object of this kind and name, or None."""
        return next((e for e in self.walk() if definition(e) == (kind, name)), None)

    def to_xml(self) -> str:
        """The model as MJCF text, which reads back equal."""
        return to_xml(self.root)

    @property
    def modelname(self) -> str:
        """The model's name; MuJoCo calls a nameless one `MuJoCo Model`."""
        return self.root.attrs.get("model", "MuJoCo Model")

    @property
    def bodies(self) -> list[Body]:
        """All bodies in MuJoCo's order: depth first, the world first."""
        return bodies_of(self)

    def sections(self, tag: str) -> list[SpecElement]:
        """The top-level elements with this tag, in document order."""
        return self.root.find_all(tag)

    def section(self, tag: str) -> list[SpecElement]:
        """The contents of all top-level sections with this tag, in document order."""
        return [child for section in self.sections(tag) for child in section.children]

    def rename(self, kind: str, old: str, new: str) -> None:
        """Gives an object another name, where it is defined and wherever it is referred to."""
        rename(self.root, {(kind, old): new})

    def last_section(self, tag: str) -> SpecElement:
        """The last top-level element with this tag; made when there is none."""
        found = self.sections(tag)
        return (
            found[-1] if found else self.root.adopt(SpecElement(tag, row=self.root.row.child(tag)))
        )

    def settings(self, tag: str, child: str | None = None) -> dict[str, Value]:
        """Attributes of a repeated section such as `option`, or of its child such as `flag`.

        Where repeated sections differ, the last one counts; what nobody wrote is absent.
        """
        elements = self.section(tag) if child else self.sections(tag)
        merged: dict[str, Value] = {}
        for element in elements:
            if child is None or element.tag == child:
                merged.update(element.attrs)
        return merged

    def setting(self, tag: str, attr: str, child: str | None = None) -> Any:
        """One attribute of a repeated section: the last one written, else the schema's default."""
        given = self.settings(tag, child).get(attr)
        return self.default(tag, attr, child) if given is None else given

    def default(self, tag: str, attr: str, child: str | None = None) -> Any:
        """The schema's default of an attribute of a section, or of the section's child."""
        row = self.root.row.child(tag)
        return (row.child(child) if child else row).attribute(attr).default

    def author(self, tag: str, attr: str) -> SpecElement | None:
        """The section that has the last word on an attribute, for messages."""
        return next((e for e in reversed(self.sections(tag)) if attr in e.attrs), None)

    def walk(self) -> Iterator[SpecElement]:
        """Every element, in document order."""
        return self.root.walk()

    def freeze(self) -> Spec:
        """Promises that the tree will not change any more, so that look-ups may be remembered."""
        self._layers = {}
        return self

    def layers(self, element: SpecElement) -> list[SpecElement]:
        """The elements whose attributes make up this one, weakest first and itself last."""
        if self._layers is None:
            return [*default_layers(element), element]
        if element not in self._layers:
            self._layers[element] = [*default_layers(element), element]
        return self._layers[element]

    def default_entries(self, name: str, tags: Iterable[str]) -> list[SpecElement]:
        """Entries of a default class with one of these tags, outermost class first."""
        return [e for part in class_elements(self, name) for e in part.children if e.tag in tags]
