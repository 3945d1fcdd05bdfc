"""Read MJCF from a file or text into the checked element tree, the first stage of compilation.

text -> parse: plain XML tree -> include: expand includes -> validate: `Element` tree
     -> include_paths: resolve names of files next to an included one
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from jaxsim.assets.source.model_archive import is_archive, open_archive
from jaxsim.assets.source.provider import display_name
from jaxsim.assets.source.resource import ResourceError, Resources, folder_name, is_uri
from jaxsim.errors import AssetError, LocatedProblem, ModelError, Problems, SourceLocation
from jaxsim.mjcf.element import Element
from jaxsim.mjcf.include import Files, expand_includes
from jaxsim.mjcf.include_paths import name_from_main
from jaxsim.mjcf.parse import parse
from jaxsim.mjcf.urdf import ROBOT, read_robot
from jaxsim.mjcf.validate import validate_document


class Source(NamedTuple):
    """The main file of a model.

    Attributes:
      path: its path or URI; in an archive, as if the archive were a folder.
      data: its contents.
      files: contents of files in memory, by name; None if there are none.
    """

    path: str
    data: bytes
    files: Mapping[str, bytes] | None

    def read(self) -> Element:
        """Read the model and all files that it includes.

        Returns:
          The `<mujoco>` element, checked against the schema.

        Raises:
          ModelError: it is not a valid model; lists every fault with its location.
        """
        files: Mapping[str, bytes] = {} if self.files is None else self.files
        return _read(self.data, self.path, Files(folder_name(self.path), files))


def find_model(
    path: str | os.PathLike[str],
    assets: Mapping[str, bytes] | None = None,
    data: bytes | None = None,
) -> Source:
    """Find the main file of a model, which may be in an archive (`.mjz`, `.zip`).

    Args:
      path: the file or archive, its name in `assets`, or a URI that has a provider.
      assets: contents of files by name, which are looked up before the disk.
      data: contents of the file or archive, if they have been read already.

    Raises:
      ModelError: there is no such file, or it is an archive without a model that can be read.
    """
    path = os.fspath(path)
    data = file_contents(path, assets) if data is None else data
    if not is_archive(path, data):
        return Source(path, data, assets)
    try:
        return Source(*open_archive(path, data, assets))
    except AssetError as error:
        place = SourceLocation(display_name(path), None)
        raise ModelError(LocatedProblem(place, str(error).removeprefix(f"{path}: "))) from None


def read_file(
    path: str | os.PathLike[str],
    assets: Mapping[str, bytes] | None = None,
    data: bytes | None = None,
) -> Element:
    """Read an MJCF file and all that it includes; see `find_model` and `Source.read`."""
    return find_model(path, assets, data).read()


def read_string(
    text: str | bytes, *, name: str = "<string>", assets: Mapping[str, bytes] | None = None
) -> Element:
    """Read MJCF text; see `read_file`.

    Args:
      text: the MJCF text.
      name: name of the text in messages.
      assets: contents of included files by name, searched before the current folder.
    """
    data = text.encode("utf-8", errors="replace") if isinstance(text, str) else text
    return _read(data, name, Files("", assets or {}))


def _read(data: bytes, name: str, files: Files) -> Element:
    root = parse(data, display_name(name))
    problems = Problems()
    files.begin(name)
    element: Element | None
    if root.tag == ROBOT.tag:
        element = read_robot(root, problems)
    else:
        expand_includes(root, files, problems)
        element = validate_document(root, problems)
        if element is not None:
            name_from_main(element, files)
    problems.raise_if_any()
    assert element is not None, "a document that is refused has a problem"
    return element


def file_contents(path: str, assets: Mapping[str, bytes] | None = None) -> bytes:
    """Return the contents of the main file of a model, located as by `read_file`.

    Raises:
      ModelError: there is no such file.
    """
    try:
        found = Resources(assets).find(path, ("",))
    except ResourceError as error:
        raise ModelError(
            LocatedProblem(SourceLocation(display_name(path), None), str(error))
        ) from None
    if found is not None:
        return found[1]
    if os.path.isdir(path):
        message = "this is a folder; give the XML file inside it"
    elif is_uri(path):
        scheme = path.partition(":")[0]
        message = (
            f"no provider is registered for '{scheme}:'; jaxsim.extend.register_provider adds one"
        )
    else:
        message = f"there is no such file; the current folder is {os.getcwd()!r}"
    raise ModelError(LocatedProblem(SourceLocation(path, None), message))
