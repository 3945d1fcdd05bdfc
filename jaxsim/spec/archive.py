"""Write a model and all files that it names to one archive (`.mjz`, MuJoCo's MJZ).

Files inside the folder of the model keep their relative paths; others, such as those of a URI or of
a parent folder, are stored in `assets/`, and attached models in the root. The folders of the
compiler settings become part of the names, so that every name is relative to the root.
"""

from __future__ import annotations

import io
import os
import posixpath
import zipfile
from typing import BinaryIO

from jaxsim.assets.source.model_archive import ARCHIVE_MODEL
from jaxsim.assets.source.resource import ResourceError, Resources, folder_name, is_uri, join_uri
from jaxsim.atomic_write import write_whole
from jaxsim.errors import LocatedProblem, ModelError
from jaxsim.mjcf import find_model, to_xml
from jaxsim.mjcf.include_paths import FOLDER_SETTINGS
from jaxsim.spec.element import SpecElement
from jaxsim.spec.tree import Tree

STREAM_NAME = "archive.mjz"  # name of an archive that has no path
_OUTSIDE_FOLDER = "assets"  # folder of files from outside the folder of the model
_SETTINGS = ("meshdir", "texturedir", "assetdir", "strippath")
_DATE = (1980, 1, 1, 0, 0, 0)  # modification time of all members: equal models give equal archives


def write_archive(spec: Tree, file: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a model and its files; see `Spec.to_zip`."""
    packing = _Packing(folder_name(spec.path))
    packing.add_model(spec, ARCHIVE_MODEL)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in packing.members.items():
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, data)
    if isinstance(file, str | os.PathLike):
        write_whole(file, stream.getvalue())
    else:
        file.write(stream.getvalue())


class _Packing:
    """The members of an archive under construction, by name.

    Args:
      folder: folder of the main model.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.members: dict[str, bytes] = {}
        self._names: dict[str, str] = {}  # member names by their original paths

    def add_model(self, spec: Tree, name: str) -> None:
        """Add a model under a name, and all files that it names."""
        self.members[name] = b""  # reserve the name before adding its files
        spec = spec.copy()
        for element in list(spec.walk()):
            for attr, entry in element.row.attrs.items():
                if entry.type == "file" and element.attrs.get(attr):
                    self._add(spec, element, attr)
        for section in spec.sections("compiler"):
            for attr in _SETTINGS:
                section.unset(attr)
        self.members[name] = to_xml(spec.root).encode()

    def _add(self, spec: Tree, element: SpecElement, attr: str) -> None:
        """Add the file of an attribute, and set the attribute to its name in the archive."""
        file = element.attrs[attr]
        if file.lower().startswith("data:"):
            return
        path, data = _find_file(spec, element, attr)
        known = self._names.get(path)
        if known is None:
            name = _member_name(path, self._folder)
            # attached models are stored in the same folder, so that their files are relative to the
            # root too
            name = posixpath.basename(name) if element.tag == "model" else name
            known = self._names[path] = self._free(name)
            self.members[known] = data
            source = find_model(path, spec.files, data) if element.tag == "model" else None
            if source is not None and source.path == path:  # an archive becomes a member unchanged
                root = SpecElement.from_element(source.read())
                self.add_model(Tree(root, path=source.path, files=source.files), known)
        if attr == "file" and element.tag != "model" and element.row.attribute("name") is not None:
            own = element.asset_name  # name derived from the file name
            if own is not None:
                element.attrs["name"] = own
        element.attrs[attr] = known

    def _free(self, name: str) -> str:
        """Return a name that no member has yet."""
        stem, dot, extension = name.rpartition(".")
        number = 1
        free = name
        while free in self.members:
            number += 1
            free = f"{stem}_{number}{dot}{extension}"
        return free


def _find_file(spec: Tree, element: SpecElement, attr: str) -> tuple[str, bytes]:
    """Return the path and contents of a file that an element names."""
    file, folder = element.attrs[attr], FOLDER_SETTINGS.get(element.tag)
    if folder is not None:
        settings = spec.settings("compiler")
        if settings.get("strippath") == "true":
            file = file.replace("\\", "/").rsplit("/", 1)[-1]
        file = join_uri(str(settings.get(folder, settings.get("assetdir", ""))), file)
    resources = Resources(spec.files, folder_name(spec.path))
    try:
        found = resources.find(file, (resources.folder,))
        if found is None:
            resources.read(file)  # raises an error with the folders searched
            raise AssertionError("unreachable")
    except ResourceError as error:
        message = f"{element.label}: {attr}='{element.attrs[attr]}': {error}"
        raise ModelError(LocatedProblem(element.place, message)) from None
    return found


def _member_name(path: str, folder: str) -> str:
    """Return the name of a file in the archive: its path relative to the model's folder, if it is
    inside."""
    if is_uri(path):
        start = folder.rstrip("/") + "/"
        name = path[len(start) :] if is_uri(folder) and path.startswith(start) else ""
    else:
        absolute = os.path.isabs(path)
        name = os.path.relpath(path, os.path.abspath(folder)) if absolute else path
        if not absolute and folder and os.path.normpath(path).startswith(os.path.normpath(folder)):
            name = os.path.relpath(path, folder)
        name = posixpath.normpath(name.replace("\\", "/"))
    outside = not name or name.startswith(("../", "/")) or ":" in name or "::" in path
    if outside:
        base = posixpath.basename(path.replace("\\", "/").partition("::")[0])
        return f"{_OUTSIDE_FOLDER}/{base.replace(':', '_') or 'file'}"
    return name
