"""Expand `<include>` elements by MuJoCo's rules.

A file is searched in the folder of the main file, then in that of the including file, first among
the contents given with the model, then on disk; a URI is read by its provider. Each file may be
included once per model. The root element of an included file, whatever its name, is replaced by its
contents.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsim.assets.source.provider import display_name
from jaxsim.assets.source.resource import ResourceError, Resources, folder_name
from jaxsim.errors import LocatedProblem, ModelError, Problems
from jaxsim.mjcf.parse import MAX_XML_DEPTH, Node, parse
from jaxsim.mjcf.schema import INCLUDE
from jaxsim.spelling import remedy

# Nesting limit of includes; each level is a level of recursion here.
MAX_INCLUDES = 100


@dataclass
class Files:
    """The files that a model may include.

    Attributes:
      folder: folder of the main file.
      assets: contents of files by name, searched before the disk.
      seen: normalized paths of the files that are already part of the model.
      folders: folders of the included files, by their names in source locations.
    """

    folder: str
    assets: Mapping[str, bytes] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    folders: dict[str, str] = field(default_factory=dict)

    def begin(self, main: str) -> None:
        """Register the main file as part of the model."""
        self.seen.add(_key(main))

    def find(self, name: str, folder: str) -> tuple[str, bytes] | None:
        """Return the path and contents of the first file with this name, as seen from `folder`."""
        return Resources(self.assets).find(name, (self.folder, folder))


def expand_includes(root: Node, files: Files, problems: Problems) -> None:
    """Replace every `<include>` below an element by the contents of its file."""
    _expand(root, files, files.folder, 1, 0, problems)


def _expand(
    node: Node, files: Files, folder: str, depth: int, level: int, problems: Problems
) -> None:
    """Expand below one element, at `depth` in the tree and at include nesting `level`.

    Elements are visited in document order, with a stack. An included file is expanded by a
    recursive call.
    """
    stack = [(node, depth)]
    while stack:
        node, depth = stack.pop()
        if depth > MAX_XML_DEPTH:
            message = (
                f"{node.label} is nested more than {MAX_XML_DEPTH} elements deep; flatten the model"
            )
            raise ModelError(LocatedProblem(node.place, message))
        written, node.children = node.children, []
        for child in written:
            if child.tag == INCLUDE.tag:
                node.children += _included_elements(child, files, folder, depth, level, problems)
            else:
                node.children.append(child)
        stack.extend((child, depth + 1) for child in reversed(written) if child.tag != INCLUDE.tag)


def _included_elements(
    node: Node, files: Files, folder: str, depth: int, level: int, problems: Problems
) -> list[Node]:
    """Return the elements that replace an `<include>`; none, and a problem, if it is wrong."""
    for attr in node.attrs.keys() - INCLUDE.attrs.keys():
        end = remedy(attr, INCLUDE.attrs, "; remove it")
        problems.add(node.place, f"<include> has no attribute '{attr}'{end}")
    try:
        path, data = _read_include(node, files, folder, level)
    except _RefusedError as error:
        problems.add(node.place, f"<include> {error}")
        return []
    files.seen.add(_key(path))
    files.folders[display_name(path)] = folder_name(path)
    try:
        root = parse(data, display_name(path))
    except ModelError as error:
        for problem in error.problems:
            problems.add(problem.place, f"{problem.message}; included by {node.place}")
        return []
    if not root.children:
        problems.add(root.place, f"the file has no elements; remove its <include> ({node.place})")
    _expand(root, files, folder_name(path), depth, level + 1, problems)
    return root.children


class _RefusedError(Exception):
    """An `<include>` that cannot be expanded; the message gives the reason."""


def _read_include(node: Node, files: Files, folder: str, level: int) -> tuple[str, bytes]:
    """Return the path and contents of the file of an `<include>`."""
    name = node.attrs.get("file")
    if not name:
        raise _RefusedError("needs the attribute 'file'")
    if node.children:
        raise _RefusedError(f"of '{name}' cannot have elements inside; put them next to it")
    if level >= MAX_INCLUDES:
        nested = f"more than {MAX_INCLUDES} includes inside one another"
        raise _RefusedError(f"of '{name}' makes {nested}; include fewer levels")
    try:
        found = files.find(name, folder)
    except ResourceError as error:
        raise _RefusedError(f"of '{display_name(name)}': {error}") from None
    if found is None:
        places = " and ".join(dict.fromkeys(repr(place or ".") for place in (files.folder, folder)))
        raise _RefusedError(f"cannot find '{name}'; looked in {places}")
    if _key(found[0]) in files.seen:
        reason = "a file may be part of a model only once"
        raise _RefusedError(f"includes '{name}' a second time; {reason}")
    return found


def _key(path: str) -> str:
    return os.path.realpath(path) if os.path.exists(path) else os.path.normpath(path)
