"""Reads MJCF: a file or a text -> the checked tree of elements. The first step of the walk.

text -> parse: plain XML tree -> include: other files put in -> validate: `Element` tree
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from jaxsim.errors import ModelError, Place, Problem, Problems
from jaxsim.mjcf.element import Element
from jaxsim.mjcf.include import Files, expand_includes
from jaxsim.mjcf.parse import parse
from jaxsim.mjcf.validate import validate


def read_file(path: str | os.PathLike[str], assets: Mapping[str, bytes] | None = None) -> Element:
    """Reads an MJCF file and all that it includes.

    Args:
      path: the file.
      assets: contents of files by name, which are looked up before the disk.

    Returns:
      The `<mujoco>` element, checked against the schema.

    Raises:
      ModelError: the file cannot be read or is not a valid model; lists every fault with its place.
    """
    path = os.fspath(path)
    data = (assets or {}).get(path)
    files = Files(os.path.dirname(path), assets or {})
    return _read(_contents(path) if data is None else bytes(data), path, files)


def read_string(
    text: str | bytes, *, name: str = "<string>", assets: Mapping[str, bytes] | None = None
) -> Element:
    """Reads MJCF text; `name` stands for the file in messages. Otherwise as `read_file`.

    Files that it includes are looked up in `assets`, then in the current folder.
    """
    data = text.encode("utf-8", errors="replace") if isinstance(text, str) else text
    return _read(data, name, Files("", assets or {}))


def _read(data: bytes, name: str, files: Files) -> Element:
    root = parse(data, name)
    problems = Problems()
    files.begin(name)
    expand_includes(root, files, problems)
    element = validate(root, problems)
    problems.raise_if_any()
    assert element is not None, "a document that is refused has a problem"
    return element


def _contents(path: str) -> bytes:
    """Contents of the main file; what can go wrong, in words."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except FileNotFoundError:
        message = f"there is no such file; the current folder is {os.getcwd()!r}"
    except IsADirectoryError:
        message = "this is a folder; give the XML file inside it"
    except (OSError, ValueError) as error:
        message = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ModelError(Problem(Place(path, None), message))
