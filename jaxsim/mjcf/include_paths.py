"""Resolve file names in included files: names relative to an included file are rewritten.

The XML reference resolves names relative to the main model. MuJoCo then tries the folder of the
included file, without `meshdir` and `texturedir`; for a model to attach it tries that folder first.
"""

from __future__ import annotations

import os

from jaxsim.assets.source.provider import provider_of
from jaxsim.assets.source.resource import ResourceError, join_uri
from jaxsim.mjcf.element import Element
from jaxsim.mjcf.include import Files

# Compiler setting that names the folder of the files of an element.
FOLDER_SETTINGS = {
    "mesh": "meshdir",
    "hfield": "meshdir",
    "skin": "meshdir",
    "flexcomp": "meshdir",
    "texture": "texturedir",
    "model": None,
}


def name_from_main(root: Element, files: Files) -> None:
    """Rewrite the file names that are relative to the included file that contains them."""
    for element in root.walk():
        folder = files.folders.get(str(element.place.file))
        if folder is None or element.tag not in FOLDER_SETTINGS:
            continue
        assert element.row is not None, "a checked element has its row"
        for name, attr in element.row.attrs.items():
            if attr.type == "file" and name in element.attrs:
                file = str(element.attrs[name])
                element.attrs[name] = _name_relative_to_main(root, element.tag, file, folder, files)


def _name_relative_to_main(root: Element, tag: str, file: str, folder: str, files: Files) -> str:
    """Return a file name from an included file as it must be written in the main model."""
    kind = FOLDER_SETTINGS[tag]
    start = files.folder if kind is None else join_uri(files.folder, _setting(root, kind))
    bare = file.replace("\\", "/").rsplit("/", 1)[-1]
    own = bare if kind is not None and _setting(root, "strippath") == "true" else file
    main, beside = join_uri(start, own), join_uri(folder, file)
    first_of_main = kind is not None and _file_exists((main, own, bare), files)
    if first_of_main or main == beside or not _file_exists((beside,), files):
        return file
    if provider_of(beside):
        return beside
    if os.path.isabs(beside) != os.path.isabs(start):
        return os.path.abspath(beside)
    return os.path.relpath(beside, start or ".")


def _setting(root: Element, name: str) -> str:
    """Return the last value of a setting in the `<compiler>` sections; `assetdir` sets both
    folders."""
    value = ""
    for section in root.find_all("compiler"):
        if name in ("meshdir", "texturedir"):
            value = str(section.attrs.get("assetdir", value))
        value = str(section.attrs.get(name, value))
    return value


def _file_exists(keys: tuple[str, ...], files: Files) -> bool:
    """Return whether a file exists in memory under one of its keys, or on disk or with a provider
    under the first."""
    if any(key in files.assets for key in keys):
        return True
    provider = provider_of(keys[0])
    if provider is None:
        return os.path.isfile(keys[0])
    try:
        return provider.contents(keys[0]) is not None
    except ResourceError:
        return False
