"""Locate and read the files that a model names.

Rules of the XML reference, compiler/meshdir: a file is relative to `meshdir` (or `texturedir`),
which is relative to the folder of the model; absolute paths are used as they are. Attached elements
use the folders of their own model.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxsim.assets.source.resource import ResourceError, Resources, folder_name, join_uri
from jaxsim.compile.context import Compilation
from jaxsim.spec import SpecElement

# Compiler setting that names the folder for each kind of asset.
ASSET_FOLDERS = {
    "mesh": "meshdir",
    "hfield": "meshdir",
    "skin": "meshdir",
    "texture": "texturedir",
}


def read_asset(c: Compilation, element: SpecElement, file: str, kind: str) -> bytes | None:
    """Return the contents of a file that an element names; None, and a fault, if it cannot be read.

    Args:
      c: the compilation.
      element: the element that names the file.
      file: the name as written.
      kind: kind of the file: "mesh", "hfield", "skin" or "texture".
    """
    try:
        return _resources(c, element).read(_name(c, element, file, kind))
    except ResourceError as error:
        c.fault(element, f"file='{file}': {error}")
        return None


def is_in_memory(c: Compilation, element: SpecElement, file: str, kind: str) -> bool:
    """Return whether a file that an element names is one of the files in memory."""
    resources, name = _resources(c, element), _name(c, element, file, kind)
    if not resources.files:
        return False
    try:
        found = resources.find(name, (resources.folder,))
    except ResourceError:
        return False
    return found is not None and found[0] in resources.files


def asset_path(c: Compilation, element: SpecElement, file: str, kind: str) -> str:
    """Return the path where a file of an element is searched first, with forward slashes."""
    path = join_uri(_resources(c, element).folder, _name(c, element, file, kind))
    return path.replace("\\", "/")


def _name(c: Compilation, element: SpecElement, file: str, kind: str) -> str:
    """Return a file name relative to the folder of the model."""
    settings = c.settings_of(element)
    name = file.replace("\\", "/").rsplit("/", 1)[-1] if settings.strippath else file
    return join_uri(getattr(settings, ASSET_FOLDERS[kind]), name)


def _resources(c: Compilation, element: SpecElement) -> Resources:
    """Return the files of the model in which an element was written."""
    source = c.spec if element.origin is None else element.origin
    key = (source.path, id(source.files))
    if key not in c.resources:
        files: Mapping[str, bytes] | None = source.files
        c.resources[key] = Resources(files, folder_name(source.path))
    return c.resources[key]
