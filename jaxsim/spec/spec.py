"""Spec: a model that can be inspected and edited, between the XML text and the compiled arrays.

A Spec consists of its element tree (`spec.root`). Queries are in `tree.py`; this module reads,
edits and writes.

    spec = Spec()
    ball = spec.at("worldbody").add("body", name="ball", pos=[0, 0, 1])
    ball.add("freejoint")
    ball.add("geom", size=0.1)
    spec.at("option").set("timestep", 0.001)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from jaxsim.assets.source.resource import folder_name, join_uri
from jaxsim.mjcf import Source, find_model, read_string
from jaxsim.mjcf.element import Element
from jaxsim.mjcf.write import to_xml
from jaxsim.spec.archive import STREAM_NAME, write_archive
from jaxsim.spec.attach import attach_spec
from jaxsim.spec.defaults import class_elements
from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import defined_kinds, rename
from jaxsim.spec.referrers import delete
from jaxsim.spec.tree import Tree
from jaxsim.spelling import remedy


class Spec(Tree):
    """An editable model; `Spec()` is an empty one.

    Example:
      >>> spec = Spec()
      >>> ball = spec.at("worldbody").add("body", name="ball", pos=[0, 0, 1])
      >>> ball.add("geom", size=0.1).get("type")
      'sphere'
      >>> spec.rename("body", "ball", "marble")
      >>> "marble" in spec.to_xml()
      True
    """

    @classmethod
    def from_element(
        cls, root: Element, *, path: str = "", files: Mapping[str, bytes] | None = None
    ) -> Spec:
        """Return a Spec from the checked tree of an MJCF file, which is copied."""
        return cls(SpecElement.from_element(root), path=path, files=files)

    @classmethod
    def from_source(cls, source: Source) -> Spec:
        """Return a Spec from the main file of a model, located by `jaxsim.mjcf.find_model`."""
        return cls.from_element(source.read(), path=source.path, files=source.files)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], files: Mapping[str, bytes] | None = None
    ) -> Spec:
        """Return a Spec from a model file, which may be an archive (`.mjz`, `.zip`).

        Args:
          path: the file, its name in `files`, or a URI that has a provider.
          files: contents of files in memory by name, searched before the disk.

        Raises:
          ModelError: the file is not a valid model; lists every fault with its location.
        """
        return cls.from_source(find_model(path, files))

    @classmethod
    def from_zip(cls, file: str | os.PathLike[str] | BinaryIO) -> Spec:
        """Return a Spec from a model archive: a path, or a binary stream open for reading.

        Raises:
          ModelError: it is not an archive with one model; see `from_file`.
        """
        if isinstance(file, str | os.PathLike):
            return cls.from_file(file)
        return cls.from_source(find_model(STREAM_NAME, data=file.read()))

    @classmethod
    def from_string(cls, text: str, files: Mapping[str, bytes] | None = None) -> Spec:
        """Return a Spec from MJCF text; errors are those of `from_file`."""
        return cls.from_element(read_string(text, assets=files), files=files)

    def path_of(self, file: str) -> str:
        """Return the path of a file that the model names, relative to its own file."""
        return join_uri(folder_name(self.path), file)

    def at(self, path: str) -> SpecElement:
        """Return the section at a path such as `worldbody` or `option/flag`; create it if
        necessary.

        Of repeated sections it is the last one, whose attributes take precedence.

        Raises:
          ValueError: the format has no such section.
        """
        element = self.root
        for tag in path.split("/"):
            found = element.find_all(tag)
            element = found[-1] if found else element.add(tag)
        return element

    def default(self, name: str = "main") -> SpecElement:
        """Return the `<default>` element of a class, to which entries can be added.

        Raises:
          KeyError: there is no such class.
        """
        found = class_elements(self.root, name)
        if found:
            return found[-1]
        if name == "main":
            return self.at("default")
        known = [e.attrs["class"] for e in self.walk() if e.tag == "default" and e.attrs]
        raise KeyError(_unknown_name_message("default class", name, known))

    def __getitem__(self, key: tuple[str, str]) -> SpecElement:
        """Return the element of a kind and name: `spec["joint", "elbow"]`.

        Raises:
          KeyError: there is none; the message names the nearest.
        """
        kind, name = key
        found = self.find(kind, name)
        if found is None:
            raise KeyError(
                _unknown_name_message(
                    kind, name, filter(None, (e.asset_name for e in self.elements(kind)))
                )
            )
        return found

    def elements(self, kind: str) -> list[SpecElement]:
        """Return all elements that define an object of a kind such as `geom` or `actuator`, as
        written.

        Raises:
          ValueError: there is no such kind.
        """
        if kind not in defined_kinds():
            raise ValueError(_unknown_name_message("kind of object", kind, sorted(defined_kinds())))
        return [e for e in self.walk() if e.defined_kind == kind]

    def to_xml(self) -> str:
        """Return the model as MJCF text, which reads back equal.

        Raises:
          ValueError: attached elements, or keyframes of a changed tree, can be expressed in MJCF
            only after compilation; use `jaxsim.flatten(spec)`.
        """
        waiting = next((e for e in self.walk() if e.origin or e.layout), None)
        if waiting is not None:
            raise ValueError(
                f"{waiting.label} was written for another model or another tree; "
                "write jaxsim.flatten(spec).to_xml() to convert its numbers"
            )
        return to_xml(self.root)

    def to_zip(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the model and all files that it names to one archive, `.mjz` by convention.

        MuJoCo reads it, and so do `from_file` and `load_model`. The model is `model.xml`; files
        inside its folder keep their relative paths.

        Args:
          file: path of the archive, or a binary stream open for writing. An existing file is
            replaced once the new one is complete.

        Raises:
          ModelError: a file that the model names cannot be read.
          OSError: the archive cannot be written.
          ValueError: the model cannot be written, see `to_xml`.
        """
        self.to_xml()  # raises if the model cannot be written
        write_archive(self, file)

    def rename(self, kind: str, old: str, new: str) -> None:
        """Rename an object, in its definition and in all references.

        Raises:
          KeyError: there is no such object.
          ValueError: the new name is taken.
        """
        if kind == "default":
            self.default(old)
            taken = bool(class_elements(self.root, new))
        else:
            self[kind, old].attrs["name"] = old  # make a name from a file name explicit
            taken = self.find(kind, new) is not None
        if taken and new != old:
            raise ValueError(f"a {kind} named '{new}' exists already")
        rename(self.root, {(kind, old): new})

    def delete(self, element: SpecElement) -> list[SpecElement]:
        """Delete an element, with everything inside it and the elements outside the tree that refer
        to it.

        Actuators, sensors, tendons, equalities and pairs are deleted with the objects they refer
        to, and the numbers of keyframes with their joints. A remaining reference to a deleted
        object, such as that of a geom to its material, is reported when the model is compiled.

        Returns:
          The other elements that were deleted.
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
        """Attach a copy of another model, or of a part of it, to a body, a frame or a site.

        Its classes, assets, and the actuators, sensors and tendons that refer to it alone are
        attached with it. They are compiled under the compiler settings of their own model.

        Args:
          child: the other model, which is not changed; it may be this one.
          to: a `<worldbody>`, `<body>` or `<frame>`; or a `<site>`, whose pose and body the part
            takes.
          part: a `<body>` or `<frame>` of `child`; None for the whole world.
          prefix: prefix of all attached names, including those of classes.
          suffix: suffix of all attached names.

        Returns:
          The frame or body in this model.

        Raises:
          ValueError: a name exists here already, or the part is not allowed there.
        """
        return attach_spec(self, child, to, part, prefix, suffix)


def _unknown_name_message(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the message that there is no object of this name, with the nearest name."""
    return f"no {kind} is called '{name}'{remedy(name, known)}"
