"""Spec: a model that can be looked at and changed, between the XML text and the compiled arrays.

A Spec is its element tree (`spec.root`) and nothing else. What follows from the tree, such as the
order of bodies, the attributes in effect or the merged settings of repeated sections, is worked out
when it is asked for, so that an edit can never leave a stale copy behind.

    spec = Spec()
    ball = spec.at("worldbody").add("body", name="ball", pos=[0, 0, 1])
    ball.add("freejoint")
    ball.add("geom", size=0.1)
    spec.at("option").set("timestep", 0.001)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxsim.assets.source.resource import folder_name, join
from jaxsim.mjcf import read_file, read_string
from jaxsim.mjcf.element import Element, Value
from jaxsim.mjcf.schema import ROOT, Row
from jaxsim.mjcf.values import suggest
from jaxsim.mjcf.write import to_xml
from jaxsim.spec.attach import attach_spec
from jaxsim.spec.body import Body, bodies_of
from jaxsim.spec.defaults import Inherited, class_elements, default_class
from jaxsim.spec.delete import delete
from jaxsim.spec.element import SpecElement
from jaxsim.spec.layout import copy_layouts
from jaxsim.spec.references import defined_kinds, rename

# Attributes that stand for several others, and take their place where they come later.
_STANDS_FOR = {"assetdir": ("meshdir", "texturedir")}


class Spec:
    """An editable model; `Spec()` is an empty one.

    `path` is the file it was read from, and `files` the files in memory that it may refer to; both
    serve to find the files of its assets.

    Example:
      >>> spec = Spec()
      >>> ball = spec.at("worldbody").add("body", name="ball", pos=[0, 0, 1])
      >>> ball.add("geom", size=0.1).get("type")
      'sphere'
      >>> spec.rename("body", "ball", "marble")
      >>> "marble" in spec.to_xml()
      True
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
        # of a frozen tree: what elements inherit, those of one row and class the same
        self._inherited: dict[SpecElement, Inherited] | None = None
        self._of_class: dict[tuple, Inherited] = {}
        for element in root.walk():
            element.spec = self

    @classmethod
    def from_element(
        cls, root: Element, *, path: str = "", files: Mapping[str, bytes] | None = None
    ) -> Spec:
        """Builds a Spec from the checked tree of an MJCF file, which it copies."""
        return cls(SpecElement.from_element(root), path=path, files=files)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], files: Mapping[str, bytes] | None = None
    ) -> Spec:
        """Reads a model file; `files` are files in memory, which come before the disk.

        Raises:
          ModelError: the file is not a valid model; lists every fault with its place.
        """
        return cls.from_element(read_file(path, files), path=os.fspath(path), files=files)

    @classmethod
    def from_string(cls, text: str, files: Mapping[str, bytes] | None = None) -> Spec:
        """Reads a model from its text; otherwise as `from_file`."""
        return cls.from_element(read_string(text, assets=files), files=files)

    def copy(self) -> Spec:
        """An independent copy."""
        copy = Spec(self.root.copy(), path=self.path, files=self.files)
        copy_layouts(self, copy)
        return copy

    def path_of(self, file: str) -> str:
        """A file that the model names, relative to its own file."""
        return join(folder_name(self.path), file)

    def at(self, path: str) -> SpecElement:
        """The section at a path such as `worldbody` or `option/flag`; made where there is none.

        Of repeated sections it is the last, which has the last word on each attribute.

        Raises:
          ValueError: the format has no such section.
        """
        element = self.root
        for tag in path.split("/"):
            found = element.find_all(tag)
            element = found[-1] if found else element.add(tag)
        return element

    def default(self, name: str = "main") -> SpecElement:
        """The `<default>` element of a class, to which entries can be added.

        Raises:
          KeyError: there is no such class.
        """
        found = class_elements(self, name)
        if found:
            return found[-1]
        if name == "main":
            return self.at("default")
        known = [e.attrs["class"] for e in self.walk() if e.tag == "default" and e.attrs]
        raise KeyError(_unknown("default class", name, known))

    def find(self, kind: str, name: str) -> SpecElement | None:
        """The element that defines an object of this kind and name, or None.

        An asset without a name is called as its file, without folder and extension.
        """
        return next(
            (e for e in self.walk() if e.asset_name == name and e.defined_kind == kind), None
        )

    def __getitem__(self, key: tuple[str, str]) -> SpecElement:
        """The element of a kind and name: `spec["joint", "elbow"]`.

        Raises:
          KeyError: there is none; the message proposes the nearest name.
        """
        kind, name = key
        found = self.find(kind, name)
        if found is None:
            raise KeyError(
                _unknown(kind, name, filter(None, (e.asset_name for e in self.elements(kind))))
            )
        return found

    def elements(self, kind: str) -> list[SpecElement]:
        """All elements that make an object of a kind such as `geom` or `actuator`, as written.

        Raises:
          ValueError: there is no such kind.
        """
        if kind not in defined_kinds():
            raise ValueError(_unknown("kind of object", kind, sorted(defined_kinds())))
        return [e for e in self.walk() if e.defined_kind == kind]

    def to_xml(self) -> str:
        """The model as MJCF text, which reads back equal.

        Raises:
          ValueError: what was attached or deleted can be said in MJCF only when the model has been
            compiled; `jaxsim.flatten(spec)` does that.
        """
        waiting = next((e for e in self.walk() if e.origin or e.layout), None)
        if waiting is not None:
            raise ValueError(
                f"{waiting.label} was written for another model or another tree; "
                "write jaxsim.flatten(spec).to_xml() to have its numbers worked out"
            )
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
        """Gives an object another name, where it is defined and wherever it is referred to.

        Raises:
          KeyError: there is no such object.
          ValueError: the new name is taken.
        """
        if kind == "default":
            self.default(old)
            taken = bool(class_elements(self, new))
        else:
            self[kind, old].attrs["name"] = old  # where it was that of a file
            taken = self.find(kind, new) is not None
        if taken and new != old:
            raise ValueError(f"a {kind} named '{new}' exists already")
        rename(self.root, {(kind, old): new})

    def delete(self, element: SpecElement) -> list[SpecElement]:
        """Takes an element out, with all inside it and all outside the tree that refers to that.

        Actuators, sensors, tendons, equalities, pairs and the like go with what they refer to, and
        the numbers of keyframes with their joints. What stays and still refers to something
        that went, such as a geom to its material, is named when the model is compiled.

        Returns:
          The elements that went along.
        """
        return delete(self, element)

    def attach(
        self,
        child: Spec,
        to: SpecElement,
        *,
        part: SpecElement | None = None,
        prefix: str = "",
        suffix: str = "",
    ) -> SpecElement:
        """Puts a copy of another model, or of a part of it, into a body, a frame or a site.

        With it come its classes, assets and what refers to it alone: actuators, sensors, tendons.
        They are compiled under the compiler settings of their own model.

        Args:
          child: the other model, which stays as it is; it may be this one.
          to: where it goes: a `<worldbody>`, `<body>` or `<frame>`; or a `<site>`, whose pose and
            body it then has.
          part: a `<body>` or `<frame>` of `child`; None for all its world has.
          prefix: put before all names that come along, those of classes included.
          suffix: put after them.

        Returns:
          The frame or body in this model.

        Raises:
          ValueError: a name exists here already, or the part cannot stand there.
        """
        return attach_spec(self, child, to, part, prefix, suffix)

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
                for replaced in (a for name in element.attrs for a in _STANDS_FOR.get(name, ())):
                    merged.pop(replaced, None)
                merged.update(element.attrs)
        return merged

    def setting(self, tag: str, attr: str, child: str | None = None) -> Any:
        """One attribute of a repeated section: the last one written, else the schema's default."""
        given = self.settings(tag, child).get(attr)
        return self.schema_default(tag, attr, child) if given is None else given

    def schema_default(self, tag: str, attr: str, child: str | None = None) -> Any:
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
        self._inherited, self._of_class = {}, {}
        return self

    def inherited(self, element: SpecElement) -> Inherited:
        """What the schema and the default classes give an element."""
        if self._inherited is None:
            return self._inherited_by_class(element.row, default_class(element))
        found = self._inherited.get(element)
        if found is None or found.row is not element.row:
            key = element.row, default_class(element)
            if key not in self._of_class:
                self._of_class[key] = self._inherited_by_class(*key)
            found = self._inherited[element] = self._of_class[key]
        return found

    def _inherited_by_class(
        self, row: Row | None, key: tuple[str, frozenset[str]] | None
    ) -> Inherited:
        return Inherited(row, () if key is None else self.default_entries(*key))

    def default_entries(self, name: str, tags: Iterable[str]) -> list[SpecElement]:
        """Entries of a default class with one of these tags, outermost class first."""
        return [e for part in class_elements(self, name) for e in part.children if e.tag in tags]


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """There is no object of this name; the message proposes the nearest."""
    near = suggest(name, known)
    return f"no {kind} is called '{name}'" + (f"; did you mean '{near}'?" if near else "")
